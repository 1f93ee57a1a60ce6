#include <stdio.h>
#include <string.h>

#include "job-processes.h"
#include "proc-path.h"
#include "proc-stat.h"

/* Threads other than the main one seldom start processes. */
enum { ALL_THREADS_EVERY = 4 };

/* A captured tree may claim that two processes are each other's parent. */
enum { ANCESTORS_MAX = 64 };

typedef enum Whose {
    WHOSE_UNKNOWN, /* its parent went away meanwhile: the next look knows */
    WHOSE_JOB,
    WHOSE_OTHERS,
} Whose;

/* A process keeps the inode of its directory while the kernel has that cached, and another process with the
 * same number never gets it: whoever has it still is the one that was asked. */
typedef struct Known {
    int pid;
    int ppid;
    uint64_t inode;
    Whose whose;
} Known;

static int pid_order(const void *a, const void *b)
{
    int left = *(const int *)a;
    int right = *(const int *)b;
    return (left > right) - (left < right);
}

static bool pid_in(const int *pids, size_t n, int pid)
{
    return n > 0 && bsearch(&pid, pids, n, sizeof pid, pid_order);
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

static int pid_add(JobProcesses *job, int pid)
{
    job->all++;
    if (job->n >= JOB_PROCESSES_MAX)
        return 0;
    int *pids = grown(job->pids, job->n, &job->pids_capacity, sizeof *pids);
    if (!pids)
        return -ENOMEM;
    job->pids = pids;
    job->pids[job->n++] = pid;
    return 0;
}

static void pids_sort(JobProcesses *job)
{
    size_t n = 0;
    if (job->n > 0)
        qsort(job->pids, job->n, sizeof *job->pids, pid_order);
    for (size_t i = 0; i < job->n; i++)
        if (n == 0 || job->pids[n - 1] != job->pids[i])
            job->pids[n++] = job->pids[i];
    job->all -= job->n - n;
    job->n = n;
}

/* --- Children, as the kernel lists them --------------------------------------------------------------- */

int children_next(Text *rest)
{
    Text word;
    int pid = 0;
    return text_word(rest, &word) && text_pid(word, &pid) == 0 ? pid : 0;
}

static int thread_children_add(JobProcesses *job, int pid, int thread)
{
    char name[PROC_PATH_MAX];
    snprintf(name, sizeof name, "task/%d/children", thread);
    int r = proc_read(job->root, pid, name, &job->scratch);
    if (r < 0)
        return r == -ENOMEM ? r : 0; /* gone */
    Text rest = {job->scratch.data, job->scratch.size};
    for (int child = 0; r >= 0 && (child = children_next(&rest)) > 0;)
        if (!pid_in(job->others, job->n_others, child) && !pid_in(job->pids, job->n_kept, child))
            r = pid_add(job, child);
    return r;
}

static int children_add(JobProcesses *job, int pid, bool all_threads)
{
    DIR *threads = all_threads ? root_list(job->root, PROC_PATH(pid, "task")) : NULL;
    if (!threads)
        return thread_children_add(job, pid, pid);
    int r = 0;
    for (struct dirent *entry; r >= 0 && (entry = readdir(threads));) {
        int thread = 0;
        if (text_pid(text_of(entry->d_name), &thread) == 0)
            r = thread_children_add(job, pid, thread);
    }
    closedir(threads);
    return r;
}

/*
 * Down from us. Between the looks that ask all threads, the children of the others are known from the look
 * before: so those are where this one begins too, as far as they exist.
 */
static int children_look(JobProcesses *job)
{
    bool all_threads = job->looks % ALL_THREADS_EVERY == 0;
    job->n_kept = 0;
    for (size_t i = 0; !all_threads && i < job->n; i++)
        if (root_exists(job->root, PROC_PATH(job->pids[i], "stat")))
            job->pids[job->n_kept++] = job->pids[i];
    job->n = job->all = job->n_kept;

    int r = children_add(job, job->self, all_threads);
    /* A process has one parent, so nobody comes twice; a captured tree may have a circle, and the list ends
     * it. */
    for (size_t i = 0; r >= 0 && i < job->n; i++)
        r = children_add(job, job->pids[i], all_threads);
    pids_sort(job);
    return r;
}

/* --- All processes, where it does not ----------------------------------------------------------------- */

static int known_order(const void *a, const void *b)
{
    return pid_order(&((const Known *)a)->pid, &((const Known *)b)->pid);
}

static Known *known_find(Known *known, size_t n, int pid)
{
    Known key = {.pid = pid};
    return n == 0 ? NULL : bsearch(&key, known, n, sizeof key, known_order);
}

/* False: it went away meanwhile. The job's own are asked each time: their parents change. */
static bool known_fill(const JobProcesses *job, size_t n_before, Known *known)
{
    const Known *before = known_find(job->before, n_before, known->pid);
    if (before && before->inode == known->inode && before->whose == WHOSE_OTHERS) {
        known->ppid = before->ppid;
        known->whose = before->whose;
        return true;
    }
    ProcStat stat;
    if (proc_stat_read(job->root, known->pid, &stat) < 0)
        return false;
    known->ppid = stat.ppid;
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

/* We are nobody's in this: who is below us is the job's, who is above us or beside us is not. */
static Whose whose_is(JobProcesses *job, Known *known, unsigned depth)
{
    if (known->whose != WHOSE_UNKNOWN || depth == 0)
        return known->whose;
    Known *parent = known_find(job->known, job->n_known, known->ppid);
    if (known->pid == job->self || known->ppid == 0 || pid_in(job->others, job->n_others, known->pid))
        known->whose = WHOSE_OTHERS;
    else if (known->ppid == job->self)
        known->whose = WHOSE_JOB;
    else if (parent)
        known->whose = whose_is(job, parent, depth - 1);
    return known->whose;
}

static int scan_look(JobProcesses *job)
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
        if (whose_is(job, &job->known[i], ANCESTORS_MAX) == WHOSE_JOB)
            r = pid_add(job, job->known[i].pid);
    return r;
}

/* --- Both --------------------------------------------------------------------------------------------- */

int job_processes_look(JobProcesses *job)
{
    int r = job->children_files ? children_look(job) : scan_look(job);
    job->looks++;
    return r;
}

bool job_processes_lists(const JobProcesses *job, int pid)
{
    return pid_in(job->pids, job->n, pid);
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
    char name[PROC_PATH_MAX];
    snprintf(name, sizeof name, "task/%d/children", self);
    job.children_files = root_exists(root, PROC_PATH(self, name));

    /* All that is below us now is not the command's. */
    int r = job_processes_look(&job);
    if (r == -ENOMEM) {
        job_processes_close(&job);
        return r;
    }
    job.others = TAKE_PTR(job.pids);
    job.n_others = job.n;
    job.n = job.all = job.pids_capacity = 0;
    job.n_known = 0;
    *ret = job;
    return 0;
}

void job_processes_close(JobProcesses *job)
{
    free(job->pids);
    free(job->others);
    free(job->known);
    free(job->before);
    buffer_free(&job->scratch);
    *job = (JobProcesses){0};
}
