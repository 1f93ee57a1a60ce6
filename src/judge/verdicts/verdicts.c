/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "report-view.h"
#include "text.h"
#include "units.h"
#include "verdict-context.h"
#include "verdict-table.h"
#include "verdicts-text.h"

static void job_learn_workers(VerdictContext *context, JudgedJob *job)
{
    const History *history = context->history;
    double first_end = INFINITY;
    double last = 0;
    bool from_start = false;
    job->first_worker = INFINITY;
    for (size_t i = 0; i < history->n_tracks; i++) {
        const ProcessTrack *track = &history->tracks[i];
        if (track->last.job != job->id || track->last.role != ROLE_WORKER || track->series.n == 0)
            continue;
        from_start = from_start || track->first_seconds <= history->series.seconds[0];
        job->first_worker = MIN(job->first_worker, track->first_seconds);
        job->newest_worker = MAX(job->newest_worker, track->first_seconds);
        last = MAX(last, track_until(track));
        if (isfinite(track->ended_seconds)) {
            first_end = MIN(first_end, track_until(track));
            job->worker_life = MAX(job->worker_life, track_until(track) - track->first_seconds);
        }
    }
    job->last_worker = isinf(job->first_worker) ? INFINITY : last;
    if (from_start || isinf(job->first_worker))
        job->first_worker = 0;
    job->renewed = job->newest_worker > first_end;
}

static double group_exhausts(const VerdictContext *context, VerdictId id, const VerdictGroup *group)
{
    double at = track_until(group->worst);
    double memory = memory_room(context, at);
    switch (verdict_limit(id)) {
    case LIMIT_NONE:
        break;
    case LIMIT_MEMORY:
        return seconds_until(memory, group->rate_of_all);
    case LIMIT_SHARED:
        return seconds_until(shared_room(context, at), group->rate_of_all);
    case LIMIT_OPEN_FILES:
        return seconds_until(open_files_room(context, group->worst), group->rate);
    case LIMIT_IF_SHORT:
        return group->left_of_all > memory ? seconds_until(memory, group->rate_of_all) : INFINITY;
    }
    return INFINITY;
}

static const char *group_evidence(VerdictContext *context, const VerdictGroup *group)
{
    size_t alike = group->n - 1;
    if (alike == 0)
        return group->evidence;
    return WORDS_AND(context, group->evidence, PLURAL(alike, VERDICT_ALIKE_ONE, VERDICT_ALIKE_MANY), alike);
}

static void group_verdicts(VerdictContext *context, const JudgedJob *job)
{
    for (VerdictId id = 0; id < VERDICT_IDS; id++)
        for (size_t role = 0; role < ROLES; role++) {
            const VerdictGroup *group = &job->group[id][role];
            if (group->n == 0)
                continue;
            verdict_add(context, &(Verdict){.id = id,
                                            .pid = group->worst->last.pid,
                                            .role = group->worst->last.role,
                                            .metric = group->metric,
                                            .rate = group->rate,
                                            .confidence = group->confidence,
                                            .evidence = group_evidence(context, group),
                                            .exhausts_in = group_exhausts(context, id, group),
                                            .of_tensors = group->of_tensors});
        }
}

static bool is_found(const VerdictContext *context, VerdictId id)
{
    for (size_t i = 0; i < context->verdicts.n; i++)
        if (context->verdicts.items[i].id == id)
            return true;
    return false;
}

static void job_judge(VerdictContext *context, JudgedJob *job)
{
    const History *history = context->history;
    job_learn_workers(context, job);
    context->r = epochs_find(history, job->id, context->arena, &job->epochs);
    for (size_t i = 0; context->r >= 0 && i < history->n_tracks; i++)
        if (history->tracks[i].last.job == job->id && history->tracks[i].series.n >= WINDOWS_LEAST)
            process_judge(context, job, &history->tracks[i]);
    if (context->r >= 0 && job->renewed)
        epochs_judge(context, job);
    group_verdicts(context, job);
    if (job->id != 0 && !is_found(context, VERDICT_LEAK))
        crowd_judge(context, job);
}

/* --- All ----------------------------------------------------------------------------------------------- */

typedef struct Jobs {
    JudgedJob *items;
    size_t n;
    size_t capacity;
} Jobs;

