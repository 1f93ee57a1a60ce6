/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin for Slurm says. */
#pragma once

#define SLURM_OPTION_ARGUMENT "options"
#define SLURM_OPTION_USAGE                                                                                   \
    "run each task under shmguard, which keeps PyTorch's shared memory out of /dev/shm; options: "           \
    "budget=SIZE, wait=SECONDS, where, record, quiet, report=off, pin=off, lane=off, freeze=off, no-guard, " \
    "off"
#define SLURM_OPTION_UNKNOWN                                                                                 \
    "--shmguard: unknown option '%s'; use budget=SIZE, wait=SECONDS, where, record, "                        \
    "quiet, report=off, pin=off, lane=off, freeze=off, no-guard or off"
#define SLURM_OPTION_SIZE     "--shmguard: budget '%s' is not a size; use for example budget=8G"
#define SLURM_OPTION_SECONDS  "--shmguard: wait '%s' is not a time in seconds; use for example wait=30"
#define SLURM_OPTION_ONLY     "--shmguard: '%s' can only be 'off'"
#define SLURM_OPTION_NO_GUARD "--shmguard: '%s' needs the guard; remove it or no-guard"
#define SLURM_OPTION_FLAG     "--shmguard: '%s' takes no value"
#define SLURM_OPTION_MANY     "--shmguard: '%s' is too long, or there are too many options"
#define SLURM_NOT_STARTED     "shmguard: %s: %s; the task runs without shmguard"
#define SLURM_NO_REPORT       "shmguard: no report is written, because %s cannot be written to: %s"
#define SLURM_COMMENT         "shmguard: step %s: %s"
