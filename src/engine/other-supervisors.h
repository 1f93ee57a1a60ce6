/* SPDX-License-Identifier: Apache-2.0 */
/* The guarded runs on this machine, from the figures that their supervisors publish. */
#pragma once

#include "history.h"

enum { SUPERVISORS_MOST = 32 };

typedef struct OtherSupervisor {
    int pid; /* of the supervisor */
    uint64_t start_ticks;
    int page;   /* the number of its descriptor */
    bool there; /* in this sample */
} OtherSupervisor;

typedef struct OtherSupervisors {
    OtherSupervisor items[SUPERVISORS_MOST];
    size_t n;
} OtherSupervisors;

/* Finds the supervisors above `pid`. */
void supervisors_find_above(OtherSupervisors *supervisors, const Root *root, int pid);

/*
 * Fills in the guard metrics of the moment: those of the run that is nearest to its budget, of all runs whose
 * supervisors are among its processes or were found above. Returns the number of these runs; *ret_pid: the
 * supervisor of the one that was chosen, or 0.
 */
unsigned supervisors_fill(OtherSupervisors *supervisors, const Root *root, Moment *moment, int *ret_pid);
