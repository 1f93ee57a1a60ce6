/* SPDX-License-Identifier: Apache-2.0 */
/* `plan` for people and for scripts. */
#pragma once

#include "advice.h"
#include "json.h"
#include "measured.h"
#include "show-nodes.h"
#include "terminal.h"

typedef struct PlanView {
    const PlanQuestion *question;
    const Plan *plan;
    const ShmFlags *flags; /* NULL: nothing is recommended */
    const GuardOffer *guard;
    const PlanMeasured *measured; /* NULL: by arithmetic */
    const NodesPlan *nodes;       /* NULL: this machine is asked about */
} PlanView;

void show_plan(const Terminal *terminal, const PlanView *view);

/* Schema "shmguard.plan/1". 0 or -ENOMEM. */
int json_plan(FILE *out, bool indented, const PlanView *view);
