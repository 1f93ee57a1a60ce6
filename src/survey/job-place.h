/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a distributed job a process is. */
#pragma once

#include "history.h"
#include "proc-environ.h"

/* What the launcher says. Pure. */
JobPlace job_place_of(const LauncherNames *names);

/* Of this process and this machine: the launcher's words, and the host's name where it has none. */
JobPlace job_place_here(const Root *root);

/* Fills in what is missing in the place of a job from one of its trainers. */
void job_place_learn(JobPlace *place, const JobPlace *trainer);
