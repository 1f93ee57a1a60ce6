/*
 * Which processes belong to the job: all below us, but for the children that we were born with. As their
 * subreaper we also become the parent of those whose own has gone.
 *
 * The list of all processes is gone through, which costs half a microsecond for each, and those that were
 * asked before for their parent are not asked again. (The lists of children in /proc/PID/task/TID, where the
 * kernel has them, cost more: there is one for each thread of the job.)
 */
#pragma once

#include "root.h"

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
    int self;
    JobProcess *items; /* in rising order of pid, zombies too */
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
void job_processes_close(JobProcesses *job);

/* Fills items. One whose parent ends during the look may be missing in it: ask /proc before taking it for
 * dead. -ENOMEM, or what kept us from reading /proc. */
int job_processes_look(JobProcesses *job);

bool job_processes_lists(const JobProcesses *job, int pid);

/* Asks the kernel, from the process up to us. */
bool job_processes_has(const JobProcesses *job, int pid);
