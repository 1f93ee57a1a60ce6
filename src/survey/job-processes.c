/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "job-processes.h"
#include "proc-stat.h"

/* A captured tree may claim that two processes are each other's parent. */
enum { ANCESTORS_MAX = 64 };

typedef enum Membership {
    MEMBERSHIP_UNKNOWN, /* its parent ended meanwhile: the next look decides */
    MEMBERSHIP_JOB,
    MEMBERSHIP_OTHERS,
} Membership;

typedef struct Known {
    int pid;
    int ppid;
    uint64_t inode;
    uint64_t start_ticks;
    Membership whose;
} Known;

static int pid_order(const void *a, const void *b)
{
    int left = *(const int *)a;
    int right = *(const int *)b;
    return (left > right) - (left < right);
}

static int process_order(const void *a, const void *b)
{
    return pid_order(&((const JobProcess *)a)->pid, &((const JobProcess *)b)->pid);
}

static bool pid_in(const JobProcess *items, size_t n, int pid)
{
    JobProcess key = {.pid = pid};
    return n > 0 && bsearch(&key, items, n, sizeof key, process_order);
}

/* Room for one more. */
static void *grown(void *items, size_t n, size_t *capacity, size_t item_size)
{
    if (n < *capacity)
        return items;
    size_t wanted = MAX(*capacity * 2, (size_t)64);
    void *larger = reallocarray(items, wanted, item_size);
    if (larger)
        *capacity = wanted;
    return larger;
}

static int item_add(JobProcesses *job, const Known *known)
{
    job->all++;
    if (job->n >= JOB_PROCESSES_MAX)
        return 0;
    JobProcess *items = grown(job->items, job->n, &job->capacity, sizeof *items);
    if (!items)
        return -ENOMEM;
    job->items = items;
    job->items[job->n++] = (JobProcess){known->pid, known->inode};
    return 0;
}

static int known_order(const void *a, const void *b)
{
    return pid_order(&((const Known *)a)->pid, &((const Known *)b)->pid);
}

static Known *known_find(Known *known, size_t n, int pid)
{
    Known key = {.pid = pid};
    return n == 0 ? NULL : bsearch(&key, known, n, sizeof key, known_order);
}

/* False: it has ended meanwhile. A process may get another parent, but never moves into or out of the job by
 * that. */
static bool known_fill(const JobProcesses *job, size_t n_before, Known *known)
{
    const Known *before = known_find(job->before, n_before, known->pid);
    if (before && before->inode == known->inode && before->whose != MEMBERSHIP_UNKNOWN) {
        known->ppid = before->ppid;
        known->start_ticks = before->start_ticks;
        known->whose = before->whose;
        return true;
    }
    ProcStat stat;
    if (proc_stat_read(job->root, known->pid, &stat) < 0)
        return false;
    known->ppid = stat.ppid;
    known->start_ticks = stat.start_ticks;
    /* The kernel may have dropped the directory from its cache: then the same process has another inode. */
    if (before && before->start_ticks == stat.start_ticks)
        known->whose = before->whose;
    if (known->whose == MEMBERSHIP_UNKNOWN && strcmp(stat.comm, SENTINEL_COMM) == 0)
        known->whose = MEMBERSHIP_OTHERS;
    return true;
}

static int known_list(JobProcesses *job, size_t n_before)
{
    DIR *proc = root_list(job->root, "proc");
    if (!proc)
        return -errno;
    int r = 0;
    for (struct dirent *entry; r >= 0 && (entry = readdir(proc));) {
        Known known = {.inode = entry->d_ino};
        if (text_pid(text_of(entry->d_name), &known.pid) < 0 || !known_fill(job, n_before, &known))
            continue;
        Known *items = grown(job->known, job->n_known, &job->known_capacity, sizeof *items);
        if (items) {
            job->known = items;
            job->known[job->n_known++] = known;
        } else
            r = -ENOMEM;
    }
    closedir(proc);
    if (job->n_known > 0)
        qsort(job->known, job->n_known, sizeof *job->known, known_order);
    return r;
}

