/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a training for a while to see how much shared memory it takes, and what each of its processes takes.
 *
 * It runs under the guard: a small /dev/shm does not end it, other users of the mount do not distort the
 * figure, and no peak is missed, since the supervisor counts whenever a segment is created or freed. Where
 * the guard cannot work, the growth of /dev/shm is sampled PEEKS_PER_SECOND times a second.
 *
 * The kernel itself keeps the peak of all memory of each process; how much of that is shared is sampled just
 * as often. Under the guard a worker keeps its segments mapped for longer than that.
 *
 * The order is measuring_open, measuring_start, measuring_finish and measuring_close.
 */
#pragma once

#include <limits.h>

#include "measured.h"
#include "run.h"

enum { PEEKS_PER_SECOND = 20 };

typedef struct Measuring {
    Run *run;
    bool guarded; /* the guard serves the command */

    /* The rest is private. */
    RunWatch watch;
    char library[PATH_MAX];
    double seconds;
    void (*tick)(void *context, const RunTick *tick);
    void *context;
    int standard_output; /* ours, while the command has our standard error in its place */
    bool began;          /* the first tensor was seen, or cannot be */
    double first;        /* when */
    double next_peek;
    uint64_t trainers;
    uint64_t workers; /* of all trainers together, at the same time */
} Measuring;

/* Measures for `seconds` from the first shared tensor on; then the command is told to end. The Measuring must
 * stay where it is. */
int measuring_open(double seconds, Measuring *ret);
void measuring_close(Measuring *measuring); /* also after measuring_open has failed */

/* As run_on_tick: for a line of progress. */
void measuring_on_tick(Measuring *measuring, void (*tick)(void *context, const RunTick *tick), void *context);

/* As run_start. What the command prints goes to standard error. */
int measuring_start(Measuring *measuring, char *const *command, ChildStage *ret_stage);

/* Waits for the end. shm_used_bytes: what /dev/shm held before. ret->peak_bytes is 0 if no shared memory was
 * seen; its processes live in arena. Negative errno. */
int measuring_finish(Measuring *measuring, uint64_t shm_used_bytes, Arena *arena, PlanMeasured *ret,
                     RunResult *ret_result);
