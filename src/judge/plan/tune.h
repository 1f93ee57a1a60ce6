/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the fastest safe setting of a grid with few trials. Pure: it is given the results of trials and says
 * what to try next. The answer follows from the trials alone, so a search can continue from a file of them.
 *
 * The method. First a setting that is safe by the arithmetic of plan.h, and a few that lie far apart. Then a
 * smooth surface is laid through the logarithms of the rates (a Gaussian process with a Matérn 5/2 kernel
 * over the places of the values in their order, with the length scales under which the measurements are
 * likeliest), and the setting with the largest expected gain over the best is tried next. When that gain is
 * small, the neighbours of the best are compared with it, since rates have edges that a smooth surface does
 * not know: where all processors are busy, one worker more or less decides. Part of the trials is kept for
 * that and for repeating the two leaders, in turn, until their intervals separate.
 *
 * Words
 *
 * axis: a parameter with its values. setting: one value of each axis, numbered with the last axis running
 * fastest. trial: one run of the command with a setting.
 *
 * interval: a rate and two standard errors to each side. The noise is that of all repeated trials together,
 * as a part of the rate; before anything was repeated, it is the noise within the trials.
 */
#pragma once

#include "arena.h"
#include "cause.h"
#include "plan.h"
#include "text.h"

enum { TUNE_AXES_MAX = 6, TUNE_VALUES_MAX = 64, TUNE_SETTINGS_MAX = 4096, TUNE_TRIALS_MAX = 512 };

/* What the numbers of an axis count, by its name. */
typedef enum TuneCounts {
    COUNTS_OTHER,
    COUNTS_SAMPLES, /* batch, batch_size, bs */
    COUNTS_PREFETCH,
    COUNTS_WORKERS,  /* of each trainer: workers, num_workers */
    COUNTS_TRAINERS, /* nproc_per_node */
} TuneCounts;

typedef struct TuneAxis {
    const char *name;
    const char *const *values;
    size_t n;
    const double *numbers; /* the values; NULL: not all of them are numbers of at least 0 */
    const double *places;  /* 0…1, in the order of the numbers, else of the values */
    TuneCounts counts;
} TuneAxis;

bool tune_counts_processes(TuneCounts counts);

/* Keeps `values`; the rest lives in arena. -ENOMEM. */
int tune_axis_make(const char *name, const char *const *values, size_t n, Arena *arena, TuneAxis *ret);

typedef struct TuneTrial {
    size_t setting;
    bool measured;
    double rate;
    double error;       /* standard error within the trial */
    double seconds;     /* that the command ran */
    bool stopped;       /* early, since it was clearly slower */
    Cause cause;        /* CAUSE_OK: it ended well, or its time was over; in English */
    const char *shown;  /* its summary in the language of people; NULL: only the English one is known */
    bool less_helps;    /* smaller values might have let it live */
    uint64_t shm_bytes; /* peaks; U64_UNKNOWN */
    uint64_t own_bytes; /* without shared memory; too high, as shared pages are counted in each process */
    uint64_t rss_bytes;
    uint64_t fds;
    uint64_t processes;
} TuneTrial;

typedef struct Tune {
    const TuneAxis *axes;
    size_t n_axes;
    uint64_t ceiling_bytes;   /* U64_UNKNOWN: none */
    size_t most;              /* trials, including earlier ones */
    const PlanLoader *loader; /* with the fields of a sample; NULL: not known */
    TuneTrial *trials;        /* in order */
    size_t n;
    size_t capacity;
} Tune;

size_t tune_settings(const Tune *tune); /* of the whole grid */

/* The index of the value of a setting on an axis. */
size_t tune_value(const Tune *tune, size_t setting, size_t axis);

/* A third of the grid; for a small grid as many as a search needs, at most all settings and two repeats. */
size_t tune_trials_default(size_t n_settings, size_t n_axes);

/*
 * Where to begin: of the settings whose need, with the margin, stays below the ceiling, the one nearest to
 * the middle; if there are none, the one that needs least. Without a ceiling, the middle.
 *
 * Where the loader is not known, the size of a sample is assumed: more than nearly all samples take. The
 * other memory of a process is assumed, too.
 */
typedef struct TuneStart {
    size_t setting;
    uint64_t sample_bytes;
    bool assumed;        /* sample_bytes is assumed */
    bool fits;           /* false: no setting fits, and this one needs least */
    uint64_t need_bytes; /* of shared memory, without the margin */
} TuneStart;

TuneStart tune_start(const Tune *tune);

/* "batch=64 workers=4", escaped. 0 or -ENOMEM. */
int tune_setting_words(const Tune *tune, size_t setting, Buffer *out);

typedef enum TuneFate {
    TUNE_UNTRIED,
    TUNE_MEASURED,
    TUNE_OVER,            /* measured, and took more memory than the ceiling */
    TUNE_FAILED,          /* no trial of it ended well with a rate */
    TUNE_SKIPPED_MEMORY,  /* estimated to need more than the ceiling */
    TUNE_SKIPPED_SMALLER, /* a setting that is nowhere larger ran out of memory */
} TuneFate;

/* What is known about one setting. */
typedef struct TuneSetting {
    TuneFate fate;
    size_t trials;
    size_t measured; /* of these */
    double rate;     /* mean of the measured trials */
    double low;      /* the interval */
    double high;
    uint64_t memory_bytes; /* the measured maximum; estimated if it was not tried; U64_UNKNOWN */
    const TuneTrial *last; /* NULL: not tried */
} TuneSetting;

TuneSetting tune_setting(const Tune *tune, size_t setting);

/* The noise between trials of one setting, as a part of the rate. */
double tune_noise(const Tune *tune);

typedef enum TuneMove {
    TUNE_TRY,
    TUNE_REPEAT,
    TUNE_DONE,
} TuneMove;

typedef struct TuneStep {
    TuneMove move;
    size_t setting;
} TuneStep;

/* -ENOMEM. */
int tune_next(const Tune *tune, TuneStep *ret);

/* A trial that has had this rate so far cannot become the best. */
bool tune_is_hopeless(const Tune *tune, double rate, double error);

typedef struct TuneVerdict {
    bool found;     /* something was measured */
    bool safe;      /* best stayed below the ceiling, and all its trials ended well */
    size_t best;    /* of equally fast settings that cannot be told apart, the one with the least memory */
    bool separated; /* its interval lies above all others */
    size_t rivals;  /* settings whose intervals overlap with that of best */
    size_t next;    /* the fastest of the others */
    bool has_next;
    size_t measured; /* settings that have a rate */
    size_t failed;
    size_t skipped;
} TuneVerdict;

TuneVerdict tune_verdict(const Tune *tune);

/* A search: what it was asked, and how far it has come. */
typedef struct TuneReport {
    Tune tune;
    TuneVerdict verdict;
    char *const *command; /* as it was given, NULL-terminated */
    bool by_bytes;        /* rates are bytes of tensors a second, counted by the guard; else samples */
    double trial_seconds;
    bool interrupted;
    const char *why; /* one paragraph; NULL while nothing was found */
} TuneReport;
