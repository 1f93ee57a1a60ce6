/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What verdicts*.c share. A history is judged job by job. The processes of a job that have one verdict and
 * one role are a group: one verdict, about the worst of them.
 */
#pragma once

#include "epochs.h"
#include "statistics.h"
#include "verdicts.h"

#define MIB 0x1p20

/* Less than this says nothing about memory, however regular it is. */
enum { SAMPLES_LEAST = 16 };
#define SECONDS_LEAST 4.0

/* The share of a process's time that counts as its warm-up: imports, first batches, allocators that grow. */
#define WARM_UP 0.20
#define WARM_UP_ATTACHED                                                                                     \
    0.05 /* if, when the recording began, the process had already lived for longer than it was then observed \
          */

/*
 * Smaller growth is harmless or normal: an amount, and a share of the level at the end, when it was observed
 * for this many seconds. Growth that was observed for a shorter time must be that many times larger: pools
 * and caches fill in a straight line too, and only time tells them from growth without end.
 */
typedef struct Least {
    double amount;
    double share;
    double seconds;
} Least;

#define LEAK_LEAST   ((Least){4 * MIB, 0.02, 300})
#define SAW_LEAST    ((Least){8 * MIB, 0.03, 60})
#define TEETH_LEAST  ((Least){16 * MIB, 0.10, 300}) /* allocators make even teeth too, of a few seconds */
#define SHARED_LEAST ((Least){4 * MIB, 0.10, 60})
#define KEPT_LEAST   ((Least){32 * MIB, 0.67, 60})
#define FILE_LEAST   ((Least){16 * MIB, 0.15, 60})
#define FDS_LEAST    ((Least){12, 0.20, 60})
#define COPY_LEAST   ((Least){16 * MIB, 0.15, 60}) /* the share is of what was shared at fork */
#define CROWD_LEAST  ((Least){64 * MIB, 0.20, 60})

/* Growth by this share is enough, however short the time was. */
#define SHARE_MOST 0.30

typedef enum Worth {
    WORTH_NOTHING,
    WORTH_WAITING, /* would be a verdict, had it been observed for long enough */
    WORTH_NAMING,
} Worth;

enum { ROLES = ROLE_MANAGER + 1 };

typedef struct VerdictGroup {
    const ProcessTrack *worst;
    const char *metric;
    double rate;
    double confidence;
    const char *evidence;
    size_t n;
    double rate_of_all; /* of the processes that are still alive */
    double left_of_all; /* bytes that can follow, for growth that ends by itself: copies, teeth */
    bool of_tensors;    /* as in Verdict */
} VerdictGroup;

/* Growth that may become a verdict in a longer recording, of all processes of a job. */
typedef struct PendingGrowth {
    VerdictGroup group; /* n is 0: no such growth. The worst is the one that comes closest to a verdict */
    double times;       /* as much as is needed, in the worst */
    double longer;      /* seconds to record */
} PendingGrowth;

typedef struct JudgedJob {
    int id;
    double first_worker; /* when the first worker started; 0 when one was there from the start, or when there
                            is none */
    bool renewed;        /* workers have ended and others have started: epochs */
    double newest_worker;
    double last_worker; /* when the last worker was seen; INFINITY when there was none */
    double worker_life; /* the longest life of a worker that has ended */
    Epochs epochs;
    const ProcessTrack *judged; /* the process that a verdict of "steady" is about */
    Trend judged_trend;
    PendingGrowth pending[VERDICT_IDS]; /* by what they may become */
    VerdictGroup group[VERDICT_IDS][ROLES];
} JudgedJob;

typedef struct VerdictContext {
    const History *history;
    Arena *arena;
    double end;
    bool guarded;
    uint64_t frozen_bytes; /* of datasets that were made immortal */
    Verdicts verdicts;
    int r; /* the first error; nothing is added after it */
} VerdictContext;

/* --- Series --------------------------------------------------------------------------------------------- */

ValueSeries process_figures(const ProcessTrack *track, ProcessMetric metric);
ValueSeries private_figures(const ProcessTrack *track); /* including what is swapped out */
ValueSeries job_figures(const History *history, size_t metric);
double track_until(const ProcessTrack *track);

/* Whether it is alive at the end, or ended so late that its growth would have continued. */
bool track_is_there(const VerdictContext *context, const ProcessTrack *track);

