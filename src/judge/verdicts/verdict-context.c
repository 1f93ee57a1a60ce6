/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "units.h"
#include "verdict-context.h"
#include "verdict-table.h"
#include "verdicts-text.h"

#define STILL_THERE 0.05 /* of the history */

/* --- Series --------------------------------------------------------------------------------------------- */

ValueSeries process_figures(const ProcessTrack *track, ProcessMetric metric)
{
    return (ValueSeries){track->series.seconds, track->series.values[metric], NULL, track->series.n};
}

ValueSeries private_figures(const ProcessTrack *track)
{
    ValueSeries figures = process_figures(track, PROCESS_ANON);
    figures.also = track->series.values[PROCESS_SWAP];
    return figures;
}

ValueSeries job_figures(const History *history, size_t metric)
{
    return (ValueSeries){history->series.seconds, history->series.values[metric], NULL, history->series.n};
}

double track_until(const ProcessTrack *track)
{
    return track->series.seconds[track->series.n - 1];
}

bool track_is_there(const VerdictContext *context, const ProcessTrack *track)
{
    return track_until(track) >= context->end * (1 - STILL_THERE) - 3 * context->history->interval;
}

uint64_t value_at(const ValueSeries *figures, double seconds)
{
    size_t low = LOWER_BOUND(i, figures->n, figures->seconds[i] <= seconds);
    size_t oldest = low > 256 ? low - 256 : 0;
    for (size_t i = low; i > oldest; i--)
        if (figures->values[i - 1] != U64_UNKNOWN)
            return figures->values[i - 1];
    return U64_UNKNOWN;
}

uint64_t job_at(const VerdictContext *context, size_t metric, double seconds)
{
    ValueSeries figures = job_figures(context->history, metric);
    return value_at(&figures, seconds);
}

double growth_of(const Trend *trend)
{
    return trend->kind == TREND_UNKNOWN ? 0 : trend->until - trend->from;
}

double seconds_of(const Trend *trend)
{
    return trend->ended - trend->began;
}

Least least_after(Least least, double seconds)
{
    double times = MAX(least.seconds / MAX(seconds, 1e-3), 1.0);
    return (Least){least.amount * times, MAX(least.share, MIN(least.share * times, SHARE_MOST)), seconds};
}

static bool is_worth(double growth, double level, Least least)
{
    return growth >= least.amount && growth >= least.share * level;
}

Worth worth_of(double growth, double level, Least least, double seconds)
{
    if (!is_worth(growth, level, least))
        return WORTH_NOTHING;
    return is_worth(growth, level, least_after(least, seconds)) ? WORTH_NAMING : WORTH_WAITING;
}

Worth worth_growing(const Trend *trend, Least least)
{
    return trend->kind == TREND_RISING ? worth_of(growth_of(trend), trend->until, least, seconds_of(trend))
                                       : WORTH_NOTHING;
}

bool grows(const Trend *trend, Least least)
{
    return worth_growing(trend, least) == WORTH_NAMING;
}

bool grew(const Trend *trend, Least least)
{
    return (trend->kind == TREND_RISING || trend->kind == TREND_SETTLING) &&
           worth_of(growth_of(trend), trend->until, least, seconds_of(trend)) == WORTH_NAMING;
}

/* --- How long until nothing is left --------------------------------------------------------------------- */

static double room_between(uint64_t limit, uint64_t used)
{
    if (limit == U64_UNKNOWN || used == U64_UNKNOWN)
        return INFINITY;
    return limit > used ? (double)(limit - used) : 0;
}

/* File pages count as free: the kernel drops them when memory is needed. */
double memory_room(const VerdictContext *context, double seconds)
{
    double available = room_between(job_at(context, JOB_MEMORY_AVAILABLE, seconds), 0);
    uint64_t used = job_at(context, JOB_GROUP_USED, seconds);
    uint64_t file = job_at(context, JOB_GROUP_FILE, seconds);
    if (used != U64_UNKNOWN && file != U64_UNKNOWN)
        used -= MIN(used, file);
    return MIN(available, room_between(job_at(context, JOB_GROUP_LIMIT, seconds), used));
}

double shared_room(const VerdictContext *context, double seconds)
{
    double room = context->guarded ? room_between(job_at(context, JOB_GUARD_BUDGET, seconds),
                                                  job_at(context, JOB_GUARD_BYTES, seconds))
                                   : room_between(job_at(context, JOB_SHM_SIZE, seconds),
                                                  job_at(context, JOB_SHM_USED, seconds));
    return MIN(room, memory_room(context, seconds));
}

