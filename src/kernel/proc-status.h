/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/status: owner, resident memory by kind, signals caught, rights. Nearly free to read (no
 * page-table walk). */
#pragma once

#include "proc-stat.h"
#include "root.h"

typedef struct ProcStatus {
    char comm[COMM_MAX]; /* without leading and trailing blanks */
    char state;          /* as in ProcStat; 0 unknown */
    int ppid;            /* 0 unknown */
    uint32_t uid;        /* real */
    uint32_t euid;       /* effective */
    bool kernel_thread;  /* has no memory of its own: no Vm lines, and not a zombie */
    uint64_t rss_bytes;  /* these are 0 for kernel threads and zombies, U64_UNKNOWN where a line is missing */
    uint64_t rss_peak_bytes; /* its maximum since exec, as the kernel counts it */
    uint64_t rss_anon_bytes;
    uint64_t rss_file_bytes;
    uint64_t rss_shmem_bytes; /* touched tmpfs, memfd and SysV pages; not libraries, those are rss_file */
    uint64_t swap_bytes;
    uint32_t threads;
    uint64_t signals_caught; /* bit N-1 for signal N */
    uint64_t caps_effective;
    uint32_t seccomp; /* 0 off, 1 strict, 2 filter */
    bool no_new_privs;
    uint32_t cpus_allowed;   /* how many, from Cpus_allowed_list; 0 unknown */
    int inner_pid;           /* its number in its own pid namespace, the last of NSpid; 0 unknown */
    uint32_t pid_namespaces; /* how many numbers NSpid lists: nested namespaces below the reader's, 1 = the
                              * same, 0 unknown (before 4.1) */
} ProcStatus;

int proc_status_parse(Text text, ProcStatus *ret);                /* -EBADMSG when Uid is missing */
int proc_status_read(const Root *root, int pid, ProcStatus *ret); /* pid 0: this process */

/* "0-3,7,9-10" → 7. 0: not a list. */
uint32_t cpu_list_count(Text list);
