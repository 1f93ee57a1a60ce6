/* SPDX-License-Identifier: Apache-2.0 */
/* `run` for people and for scripts. */
#pragma once

#include "causes.h"
#include "json.h"
#include "run.h"
#include "terminal.h"

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
    Peaks peaks;      /* of all attempts */
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

/* The summary of a run: what the guard did and, after a failure, what died, the evidence and what to do.
 * Prints nothing when the command could not be started, since that was reported when it failed. */
void show_run(const Terminal *terminal, const RunReport *report);

/* The command returned before its work was done, and what to do about it. A part of show_run. */
void show_stray_work(const Terminal *terminal, const StrayWork *work);

/* While it runs: one line that says why workers wait and proceed by rescues alone, and what to do. */
void show_crawl(const Terminal *terminal, const RunTick *tick);

/* { NAME: value }, and { shm, rss, fds, processes } with null for what was not measured. NULL: no memory. */
json_t *json_values(const AttemptValue *values, size_t n);
json_t *json_peaks(const Peaks *peaks);

/* A process that has ended, with its last sample and its fault. */
json_t *json_ended(const Ended *ended);

/* Schema "shmguard.run/1". 0 or -ENOMEM. */
int json_run(FILE *out, bool indented, const RunReport *report);
