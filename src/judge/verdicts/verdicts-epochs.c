/* SPDX-License-Identifier: Apache-2.0 */
/* What happens within an epoch: workers that live for one epoch, copies of what they shared at fork, and
 * teeth. */
#include <math.h>

#include "units.h"
#include "verdict-context.h"
#include "verdicts-text.h"

#define COPY_SHARE 0.7  /* the share of a worker's unshared memory that must be copies */
#define COPY_MOST  1.15 /* times what was shared at fork; more than 1 for what both have written since */

/* A worker's life, or an epoch, is divided into phases. The first quarter is its warm-up; spawned workers may
 * need half of it. */
enum { PHASES_LEAST = 12, PHASES_MOST = 24, FOLDED_MOST = 256 };

bool is_of_epoch(const JudgedJob *job, const ProcessTrack *track)
{
    if (track->last.role != ROLE_WORKER || !job->renewed)
        return false;
    return track_until(track) < job->newest_worker ||
           track_until(track) - track->first_seconds < 1.5 * job->worker_life;
}

/* A worker's private memory includes what it shares with the trainer since the fork; its USS does not. */
bool shared_at_fork(const ProcessTrack *track, double *ret_bytes)
{
    const Series *series = &track->series;
    for (size_t i = 0; i < series->n; i++) {
        uint64_t anon = series->values[PROCESS_ANON][i];
        uint64_t uss = series->values[PROCESS_USS][i];
        if (anon == U64_UNKNOWN || uss == U64_UNKNOWN)
            continue;
        *ret_bytes = anon > uss ? (double)(anon - uss) : 0;
        return true;
    }
    return false;
}

/* Unshared memory may also be new memory, or pages of a file that no other process maps. */
Worth worth_copying(const Trend *copies, const Trend *own, const Trend *file, double shared, double seconds)
{
    double growth = growth_of(copies);
    double rest = growth - MAX(growth_of(own), 0.0) - MAX(growth_of(file), 0.0);
    bool moved =
        copies->kind == TREND_RISING || copies->kind == TREND_SETTLING || copies->kind == TREND_STEPPED;
    if (!moved || rest < COPY_SHARE * growth || growth > COPY_MOST * shared)
        return WORTH_NOTHING;
    Worth worth = worth_of(rest, shared, COPY_LEAST, seconds);
    /* What does not rise any more is what every worker copies when it starts. */
    return worth == WORTH_WAITING && copies->kind != TREND_RISING ? WORTH_NOTHING : worth;
}

void copies_add(VerdictContext *context, JudgedJob *job, const ProcessTrack *track, const Trend *copies,
                double shared)
{
    double left = MAX(shared - growth_of(copies), 0.0);
    const char *evidence = WORDS(context, VERDICT_COPY_ON_WRITE_GREW, SUBJECT(track), GROWTH(copies),
                                 BYTES(copies->from + shared), BYTES(shared), BYTES(left));
    if (context->frozen_bytes > 0)
        evidence =
            WORDS_AND(context, evidence, VERDICT_COPY_ON_WRITE_BESIDES, SIZE_TEXT(context->frozen_bytes));
    group_add(context, job, VERDICT_COPY_ON_WRITE, track,
              &(VerdictGroup){.metric = "private",
                              .rate = MAX(copies->slope, 0.0),
                              .left_of_all = left,
                              .confidence = confidence_of(copies),
                              .evidence = evidence});
}

/* A part of the life of a process. */
typedef struct LifeSpan {
    const ProcessTrack *track;
    double from;
    double until;
} LifeSpan;

/* From the start of the first span to the end of the last: growth that recurs in each span was observed for
 * all of this time. */
static double spans_seconds(const LifeSpan *spans, size_t n)
{
    double from = INFINITY;
    double until = 0;
    for (size_t i = 0; i < n; i++) {
        from = MIN(from, spans[i].from);
        until = MAX(until, spans[i].until);
    }
    return until - from;
}

