/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run that this process itself is a part of: `shmguard run` within `shmguard run`. One guard serves them
 * both, the outer one's; two would not know of each other's budget, and neither could add up.
 */
#pragma once

#include <stdbool.h>

typedef struct Outer {
    const char *socket; /* in our environment */
    int pid;            /* of its supervisor */
} Outer;

/* False: there is none, or it has ended, or does not serve us. A supervisor that is stopped is there. */
bool outer_find(Outer *ret);
