/* SPDX-License-Identifier: Apache-2.0 */
/* Is it worth another attempt, and with what? */
#pragma once

#include <stdbool.h>

#include "cause.h"

/* What the user has given us to come back with, and how it ended. */
typedef struct RetryCase {
    CauseId cause;
    const char *detail; /* the finer name of the cause, or NULL */
    int code;           /* 128 + signal when a signal ended it */
    int signal;         /* 0: none */
    bool told_to_end;   /* we were sent a signal to end */
    bool started;       /* the command could be run */
    bool can_degrade;   /* there are values to make smaller */
    bool can_resume;    /* there are arguments that continue from a checkpoint */
} RetryCase;

typedef enum Retry {
    RETRY_LESS,  /* with the next values, or the last ones again */
    RETRY_SAME,  /* as it was: what happened does not depend on the values */
    RETRY_DONE,  /* it ended well */
    RETRY_ASKED, /* somebody wanted it to end */
    RETRY_NO_START,
    RETRY_ERROR,    /* an exception comes back, whatever the values */
    RETRY_NOT_LESS, /* smaller values do not help against this, and from the beginning is no continuing */
} Retry;

/*
 * Less is tried against what less can help: memory, descriptors and mappings that ran out, also when that is
 * an exception (of the GPU, which no other cause stands for, and MemoryError). A process that was killed or
 * crashed, segments that vanished and what nobody could explain are no matter of size: they are tried again
 * as they were, where --resume says how to continue or nothing but --retry was asked for. With values to make
 * smaller and no checkpoint to continue from, an attempt that changes nothing would only begin again.
 */
Retry retry_judge(const RetryCase *ended);

/* "it was asked to end", for the line that says why there is no further attempt. NULL for those with one. */
const char *retry_words(Retry retry);
