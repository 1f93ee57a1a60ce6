#include <math.h>

#include "units.h"
#include "verdicts-case.h"

static void job_learn_workers(Trial *trial, Job *job)
{
    const History *history = trial->history;
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

static double kin_exhausts(const Trial *trial, VerdictId id, const Kin *kin)
{
    double at = track_until(kin->worst);
    double room = id == VERDICT_BACKLOG ? shared_room(trial, at) : memory_room(trial, at);
    switch (id) {
    case VERDICT_LEAK:
    case VERDICT_BACKLOG:
        return seconds_until(room, kin->rate_of_all);
    case VERDICT_COPY_ON_WRITE: /* they end by themselves, if there is room for it */
    case VERDICT_SAWTOOTH:
        return kin->left_of_all > room ? seconds_until(room, kin->rate_of_all) : INFINITY;
    case VERDICT_STEADY:
    case VERDICT_FD_LEAK: /* the limit is not recorded */
    case VERDICT_PAGE_CACHE:
    case VERDICT_TOO_SHORT:
    case VERDICT_IDS:
        break;
    }
    return INFINITY;
}

static const char *kin_evidence(Trial *trial, VerdictId id, const Kin *kin)
{
    const char *who = subject_words(trial, kin->worst);
    const char *words = kin->evidence;
    if (!words && id == VERDICT_FD_LEAK)
        words =
            WORDS(trial, "Open descriptors of %s grew from %.0f to %.0f in %s, %.2g/s, in %zu of %zu windows",
                  who, kin->trend.from, kin->trend.until, DURATION_TEXT(kin->trend.ended - kin->trend.began),
                  kin->rate, kin->trend.rises, kin->trend.windows - 1);
    else if (!words)
        words = WORDS(trial, "%s of %s %s",
                      id == VERDICT_PAGE_CACHE ? "Resident pages of files" : "Private memory", who,
                      growth_words(trial, &kin->trend));
    if (kin->n <= 1)
        return WORDS(trial, "%s.", words);
    return WORDS(trial, "%s. %zu more like it do the same.", words, kin->n - 1);
}

static void kin_verdicts(Trial *trial, const Job *job)
{
    for (VerdictId id = 0; id < VERDICT_IDS; id++)
        for (size_t role = 0; role < ROLES; role++) {
            const Kin *kin = &job->kin[id][role];
            if (kin->n == 0)
                continue;
            verdict_add(trial, &(Verdict){.id = id,
                                          .pid = kin->worst->last.pid,
                                          .role = kin->worst->last.role,
                                          .metric = kin->metric,
                                          .rate = kin->rate,
                                          .confidence = kin->confidence,
                                          .evidence = kin_evidence(trial, id, kin),
                                          .exhausts_in = kin_exhausts(trial, id, kin)});
        }
}

static bool is_found(const Trial *trial, VerdictId id)
{
    for (size_t i = 0; i < trial->verdicts.n; i++)
        if (trial->verdicts.items[i].id == id)
            return true;
    return false;
}

static void job_judge(Trial *trial, Job *job)
{
    const History *history = trial->history;
    job_learn_workers(trial, job);
    trial->r = epochs_find(history, job->id, trial->arena, &job->epochs);
    for (size_t i = 0; trial->r >= 0 && i < history->n_tracks; i++)
        if (history->tracks[i].last.job == job->id && history->tracks[i].series.n >= WINDOWS_LEAST)
            process_judge(trial, job, &history->tracks[i]);
    if (trial->r >= 0 && job->renewed)
        epochs_judge(trial, job);
    kin_verdicts(trial, job);
    if (job->id != 0 && !is_found(trial, VERDICT_LEAK))
        crowd_judge(trial, job);
}

/* --- All ----------------------------------------------------------------------------------------------- */

typedef struct Jobs {
    Job *items;
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
        Job *job = ARENA_PUSH(arena, ret->items, ret->n, ret->capacity);
        if (!job)
            return -ENOMEM;
        job->id = id;
    }
    return 0;
}

