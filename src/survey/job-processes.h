/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes belong to the job:
 *
 *   - of a supervisor: all below us, but for the children that we were born with. As their subreaper we also
 *     become the parent of those whose own has gone.
 *
 *   - of one that we came to later: a process and all below it. Who was seen there once belongs to it for
 *     ever, also after its parent has gone.
 *
 *   - of a machine: all.
 *
 * The list of all processes is gone through, which costs half a microsecond for each, and those that were
 * asked before for their parent are not asked again. (The lists of children in /proc/PID/task/TID, where the
 * kernel has them, cost more: there is one for each thread of the job.)
 */
#pragma once

#include "root.h"

/* The name of the process beside a supervisor that ends the job when the supervisor is killed
 * (run/sentinel.h). It is no process of any job. 15 characters at most. */
#define SENTINEL_COMM "guard-sentinel"

/* More are counted and not listed. */
enum { JOB_PROCESSES_MAX = 4096 };

/* A process keeps the inode of its directory in /proc while the kernel has that cached, and another one with
 * the same number does not get it: whoever has the same inode still is the same process. */
typedef struct JobProcess {
    int pid;
    uint64_t inode;
} JobProcess;

typedef struct JobProcesses {
    const Root *root;
    int self;           /* whose children belong to it; 0: nobody's */
    int top;            /* itself belongs to it, and who is below; 0: there is none */
    uint64_t top_start; /* its start_ticks: the number may be another process's one day */
    bool everyone;      /* belongs to it */
    JobProcess *items;  /* in rising order of pid, zombies too */
    size_t n;
    size_t all; /* n, and what was too much to list */
    size_t capacity;
    JobProcess *others; /* that we were born with, likewise */
    size_t n_others;
    struct Known *known; /* all processes of the machine, in rising order of pid, as the last look saw them */
    size_t n_known;
    size_t known_capacity;
    struct Known *before; /* the same of the look before */
    size_t before_capacity;
} JobProcesses;

/* Before the command is started; `self` is our pid. `root` must stay. -ENOMEM. */
int job_processes_open(const Root *root, int self, JobProcesses *ret);

/* That runs already; pid 0: the machine. When it is our own child, those that we become the parent of later
 * are the job's, too. `root` must stay. -ESRCH, -ENOMEM. */
int job_processes_attach(const Root *root, int pid, JobProcesses *ret);
void job_processes_close(JobProcesses *job);

/* Fills items. One whose parent ends during the look may be missing in it: ask /proc before taking it for
 * dead. -ENOMEM, or what kept us from reading /proc. */
int job_processes_look(JobProcesses *job);

/* Asks the kernel, from the process up to us. */
bool job_processes_has(const JobProcesses *job, int pid);
