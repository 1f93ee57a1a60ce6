/* SPDX-License-Identifier: Apache-2.0 */
/* `plan` for people and for scripts. */
#pragma once

#include "advice.h"
#include "figures.h"
#include "json.h"
#include "plan.h"
#include "terminal.h"

/* What was measured, of the bases that are. */
typedef struct PlanMeasured {
    uint64_t peak_bytes; /* of all trainers together */
    bool guarded;        /* counted by the guard, whose pools keep segments for the next batch */
    bool now;            /* a look at one moment, no peak */
    double seconds;      /* that it ran */
    uint64_t trainers;
    uint64_t workers; /* of each */
    uint64_t batch;   /* 0: not known */
    ProcessPeak *processes;
    size_t n_processes;
    bool scaled; /* to another setting, or from the guard's pools to /dev/shm */
} PlanMeasured;

typedef struct PlanView {
    const PlanQuestion *question;
    const Plan *plan;
    const ShmFlags *flags; /* NULL: nothing is recommended */
    const GuardOffer *guard;
    const PlanMeasured *measured; /* NULL: by arithmetic */
} PlanView;

void show_plan(const Terminal *terminal, const PlanView *view);

/* Schema "shmguard.plan/1". 0 or -ENOMEM. */
int json_plan(FILE *out, bool indented, const PlanView *view);
