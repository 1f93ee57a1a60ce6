/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "engine-text.h"
#include "measured.h"
#include "need.h"
#include "proc-status.h"
#include "text.h"
#include "units.h"

/* The processes of one trainer's job as they are now. The kernel also knows the peak of each. */
static int processes_sample(const Root *root, const Survey *survey, int trainer, Arena *arena,
                            PlanMeasured *measured, size_t *capacity)
{
    for (size_t i = 0; i < survey->n_processes; i++) {
        const Process *process = &survey->processes[i];
        ProcStatus status;
        if (process->job != trainer)
            continue;
        ProcessPeak *peak = ARENA_PUSH(arena, measured->processes, measured->n_processes, *capacity);
        if (!peak)
            return -ENOMEM;
        bool known = process->rss_bytes != U64_UNKNOWN && process->rss_shmem_bytes != U64_UNKNOWN;
        *peak = (ProcessPeak){
            .pid = process->pid,
            .role = process->role,
            .rss_bytes = process->rss_bytes,
            .shm_bytes = process->rss_shmem_bytes,
            .own_bytes =
                known ? process->rss_bytes - MIN(process->rss_shmem_bytes, process->rss_bytes) : U64_UNKNOWN,
        };
        memcpy(peak->comm, process->comm, sizeof peak->comm);
        if (proc_status_read(root, process->pid, &status) >= 0)
            u64_raise(&peak->rss_bytes, status.rss_peak_bytes);
    }
    return 0;
}

int measured_sample(const Root *root, const Survey *survey, int pid, Arena *arena, PlanMeasured *ret)
{
    PlanMeasured measured = {.now = true};
    const Process *asked = survey_process(survey, pid);
    size_t capacity = 0;
    uint64_t workers = 0;
    for (size_t i = 0; i < survey->n_processes; i++) {
        const Process *process = &survey->processes[i];
        if (process->role != ROLE_TRAINER ||
            !(process->pid == asked->job || process_is_below(survey, process, asked->pid)))
            continue;
        JobNeed job;
        job_need(survey, process->pid, &job);
        measured.trainers++;
        measured.peak_bytes = bytes_add(measured.peak_bytes, job.held_bytes);
        measured.need_bytes = bytes_add(measured.need_bytes, job.need_bytes);
        workers += job.workers;
        int r = processes_sample(root, survey, process->pid, arena, &measured, &capacity);
        if (r < 0)
            return r;
    }
    if (measured.trainers == 0 || measured.peak_bytes == 0)
        return -ENODATA;
    measured.workers = (workers + measured.trainers - 1) / measured.trainers;
    *ret = measured;
    return 0;
}

int measured_scale(PlanMeasured *measured, const PlanLoader *asked, bool ranks_given, PlanQuestion *question)
{
    uint64_t bytes =
        measured->need_bytes / measured->trainers + (measured->need_bytes % measured->trainers != 0);
    if (!ranks_given)
        question->ranks = measured->trainers;
    measured->scaled = measured->need_bytes != measured->peak_bytes;
    if (measured->workers == 0) {
        question->per_process_bytes = bytes;
        return 0;
    }
    PlanSetting from = {measured->batch, measured->workers, asked->prefetch, asked->held, measured->guarded};
    PlanSetting to = {asked->batch, asked->workers ? asked->workers : measured->workers, asked->prefetch,
                      asked->held, false};
    int r = plan_scale(bytes, &from, &to, &question->per_process_bytes);
    if (r >= 0 && measured->guarded) {
        to.guarded = true;
        r = plan_scale(bytes, &from, &to, &question->per_process_guard_bytes);
    }
    measured->scaled = measured->scaled || measured->guarded || from.workers != to.workers ||
                       (from.batch && to.batch && from.batch != to.batch);
    return r;
}

/* The most that a process of this role has had apart from shared memory; 0: unknown. */
static uint64_t own_most(const PlanMeasured *measured, Role role)
{
    uint64_t most = 0;
    for (size_t i = 0; i < measured->n_processes; i++)
        if (measured->processes[i].role == role && measured->processes[i].own_bytes != U64_UNKNOWN)
            most = MAX(most, measured->processes[i].own_bytes);
    return most;
}

static int own_note(const PlanMeasured *measured, const PlanLoader *asked, Arena *arena, Plan *plan)
{
    uint64_t workers = asked->workers ? asked->workers : measured->workers;
    uint64_t trainer = own_most(measured, ROLE_TRAINER);
    uint64_t worker = own_most(measured, ROLE_WORKER);
    if (trainer == 0)
        return 0;
    uint64_t each = bytes_add(trainer, bytes_scale(worker, (double)workers));
    return plan_note(plan, arena,
                     arena_printf(arena, MEASURED_OWN, SIZE_TEXT(trainer), SIZE_TEXT(worker),
                                  (unsigned long long)plan->trainers, (unsigned long long)workers,
                                  SIZE_TEXT(bytes_scale(each, (double)plan->trainers))));
}

int measured_notes(const PlanMeasured *measured, const PlanLoader *asked, Arena *arena, Plan *plan)
{
    int r = 0;
    if (measured->guarded && measured->workers > 0)
        r = plan_note(plan, arena,
                      arena_printf(arena, MEASURED_GUARDED, (unsigned long long)asked->prefetch,
                                   (unsigned long long)asked->held));
    if (r >= 0 && measured->now)
        r = plan_note(plan, arena, MEASURED_NOW);
    if (r >= 0 && measured->workers > 0 && asked->workers > 0 && asked->workers != measured->workers)
        r = plan_note(
            plan, arena,
            arena_printf(arena, PLURAL(measured->workers, MEASURED_WORKERS_ONE, MEASURED_WORKERS_MANY),
                         (unsigned long long)measured->workers, (unsigned long long)asked->workers));
    if (r >= 0 && measured->batch && asked->batch && measured->batch != asked->batch)
        r = plan_note(plan, arena,
                      arena_printf(arena, MEASURED_BATCH, (unsigned long long)measured->batch,
                                   (unsigned long long)asked->batch));
    if (r >= 0)
        r = own_note(measured, asked, arena, plan);
    if (r >= 0 && measured->code != 0)
        r = plan_note(plan, arena, arena_printf(arena, MEASURED_CODE, measured->code));
    return r;
}