double open_files_room(const VerdictContext *context, const ProcessTrack *track)
{
    ValueSeries fds = process_figures(track, PROCESS_FDS);
    uint64_t limit = context->history->open_files;
    return room_between(limit == 0 ? U64_UNKNOWN : limit, value_at(&fds, track_until(track)));
}

double seconds_until(double room, double rate)
{
    return rate > 0 && isfinite(room) ? room / rate : INFINITY;
}

/* --- Words ---------------------------------------------------------------------------------------------- */

const char *words_made(VerdictContext *context, const char *words)
{
    if (!words)
        context->r = -ENOMEM;
    return words ? words : "";
}

/*
 * Confidence rises with the ratio of the slope to its error, and with the number of windows. It is
 * calibrated: at least this share of the series in tests/judge/verdicts/test-verdicts.c, which prints it, was
 * judged correctly. A curve that rises and then stays has no useful slope; its shape alone gives less
 * confidence.
 */
double confidence_of(const Trend *trend)
{
    double t = MIN(fabs(trend->t), 60.0);
    double sure = trend->kind == TREND_RISING ? 1 - 0.4 * exp(-(t - 4) / 6) : 0.8;
    double windows = (double)MIN(trend->windows, (size_t)24) / 24;
    double minutes = MIN((trend->ended - trend->began) / 60, 2.0);
    return MIN(0.99, sure * (0.8 + 0.2 * windows) * (0.8 + 0.1 * minutes));
}

/* --- Findings ------------------------------------------------------------------------------------------ */

void group_add(VerdictContext *context, JudgedJob *job, VerdictId id, const ProcessTrack *track,
               const VerdictGroup *found)
{
    VerdictGroup *group = &job->group[id][track->last.role];
    size_t n = group->n + 1;
    bool there = track_is_there(context, track);
    double rate_of_all = group->rate_of_all + (there ? found->rate : 0);
    double left_of_all = group->left_of_all + (there ? found->left_of_all : 0);
    if (!group->worst || found->rate > group->rate) {
        *group = *found;
        group->worst = track;
    }
    group->n = n;
    group->rate_of_all = rate_of_all;
    group->left_of_all = left_of_all;
}

void cache_add(VerdictContext *context, JudgedJob *job, const ProcessTrack *track, const Trend *file)
{
    group_add(
        context, job, VERDICT_PAGE_CACHE, track,
        &(VerdictGroup){.metric = "file",
                        .rate = MAX(file->slope, 0.0),
                        .confidence = confidence_of(file),
                        .evidence = WORDS(context, VERDICT_PAGE_CACHE_GREW, SUBJECT(track), GROWTH(file))});
}

void pending_growth_add(VerdictContext *context, JudgedJob *job, VerdictId id, const ProcessTrack *track,
                        const char *grew, const Trend *trend, Least least)
{
    static const char *const metrics[VERDICT_IDS] = {
        [VERDICT_LEAK] = "private",   [VERDICT_COPY_ON_WRITE] = "private", [VERDICT_SAWTOOTH] = "private",
        [VERDICT_BACKLOG] = "shared", [VERDICT_FD_LEAK] = "descriptors",   [VERDICT_PAGE_CACHE] = "file"};
    PendingGrowth *pending = &job->pending[id];
    VerdictGroup *group = &pending->group;
    double times = growth_of(trend) / least_after(least, seconds_of(trend)).amount;
    group->n++;
    group->rate_of_all += track_is_there(context, track) ? trend->slope : 0;
    if (group->worst && pending->times >= times)
        return;
    group->worst = track;
    group->metric = metrics[id];
    group->rate = trend->slope;
    group->evidence = grew;
    pending->times = times;
    /* Twice the time that is needed, since a part of the next recording will be warm-up too. */
    pending->longer = 2 * least.seconds;
}

void verdict_add(VerdictContext *context, const Verdict *verdict)
{
    if (context->r < 0)
        return;
    Verdicts *verdicts = &context->verdicts;
    Verdict *slot = ARENA_PUSH(context->arena, verdicts->items, verdicts->n, verdicts->capacity);
    if (!slot) {
        context->r = -ENOMEM;
        return;
    }
    *slot = *verdict;
    context->r = verdict_advise(
        slot, &(AdvisedJob){context->guarded, context->frozen_bytes > 0, context->history->python},
        context->arena);
}
