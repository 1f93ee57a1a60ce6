/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threatens a job that is about to start here: doctor's checks, of which only those count that this job
 * would die of or fail by, with the guard, the /dev/shm and the budget that it will have. Pure.
 *
 * doctor judges the jobs that run; this one does not run yet, so the Machine is all there is to look at, and
 * no process need be. What slows a training, what it leaves behind, and what happened to others is doctor's.
 */
#pragma once

#include "checks.h"

/* What the job will have. */
typedef struct PreflightPlan {
    bool guarded;
    bool shm_tried;             /* a private /dev/shm was asked for: it need not be proposed */
    uint64_t private_shm_bytes; /* 0: the job has the machine's /dev/shm */
    uint64_t budget_bytes;      /* U64_UNKNOWN: none */
} PreflightPlan;

typedef struct Threat {
    const char *id; /* doctor's, or "budget" and "private-shm" */
    Severity severity;
    const char *text;   /* with its figures, without a full stop */
    const char *remedy; /* one or two sentences */
} Threat;

enum {
    THREATS_MAX = 3,
    THREAT_COLUMNS = 180, /* the most that text and remedy have together: two lines, at a glance */
};

typedef struct Preflight {
    Threat items[THREATS_MAX]; /* the worst first */
    size_t n;
} Preflight;

/* The guard's GuardOffer says whether it could be active, the plan whether it will be. -ENOMEM. */
int preflight_judge(const Machine *machine, const GuardOffer *guard, const PreflightPlan *plan, Arena *arena,
                    Preflight *ret);

Health preflight_health(const Preflight *preflight);