/* We belong to no side: what is below us is the job's, what is above or beside us is not. */
static Membership whose_is(JobProcesses *job, size_t n_before, Known *known, unsigned depth)
{
    if (known->whose != MEMBERSHIP_UNKNOWN || depth == 0)
        return known->whose;
    Known *parent = known_find(job->known, job->n_known, known->ppid);
    bool stranger =
        known->pid == job->self || known->ppid == 0 || pid_in(job->others, job->n_others, known->pid);
    bool top = known->pid == job->top && known->start_ticks == job->top_start;
    if (top || job->everyone || (!stranger && known->ppid == job->self))
        known->whose = MEMBERSHIP_JOB;
    else if (stranger)
        known->whose = MEMBERSHIP_OTHERS;
    else if (parent)
        known->whose = whose_is(job, n_before, parent, depth - 1);
    else if ((parent = known_find(job->before, n_before, known->ppid))) /* it has just gone */
        known->whose = parent->whose;
    return known->whose;
}

int job_processes_look(JobProcesses *job)
{
    size_t n_before = job->n_known;
    Known *known = TAKE_PTR(job->before);
    size_t capacity = job->before_capacity;
    job->before = job->known;
    job->before_capacity = job->known_capacity;
    job->known = known;
    job->known_capacity = capacity;
    job->n_known = 0;
    job->n = 0;
    job->all = 0;
    int r = known_list(job, n_before);
    for (size_t i = 0; r >= 0 && i < job->n_known; i++)
        if (whose_is(job, n_before, &job->known[i], ANCESTORS_MAX) == MEMBERSHIP_JOB)
            r = item_add(job, &job->known[i]);
    return r;
}

bool job_processes_has(const JobProcesses *job, int pid)
{
    for (int depth = 0; depth < ANCESTORS_MAX; depth++) {
        ProcStat stat;
        if (pid == job->self || pid_in(job->others, job->n_others, pid) ||
            proc_stat_read(job->root, pid, &stat) < 0)
            return false;
        if (stat.ppid == job->self)
            return true;
        pid = stat.ppid;
    }
    return false;
}

int job_processes_open(const Root *root, int self, JobProcesses *ret)
{
    JobProcesses job = {.root = root, .self = self};
    /* Everything that is below us now is not the command's. */
    int r = job_processes_look(&job);
    if (r == -ENOMEM) {
        job_processes_close(&job);
        return r;
    }
    job.others = TAKE_PTR(job.items);
    job.n_others = job.n;
    job.n = job.all = job.capacity = 0;
    job.n_known = 0;
    *ret = job;
    return 0;
}

/* The children that we have are not the job's, except for that one. */
static int others_note(JobProcesses *job)
{
    size_t capacity = 0;
    int r = known_list(job, 0);
    for (size_t i = 0; r >= 0 && i < job->n_known; i++) {
        const Known *known = &job->known[i];
        if (known->ppid != job->self || known->pid == job->top)
            continue;
        JobProcess *others = grown(job->others, job->n_others, &capacity, sizeof *others);
        if (!others)
            return -ENOMEM;
        job->others = others;
        job->others[job->n_others++] = (JobProcess){known->pid, known->inode};
    }
    job->n_known = 0;
    return MIN(r, 0);
}

int job_processes_attach(const Root *root, int pid, JobProcesses *ret)
{
    JobProcesses job = {.root = root, .top = pid, .everyone = pid == 0};
    ProcStat stat;
    int r = pid == 0 ? 0 : proc_stat_read(root, pid, &stat);
    if (r == -ENOENT || (r >= 0 && pid > 0 && proc_stat_is_over(&stat)))
        r = -ESRCH;
    if (r >= 0 && pid > 0) {
        job.top_start = stat.start_ticks;
        job.self = root->live && stat.ppid == getpid() ? getpid() : 0;
    }
    if (r >= 0 && job.self > 0)
        r = others_note(&job);
    if (r < 0) {
        job_processes_close(&job);
        return r;
    }
    *ret = job;
    return 0;
}

void job_processes_close(JobProcesses *job)
{
    free(job->items);
    free(job->others);
    free(job->known);
    free(job->before);
    *job = (JobProcesses){0};
}
