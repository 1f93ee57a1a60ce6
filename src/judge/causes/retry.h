/* SPDX-License-Identifier: Apache-2.0 */
/* Whether another attempt is worth it, and with which values. */
#pragma once

#include <stdbool.h>

#include "cause.h"
#include "restarts.h"

/* How the attempt ended, and what the user allows for the next one. */
typedef struct RetryCase {
    CauseId cause;
    const char *detail; /* the finer name of the cause, or NULL */
    int code;           /* 128 + signal when a signal ended it */
    int signal;         /* 0: none */
    bool told_to_end;   /* we were sent a signal to stop */
    bool started;       /* the command could be run */
    bool can_degrade;   /* there are values to make smaller */
    bool can_resume;    /* there are arguments that continue from a checkpoint */
} RetryCase;

typedef enum Retry {
    RETRY_LESS,  /* with the next values, or with the last ones again */
    RETRY_SAME,  /* with the same values: what happened does not depend on them */
    RETRY_DONE,  /* it succeeded */
    RETRY_ASKED, /* it was asked to stop */
    RETRY_NO_START,
    RETRY_ERROR,    /* the same exception would occur with any values */
    RETRY_NOT_LESS, /* smaller values do not help, and there is no checkpoint to continue from */
} Retry;

/*
 * Smaller values are tried where they can help: when memory, descriptors or mappings ran out, also if that
 * was an exception (of the GPU, for which there is no other cause, and MemoryError). A process that was
 * killed or crashed, deleted segments and unknown causes do not depend on the values: the attempt is repeated
 * with the same ones if --resume says how to continue, or if only --retry was given. With values that could
 * be smaller and no checkpoint to continue from, an attempt that changes nothing would only start from the
 * beginning.
 */
Retry retry_judge(const RetryCase *ended);

/* "this is one rank …": why somebody else makes further attempts, or nobody. NULL: we do. */
const char *restarts_words(RestartsBy by);

/* "it was asked to stop": why there is no further attempt. NULL if there is one. */
const char *retry_words(Retry retry);
