/* SPDX-License-Identifier: Apache-2.0 */
#include "job-run.h"
#include "engine-text.h"
#include "retry.h"
#include "user-command.h"

void job_run_free(JobRun *job)
{
    arena_free(&job->arena);
}

static RunAttempt *attempt_last(const JobRun *job)
{
    return &job->report.attempts[job->report.n_attempts - 1];
}

static int attempt_values(JobRun *job, RunAttempt *attempt)
{
    size_t n = job->knobs.n;
    AttemptValue *values = arena_alloc(&job->arena, MAX(n, (size_t)1) * sizeof *values);
    if (!values)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        values[i] = (AttemptValue){job->knobs.items[i].name, knob_value(&job->knobs.items[i], job->level)};
    attempt->values = values;
    attempt->n_values = n;
    return 0;
}

int attempt_prepare(JobRun *job, int *ret_guard)
{
    RunReport *report = &job->report;
    RunAttempt *attempt =
        ARENA_PUSH(&job->arena, report->attempts, report->n_attempts, report->attempts_capacity);
    char **command = NULL;
    if (!attempt)
        return -ENOMEM;
    int r = attempt_command(job->command, &job->knobs, job->level, job->checkpoints ? &job->resume : NULL,
                            job->checkpoints, &job->arena, &command);
    if (r >= 0)
        r = attempt_settings(&job->knobs, job->level, (unsigned)report->n_attempts, &job->arena,
                             &job->settings);
    if (r >= 0)
        r = attempt_values(job, attempt);
    if (r < 0)
        return r;
    attempt->command = command;
    *ret_guard = MIN(guard_serve(job->run, job->library, &job->guard), 0);
    return 0;
}

/* "2: batch=16, workers=2" */
static void record_begin(JobRun *job)
{
    const RunAttempt *attempt = attempt_last(job);
    _cleanup_buffer_ Buffer text = {0};
    (void)buffer_printf(&text, "%zu", job->report.n_attempts);
    for (size_t i = 0; i < attempt->n_values; i++)
        (void)buffer_printf(&text, "%s%s=%s", i == 0 ? ": " : ", ", attempt->values[i].name,
                            attempt->values[i].value);
    if (job->recorder)
        (void)recorder_begin(job->recorder, run_pid(job->run), buffer_text(&text));
}

int attempt_start(JobRun *job, ChildStage *ret_stage)
{
    int r = run_start(job->run, attempt_last(job)->command, job->settings, ret_stage);
    if (r >= 0)
        record_begin(job);
    return r;
}

/* A known peak beats an unknown one. */
static void peak_raise(uint64_t *most, uint64_t value)
{
    if (value != U64_UNKNOWN && (*most == U64_UNKNOWN || value > *most))
        *most = value;
}

/* Shared memory is what the guard provides; without the guard, what /dev/shm holds. */
static void peaks_take(JobRun *job, const RunResult *result)
{
    Peaks peaks = run_peaks(job->run);
    Peaks *most = &job->report.peaks;
    peak_raise(&most->shm_bytes, result->guarded ? result->guard.bytes_peak : peaks.shm_bytes);
    peak_raise(&most->rss_bytes, peaks.rss_bytes);
    peak_raise(&most->fds, peaks.fds);
    peak_raise(&most->processes, peaks.processes);
}

int attempt_finish(JobRun *job, int start_error, int code)
{
    RunAttempt *attempt = attempt_last(job);
    if (start_error > 0)
        attempt->result.code = code;
    else {
        int r = run_finish(job->run, &attempt->result);
        if (job->recorder)
            recorder_end(job->recorder);
        if (r < 0)
            return r;
        peaks_take(job, &attempt->result);
    }
    return end_judge(job->run, &attempt->result, attempt->command[0], start_error, &job->arena,
                     &attempt->evidence, &attempt->judged);
}

/* Looks for the checkpoints of --resume. Without one for each {latest:GLOB}, the attempt starts from the
 * beginning. */
static int checkpoints_look(JobRun *job, NextAttempt *next)
{
    size_t n = job->resume.n_globs;
    Checkpoints *found = arena_alloc(&job->arena, (n + 1) * sizeof *found);
    const char **paths = arena_alloc(&job->arena, (n + 1) * sizeof *paths);
    if (!found || !paths)
        return -ENOMEM;
    next->found = found;
    next->globs = job->resume.globs;
    next->n_found = n;
    bool all = job->resume.n_words > 0;
    for (size_t i = 0; i < n; i++) {
        int r = checkpoints_find(job->resume.globs[i], &job->arena, &found[i]);
        if (r < 0)
            return r;
        const Checkpoint *whole = checkpoints_whole(&found[i]);
        all = all && whole;
        paths[i] = whole ? whole->path : NULL;
    }
    job->checkpoints = all ? paths : NULL;
    return 0;
}

int attempt_next(JobRun *job, AttemptAnswer *ret, NextAttempt *ret_next, const char **ret_why)
{
    const RunAttempt *last = attempt_last(job);
    Retry retry = retry_judge(&(RetryCase){
        .cause = last->judged.cause.id,
        .detail = last->judged.detail,
        .code = last->result.code,
        .signal = last->result.signal,
        .told_to_end = last->result.told_to_end != 0,
        .started = last->result.pid > 0,
        .can_degrade = job->knobs.n > 0,
        .can_resume = job->resume.n_words > 0,
    });
    unsigned failed = (unsigned)job->report.n_attempts;
    const char *why_not = retry_words(retry);
    if (!why_not)
        why_not = restarts_words(job->report.restarts.by);
    if (!why_not && failed > (unsigned)MAX(job->retries, 0))
        why_not = JOB_LAST_ATTEMPT;
    if (retry == RETRY_DONE || job->retries <= 0 || why_not) {
        *ret = retry == RETRY_DONE || job->retries <= 0 ? ATTEMPT_NONE : ATTEMPT_USELESS;
        *ret_why = why_not;
        return 0;
    }
    NextAttempt next = {.attempt = failed + 1,
                        .of = (unsigned)job->retries + 1,
                        .pause_seconds = attempt_pause_seconds(failed),
                        .cause = last->judged.cause.id,
                        .knobs = &job->knobs,
                        .level_before = job->level,
                        .level = job->level + (retry == RETRY_LESS),
                        .run_began = job->began};
    int r = checkpoints_look(job, &next);
    if (r < 0)
        return r;
    job->level = next.level;
    *ret_next = next;
    *ret = ATTEMPT_FOLLOWS;
    return 0;
}
