/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes belong to the job:
 *
 *   - of our own job, as its supervisor: all below us, except the children that we had before. As the
 *     subreaper we also become the parent of processes whose own parent has ended.
 *
 *   - of a job that was already running: a process and all below it. A process that was once seen there
 *     belongs to the job forever, even after its parent has ended.
 *
 *   - of a machine: all.
 *
 * Each look goes through the list of all processes, which costs half a microsecond for each, and reads the
 * parents of new processes only. (The lists of children in /proc/PID/task/TID, where the kernel has them,
 * cost more: there is one for each thread of the job.)
 */
#pragma once

#include "root.h"

/* The name of the process beside a supervisor that ends the job if the supervisor is killed (run/sentinel.h).
 * It belongs to no job. At most 15 characters. */
#define SENTINEL_COMM "guard-sentinel"

/* Further ones are counted, but not listed. */
enum { JOB_PROCESSES_MAX = 4096 };

/* A process keeps the inode of its directory in /proc while the kernel has that cached, and another process
 * with the same number does not get it: the same inode means the same process. */
typedef struct JobProcess {
    int pid;
    uint64_t inode;
} JobProcess;

typedef struct JobProcesses {
    const Root *root;
    int self;           /* whose children belong to it; 0: none */
    int top;            /* it belongs to the job, with all below it; 0: none */
    uint64_t top_start; /* its start_ticks: the number may belong to another process one day */
    bool everyone;      /* all processes of the machine belong to it */
    JobProcess *items;  /* in rising order of pid, including zombies */
    size_t n;
    size_t all; /* n, plus those beyond the limit */
    size_t capacity;
    JobProcess *others; /* the children that we had before, in rising order of pid */
    size_t n_others;
    struct Known *known; /* all processes of the machine, in rising order of pid, as the last look saw them */
    size_t n_known;
    size_t known_capacity;
    struct Known *before; /* the same of the look before */
    size_t before_capacity;
} JobProcesses;

/* Before the command is started; `self` is our pid. `root` must stay. -ENOMEM. */
int job_processes_open(const Root *root, int self, JobProcesses *ret);

/* For a job that is already running; pid 0: the machine. If it is our own child, orphans that become our
 * children later belong to the job, too. `root` must stay. -ESRCH, -ENOMEM. */
int job_processes_attach(const Root *root, int pid, JobProcesses *ret);
void job_processes_close(JobProcesses *job);

/* Fills items. A process whose parent ends during the look may be missing: check /proc before treating it as
 * ended. -ENOMEM, or the error of reading /proc. */
int job_processes_look(JobProcesses *job);

/* Asks the kernel, from the process up to us. */
bool job_processes_has(const JobProcesses *job, int pid);
