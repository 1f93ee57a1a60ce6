/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/environ: what the launcher of a distributed training has told a process about its place in it. */
#pragma once

#include "root.h"

enum { LAUNCHER_JOB_MAX = 64, LAUNCHER_RANK_MAX = 8 };

/* By the name that the rank came from: below srun, torchrun starts the ranks. */
typedef enum Launcher {
    LAUNCHER_NONE,
    LAUNCHER_TORCHRUN, /* or another program that sets RANK as it does */
    LAUNCHER_MPIRUN,
    LAUNCHER_SRUN,
    LAUNCHERS,
} Launcher;

/* Each text is "" if the launcher did not set it. All but job and node are decimal numbers. */
typedef struct LauncherNames {
    char job[LAUNCHER_JOB_MAX]; /* the scheduler's or launcher's id of the job */
    char rank[LAUNCHER_RANK_MAX];
    char node[LAUNCHER_JOB_MAX]; /* the scheduler's name of the node */
    char node_number[LAUNCHER_RANK_MAX];
    char ranks[LAUNCHER_RANK_MAX];         /* how many there are in all */
    char restarts[LAUNCHER_RANK_MAX];      /* how often the launcher has restarted the job so far */
    char restarts_most[LAUNCHER_RANK_MAX]; /* how often it would */
    Launcher launcher;
} LauncherNames;

/*
 * `environment` is NAME=VALUE, each with a NUL behind it. The first known name counts, torchrun's before
 * those of mpirun and Slurm, which start torchrun. A value that could not be a short id is ignored. Pure.
 */
LauncherNames launcher_names_parse(Text environment);

/* -EACCES: it belongs to another user. */
int launcher_names_read(const Root *root, int pid, LauncherNames *ret);

/* The number in one of the names; U64_UNKNOWN: there is none. */
uint64_t launcher_number(const char *name);

/* The command that starts it: "torchrun", "mpirun", "srun"; "" for LAUNCHER_NONE. */
const char *launcher_name(Launcher launcher);