/* The newest value known at a time, at most a few minutes old; else U64_UNKNOWN. */
uint64_t value_at(const ValueSeries *figures, double seconds);
uint64_t job_at(const VerdictContext *context, size_t metric, double seconds);

double growth_of(const Trend *trend);
double seconds_of(const Trend *trend); /* for which it was observed */

/* The least growth that counts after that time. */
Least least_after(Least least, double seconds);
Worth worth_of(double growth, double level, Least least, double seconds);
Worth worth_growing(const Trend *trend, Least least); /* of growth that continues */
bool grows(const Trend *trend, Least least);
bool grew(const Trend *trend, Least least); /* whether or not it continues */

/* --- How long until nothing is left: seconds, INFINITY when that is unknown ------------------------------
 */

double memory_room(const VerdictContext *context,
                   double seconds); /* bytes of RAM that the job may still take at that time */
double shared_room(const VerdictContext *context, double seconds);
double open_files_room(const VerdictContext *context, const ProcessTrack *track);
double seconds_until(double room, double rate);

/* --- Words ---------------------------------------------------------------------------------------------- */

/* The sums of a damaged recording may exceed any size. */
#define BYTES(x) SIZE_TEXT((uint64_t)MIN(MAX((x), 0.0), 0x1p62))

/* Text from the arena. Without memory: "", and the error is kept in context->r. */
#define WORDS(context, ...) words_made((context), arena_printf((context)->arena, __VA_ARGS__))
const char *words_made(VerdictContext *context, const char *words);

/* `words`, a blank and another sentence. */
#define WORDS_AND(context, words, ...)                                                                       \
    ({                                                                                                       \
        const char *_first = (words);                                                                        \
        WORDS((context), "%s%s%s", _first, sentence_gap(text_of(_first)), WORDS((context), __VA_ARGS__));    \
    })

/* What the placeholders of verdicts-text.h take for a process and for growth. */
#define SUBJECT(track) (track)->last.pid, role_name((track)->last.role)
#define GROWTH(trend)                                                                                        \
    BYTES((trend)->from), BYTES((trend)->until), DURATION_TEXT(seconds_of(trend)), BYTES((trend)->slope),    \
        (trend)->rises, (trend)->windows - 1

/* One of the sentences VERDICT_PENDING_…, about bytes. */
#define PENDING(context, sentence, track, trend)                                                             \
    WORDS((context), sentence, SUBJECT(track), BYTES(growth_of(trend)), DURATION_TEXT(seconds_of(trend)))

double confidence_of(const Trend *trend);

/* --- Judges --------------------------------------------------------------------------------------------- */

void group_add(VerdictContext *context, JudgedJob *job, VerdictId id, const ProcessTrack *track,
               const VerdictGroup *found);
void cache_add(VerdictContext *context, JudgedJob *job, const ProcessTrack *track, const Trend *file);
void verdict_add(VerdictContext *context, const Verdict *verdict);

/* Growth that is WORTH_WAITING, and may become that verdict; `grew` is a sentence about it. */
void pending_growth_add(VerdictContext *context, JudgedJob *job, VerdictId id, const ProcessTrack *track,
                        const char *grew, const Trend *trend, Least least);

/* Judges a single process. */
void process_judge(VerdictContext *context, JudgedJob *job, const ProcessTrack *track);

/* Whether this is a worker that lives for one epoch: its growth ends with it. */
bool is_of_epoch(const JudgedJob *job, const ProcessTrack *track);

/* Judges all workers that live for one epoch, together. */
void epochs_judge(VerdictContext *context, JudgedJob *job);

/* The trend of a process within its epochs, and for how many seconds they were observed. False when epochs
 * are unknown. */
bool epochs_fold(VerdictContext *context, const JudgedJob *job, const ProcessTrack *track, double from,
                 Trend *ret_trend, size_t *ret_epochs, double *ret_seconds);

/* Copies of what was shared at fork. */
bool shared_at_fork(const ProcessTrack *track, double *ret_bytes);
Worth worth_copying(const Trend *copies, const Trend *own, const Trend *file, double shared, double seconds);
void copies_add(VerdictContext *context, JudgedJob *job, const ProcessTrack *track, const Trend *copies,
                double shared);

/* Judge the job as a whole. */
void crowd_judge(VerdictContext *context, const JudgedJob *job);
void shared_judge(VerdictContext *context);
void cache_judge(VerdictContext *context);
