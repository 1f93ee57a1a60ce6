/* SPDX-License-Identifier: Apache-2.0 */
/* Why the guard had nothing to do, or was not in all processes of a job. Pure. */
#pragma once

#include "evidence.h"

typedef enum Idle {
    IDLE_NOT,        /* it served tensors, or there was no guard */
    IDLE_UNKNOWN,    /* no process with Python lived long enough to be looked at */
    IDLE_NO_TENSORS, /* it was loaded, but no tensors were shared */
    IDLE_NOT_LOADED,
    IDLE_OTHER_USER, /* the processes ran as a user that it could not serve */
    IDLE_INNER_RUN,  /* a run within this one served them */
} Idle;

Idle idle_judge(const Evidence *evidence);

/* For scripts: "no-tensors"; NULL when it was not idle. */
const char *idle_name(Idle idle);

/* For scripts "no-preload", "switched-off" and so on; for people a sentence that says what to do. */
const char *absence_name(Absence why);
const char *absence_words(Absence why);

/* The process that best shows why the guard is missing where it is needed: among those that train, or among
 * all if the guard was in none. NULL: all were guarded, or the guard's absence does not matter. */
const Unguarded *unguarded_worst(const Evidence *evidence);

/* A process that we may not look into, or NULL. */
const Unguarded *unguarded_unreadable(const Evidence *evidence);

/* How many processes lack the guard for the same reason. */
size_t unguarded_alike(const Evidence *evidence, const Unguarded *unguarded);
