/*
 * Runs a training for a while to see how much shared memory it takes.
 *
 * It runs under the guard: a small /dev/shm does not end it, other users of the mount do not spoil the
 * figure, and no peak is missed, since the supervisor counts whenever a segment comes or goes. Where the
 * guard cannot work, the growth of /dev/shm is what the supervisor sees of it once a second.
 */
#pragma once

#include "show-plan.h"

typedef struct MeasureWish {
    char **command;
    double seconds; /* then it is told to end */
    bool quiet;     /* no progress */
} MeasureWish;

/* 0, or the exit code for what went wrong, said. ret->peak_bytes is 0 when no shared memory was seen.
 * *ret_code is the command's own exit code, 0 when it was we who ended it. What the command prints goes to
 * stderr. */
int measure_run(const MeasureWish *wish, PlanMeasured *ret, int *ret_code);
