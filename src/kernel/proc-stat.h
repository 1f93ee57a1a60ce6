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
    uint64_t start_ticks; /* since boot; with the pid it names one process for ever */
    uint32_t threads;
    int ended; /* of a zombie that ended badly: its status, as waitpid has it. 0: ended well, or not for us to
                  know (and always before Linux 3.5) */
} ProcStat;

int proc_stat_parse(Text text, ProcStat *ret); /* -EBADMSG */
int proc_stat_read(const Root *root, int pid, ProcStat *ret);

/* It has ended: what is there is what its parent has not asked for yet. A process whose first thread has
 * ended looks like that and lives on. */
bool proc_stat_is_over(const ProcStat *stat);
