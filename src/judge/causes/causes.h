/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what is known of a job's end to its cause, and what to do about it. Pure: reads nothing itself.
 *
 * What was seen (faults with their addresses, how processes ended, what the kernel counted and logged)
 * outranks what processes wrote. The first death of the job is its cause, not the exception that the trainer
 * raises because of it. Where facts contradict each other the confidence sinks, and where nothing tells, the
 * cause is unknown.
 */
#pragma once

#include "advice.h"
#include "cause.h"
#include "evidence.h"

typedef struct Judged {
    Cause cause;
    const char *detail; /* a finer name, as "cuda-in-forked-worker"; NULL when the cause says it all */
    const char *frame;  /* where Python stood when the fault came, "train.py line 3, in f"; or NULL */
    const char *stack;  /* of that, as faulthandler writes it; or NULL */
    Fixes fixes;        /* ranked, the best first */
} Judged;

/* machine may be NULL: fixes are then for any environment. ret lives in arena, and in the evidence's. -ENOMEM
 */
int cause_judge(const Evidence *evidence, const Machine *machine, const GuardOffer *guard, Arena *arena,
                Judged *ret);

/* Smaller parameters (batches, workers) may let the next attempt live. */
bool cause_helped_by_less(CauseId id);
