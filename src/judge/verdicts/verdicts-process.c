/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts about a single process. */
#include "units.h"
#include "verdict-context.h"
#include "verdicts-text.h"

/* The worst verdict needs the best evidence: a job has many processes, and each may look like a leak by
 * chance. */
#define LEAK_T 6.0

/* Private memory that grows along with something else: the objects of kept tensors or open files. */
#define SHADOW_SHARE  0.10
#define SHADOW_PER_FD (16 * 1024.0)

#define LOADING_SHARE 0.25
#define TEETH_GRADUAL 0.7 /* of all cycles */
#define TRAINED_LEAST                                                                                        \
    0.7 /* of its life: a worker that starts later does not mark the start of the training */

/* Three, because an allocator that returns memory from time to time makes two that look like teeth. */
enum { TEETH_COUNT = 3, TEETH_SAMPLES_LEAST = 200, TEETH_SCALES = 4 };
#define TEETH_REGULAR                                                                                        \
    1.6 /* times as long as the shortest, at most: epochs are even, a garbage collector is not */

/*
 * The part of a process's life that is judged: without its warm-up. What a trainer does before its first
 * worker starts and after its last has ended is not training, if that is the smaller part of its life.
 */
typedef struct Span {
    double from;
    double until;
} Span;

static Span span_of(const VerdictContext *context, const JudgedJob *job, const ProcessTrack *track)
{
    Span span = {track->series.seconds[0], track_until(track)};
    double life = span.until - span.from;
    double age = context->history->began + span.from - track->last.started;
    double warm = age > life ? WARM_UP_ATTACHED : WARM_UP;
    if (track->last.role == ROLE_TRAINER) {
        double trained = job->last_worker - MAX(job->first_worker, span.from);
        if (job->last_worker < span.until && trained > span.until - job->last_worker)
            span.until = job->last_worker;
        if (job->first_worker > span.from && job->first_worker < span.from + TRAINED_LEAST * life)
            span.from = job->first_worker;
    }
    span.from += warm * (span.until - span.from);
    return span;
}

typedef struct Trends {
    Trend own;      /* private memory */
    Trend copies;   /* USS */
    Trend shared;   /* segments that are held, or touched pages of segments: whichever grows more */
    Trend segments; /* their number */
    Trend file;
    Trend fds;
} Trends;

static Trends trends_of(const ProcessTrack *track, Span span)
{
    double from = span.from;
    double until = span.until;
    Trends trends;
    ValueSeries own = private_figures(track);
    ValueSeries copies = process_figures(track, PROCESS_USS);
    ValueSeries held = process_figures(track, PROCESS_SHM);
    ValueSeries touched = process_figures(track, PROCESS_SHMEM);
    ValueSeries segments = process_figures(track, PROCESS_SEGMENTS);
    ValueSeries file = process_figures(track, PROCESS_FILE);
    ValueSeries fds = process_figures(track, PROCESS_FDS);
    trends.own = trend_of(&own, from, until);
    trends.copies = trend_of(&copies, track->series.seconds[0], until);
    if (trends.copies.kind == TREND_UNKNOWN)
        trends.copies = trend_of_few(&copies, track->series.seconds[0], until);
    trends.shared = trend_of(&touched, from, until);
    Trend other = trend_of(&held, from, until);
    bool better = other.kind == TREND_RISING || trends.shared.kind != TREND_RISING;
    if (other.kind != TREND_UNKNOWN && better && growth_of(&other) > growth_of(&trends.shared))
        trends.shared = other;
    trends.segments = trend_of(&segments, from, until);
    trends.file = trend_of(&file, from, until);
    trends.fds = trend_of(&fds, from, until);
    return trends;
}

static bool teeth_are_found(const Teeth *teeth)
{
    return teeth->gradual >= TEETH_COUNT && (double)teeth->gradual >= TEETH_GRADUAL * (double)teeth->cycles &&
           teeth->longest <= TEETH_REGULAR * teeth->shortest &&
           worth_of(teeth->height, teeth->high, TEETH_LEAST, teeth->ended - teeth->began) == WORTH_NAMING;
}

/* An epoch may be a small part of a long recording: if the whole shows no teeth, its last part may. */
static bool teeth_find(const ProcessTrack *track, Span span, Teeth *ret)
{
    ValueSeries own = private_figures(track);
    double part = 1;
    for (int k = 0; k < TEETH_SCALES; k++, part /= 8) {
        Teeth teeth = teeth_of(&own, span.until - part * (span.until - span.from), span.until);
        if (part < 1 && teeth.samples < TEETH_SAMPLES_LEAST)
            return false;
        if (teeth_are_found(&teeth)) {
            *ret = teeth;
            return true;
        }
    }
    return false;
}