static int jobs_list(const History *history, Arena *arena, Jobs *ret)
{
    for (size_t i = 0; i < history->n_tracks; i++) {
        int id = history->tracks[i].last.job;
        size_t k = 0;
        while (k < ret->n && ret->items[k].id != id)
            k++;
        if (k < ret->n)
            continue;
        JudgedJob *job = ARENA_PUSH(arena, ret->items, ret->n, ret->capacity);
        if (!job)
            return -ENOMEM;
        job->id = id;
    }
    return 0;
}

/* By how much the unshared memory of a worker has grown at most; U64_UNKNOWN. */
static uint64_t workers_copied(const VerdictContext *context, int job)
{
    uint64_t most = U64_UNKNOWN;
    for (size_t i = 0; i < context->history->n_tracks; i++) {
        const ProcessTrack *track = &context->history->tracks[i];
        if (track->last.role != ROLE_WORKER || track->last.job != job)
            continue;
        ValueSeries own = process_figures(track, PROCESS_USS);
        uint64_t first = U64_UNKNOWN;
        for (size_t k = 0; k < own.n; k++) {
            uint64_t value = own.values[k];
            if (value == U64_UNKNOWN)
                continue;
            if (first == U64_UNKNOWN)
                first = value;
            uint64_t grown = value > first ? value - first : 0;
            if (most == U64_UNKNOWN || grown > most)
                most = grown;
        }
    }
    return most;
}

static const char *steady_evidence(VerdictContext *context, const JudgedJob *job)
{
    const Trend *trend = &job->judged_trend;
    double span = seconds_of(trend);
    bool rose = worth_of(growth_of(trend), trend->until, LEAK_LEAST, span) != WORTH_NOTHING;
    Least least = least_after(LEAK_LEAST, span);
    double seen = MAX(MAX(least.amount, least.share * trend->until) / span, 4 * trend->error);
    const char *course = WORDS(context,
                               rose && trend->kind == TREND_SETTLING  ? VERDICT_STEADY_SETTLED
                               : rose && trend->kind == TREND_STEPPED ? VERDICT_STEADY_STEPPED
                                                                      : VERDICT_STEADY_STAYED,
                               SUBJECT(job->judged), BYTES(trend->until), DURATION_TEXT(span));
    const char *evidence = WORDS_AND(context, course, VERDICT_STEADY_SEEN, BYTES(seen * 60));
    uint64_t copied = workers_copied(context, job->id);
    if (context->frozen_bytes == 0 || copied == U64_UNKNOWN)
        return evidence;
    return WORDS_AND(context, evidence, VERDICT_STEADY_FROZEN, SIZE_TEXT(context->frozen_bytes),
                     SIZE_TEXT(copied));
}

static void judge_steady(VerdictContext *context, const JudgedJob *job)
{
    const Trend *trend = &job->judged_trend;
    verdict_add(context, &(Verdict){.id = VERDICT_STEADY,
                                    .pid = job->judged->last.pid,
                                    .role = job->judged->last.role,
                                    .metric = "private",
                                    .rate = trend->slope,
                                    .confidence = 0.5 + 0.45 * MIN(seconds_of(trend) / 600, 1.0),
                                    .exhausts_in = INFINITY,
                                    .evidence = steady_evidence(context, job)});
}

/* VERDICT_STEADY: nothing is pending. */
static VerdictId pending_closest(const JudgedJob *job)
{
    VerdictId closest = VERDICT_STEADY;
    for (VerdictId id = 0; id < VERDICT_IDS; id++)
        if (job->pending[id].group.n > 0 &&
            (closest == VERDICT_STEADY || job->pending[id].times > job->pending[closest].times))
            closest = id;
    return closest;
}

