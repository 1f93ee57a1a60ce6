/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which setting of a grid is fastest and still safe, found with few trials. Pure: it is told how trials went,
 * and says what to try next; the answer follows from the trials alone, so a search goes on from a file of
 * them.
 *
 * The method. First a setting that is safe by the arithmetic of plan.h, and a few that lie far apart. Then a
 * smooth surface is laid through the logarithms of what was measured (a Gaussian process with a Matérn 5/2
 * kernel over the places of the values in their order, whose length scales are those under which the
 * measurements are likeliest), and the next setting is the one that may be expected to gain most on the best.
 * When that is little, the neighbours of the best are compared with it, since rates have edges that a smooth
 * surface does not know: where the processors are all taken, one worker more or less decides. Part of the
 * trials is kept for that and for repeating the two leaders, in turn, until their intervals separate.
 *
 * Words
 *
 * axis: a parameter with its values. setting: one value of each axis, numbered with the last axis running
 * fastest. trial: one run of the command with a setting.
 *
 * interval: a rate and two standard errors to each side. The noise is that of all repeated trials together,
 * in parts of the rate; before anything was repeated, that within the trials.
 */
#pragma once

#include "arena.h"
#include "cause.h"
#include "plan.h"
#include "text.h"

enum { TUNE_AXES_MAX = 6, TUNE_VALUES_MAX = 64, TUNE_SETTINGS_MAX = 4096, TUNE_TRIALS_MAX = 512 };

/* What the numbers of an axis count, told by its name. */
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
    const double *numbers; /* the values; NULL: not all of them are numbers from 0 on */
    const double *places;  /* 0…1, in the order of the numbers, else in that of the values */
    TuneCounts counts;
} TuneAxis;

bool tune_counts_processes(TuneCounts counts);

/* values must stay; what was made lives in arena. -ENOMEM. */
int tune_axis_make(const char *name, const char *const *values, size_t n, Arena *arena, TuneAxis *ret);

typedef struct TuneTrial {
    size_t setting;
    bool measured;
    double rate;
    double error;       /* standard error within the trial */
    double seconds;     /* that the command ran */
    bool stopped;       /* early, being clearly worse */
    Cause cause;        /* CAUSE_OK: it ended well, or because its time was over */
    bool less_helps;    /* smaller values might have let it live */
    uint64_t shm_bytes; /* peaks; U64_UNKNOWN */
    uint64_t own_bytes; /* without shared memory, at most: pages that processes share are counted in each */
    uint64_t rss_bytes;
    uint64_t fds;
    uint64_t processes;
} TuneTrial;

typedef struct Tune {
    const TuneAxis *axes;
    size_t n_axes;
    uint64_t ceiling_bytes;   /* U64_UNKNOWN: none */
    size_t most;              /* trials, those of the past included */
    const PlanLoader *loader; /* with the fields of a sample; NULL: they are not known */
    TuneTrial *trials;        /* in their order */
    size_t n;
    size_t capacity;
} Tune;

size_t tune_settings(const Tune *tune); /* of the whole grid */

/* The place of a setting's value on an axis. */
size_t tune_value(const Tune *tune, size_t setting, size_t axis);

/* A third of the grid; of a small one as many as a search needs, at most all of it and two repeats. */
size_t tune_trials_default(size_t n_settings, size_t n_axes);

/*
 * Where to begin: of the settings whose need, with the margin, stays below the ceiling the one nearest to the
 * middle; where there is none, the one that needs least. Without a ceiling, the middle.
 *
 * What a sample takes is assumed where the loader is not known: more than nearly all samples do. So is what a
 * process takes besides.
 */
typedef struct TuneStart {
    size_t setting;
    uint64_t sample_bytes;
    bool assumed;        /* sample_bytes is */
    bool fits;           /* false: the one that needs least */
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
    TUNE_SKIPPED_SMALLER, /* one that is no larger anywhere ran out of memory */
} TuneFate;

/* What is known of one setting. */
typedef struct TuneSetting {
    TuneFate fate;
    size_t trials;
    size_t measured; /* of these */
    double rate;     /* their mean */
    double low;      /* the interval */
    double high;
    uint64_t memory_bytes; /* the most that was measured; of one not tried, estimated; U64_UNKNOWN */
    const TuneTrial *last; /* NULL: none */
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

/* A trial that goes at this rate so far cannot become the best one. */
bool tune_is_hopeless(const Tune *tune, double rate, double error);

typedef struct TuneVerdict {
    bool found;  /* something was measured */
    bool safe;   /* best stayed below the ceiling, and all its trials ended well */
    size_t best; /* among those that cannot be told apart and are equally fast, the one with least memory */
    bool separated; /* its interval lies above all others */
    size_t rivals;  /* settings whose intervals reach into that of best */
    size_t next;    /* the fastest of the others */
    bool has_next;
    size_t measured; /* settings, of whatever fate */
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
