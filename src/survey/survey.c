/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "internal.h"
#include "lease.h"
#include "maps.h"
#include "smaps.h"

/*
 * PSS takes a page-table walk in the kernel, and the number of mappings a text of a hundred kilobytes: a
 * millisecond or more each for a PyTorch process. Different processes do not block each other there, so a few
 * threads read the training processes one by one while this thread looks for segments. They write fields that
 * no other thread touches until they are joined.
 */
enum { THREADS_MAX = 8 };

typedef struct Costly {
    const Root *root;
    Survey *survey;
    unsigned flags;
    atomic_size_t next; /* relaxed: it only hands out indexes, each once */
    pthread_t threads[THREADS_MAX];
    size_t n_threads;
} Costly;

static void read_costly(const Costly *costly, Process *process)
{
    Smaps sizes;
    if (costly->flags & (SURVEY_PSS | SURVEY_PSS_ALL) &&
        smaps_rollup_read(costly->root, process->pid, &sizes) >= 0) {
        process->pss_bytes = sizes.pss_bytes;
        process->uss_bytes = sizes.private_bytes;
    }
    if (costly->flags & SURVEY_MAPS && process->role != ROLE_OTHER)
        (void)maps_count(costly->root, process->pid, &process->maps);
}

static void *read_training(void *context)
{
    Costly *costly = context;
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&costly->next, 1, memory_order_relaxed);
        if (i >= costly->survey->n_processes)
            return NULL;
        if (costly->survey->processes[i].role != ROLE_OTHER)
            read_costly(costly, &costly->survey->processes[i]);
    }
}

/* The threads take no signals: those are for the program's own, which may not be ours (the C API). */
static void costly_start(Costly *costly)
{
    size_t wanted = MIN((size_t)costly->survey->machine.cpus, (size_t)THREADS_MAX);
    if (!(costly->flags & (SURVEY_PSS | SURVEY_PSS_ALL | SURVEY_MAPS)))
        return;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (costly->n_threads + 1 < wanted && /* if no thread can be started, this one does it all */
           pthread_create(&costly->threads[costly->n_threads], NULL, read_training, costly) == 0)
        costly->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void costly_finish(Costly *costly)
{
    read_training(costly);
    for (size_t i = 0; i < costly->n_threads; i++)
        pthread_join(costly->threads[i], NULL);
    for (size_t i = 0; i < costly->survey->n_processes; i++) {
        Process *process = &costly->survey->processes[i];
        bool wanted = costly->flags & SURVEY_PSS_ALL || process_is_listed(process);
        if (process->role == ROLE_OTHER && process->readable && wanted)
            read_costly(costly, process);
    }
}

/* For all files that seem to have no holder, asks the kernel whether any process has them open. */
static void ask_leases(const Root *root, Survey *survey)
{
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
    unsigned parts = flags & SURVEY_MACHINE ? MACHINE_NAMESPACES | MACHINE_KERNEL_LOG : 0;
    int r = machine_read(root, pid, parts, &survey.arena, &survey.machine);
    if (r >= 0)
        r = mounts_read(root, 0, &survey.arena, &mounts) == -ENOMEM ? -ENOMEM : 0;
    if (r >= 0)
        r = processes_list(root, &survey);
    if (r >= 0 && pid > 0 && !survey_process(&survey, pid))
        r = -ESRCH;
    if (r >= 0) {
        Costly costly = {.root = root, .survey = &survey, .flags = flags};
        costly_start(&costly);
        r = segments_scan(root, &mounts, &survey);
        costly_finish(&costly);
    }
    if (r < 0) {
        survey_free(&survey);
        return r;
    }
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
