/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of verdicts share. A trial goes through a history job by job. Of each job, processes about
 * which the same is to be said are kin: one verdict, about the worst of them.
 */
#pragma once

#include "epochs.h"
#include "statistics.h"
#include "verdicts.h"

#define MIB 0x1p20

/* Less than this says nothing about anybody's memory, however regular it is. */
enum { SAMPLES_LEAST = 16 };
#define SECONDS_LEAST 4.0

/* The part of a process's time that is taken for its warm-up: imports, first batches, allocators that grow.
 */
#define WARM_UP          0.20
#define WARM_UP_ATTACHED 0.05 /* of one that had lived for longer than it was watched, when that began */

/*
 * What is smaller is nobody's trouble, or ordinary wear: an amount, and the part of the level at the end,
 * when it was watched for so many seconds. What was watched for less must be as many times more: pools and
 * caches fill in a straight line too, and only time tells them from what never ends.
 */
typedef struct Least {
    double amount;
    double share;
    double seconds;
} Least;

#define LEAK_LEAST   ((Least){4 * MIB, 0.02, 300})
#define SAW_LEAST    ((Least){8 * MIB, 0.03, 60})
#define TEETH_LEAST  ((Least){16 * MIB, 0.10, 300}) /* allocators make even ones too, of a few seconds */
#define SHARED_LEAST ((Least){4 * MIB, 0.10, 60})
#define KEPT_LEAST   ((Least){32 * MIB, 0.67, 60})
#define FILE_LEAST   ((Least){16 * MIB, 0.15, 60})
#define FDS_LEAST    ((Least){12, 0.20, 60})
#define COPY_LEAST   ((Least){16 * MIB, 0.15, 60}) /* the share is of what was shared at fork */
#define CROWD_LEAST  ((Least){64 * MIB, 0.20, 60})

/* However short it was watched, growth by such a part of all is not asked to be a larger one. */
#define SHARE_MOST 0.30

typedef enum Worth {
    WORTH_NOTHING,
    WORTH_WAITING, /* a verdict, had it been watched for long enough */
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
    double rate_of_all; /* of those that are still there */
    double left_of_all; /* bytes that can follow, of what ends by itself: copies, teeth */
} VerdictGroup;

/* Growth that may become a verdict when it is watched for longer: the one that lacks least. */
typedef struct PendingGrowth {
    const ProcessTrack *track; /* NULL: there is none */
    const char *metric;
    double rate;
    double times; /* the least amount */
    const char *evidence;
} PendingGrowth;

typedef struct JudgedJob {
    int id;
    double first_worker; /* when it was born; 0 when there was one at the start, or is none */
    bool renewed;        /* workers have ended and others have come: epochs */
    double newest_worker;
    double last_worker; /* when the last of them was seen; INFINITY when there was none */
    double worker_life; /* the longest of those that have ended */
    Epochs epochs;
    const ProcessTrack *judged; /* the one whose steadiness is worth a word */
    Trend judged_trend;
    PendingGrowth pending;
    VerdictGroup group[VERDICT_IDS][ROLES];
} JudgedJob;

typedef struct VerdictContext {
    const History *history;
    Arena *arena;
    double end;
    bool guarded;
    Verdicts verdicts;
    int r; /* the first error; what comes after it does nothing */
} VerdictContext;

/* --- ValueSeries
 * -------------------------------------------------------------------------------------------- */

ValueSeries process_figures(const ProcessTrack *track, ProcessMetric metric);
ValueSeries private_figures(const ProcessTrack *track); /* what is swapped out is the process's still */
ValueSeries job_figures(const History *history, size_t metric);
double track_until(const ProcessTrack *track);

/* Or ended so late that it would have gone on. */
bool track_is_there(const VerdictContext *context, const ProcessTrack *track);

/* The newest value that is known at a time, at most a few minutes old; unknown. */
uint64_t value_at(const ValueSeries *figures, double seconds);
uint64_t job_at(const VerdictContext *context, size_t metric, double seconds);

double growth_of(const Trend *trend);
double seconds_of(const Trend *trend); /* for which it was watched */

/* What growth must be when it was watched for so long. */
Least least_after(Least least, double seconds);
Worth worth_of(double growth, double level, Least least, double seconds);
Worth worth_growing(const Trend *trend, Least least); /* of what goes on */
bool grows(const Trend *trend, Least least);
bool grew(const Trend *trend, Least least); /* whether or not it goes on */

/* --- How long it can go on: seconds, INFINITY when that is unknown ----------------------------------------
 */

double memory_room(const VerdictContext *context,
                   double seconds); /* bytes of RAM that the job may still take, then */
double shared_room(const VerdictContext *context, double seconds);
double seconds_until(double room, double rate);

/* --- Words ---------------------------------------------------------------------------------------------- */

/* Sums of figures that a broken recording holds may be beyond any size. */
#define BYTES(x) SIZE_TEXT((uint64_t)MIN(MAX((x), 0.0), 0x1p62))

/* "" and the trial's error when there is no memory. */
#define WORDS(context, ...) words_made((context), arena_printf((context)->arena, __VA_ARGS__))
const char *words_made(VerdictContext *context, const char *words);

/* `words`, a blank and another sentence. */
#define WORDS_AND(context, words, ...) WORDS((context), "%s %s", (words), WORDS((context), __VA_ARGS__))

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

/* Growth that is WORTH_WAITING; `grew` is a sentence about it. */
void pending_growth_add(VerdictContext *context, JudgedJob *job, const ProcessTrack *track, const char *grew,
                        const char *metric, const Trend *trend, Least least);

/* One process by itself. */
void process_judge(VerdictContext *context, JudgedJob *job, const ProcessTrack *track);

/* A worker whose life is an epoch: its growth ends with it. */
bool is_of_epoch(const JudgedJob *job, const ProcessTrack *track);

/* All of those together, and others' figures folded by the epoch. */
void epochs_judge(VerdictContext *context, JudgedJob *job);

/* What a process does within epochs, where these are known, and for how many seconds it was watched. */
bool epochs_fold(VerdictContext *context, const JudgedJob *job, const ProcessTrack *track, double from,
                 Trend *ret_trend, size_t *ret_epochs, double *ret_seconds);

/* Copies of what was shared at fork. */
bool shared_at_fork(const ProcessTrack *track, double *ret_bytes);
Worth worth_copying(const Trend *copies, const Trend *own, const Trend *file, double shared, double seconds);
void copies_add(VerdictContext *context, JudgedJob *job, const ProcessTrack *track, const Trend *copies,
                double shared);

/* The job as a whole. */
void crowd_judge(VerdictContext *context, const JudgedJob *job);
void shared_judge(VerdictContext *context);
void cache_judge(VerdictContext *context);
