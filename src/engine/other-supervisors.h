/* SPDX-License-Identifier: Apache-2.0 */
/* The guarded runs on this machine, as their supervisors tell of them. */
#pragma once

#include "history.h"

enum { SUPERVISORS_MOST = 32 };

typedef struct OtherSupervisor {
    int pid; /* of the supervisor */
    uint64_t start_ticks;
    int page;   /* the number of its descriptor */
    bool there; /* in this look */
} OtherSupervisor;

typedef struct OtherSupervisors {
    OtherSupervisor items[SUPERVISORS_MOST];
    size_t n;
} OtherSupervisors;

/* The supervisor of the job that `pid` belongs to, if it has one above it. */
void supervisors_find_above(OtherSupervisors *supervisors, const Root *root, int pid);

/*
 * Fills the moment's guard metrics with those of the run that is nearest to its budget, of those whose
 * supervisors are among its processes or were found above. Returns how many there are; *ret_pid: the
 * supervisor of that run, 0 without one.
 */
unsigned supervisors_fill(OtherSupervisors *supervisors, const Root *root, Moment *moment, int *ret_pid);
