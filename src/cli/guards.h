/* The guarded runs on this machine, as their supervisors tell of them. */
#pragma once

#include "history.h"

enum { GUARDS_MOST = 32 };

typedef struct SeenGuard {
    int pid; /* of the supervisor */
    uint64_t start_ticks;
    int page;   /* the number of its descriptor */
    bool there; /* in this look */
} SeenGuard;

typedef struct Guards {
    SeenGuard items[GUARDS_MOST];
    size_t n;
} Guards;

/* The supervisor of the job that `pid` belongs to, if it has one above it. */
void guards_find_above(Guards *guards, const Root *root, int pid);

/*
 * Fills the moment's guard metrics with those of the run that is nearest to its budget, of those whose
 * supervisors are among its processes or were found above. Returns how many there are; *ret_pid: the
 * supervisor of that run, 0 without one.
 */
unsigned guards_fill(Guards *guards, const Root *root, Moment *moment, int *ret_pid);
