/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a training for a while to see how much shared memory it takes, and what each of its processes takes.
 *
 * It runs under the guard: a small /dev/shm does not end it, other users of the mount do not spoil the
 * figure, and no peak is missed, since the supervisor counts whenever a segment comes or goes. Where the
 * guard cannot work, the growth of /dev/shm is what is seen of it PEEKS_A_SECOND times a second.
 *
 * Of each process the kernel itself keeps the peak of all its memory, and what of that is shared is looked at
 * as often. Under the guard a worker keeps its segments mapped for longer than that.
 */
#pragma once

#include "show-plan.h"

/* START_SECONDS: how long the first shared tensor may take, libraries to load and an index to read. */
enum { PEEKS_A_SECOND = 20, START_SECONDS = 120 };

typedef struct MeasureWish {
    char **command;
    double seconds; /* from the first shared tensor on; then it is told to end */
    bool quiet;     /* no progress */
} MeasureWish;

/* 0, or the exit code for what went wrong, said. ret->peak_bytes is 0 when no shared memory was seen; its
 * processes live in arena. *ret_code is the command's own exit code, 0 when it was we who ended it. What the
 * command prints goes to stderr. */
int measure_run(const MeasureWish *wish, Arena *arena, PlanMeasured *ret, int *ret_code);
