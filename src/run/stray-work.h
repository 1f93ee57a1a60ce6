/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether strays were at work when their time was up: a script that starts its training in the background and
 * returns has lost the training, and must hear of it; a service that only waits for the next call has lost
 * nothing.
 *
 * The facts are the processor time (/proc/PID/stat) that a stray and all processes below it have used while
 * they could have ended by themselves. A training uses it at every step, its own or that of its workers, and
 * one that is still loading its libraries all the more. A resource tracker or a logger sleeps; the twentieth
 * part of one core is more than such a service takes to look around, and less than the slowest training.
 *
 * Roles decide nothing here but one thing: a DataLoader worker whose trainer has gone fills its queue for
 * nobody, until it notices. That is no work.
 */
#pragma once

#include "strays.h"

enum { STRAY_COMMAND_MAX = 200 };

/* Of the strays that were at work the one that used most. */
typedef struct StrayWork {
    unsigned n; /* how many were; 0: none, and nothing else here is set */
    int pid;
    double cpu_seconds;              /* used while it was awaited, with all below it */
    char command[STRAY_COMMAND_MAX]; /* its arguments, cut */
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

/* What the strays have done since `before`. `is_idle` tells of those that work for nobody. */
int stray_work_read(const Strays *strays, const Root *root, const StrayTimes *before, double now,
                    bool (*is_idle)(const void *context, int pid), const void *context, StrayWork *ret);
