/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about each verdict besides how it is reached. Private to verdicts/. */
#pragma once

#include "verdicts.h"

/* What growth of this kind runs into. */
typedef enum VerdictLimit {
    LIMIT_NONE,
    LIMIT_MEMORY,     /* RAM or the control group */
    LIMIT_SHARED,     /* /dev/shm or the guard's budget, and memory */
    LIMIT_OPEN_FILES, /* of each process */
    LIMIT_IF_SHORT,   /* the growth ends by itself, unless memory ends first */
} VerdictLimit;

VerdictLimit verdict_limit(VerdictId id);

/* What the advice depends on. */
typedef struct AdvisedJob {
    bool guarded;    /* it runs under the guard */
    bool frozen;     /* which has made a dataset immortal */
    unsigned python; /* 3.N; 0 unknown */
} AdvisedJob;

/* Adds the fixes of the verdict. -ENOMEM. */
int verdict_advise(Verdict *verdict, const AdvisedJob *job, Arena *arena);