/* Lays many spans over each other, by the part of each that has passed, and takes medians. */
static int fold(Arena *arena, const LifeSpan *spans, size_t n, ProcessMetric metric, size_t phases,
                Windows *ret)
{
    double *values = arena_alloc(arena, n * sizeof *values);
    if (!values)
        return -ENOMEM;
    *ret = (Windows){0};
    for (size_t i = 0; i < n; i++)
        values[i] = spans[i].until - spans[i].from;
    double length = median_of(values, n);
    for (size_t phase = 0; phase < phases; phase++) {
        size_t known = 0;
        for (size_t i = 0; i < n; i++) {
            ValueSeries figures = metric == PROCESS_ANON ? private_figures(spans[i].track)
                                                         : process_figures(spans[i].track, metric);
            double width = (spans[i].until - spans[i].from) / (double)phases;
            double from = spans[i].from + width * (double)phase;
            Windows window;
            windows_make(&figures, from, from + width, 1, &window);
            ret->samples += window.samples;
            if (window.n > 0)
                values[known++] = window.levels[0];
        }
        if (known == 0)
            continue;
        ret->seconds[ret->n] = length * ((double)phase + 0.5) / (double)phases;
        ret->levels[ret->n++] = median_of(values, known);
    }
    return 0;
}

static Trend trend_behind(const Windows *windows, size_t skipped)
{
    Windows rest = {.samples = windows->samples};
    for (size_t i = skipped; i < windows->n; i++) {
        rest.seconds[rest.n] = windows->seconds[i];
        rest.levels[rest.n++] = windows->levels[i];
    }
    return trend_of_windows(&rest);
}

/* The trend of private memory over the phases of lives or epochs. */
static int fold_own(Arena *arena, const LifeSpan *spans, size_t n, Trend *ret)
{
    double *samples = arena_alloc(arena, n * sizeof *samples);
    if (!samples)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        double life = track_until(spans[i].track) - spans[i].track->series.seconds[0];
        samples[i] = (double)spans[i].track->series.n * (spans[i].until - spans[i].from) / MAX(life, 1e-3);
    }
    size_t phases = (size_t)MAX(median_of(samples, n) / 2, 0.0);
    phases = MIN(MAX(phases, (size_t)PHASES_LEAST), (size_t)PHASES_MOST);
    Windows windows;
    int r = fold(arena, spans, n, PROCESS_ANON, phases, &windows);
    if (r < 0)
        return r;
    *ret = trend_behind(&windows, phases / 4);
    Trend late = trend_behind(&windows, phases / 2);
    if (ret->kind != TREND_RISING && late.kind == TREND_RISING)
        *ret = late;
    return 0;
}

/* How fast the current workers grow together, and how much more they will take until the end of an epoch of
 * usual length. */
static void workers_ahead(const VerdictContext *context, const JudgedJob *job, double life,
                          VerdictGroup *group)
{
    size_t there = 0;
    double seconds = 0;
    for (size_t i = 0; i < context->history->n_tracks; i++) {
        const ProcessTrack *track = &context->history->tracks[i];
        if (track->last.job != job->id || track->series.n == 0 || !is_of_epoch(job, track) ||
            !track_is_there(context, track))
            continue;
        there++;
        seconds += MAX(life - (track_until(track) - track->first_seconds), 0.0);
    }
    group->rate_of_all = group->rate * (double)there;
    group->left_of_all = group->rate * seconds;
}

