/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/stat: ancestry, state and counters. The name in it may hold blanks, newlines and parentheses. */
#pragma once

#include "root.h"

enum { COMM_MAX = 64 }; /* 15 characters for processes; kernel threads may have longer ones */

typedef struct ProcStat {
    int pid;
    char comm[COMM_MAX];
    char state; /* R S D Z T … */
    int ppid;
    int pgrp;
    int session;
    uint64_t minor_faults;
    uint64_t major_faults;
    uint64_t user_ticks;
    uint64_t system_ticks;
    uint64_t start_ticks; /* since boot; with the pid it identifies one process */
    uint32_t threads;
    int ended; /* the status, as from waitpid, of a zombie that ended badly. 0: it ended well, or we may not
                  know (always before Linux 3.5) */
} ProcStat;

int proc_stat_parse(Text text, ProcStat *ret); /* -EBADMSG */
int proc_stat_read(const Root *root, int pid, ProcStat *ret);

/* It has ended: what is left is for its parent to read. A process whose first thread has ended looks similar,
 * but lives on. */
bool proc_stat_is_over(const ProcStat *stat);
