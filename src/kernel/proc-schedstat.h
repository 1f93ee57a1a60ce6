/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/schedstat: how long the main thread of a process has run, and has waited for a CPU. */
#pragma once

#include "root.h"

typedef struct ProcSchedstat {
    uint64_t ran_nsec;
    uint64_t waited_nsec; /* ready to run: other tasks had the CPUs, or its control group its quota used up */
} ProcSchedstat;

int proc_schedstat_parse(Text text, ProcSchedstat *ret); /* -EBADMSG */

/* -ENOENT: also a kernel without CONFIG_SCHED_INFO. */
int proc_schedstat_read(const Root *root, int pid, ProcSchedstat *ret);
