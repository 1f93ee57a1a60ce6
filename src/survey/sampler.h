/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at a job, or at all training on the machine, again and again, and cheaply: under 1% of a core and
 * 16 MiB for 64 processes at a look a second.
 *
 * What is nearly free is read in every look. What is costly (PSS and USS, mappings, who holds which segment)
 * is looked at in turns, as often as a fixed share of the time allows: the dearer it is here, the rarer.
 *
 * A process that ends while it is looked at is left out. One that waits in the kernel for a disk or a driver
 * (state D) is asked only for what the kernel tells without its locks.
 */
#pragma once

#include "history.h"

typedef struct Sampler Sampler;

typedef struct SamplerWish {
    int pid;         /* the job: this process and all below it, also after their parents have ended.
                        0: all that train on the machine, and the segments' holders */
    double interval; /* between two looks, seconds: what the share of time is reckoned by */
} SamplerWish;

/* `root` must stay. -ESRCH: there is no such process. */
int sampler_open(const Root *root, const SamplerWish *wish, Sampler **ret);
void sampler_free(Sampler *sampler);

/* ret's content is valid until the next look. Guard metrics are unknown in it: whoever runs the job fills
 * them in. The first look that finds nobody left tells of it by its events; those after it are -ESRCH (never
 * for a machine). */
int sampler_look(Sampler *sampler, Moment *ret);

/* The segments that were seen by the newest look at them, with the processes that were asked, and when that
 * was: the caller's from now on. Of its machine only `shm` is filled in. False: there are none newer than
 * those that were taken before. */
bool sampler_take_segments(Sampler *sampler, Survey *ret, double *ret_seconds);
