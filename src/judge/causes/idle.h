/* SPDX-License-Identifier: Apache-2.0 */
/* Why the guard had nothing to do, or was not in all processes of a job. Pure. */
#pragma once

#include "evidence.h"

typedef enum Idle {
    IDLE_NOT,        /* it served tensors, or there was no guard */
    IDLE_UNKNOWN,    /* no process with Python lived long enough to be looked at */
    IDLE_NO_TENSORS, /* it was there, and nothing was shared */
    IDLE_NOT_LOADED,
    IDLE_OTHER_USER, /* the processes run as a user that it could not serve */
    IDLE_INNER_RUN,  /* a run within this one served them */
} Idle;

Idle idle_judge(const Evidence *evidence);

/* For scripts: "no-tensors"; NULL when it was not idle. */
const char *idle_name(Idle idle);

/* "not-loaded", "switched-off" … for scripts, and a sentence with what to do for people. */
const char *absence_name(Absence why);
const char *absence_words(Absence why);

/* The process that tells best why there is no guard where it is needed: of those that train, or of all when
 * the guard was nowhere. NULL: all were guarded, or the guard's absence is of no consequence. */
const Unguarded *unguarded_worst(const Evidence *evidence);

/* One that we may not look into; NULL: there is none. */
const Unguarded *unguarded_unreadable(const Evidence *evidence);

/* How many are like it. */
size_t unguarded_alike(const Evidence *evidence, const Unguarded *unguarded);
