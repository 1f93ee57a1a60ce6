/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at a job, or at all training on the machine, again and again, for less than 1% of a core and 16 MiB
 * with 64 processes at one look per second.
 *
 * Figures that are nearly free are read in every look. Costly ones (PSS and USS, the holders of segments) are
 * read in turns, as often as a fixed share of the time allows: the more expensive they are here, the less
 * often. Mappings are counted in turns, too, one process every two seconds, whatever that costs.
 *
 * A process that ends during a look is left out. Of a process that waits in the kernel for a disk or a driver
 * (state D), only figures that the kernel reports without its locks are read.
 */
#pragma once

#include "history.h"

typedef struct Sampler Sampler;

/* Scopes other than one job, in place of its pid. */
enum {
    SAMPLER_MACHINE = 0,   /* all training on the machine, and the processes that hold segments */
    SAMPLER_CHILDREN = -1, /* all processes below us, except the children that we already have */
};

typedef struct SamplerWish {
    int pid;         /* the job: this process and all below it, also after their parents have ended */
    double interval; /* seconds between two looks: the share of time is computed from it */
    bool light;      /* look at processes only, and leave out PSS, USS and segments */
} SamplerWish;

/* `root` must stay. -ESRCH: there is no such process. */
int sampler_open(const Root *root, const SamplerWish *wish, Sampler **ret);
void sampler_free(Sampler *sampler);

/* ret's content is valid until the next look. The guard's metrics are unknown in it: the supervisor fills
 * them in. The first look that finds no process left has the last events; every look after it is -ESRCH,
 * unless the scope is the machine or our children. */
int sampler_look(Sampler *sampler, Moment *ret);

/* Looks at one process now, in full: its role, its mappings and its descriptors are read again. A process
 * that is new makes it a look at all of them. ret is valid until the next look. -ESRCH: it has ended, or is
 * out of scope. */
int sampler_look_at(Sampler *sampler, int pid, ProcessMoment *ret);

/* How long the trainer has waited for its loaders so far, as the guard has counted it; for the next look. */
void sampler_note_wait(Sampler *sampler, int pid, uint64_t msec);

/* Whether the process is in scope, as the kernel says now; for SAMPLER_CHILDREN. */
bool sampler_covers(const Sampler *sampler, int pid);

/* The segments found by the newest look at them, with the processes that were examined, and when that was:
 * the caller owns them from now on. Of its machine only `shm` is filled in. False: none are newer than those
 * that were taken before. */
bool sampler_take_segments(Sampler *sampler, Survey *ret, double *ret_seconds);
