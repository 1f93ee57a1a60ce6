/* `run` for people and for scripts. */
#pragma once

#include "cause.h"
#include "json.h"
#include "run.h"
#include "terminal.h"

typedef struct RunValue {
    const char *name;
    const char *value;
} RunValue;

typedef struct RunAttempt {
    char *const *command;   /* NULL-terminated, as it was run */
    const RunValue *values; /* that were put into it */
    size_t n_values;
    RunResult result;
    Cause cause;
} RunAttempt;

typedef struct RunReport {
    RunAttempt *attempts; /* at least one; the last is how it all ended */
    size_t n_attempts;
    size_t attempts_capacity;
} RunReport;

static inline const RunAttempt *report_last(const RunReport *report)
{
    return &report->attempts[report->n_attempts - 1];
}

/* Two or three lines for the end of a run. */
void show_run(const Terminal *terminal, const RunReport *report);

/* Schema "shmguard.run/1". 0 or -ENOMEM. */
int json_run(FILE *out, bool indented, const RunReport *report);
