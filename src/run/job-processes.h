/*
 * Which processes belong to the job: all below us, but for the children that we were born with. As their
 * subreaper we also become the parent of those whose own has gone.
 *
 * Where the kernel lists a thread's children (CONFIG_PROC_CHILDREN) only the job's processes are asked, and
 * of each the main thread; all of their threads every few looks. Elsewhere the list of all processes is gone
 * through, and those that were found to be others' are not asked again.
 */
#pragma once

#include "root.h"

/* More are counted and not listed. */
enum { JOB_PROCESSES_MAX = 4096 };

typedef struct JobProcesses {
    const Root *root;
    int self;
    bool children_files;
    unsigned looks;
    int *pids; /* in rising order, zombies too */
    size_t n;
    size_t all;    /* n, and what was too much to list */
    size_t n_kept; /* of them, those that the look before had */
    size_t pids_capacity;
    int *others; /* that we were born with, in rising order */
    size_t n_others;
    struct Known *known; /* all processes of the machine, in rising order of pid, as the last look saw them */
    size_t n_known;
    size_t known_capacity;
    struct Known *before; /* the same of the look before */
    size_t before_capacity;
    Buffer scratch;
} JobProcesses;

/* Before the command is started; `self` is our pid. `root` must stay. -ENOMEM. */
int job_processes_open(const Root *root, int self, JobProcesses *ret);
void job_processes_close(JobProcesses *job);

/* Fills pids. One whose parent ends during the look may be missing in it: ask /proc before taking it for
 * dead. -ENOMEM, or what kept us from reading /proc. */
int job_processes_look(JobProcesses *job);

bool job_processes_lists(const JobProcesses *job, int pid);

/* Asks the kernel, from the process up to us. */
bool job_processes_has(const JobProcesses *job, int pid);

/* /proc/PID/task/TID/children: pids with blanks between them. Takes the next one off *rest; 0 at the end and
 * at what is no pid. */
int children_next(Text *rest);
