/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threatens a job that is about to start here: doctor's checks, reduced to those that would kill this
 * job or make it fail, with the guard, the /dev/shm and the budget that it will have. Pure.
 *
 * doctor examines running jobs. This job does not run yet, so only the Machine is examined, and no process.
 * What slows a training, what it leaves behind, and what happened to other jobs is left to doctor.
 */
#pragma once

#include "checks.h"

/* What the job will have. */
typedef struct PreflightPlan {
    bool guarded;
    bool shm_tried;             /* a private /dev/shm was already asked for, so it is not proposed */
    uint64_t private_shm_bytes; /* 0: the job has the machine's /dev/shm */
    uint64_t budget_bytes;      /* U64_UNKNOWN: none */
} PreflightPlan;

typedef struct Threat {
    const char *id; /* of the finding, or "budget" or "private-shm" */
    Severity severity;
    const char *text;   /* with its figures, without a full stop */
    const char *remedy; /* one or two sentences */
} Threat;

enum {
    THREATS_MAX = 3,
    THREAT_COLUMNS = 180, /* the most that text and remedy may have together: two lines */
};

typedef struct Preflight {
    Threat items[THREATS_MAX]; /* the worst first */
    size_t n;
} Preflight;

/* `guard` says whether the guard could be active, `plan` whether it will be. -ENOMEM. */
int preflight_judge(const Machine *machine, const GuardOffer *guard, const PreflightPlan *plan, Arena *arena,
                    Preflight *ret);

Health preflight_health(const Preflight *preflight);
