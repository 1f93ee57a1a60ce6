/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic over one figure in the course of time: in which direction does it go, and is that more than
 * noise? docs/verdicts.md derives it and says what it can and cannot see. Pure; nothing here allocates.
 *
 * A long series is first divided into windows of equal time, and each window counts by its median: this
 * removes what is shorter than a window (spikes, the size of one batch) and bounds the work.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The samples: value i is values[i], plus also[i] where `also` is given and known at i. Values that are
 * U64_UNKNOWN are skipped. */
typedef struct ValueSeries {
    const double *seconds; /* rising */
    const uint64_t *values;
    const uint64_t *also; /* NULL: nothing */
    size_t n;
} ValueSeries;

enum { WINDOWS_MAX = 48, WINDOWS_LEAST = 8 };

typedef struct Windows {
    double seconds[WINDOWS_MAX]; /* the middle of each window that has a value */
    double levels[WINDOWS_MAX];
    size_t n;
    size_t samples; /* known values */
} Windows;

/* `most` windows between two times; fewer when there are few values. */
void windows_make(const ValueSeries *figures, double from, double until, size_t most, Windows *ret);

typedef enum TrendKind {
    TREND_UNKNOWN,  /* too few windows */
    TREND_FLAT,     /* no more than noise */
    TREND_RISING,   /* and continues to */
    TREND_SETTLING, /* rose, more and more slowly */
    TREND_STEPPED,  /* rose, nearly all of it at once */
    TREND_FALLING,
} TrendKind;

typedef struct Trend {
    TrendKind kind;
    double slope; /* per second; Theil and Sen's: the median of the slopes between all pairs of windows */
    double from;  /* the level at the beginning */
    double until; /* the level at the end */
    double noise; /* how far windows lie from the straight line: 1.4826 × the median distance */
    double began; /* seconds; earlier values were not used */
    double ended;
    double z; /* Mann and Kendall's test; normally distributed without a trend and with uncorrelated noise */
    double error; /* of the slope, taking the correlation of the noise into account */
    double t;     /* the slope divided by its error */
    size_t samples;
    size_t windows;
    size_t rises; /* windows that rose by a fair part of the expected rise */
} Trend;

/* An early step or bend is left out, if enough comes after it. */
Trend trend_of_windows(const Windows *windows);
Trend trend_of(const ValueSeries *figures, double from, double until);

/* For figures without noise that were sampled only a few times: TREND_SETTLING when 4 samples or more rise
 * and never fall by more than a little, else TREND_UNKNOWN. */
Trend trend_of_few(const ValueSeries *figures, double from, double until);

/* `n` must not be 0; changes the order of the values. */
double median_of(double *values, size_t n);

/*
 * Rises that end in a fall, one after the other. Of the cycles that the threshold finds (a fall of nearly
 * half of the figure's range), `gradual` have a slow rise and a fast fall: teeth.
 */
typedef struct Teeth {
    size_t samples;
    size_t cycles;    /* complete ones: trough, peak and the fall after it */
    size_t gradual;   /* of these, those that are teeth */
    double height;    /* median from trough to peak */
    double period;    /* median seconds from peak to peak */
    double shortest;  /* the shortest period */
    double longest;   /* the longest period */
    double slope;     /* median, of the rises */
    double low;       /* the median trough */
    double high;      /* the median peak */
    double lows_rose; /* from the first trough to the last */
    double began;     /* of the examined time */
    double ended;
    Trend troughs; /* the trend of what is left after each fall */
} Teeth;

Teeth teeth_of(const ValueSeries *figures, double from, double until);
