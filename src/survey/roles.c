/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>

#include "internal.h"

/*
 * PyTorch's worker loop catches SIGBUS, SIGFPE, SIGSEGV and SIGTERM in every version. Newer versions also
 * name the process pt_data_worker, and some of them name every other process that imports torch
 * pt_main_thread. Where these names exist, they decide. Without them (1.13, or a program that renames itself)
 * the four signals decide; but a trainer with faulthandler and a SIGTERM handler of its own looks the same.
 * So a worker must also have a training process above it that is not a launcher, and no worker below it.
 *
 * Other workers are found by what they do (is_feeder). Names of the main thread say nothing about those: a
 * forked process inherits them.
 */
static bool catches_like_worker(const Process *process)
{
    const uint64_t worker = UINT64_C(1) << (SIGBUS - 1) | UINT64_C(1) << (SIGFPE - 1) |
                            UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGTERM - 1);
    return (process->signals_caught & worker) == worker;
}

/* Programs that load torch only to start the ranks. */
static bool is_launcher(const Process *process)
{
    static const char *const launchers[] = {
        "/torchrun ",        "torch.distributed.run", "torch.distributed.launch", "torch/distributed/run.py",
        "accelerate launch", "accelerate.commands",   "deepspeed.launcher",       "/deepspeed "};
    for (size_t i = 0; i < ARRAY_SIZE(launchers); i++)
        if (text_contains(process->command, launchers[i]))
            return true;
    return false;
}

/* A captured tree may claim that two processes are each other's parent. */
enum { ANCESTORS_MAX = 64 };

static Process *nearest_ancestor(const Survey *survey, const Process *process,
                                 bool (*wanted)(const Process *))
{
    for (int depth = 0; depth < ANCESTORS_MAX; depth++) {
        Process *parent = process_find(survey, process->ppid);
        if (!parent || parent->pid == process->pid)
            return NULL;
        if (wanted(parent))
            return parent;
        process = parent;
    }
    return NULL;
}

static bool has_torch(const Process *process)
{
    return process->torch;
}

static bool is_trainer(const Process *process)
{
    return process->role == ROLE_TRAINER;
}

static bool is_forkserver(const Process *process)
{
    return text_contains(process->command, "multiprocessing.forkserver");
}

static StartMethod start_method(const Process *process)
{
    if (is_forkserver(process))
        return START_FORKSERVER;
    return text_contains(process->command, "multiprocessing.spawn") ? START_SPAWN : START_FORK;
}

static bool is_data_worker(const Process *process)
{
    /* PyTorch after 2.13 says pt_multiprocess_data_worker, and the kernel truncates it. */
    return strcmp(process->comm, "pt_data_worker") == 0 || strcmp(process->comm, "pt_multiprocess") == 0;
}

/*
 * A copy of its parent, forked and without a program of its own, that has started a thread: what it puts into
 * a queue is written by one. So do the workers of batchgenerators. A rank that was forked has threads of its
 * own, too: PyTorch names those (2.6 and later), as CUDA does.
 */
static bool is_feeder(const Survey *survey, const Process *process)
{
    const Process *parent = process_find(survey, process->ppid);
    return parent && parent->pid != process->pid && parent->torch && !is_launcher(parent) &&
           process->command.size > 0 && process->command.size == parent->command.size &&
           memcmp(process->command.data, parent->command.data, parent->command.size) == 0 &&
           !is_forkserver(process) && process->threads > 1 && !process->signs.train &&
           process->signs.loaders == 0;
}

static Role role_of(const Survey *survey, const Process *process)
{
    if (text_starts(text_of(process->comm), "torch_shm_manag")) /* names are truncated to 15 characters */
        return ROLE_MANAGER;
    if (!process->torch)
        return ROLE_OTHER;
    if (is_data_worker(process))
        return ROLE_WORKER;
    const Process *above = nearest_ancestor(survey, process, has_torch);
    /* multiprocessing started it, and no process with torch is left above it: its trainer has died. */
    bool below_trainer = above ? !is_launcher(above) : start_method(process) != START_FORK;
    if (strcmp(process->comm, "pt_main_thread") != 0 && catches_like_worker(process) && below_trainer)
        return ROLE_WORKER;
    if (is_feeder(survey, process))
        return ROLE_WORKER;
    const Process *parent = process_find(survey, process->ppid);
    bool server =
        is_forkserver(process) && (!parent || !is_forkserver(parent)); /* it only forks the workers */
    return is_launcher(process) || server ? ROLE_OTHER : ROLE_TRAINER;
}

void processes_assign_roles(Survey *survey)
{
    for (size_t i = 0; i < survey->n_processes; i++)
        survey->processes[i].role = role_of(survey, &survey->processes[i]);

    /* A rank that looked like a worker but has workers of its own is a trainer. */
    for (size_t i = 0; i < survey->n_processes; i++) {
        const Process *process = &survey->processes[i];
        Process *above = process->role == ROLE_WORKER ? nearest_ancestor(survey, process, has_torch) : NULL;
        if (above && above->role == ROLE_WORKER && !is_data_worker(above))
            above->role = ROLE_TRAINER;
    }

    for (size_t i = 0; i < survey->n_processes; i++) {
        Process *process = &survey->processes[i];
        if (process->role == ROLE_OTHER)
            continue;
        const Process *trainer =
            is_trainer(process) ? process : nearest_ancestor(survey, process, is_trainer);
        process->job = trainer ? trainer->pid : 0;
        if (process->role == ROLE_WORKER)
            process->start = start_method(process);
    }
}