/* The caution stays, and so does the rate: what it would mean is worth knowing before the next recording. */
static void judge_pending(VerdictContext *context, VerdictId id, const PendingGrowth *pending)
{
    const VerdictGroup *group = &pending->group;
    double exhausts = group_exhausts(context, id, group);
    Verdict verdict = {.id = VERDICT_TOO_SHORT,
                       .pid = group->worst->last.pid,
                       .role = group->worst->last.role,
                       .metric = group->metric,
                       .rate = group->rate,
                       .exhausts_in = INFINITY,
                       .would_exhaust_in = isfinite(exhausts) ? exhausts : 0};
    _cleanup_buffer_ Buffer rate = {0};
    if (verdict_rate_words(&verdict, &rate) < 0)
        context->r = -ENOMEM;
    const char *evidence = group_evidence(context, group);
    if (isfinite(exhausts))
        evidence = WORDS_AND(context, evidence,
                             group->n > 1 ? VERDICT_PENDING_EXHAUSTS_ALL : VERDICT_PENDING_EXHAUSTS,
                             buffer_text(&rate), DURATION_TEXT(exhausts));
    else
        evidence = WORDS_AND(context, evidence, VERDICT_PENDING_RATE, buffer_text(&rate));
    verdict.evidence = WORDS_AND(context, evidence, VERDICT_PENDING_LONGER, DURATION_TEXT(pending->longer));
    verdict_add(context, &verdict);
}

static void judge_too_short(VerdictContext *context)
{
    const History *history = context->history;
    Role role = ROLE_OTHER;
    for (size_t i = 0; i < history->n_tracks; i++)
        if (history->tracks[i].last.pid == history->pid)
            role = history->tracks[i].last.role;
    verdict_add(context, &(Verdict){.id = VERDICT_TOO_SHORT,
                                    .pid = history->pid,
                                    .role = role,
                                    .metric = "private",
                                    .exhausts_in = INFINITY,
                                    .evidence = WORDS(context,
                                                      PLURAL(history->series.n, VERDICT_TOO_SHORT_SAMPLES_ONE,
                                                             VERDICT_TOO_SHORT_SAMPLES_MANY),
                                                      history->series.n, DURATION_TEXT(context->end),
                                                      SAMPLES_LEAST, SECONDS_LEAST)});
}

static int verdict_compare(const void *a, const void *b)
{
    const Verdict *x = a;
    const Verdict *y = b;
    if (x->exhausts_in != y->exhausts_in)
        return x->exhausts_in < y->exhausts_in ? -1 : 1;
    return (x->confidence < y->confidence) - (x->confidence > y->confidence);
}

static int judge_all(VerdictContext *context)
{
    const History *history = context->history;
    context->end = history->series.seconds[history->series.n - 1];
    context->guarded = job_at(context, JOB_GUARD_BYTES, context->end) != U64_UNKNOWN;
    uint64_t frozen_bytes = job_at(context, JOB_GUARD_FROZEN, context->end);
    context->frozen_bytes = frozen_bytes == U64_UNKNOWN ? 0 : frozen_bytes;
    Jobs jobs = {0};
    context->r = jobs_list(history, context->arena, &jobs);
    for (size_t i = 0; context->r >= 0 && i < jobs.n; i++)
        job_judge(context, &jobs.items[i]);
    if (context->r >= 0 && !is_found(context, VERDICT_BACKLOG))
        shared_judge(context);
    if (context->r >= 0 && !is_found(context, VERDICT_PAGE_CACHE))
        cache_judge(context);
    bool found = context->verdicts.n > 0;
    for (size_t i = 0; context->r >= 0 && !found && i < jobs.n; i++) {
        const JudgedJob *job = &jobs.items[i];
        if (job->id == 0 && jobs.n > 1)
            continue;
        VerdictId closest = pending_closest(job);
        if (closest != VERDICT_STEADY)
            judge_pending(context, closest, &job->pending[closest]);
        else if (job->judged)
            judge_steady(context, job);
    }
    return context->r;
}

int verdicts_judge(const History *history, Arena *arena, Verdicts *ret)
{
    VerdictContext context = {.history = history, .arena = arena};
    if (history->series.n > 0 && judge_all(&context) < 0)
        return context.r;
    if (context.verdicts.n == 0)
        judge_too_short(&context);
    if (context.r < 0)
        return context.r;
    qsort(context.verdicts.items, context.verdicts.n, sizeof *context.verdicts.items, verdict_compare);
    *ret = context.verdicts;
    return 0;
}

double trend_slope(const double *seconds, const uint64_t *values, size_t n)
{
    if (n == 0)
        return 0;
    ValueSeries figures = {seconds, values, NULL, n};
    Trend trend = trend_of(&figures, seconds[0], seconds[n - 1]);
    bool moves = trend.kind == TREND_RISING || trend.kind == TREND_FALLING;
    return moves ? trend.slope : 0;
}