static void judge_steady(Trial *trial, const Job *job)
{
    const Trend *trend = &job->judged_trend;
    double span = seconds_of(trend);
    Least least = least_after(LEAK_LEAST, span);
    double seen = MAX(MAX(least.amount, least.share * trend->until) / span, 4 * trend->error);
    bool rose = worth_of(growth_of(trend), trend->until, LEAK_LEAST, span) != WORTH_NOTHING;
    const char *how = rose && trend->kind == TREND_SETTLING  ? "settles at"
                      : rose && trend->kind == TREND_STEPPED ? "rose once, to"
                                                             : "stayed at about";
    verdict_add(trial, &(Verdict){.id = VERDICT_STEADY,
                                  .pid = job->judged->last.pid,
                                  .role = job->judged->last.role,
                                  .metric = "private",
                                  .rate = trend->slope,
                                  .confidence = 0.5 + 0.45 * MIN(span / 600, 1.0),
                                  .exhausts_in = INFINITY,
                                  .evidence = WORDS(
                                      trial,
                                      "Private memory of %s %s %s for %s. Growth that goes on by %s a minute "
                                      "would have been seen, and no other figure goes on growing; growth "
                                      "that ended early may have been missed.",
                                      subject_words(trial, job->judged), how, BYTES(trend->until),
                                      DURATION_TEXT(span), BYTES(seen * 60))});
}

static void judge_unripe(Trial *trial, const Unripe *unripe)
{
    verdict_add(trial, &(Verdict){.id = VERDICT_TOO_SHORT,
                                  .pid = unripe->track->last.pid,
                                  .role = unripe->track->last.role,
                                  .metric = unripe->metric,
                                  .rate = unripe->rate,
                                  .exhausts_in = INFINITY,
                                  .evidence = unripe->evidence});
}

static void judge_too_short(Trial *trial)
{
    const History *history = trial->history;
    Role role = ROLE_OTHER;
    for (size_t i = 0; i < history->n_tracks; i++)
        if (history->tracks[i].last.pid == history->pid)
            role = history->tracks[i].last.role;
    verdict_add(
        trial, &(Verdict){.id = VERDICT_TOO_SHORT,
                          .pid = history->pid,
                          .role = role,
                          .metric = "private",
                          .exhausts_in = INFINITY,
                          .evidence = WORDS(trial,
                                            "%zu samples in %s: no training process was seen for long enough "
                                            "after its start (%d samples and %.0f s at least).",
                                            history->series.n, DURATION_TEXT(trial->end), SAMPLES_LEAST,
                                            SECONDS_LEAST)});
}

static int verdict_compare(const void *a, const void *b)
{
    const Verdict *x = a;
    const Verdict *y = b;
    if (x->exhausts_in != y->exhausts_in)
        return x->exhausts_in < y->exhausts_in ? -1 : 1;
    return (x->confidence < y->confidence) - (x->confidence > y->confidence);
}

static int judge_all(Trial *trial)
{
    const History *history = trial->history;
    trial->end = history->series.seconds[history->series.n - 1];
    trial->guarded = job_at(trial, JOB_GUARD_BYTES, trial->end) != U64_UNKNOWN;
    Jobs jobs = {0};
    trial->r = jobs_list(history, trial->arena, &jobs);
    for (size_t i = 0; trial->r >= 0 && i < jobs.n; i++)
        job_judge(trial, &jobs.items[i]);
    if (trial->r >= 0 && !is_found(trial, VERDICT_BACKLOG))
        shared_judge(trial);
    if (trial->r >= 0 && !is_found(trial, VERDICT_PAGE_CACHE))
        cache_judge(trial);
    bool found = trial->verdicts.n > 0;
    for (size_t i = 0; trial->r >= 0 && !found && i < jobs.n; i++) {
        const Job *job = &jobs.items[i];
        if (job->id == 0 && jobs.n > 1)
            continue;
        if (job->unripe.track)
            judge_unripe(trial, &job->unripe);
        else if (job->judged)
            judge_steady(trial, job);
    }
    return trial->r;
}

int verdicts_judge(const History *history, Arena *arena, Verdicts *ret)
{
    Trial trial = {.history = history, .arena = arena};
    if (history->series.n > 0 && judge_all(&trial) < 0)
        return trial.r;
    if (trial.verdicts.n == 0)
        judge_too_short(&trial);
    if (trial.r < 0)
        return trial.r;
    qsort(trial.verdicts.items, trial.verdicts.n, sizeof *trial.verdicts.items, verdict_compare);
    *ret = trial.verdicts;
    return 0;
}

double trend_slope(const double *seconds, const uint64_t *values, size_t n)
{
    if (n == 0)
        return 0;
    Figures figures = {seconds, values, NULL, n};
    Trend trend = trend_of(&figures, seconds[0], seconds[n - 1]);
    bool moves = trend.kind == TREND_RISING || trend.kind == TREND_FALLING;
    return moves ? trend.slope : 0;
}
