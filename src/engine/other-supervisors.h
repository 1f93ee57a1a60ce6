/* SPDX-License-Identifier: Apache-2.0 */
/* The guarded runs on this machine, from the figures that their supervisors publish. */
#pragma once

#include "figures.h"
#include "history.h"

enum { SUPERVISORS_MOST = 32 };

/* Of all guarded runs since the supervisors were first met, so that the end of a run lowers nothing. */
typedef struct GuardTotals {
    uint64_t segments;
    uint64_t reused;
    uint64_t waits;
    uint64_t refused;
} GuardTotals;

typedef struct OtherSupervisor {
    int pid; /* of the supervisor */
    uint64_t start_ticks;
    int page;            /* the number of its descriptor */
    bool there;          /* in this sample */
    GuardTotals counted; /* what the totals have of it */
} OtherSupervisor;

/* A guarded run in this sample. */
typedef struct GuardedRun {
    int pid;              /* of the supervisor */
    int job;              /* the lowest pid of the trainers below it; 0: none */
    GuardFigures figures; /* as shared_stats_read fills them */
} GuardedRun;

typedef struct OtherSupervisors {
    OtherSupervisor items[SUPERVISORS_MOST];
    size_t n;
    GuardedRun runs[SUPERVISORS_MOST];
    size_t n_runs;
    GuardTotals totals;
} OtherSupervisors;

/* Finds the supervisors above `pid`. */
void supervisors_find_above(OtherSupervisors *supervisors, const Root *root, int pid);

/*
 * Fills in the guard metrics of the moment: those of the run that is nearest to its budget, of all runs whose
 * supervisors are among its processes or were found above. Returns the number of these runs, which are in
 * `runs`; *ret_pid: the supervisor of the one that was chosen, or 0.
 */
unsigned supervisors_fill(OtherSupervisors *supervisors, const Root *root, Moment *moment, int *ret_pid);