static void judge_leak(VerdictContext *context, JudgedJob *job, const ProcessTrack *track,
                       const Trends *trends, const Trend *own)
{
    double growth = growth_of(own);
    bool shadow =
        (grew(&trends->shared, SHARED_LEAST) && growth < SHADOW_SHARE * growth_of(&trends->shared)) ||
        (grows(&trends->fds, FDS_LEAST) && growth < SHADOW_PER_FD * growth_of(&trends->fds));
    Worth worth = worth_growing(own, LEAK_LEAST);
    if (worth == WORTH_NOTHING || own->t < LEAK_T || shadow)
        return;
    if (worth == WORTH_WAITING) {
        pending_growth_add(context, job, VERDICT_LEAK, track,
                           PENDING(context, VERDICT_PENDING_PRIVATE, track, own), own, LEAK_LEAST);
        return;
    }
    group_add(context, job, VERDICT_LEAK, track,
              &(VerdictGroup){.metric = "private",
                              .rate = own->slope,
                              .confidence = confidence_of(own),
                              .evidence = WORDS(context, VERDICT_LEAK_GREW, SUBJECT(track), GROWTH(own))});
}

static void judge_own(VerdictContext *context, JudgedJob *job, const ProcessTrack *track,
                      const Trends *trends, Span span)
{
    const Trend *own = &trends->own;
    Teeth teeth;
    Trend folded;
    size_t epochs = 0;
    double seconds = 0;
    if (teeth_find(track, span, &teeth)) {
        if (grows(&teeth.troughs, LEAK_LEAST))
            judge_leak(context, job, track, trends, &teeth.troughs);
        else if (grows(own, LEAK_LEAST) && teeth.lows_rose > teeth.height / 2)
            judge_leak(context, job, track, trends, own);
        else
            group_add(context, job, VERDICT_SAWTOOTH, track,
                      &(VerdictGroup){.metric = "private",
                                      .rate = teeth.slope,
                                      .left_of_all = teeth.height,
                                      .confidence = MIN(0.95, 0.6 + 0.05 * (double)teeth.gradual) *
                                                    (double)teeth.gradual / (double)teeth.cycles,
                                      .evidence = WORDS(context, VERDICT_SAWTOOTH_TEETH, SUBJECT(track),
                                                        BYTES(teeth.low), BYTES(teeth.high), teeth.cycles,
                                                        DURATION_TEXT(teeth.period))});
    } else if (own->kind != TREND_RISING &&
               epochs_fold(context, job, track, span.from, &folded, &epochs, &seconds) &&
               folded.kind == TREND_RISING &&
               worth_of(growth_of(&folded), folded.until, SAW_LEAST, seconds) == WORTH_NAMING)
        group_add(context, job, VERDICT_SAWTOOTH, track,
                  &(VerdictGroup){.metric = "private",
                                  .rate = folded.slope,
                                  .left_of_all = growth_of(&folded),
                                  .confidence = confidence_of(&folded),
                                  .evidence = WORDS(context, VERDICT_SAWTOOTH_EPOCHS, SUBJECT(track),
                                                    BYTES(folded.from), BYTES(folded.until), epochs)});
    else
        judge_leak(context, job, track, trends, own);
}

static void fd_leak_add(VerdictContext *context, JudgedJob *job, const ProcessTrack *track, const Trend *fds,
                        bool of_tensors)
{
    const char *evidence = WORDS(context, VERDICT_FD_LEAK_GREW, SUBJECT(track), fds->from, fds->until,
                                 DURATION_TEXT(seconds_of(fds)), fds->slope, fds->rises, fds->windows - 1);
    if (context->history->open_files > 0)
        evidence = WORDS_AND(context, evidence, VERDICT_FD_LEAK_LIMITED,
                             (unsigned long long)context->history->open_files);
    if (of_tensors)
        evidence = WORDS_AND(context, evidence, VERDICT_FD_LEAK_TENSORS);
    group_add(context, job, VERDICT_FD_LEAK, track,
              &(VerdictGroup){.metric = "descriptors",
                              .rate = fds->slope,
                              .confidence = confidence_of(fds),
                              .evidence = evidence,
                              .of_tensors = of_tensors});
}

