/* `run` for people and for scripts. */
#pragma once

#include "cause.h"
#include "json.h"
#include "run.h"
#include "terminal.h"

typedef struct RunReport {
    char *const *command; /* NULL-terminated */
    RunResult result;
    Cause cause;
} RunReport;

/* Two or three lines for the end of a run. */
void show_run(const Terminal *terminal, const RunReport *report);

/* Schema "shmguard.run/1". 0 or -ENOMEM. */
int json_run(FILE *out, bool indented, const RunReport *report);
