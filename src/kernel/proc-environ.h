/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/environ: what the launcher of a distributed training has told a process about its place in it. */
#pragma once

#include "root.h"

enum { LAUNCHER_JOB_MAX = 64, LAUNCHER_RANK_MAX = 8 };

typedef struct LauncherNames {
    char job[LAUNCHER_JOB_MAX];   /* the scheduler's or launcher's id of the job; "": none */
    char rank[LAUNCHER_RANK_MAX]; /* a decimal number; "": none */
} LauncherNames;

/*
 * `environment` is NAME=VALUE, each with a NUL behind it. The first known name counts, torchrun's before
 * those of mpirun and Slurm, which start torchrun. A value that could not be a short id is ignored. Pure.
 */
LauncherNames launcher_names_parse(Text environment);

/* -EACCES: it belongs to another user. */
int launcher_names_read(const Root *root, int pid, LauncherNames *ret);
