/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor's table of checks. Each check is a function that examines the survey and reports nothing, a finding,
 * or that it could not look. Pure.
 */
#pragma once

#include "advice.h"
#include "severity.h"
#include "survey.h"

struct CheckContext;

typedef struct Check {
    const char *id;
    Severity least; /* of its findings */
    Severity worst;
    const char *meaning; /* one sentence, for the documentation */
    void (*run)(struct CheckContext *check);
} Check;

/* The checks in the order in which they run; NULL after the last. */
const Check *check_at(size_t i);

typedef struct Finding {
    const char *id;
    Severity severity;
    const char *title;    /* one line */
    const char *evidence; /* the figures behind it; says which are measured and which are estimated */
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
