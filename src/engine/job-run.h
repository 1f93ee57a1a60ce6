/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `shmguard run`: a command, and further attempts at it with smaller values or from a checkpoint. For each
 * attempt the order is attempt_prepare, attempt_start, attempt_finish and attempt_next.
 */
#pragma once

#include <limits.h>
#include <time.h>

#include "attempts.h"
#include "causes.h"
#include "checkpoint.h"
#include "recorder.h"
#include "restarts.h"
#include "run.h"

/* A value that replaced {name} in the command of an attempt. */
typedef struct AttemptValue {
    const char *name;
    const char *value;
} AttemptValue;

typedef struct RunAttempt {
    char *const *command; /* NULL-terminated */
    const AttemptValue *values;
    size_t n_values;
    RunResult result; /* pid 0: the command could not be started */
    Evidence evidence;
    Diagnosis judged;
} RunAttempt;

typedef struct RunReport {
    RunAttempt *attempts; /* in order; the last one decides how the run ended */
    size_t n_attempts;    /* at least one */
    size_t attempts_capacity;
    Peaks peaks; /* of all attempts */
    JobPlace place;
    Restarts restarts;
    bool retries;     /* --retry was given */
    const char *path; /* of the JSON report; NULL: not asked for */
} RunReport;

static inline const RunAttempt *report_last(const RunReport *report)
{
    return &report->attempts[report->n_attempts - 1];
}

/* The exit code of `run` itself: the command's, or 1 where that is 0 although batches were lost, or although
 * processes that it had left running were still working and had to be ended. */
static inline int report_exit_code(const RunReport *report)
{
    const RunAttempt *last = report_last(report);
    bool lost = last->judged.cause.id == CAUSE_BUDGET_EXCEEDED || last->result.work.n > 0;
    return last->result.code == 0 && lost ? 1 : last->result.code;
}

/* The attempt that follows a failed one. */
typedef struct NextAttempt {
    unsigned attempt; /* its number, from 1 on */
    unsigned of;      /* the most attempts that there may be */
    unsigned pause_seconds;
    CauseId cause; /* of the failure */
    const Knobs *knobs;
    unsigned level_before;
    unsigned level;
    const Checkpoints *found; /* one for each {latest:GLOB} of --resume */
    char *const *globs;
    size_t n_found;
    struct timespec run_began;
} NextAttempt;

typedef struct JobRun {
    /* To be filled in. */
    Run *run; /* open */
    char *const *command;
    Knobs knobs;
    Resume resume; /* without words: none */
    int retries;   /* the most further attempts */
    GuardWish guard;
    Recorder *recorder; /* NULL: nothing is recorded */
    struct timespec began;
    RunReport report; /* with unknown peaks */

    /* The rest is private. */
    Arena arena;
    char **settings; /* of the attempt, for its environment */
    unsigned level;
    const char *const *checkpoints; /* to resume from; NULL: the attempt starts from the beginning */
    char library[PATH_MAX];
} JobRun;

/* Does not free the run and the recorder. */
void job_run_free(JobRun *job);

/* Makes the command of the next attempt, and serves the guard. *ret_guard: negative errno of guard_serve if
 * there will be no guard. -ENOMEM. */
int attempt_prepare(JobRun *job, int *ret_guard);

/* As run_start. */
int attempt_start(JobRun *job, ChildStage *ret_stage);

/* Waits for the end of the attempt, and judges it. An attempt that could not be started is judged, too:
 * start_error is then its positive errno, and code the exit code that it counts as. Negative errno. */
int attempt_finish(JobRun *job, int start_error, int code);

typedef enum AttemptAnswer {
    ATTEMPT_NONE,    /* none was asked for, or the last one ended well */
    ATTEMPT_USELESS, /* another attempt would not help, or all have been made */
    ATTEMPT_FOLLOWS,
} AttemptAnswer;

/* Whether another attempt follows. ATTEMPT_USELESS: *ret_why says why, as retry_words does. ATTEMPT_FOLLOWS:
 * *ret_next describes it, and attempt_prepare makes it. -ENOMEM. */
int attempt_next(JobRun *job, AttemptAnswer *ret, NextAttempt *ret_next, const char **ret_why);
