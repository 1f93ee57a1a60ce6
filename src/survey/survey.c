#include <pthread.h>
#include <stdatomic.h>

#include "internal.h"
#include "lease.h"
#include "smaps.h"

/*
 * PSS is a page-table walk in the kernel, a millisecond for a PyTorch process, and the walks of different
 * processes do not wait for each other: a few threads take the processes one by one.
 */
enum { PSS_THREADS_MAX = 8 };

typedef struct PssJob {
    const Root *root;
    Survey *survey;
    bool all;
    atomic_size_t
        next; /* relaxed: each index is taken once, and the results are read after the threads are joined */
} PssJob;

static void *read_pss(void *context)
{
    PssJob *job = context;
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (i >= job->survey->n_processes)
            return NULL;
        Process *process = &job->survey->processes[i];
        Smaps sizes;
        if (process->readable && (job->all || process_is_listed(process)) &&
            smaps_rollup_read(job->root, process->pid, &sizes) >= 0) {
            process->pss_bytes = sizes.pss_bytes;
            process->uss_bytes = sizes.private_bytes;
        }
    }
}

static void take_pss(const Root *root, bool all, Survey *survey)
{
    PssJob job = {.root = root, .survey = survey, .all = all};
    pthread_t threads[PSS_THREADS_MAX];
    size_t wanted = MIN((size_t)survey->machine.cpus, (size_t)PSS_THREADS_MAX);
    size_t started = 0;
    /* This thread is one of them; where no more can be had, it does the work alone. */
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, read_pss, &job) == 0)
        started++;
    read_pss(&job);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* Asks the kernel who else has the file open; only where the answer can matter. */
static void ask_leases(const Root *root, Survey *survey)
{
    if (!root->live || survey->n_unreadable == 0)
        return;
    for (size_t i = 0; i < survey->n_segments; i++) {
        Segment *segment = &survey->segments[i];
        if (segment->on_mount && segment->n_holders == 0 && !segment->deleted)
            segment->open = lease_ask(root, segment->name);
    }
}

int survey_take(const Root *root, int pid, unsigned flags, Survey *ret)
{
    Survey survey = {0};
    Mounts mounts = {0};
    int r = machine_read(root, pid, &survey.arena, &survey.machine);
    if (r >= 0)
        r = mounts_read(root, 0, &survey.arena, &mounts) == -ENOMEM ? -ENOMEM : 0;
    if (r >= 0)
        r = processes_list(root, flags, &survey);
    if (r >= 0)
        r = segments_scan(root, &mounts, &survey);
    if (r >= 0 && pid > 0 && !survey_process(&survey, pid))
        r = -ESRCH;
    if (r < 0) {
        survey_free(&survey);
        return r;
    }
    if (flags & SURVEY_PSS)
        take_pss(root, flags & SURVEY_PSS_ALL, &survey);
    if (flags & SURVEY_LEASES)
        ask_leases(root, &survey);
    *ret = survey;
    return 0;
}

void survey_free(Survey *survey)
{
    arena_free(&survey->arena);
    *survey = (Survey){0};
}
