/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor's table of checks. Each check is a function that looks at the survey and says fine, or adds a
 * finding, or says that it could not look. Pure.
 */
#pragma once

#include "advice.h"
#include "severity.h"
#include "survey.h"

typedef struct Finding {
    const char *id;
    Severity severity;
    const char *title;    /* one line */
    const char *evidence; /* the figures it rests on, measured ones and estimated ones told apart */
    Fixes fixes;          /* ranked */
} Finding;

typedef struct Findings {
    Finding *items; /* the worst first */
    size_t n;
    size_t capacity;
    const char **skipped; /* "oom-recent: the kernel log may not be read (Operation not permitted)" */
    size_t n_skipped;
    size_t skipped_capacity;
} Findings;

/* pid 0: every job; else only the job of that trainer, worker or manager, or the jobs below that launcher.
 * -ESRCH when the survey has no such process. */
int checks_run(const Survey *survey, const GuardOffer *guard, int pid, Arena *arena, Findings *ret);

typedef enum Health {
    HEALTH_OK,
    HEALTH_WARNING,
    HEALTH_CRITICAL,
} Health;

Health findings_health(const Findings *findings);
const char *health_name(Health health);
