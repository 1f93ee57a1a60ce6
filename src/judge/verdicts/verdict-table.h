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

/* Adds the fixes of the verdict. `guarded`: the job runs under the guard; `frozen`: which has made a dataset
 * immortal. -ENOMEM. */
int verdict_advise(Verdict *verdict, bool guarded, bool frozen, Arena *arena);