static void judge_shared(VerdictContext *context, JudgedJob *job, const ProcessTrack *track,
                         const Trends *trends)
{
    Worth shared = worth_growing(&trends->shared, SHARED_LEAST);
    const Trend *fds = &trends->fds;
    Worth open = worth_growing(fds, FDS_LEAST);
    bool growing = shared == WORTH_NAMING;
    bool fds_grow = open == WORTH_NAMING;
    bool with_segments =
        trends->segments.kind == TREND_RISING && growth_of(&trends->segments) > growth_of(fds) / 2;
    bool kept = track->last.role == ROLE_TRAINER && trends->shared.kind == TREND_SETTLING &&
                grew(&trends->shared, KEPT_LEAST);
    double shared_rate = kept ? 0 : MAX(trends->shared.slope, 0.0);
    /* Kept tensors fill the table of descriptors and the memory: what ends first is what matters. */
    bool files_first = seconds_until(open_files_room(context, track), fds->slope) <
                       seconds_until(shared_room(context, track_until(track)), shared_rate);
    if (fds_grow && (files_first || (!with_segments && !growing && !kept)))
        fd_leak_add(context, job, track, fds, with_segments);
    else if (open == WORTH_WAITING && !growing && !kept)
        pending_growth_add(context, job, VERDICT_FD_LEAK, track,
                           WORDS(context, VERDICT_PENDING_DESCRIPTORS, SUBJECT(track), growth_of(fds),
                                 DURATION_TEXT(seconds_of(fds))),
                           fds, FDS_LEAST);
    if (!growing && !kept && !(fds_grow && with_segments && !files_first)) {
        if (shared == WORTH_WAITING)
            pending_growth_add(context, job, VERDICT_BACKLOG, track,
                               PENDING(context, VERDICT_PENDING_SHARED, track, &trends->shared),
                               &trends->shared, SHARED_LEAST);
        return;
    }
    const char *evidence = WORDS(context, VERDICT_BACKLOG_GREW, SUBJECT(track), GROWTH(&trends->shared));
    if (kept)
        evidence = WORDS_AND(context, evidence, VERDICT_BACKLOG_KEPT);
    if (fds_grow)
        evidence = WORDS_AND(context, evidence, VERDICT_BACKLOG_DESCRIPTORS, fds->from, fds->until);
    group_add(
        context, job, VERDICT_BACKLOG, track,
        &(VerdictGroup){.metric = "shared",
                        .rate = shared_rate,
                        .confidence = confidence_of(growing || kept ? &trends->shared : &trends->segments),
                        .evidence = evidence});
}

void process_judge(VerdictContext *context, JudgedJob *job, const ProcessTrack *track)
{
    Span span = span_of(context, job, track);
    if (span.until - span.from < SECONDS_LEAST)
        return;
    Trends trends = trends_of(track, span);
    if (trends.own.kind == TREND_UNKNOWN || trends.own.samples < SAMPLES_LEAST)
        return;

    bool trainer = track->last.role == ROLE_TRAINER;
    bool before = job->judged && job->judged->last.role == ROLE_TRAINER;
    if (!job->judged || (trainer && !before) ||
        (trainer == before && trends.own.samples > job->judged_trend.samples)) {
        job->judged = track;
        job->judged_trend = trends.own;
    }

    double shared = 0;
    judge_shared(context, job, track, &trends);
    if (!is_of_epoch(job, track)) {
        judge_own(context, job, track, &trends, span);
        Worth copying =
            track->last.role == ROLE_WORKER && shared_at_fork(track, &shared)
                ? worth_copying(&trends.copies, &trends.own, &trends.file, shared, seconds_of(&trends.copies))
                : WORTH_NOTHING;
        if (copying == WORTH_NAMING)
            copies_add(context, job, track, &trends.copies, shared);
        else if (copying == WORTH_WAITING)
            pending_growth_add(context, job, VERDICT_COPY_ON_WRITE, track,
                               PENDING(context, VERDICT_PENDING_COPIES, track, &trends.copies),
                               &trends.copies, COPY_LEAST);
        /* File pages that come together with private memory and then stop growing are loaded libraries. */
        bool loads = trends.file.kind == TREND_SETTLING &&
                     growth_of(&trends.own) > LOADING_SHARE * growth_of(&trends.file);
        if (grew(&trends.file, FILE_LEAST) && !loads)
            cache_add(context, job, track, &trends.file);
        else if (worth_growing(&trends.file, FILE_LEAST) == WORTH_WAITING)
            pending_growth_add(context, job, VERDICT_PAGE_CACHE, track,
                               PENDING(context, VERDICT_PENDING_FILE, track, &trends.file), &trends.file,
                               FILE_LEAST);
    }
}
