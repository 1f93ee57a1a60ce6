/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic over one figure in the course of time: which way does it go, and is that more than noise?
 * docs/verdicts.md derives it and says what it can and cannot see. Pure; nothing here allocates.
 *
 * A long series is first cut into windows of equal time, of which each counts by its median: what is shorter
 * than a window (spikes, the size of one batch) is gone then, and the work is bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was seen: value i is values[i], or values[i] + also[i] where `also` is given and known at i. Those
 * that are U64_UNKNOWN are skipped. */
typedef struct ValueSeries {
    const double *seconds; /* rising */
    const uint64_t *values;
    const uint64_t *also; /* NULL: nothing */
    size_t n;
} ValueSeries;

enum { WINDOWS_MAX = 48, WINDOWS_LEAST = 8 };

typedef struct Windows {
    double seconds[WINDOWS_MAX]; /* the middle of each that has a value */
    double levels[WINDOWS_MAX];
    size_t n;
    size_t samples; /* values that were known */
} Windows;

/* `most` windows between two times; fewer when there are few values. */
void windows_make(const ValueSeries *figures, double from, double until, size_t most, Windows *ret);

typedef enum TrendKind {
    TREND_UNKNOWN,  /* too few windows */
    TREND_FLAT,     /* no more than noise */
    TREND_RISING,   /* and it goes on */
    TREND_SETTLING, /* rose, less and less */
    TREND_STEPPED,  /* rose, nearly all of it at once */
    TREND_FALLING,
} TrendKind;

typedef struct Trend {
    TrendKind kind;
    double slope; /* a second; Theil and Sen's: the median of the slopes between all pairs of windows */
    double from;  /* the level at the beginning, */
    double until; /* at the end, */
    double noise; /* and how far windows lie from the straight line: 1.4826 × the median distance */
    double began; /* seconds; what is before was not used */
    double ended;
    double z;     /* Mann and Kendall's test, normal when there is no trend and no memory in the noise */
    double error; /* of the slope, with the noise's memory allowed for */
    double t;     /* the slope over its error */
    size_t samples;
    size_t windows;
    size_t rises; /* windows that are higher than the one before by a fair part of what each should rise */
} Trend;

/* A step or a bend early on is left out, as long as enough is behind it. */
Trend trend_of_windows(const Windows *windows);
Trend trend_of(const ValueSeries *figures, double from, double until);

/* For figures without noise of which only a few were taken: TREND_SETTLING when from 4 samples on they rise,
 * and never fall by more than a little, else TREND_UNKNOWN. */
Trend trend_of_few(const ValueSeries *figures, double from, double until);

/* `n` must not be 0; the order is changed. */
double median_of(double *values, size_t n);

/*
 * Rises that end in a fall, one after the other. Of the cycles that the threshold finds (a fall of nearly
 * half of all that the figure moves), `gradual` have a rise that takes its time and a fall that takes none:
 * teeth.
 */
typedef struct Teeth {
    size_t samples;
    size_t cycles;    /* whole ones: trough, peak, and the fall behind it */
    size_t gradual;   /* of these */
    double height;    /* median from trough to peak */
    double period;    /* median seconds from peak to peak, */
    double shortest;  /* the least, */
    double longest;   /* and the most of these */
    double slope;     /* median, of the rises */
    double low;       /* the median trough, */
    double high;      /* the median peak */
    double lows_rose; /* from the first trough to the last */
    double began;     /* of what was looked at */
    double ended;
    Trend troughs; /* whether what is left after each fall grows */
} Teeth;

Teeth teeth_of(const ValueSeries *figures, double from, double until);
