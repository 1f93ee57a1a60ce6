/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether strays were working when their time was up: a script that starts its training in the background and
 * returns has lost the training, and its user must be told; a service that only waits for the next call has
 * lost nothing.
 *
 * It is judged by the CPU time (/proc/PID/stat) that a stray and all processes below it used while they could
 * have ended by themselves. A training uses CPU time at every step, its own or that of its workers, and even
 * more while it loads its libraries. A resource tracker or a logger sleeps. A twentieth of one core is more
 * than such a service needs, and less than the slowest training uses.
 *
 * Roles matter for one thing only: a DataLoader worker whose trainer has gone fills a queue that no process
 * reads, until it notices. That is not work.
 */
#pragma once

#include "strays.h"

enum { STRAY_COMMAND_MAX = 200 };

/* The stray that used most CPU time, of those that were working. */
typedef struct StrayWork {
    unsigned n; /* how many were; 0: none, and nothing else here is set */
    int pid;
    double cpu_seconds;              /* used while it was awaited, with all below it */
    char command[STRAY_COMMAND_MAX]; /* its arguments, truncated */
} StrayWork;

/* All processes, and what they have used so far. {0} is an empty one. */
typedef struct StrayTimes {
    struct ProcTime *items; /* in rising order of pid */
    size_t n;
    double at; /* now_seconds() */
} StrayTimes;

void stray_times_free(StrayTimes *times);

/* -ENOMEM, or what kept us from reading /proc. */
int stray_times_read(const Root *root, double now, StrayTimes *ret);

/* What the strays have done since `before`. `is_idle` tells which of them work for no other process. */
int stray_work_read(const Strays *strays, const Root *root, const StrayTimes *before, double now,
                    bool (*is_idle)(const void *context, int pid), const void *context, StrayWork *ret);
