/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run that this process itself belongs to: `shmguard run` within `shmguard run`. The outer run's guard
 * serves both: two guards would not know of each other's budget, and the sum of both could exceed the memory.
 */
#pragma once

#include <stdbool.h>

typedef struct Outer {
    const char *socket; /* in our environment */
    int pid;            /* of its supervisor */
} Outer;

/* A connection to a supervisor, by the name of its socket, that it serves. -ECONNREFUSED. */
int outer_connect(const char *name, int *ret_pid);

/* False: there is none, it has ended, or it does not serve us. A stopped supervisor counts as there. */
bool outer_find(Outer *ret);