static void workers_judge(VerdictContext *context, JudgedJob *job, const LifeSpan *spans, size_t n)
{
    double lives[FOLDED_MOST];
    double shared[FOLDED_MOST];
    size_t n_shared = 0;
    for (size_t i = 0; i < n; i++) {
        lives[i] = spans[i].until - spans[i].from;
        n_shared += shared_at_fork(spans[i].track, &shared[n_shared]);
    }
    Trend own;
    Windows copy_windows;
    Windows file_windows;
    context->r = fold_own(context->arena, spans, n, &own);
    if (context->r >= 0)
        context->r = fold(context->arena, spans, n, PROCESS_USS, PHASES_LEAST, &copy_windows);
    if (context->r >= 0)
        context->r = fold(context->arena, spans, n, PROCESS_FILE, PHASES_LEAST, &file_windows);
    if (context->r < 0)
        return;
    Trend copies = trend_behind(&copy_windows, 1);
    Trend file = trend_behind(&file_windows, 1);
    const ProcessTrack *newest = spans[n - 1].track;
    double at_fork = n_shared > 0 ? median_of(shared, n_shared) : 0;
    double seconds = spans_seconds(spans, n);
    Worth saw =
        own.kind == TREND_RISING ? worth_of(growth_of(&own), own.until, SAW_LEAST, seconds) : WORTH_NOTHING;
    Worth copying = n_shared > 0 ? worth_copying(&copies, &own, &file, at_fork, seconds) : WORTH_NOTHING;
    if (saw == WORTH_NAMING) {
        double life = median_of(lives, n);
        group_add(
            context, job, VERDICT_SAWTOOTH, newest,
            &(VerdictGroup){.metric = "private",
                            .rate = own.slope,
                            .confidence = confidence_of(&own),
                            .evidence = WORDS(context, VERDICT_SAWTOOTH_LIVES, BYTES(own.from),
                                              BYTES(own.until), DURATION_TEXT(life), BYTES(own.slope), n)});
        workers_ahead(context, job, life, &job->group[VERDICT_SAWTOOTH][ROLE_WORKER]);
    } else if (copying == WORTH_NAMING)
        copies_add(context, job, newest, &copies, at_fork);
    else if (saw == WORTH_WAITING)
        pending_growth_add(context, job, VERDICT_SAWTOOTH, newest,
                           PENDING(context, VERDICT_PENDING_PRIVATE, newest, &own), &own, SAW_LEAST);
    else if (copying == WORTH_WAITING)
        pending_growth_add(context, job, VERDICT_COPY_ON_WRITE, newest,
                           PENDING(context, VERDICT_PENDING_COPIES, newest, &copies), &copies, COPY_LEAST);
    Trend late_file = trend_behind(&file_windows, PHASES_LEAST / 4);
    Worth files = worth_growing(&late_file, FILE_LEAST);
    if (files == WORTH_NAMING)
        cache_add(context, job, newest, &late_file);
    else if (files == WORTH_WAITING)
        pending_growth_add(context, job, VERDICT_PAGE_CACHE, newest,
                           PENDING(context, VERDICT_PENDING_FILE, newest, &late_file), &late_file,
                           FILE_LEAST);
}

/* Takes workers that live long enough to belong to the training loader rather than to a short validation,
 * evenly chosen. */
void epochs_judge(VerdictContext *context, JudgedJob *job)
{
    const History *history = context->history;
    LifeSpan chosen[FOLDED_MOST];
    size_t n = 0;
    size_t met = 0;
    for (size_t stride = 1;; stride *= 2) {
        n = met = 0;
        for (size_t i = 0; i < history->n_tracks; i++) {
            const ProcessTrack *track = &history->tracks[i];
            if (track->last.job != job->id || track->series.n < PHASES_LEAST || !is_of_epoch(job, track) ||
                track_until(track) - track->first_seconds < job->worker_life / 2)
                continue;
            if (met++ % stride == 0 && n < FOLDED_MOST)
                chosen[n++] = (LifeSpan){track, track->series.seconds[0], track_until(track)};
        }
        if (met <= stride * FOLDED_MOST)
            break;
    }
    if (n > 1)
        workers_judge(context, job, chosen, n);
}

bool epochs_fold(VerdictContext *context, const JudgedJob *job, const ProcessTrack *track, double from,
                 Trend *ret_trend, size_t *ret_epochs, double *ret_seconds)
{
    const Epochs *epochs = &job->epochs;
    LifeSpan spans[FOLDED_MOST];
    size_t n = 0;
    for (size_t i = 0; i + 1 < epochs->n && n < FOLDED_MOST; i++)
        if (epochs->items[i].seconds >= from && epochs->items[i + 1].seconds <= track_until(track))
            spans[n++] = (LifeSpan){track, epochs->items[i].seconds, epochs->items[i + 1].seconds};
    if (n < 2)
        return false;
    context->r = fold_own(context->arena, spans, n, ret_trend);
    if (context->r < 0)
        return false;
    *ret_epochs = n;
    *ret_seconds = spans_seconds(spans, n);
    return true;
}
