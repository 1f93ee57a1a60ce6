/* SPDX-License-Identifier: Apache-2.0 */
#include "orphans.h"
#include "doctor-text.h"
#include "units.h"

/*
 * "Yes" is a licence to delete, so each step below must be shown, in this order:
 *
 * 1. No visible process holds it.
 *
 * 2. It has not changed for a minute: the process that has just made it may be about to open it.
 *
 * 3. Every process of the machine has a pid here. In a pid namespace below the initial one, another container
 * may share the mount, and the absence of a pid proves nothing.
 *
 * 4. The kernel itself says that no process has the file open. We cannot see all by ourselves: not
 * descriptors in flight, private mappings, processes whose first thread has ended, or processes that we may
 * not read.
 *
 * 5. No process can be about to reopen it by name. With PyTorch's file_system strategy, a tensor that waits
 * in a queue is such a file: its receiver has not opened it yet. It cannot be decided while its maker lives,
 * or a torch_shm_manager that is older than the file (it removes the files of its job when the job ends). A
 * named semaphore outlives its users by design; only Python's own names are known to be made for one run.
 */

/* Both times are exact to a clock tick; one second covers the rounding. */
static bool is_older(const Process *process, const Segment *segment)
{
    return process->started <= segment->changed + 1;
}

static const Process *manager_of(const Survey *survey, const Segment *segment)
{
    for (size_t i = 0; i < survey->n_processes; i++) {
        const Process *process = &survey->processes[i];
        if (process->role == ROLE_MANAGER && process->has_memory && process->uid == segment->uid &&
            !process->shm_elsewhere && is_older(process, segment))
            return process;
    }
    return NULL;
}

/* The process whose pid is in "torch_PID_…", unless the pid has been reused. */
static const Process *maker_of(const Survey *survey, const Segment *segment)
{
    Text rest = text_skip(segment->name, sizeof "torch_" - 1);
    Text word;
    int pid = 0;
    if (!text_until(&rest, '_', &word) || text_pid(word, &pid) < 0)
        return NULL;
    const Process *process = survey_process(survey, pid);
    return process && process->has_memory && process->torch && is_older(process, segment) ? process : NULL;
}

/* Why a process may be about to reopen it; NULL when none can be. */
static const char *reopened_by(const Survey *survey, const Segment *segment, Arena *arena)
{
    if (segment->kind == KIND_SEMAPHORE)
        return text_starts(segment->name, "sem.mp-") ? NULL : ORPHAN_WHY_SEMAPHORE;
    if (segment->kind != KIND_TORCH)
        return NULL;
    const Process *manager = manager_of(survey, segment);
    if (manager)
        return arena_printf(arena, ORPHAN_WHY_MANAGER, manager->pid);
    const Process *maker = maker_of(survey, segment);
    return maker ? arena_printf(arena, ORPHAN_WHY_MAKER, maker->pid) : NULL;
}

Orphan orphan_judge(const Survey *survey, const Segment *segment, Arena *arena, const char **ret_why)
{
    const char *unused;
    const char **why = ret_why ? ret_why : &unused;
    const Machine *machine = &survey->machine;

    if (segment->n_holders > 0) {
        *why = arena_printf(arena, PLURAL(segment->n_holders, ORPHAN_WHY_HELD, ORPHAN_WHY_HELD_MANY),
                            segment->holders[0]);
        return ORPHAN_NO;
    }
    double age = machine->realtime - segment->changed;
    if (age < ORPHAN_AGE_SECONDS) {
        *why = age < 0 ? ORPHAN_WHY_FUTURE : arena_printf(arena, ORPHAN_WHY_CHANGED, DURATION_TEXT(age));
        return ORPHAN_NO;
    }
    if (!machine->sandbox.sees_all) {
        *why = ORPHAN_WHY_INVISIBLE;
        return ORPHAN_UNKNOWN;
    }
    if (segment->open == OPEN_SOMEWHERE) {
        *why = ORPHAN_WHY_OPEN;
        return ORPHAN_NO;
    }
    if (segment->open != OPEN_NOWHERE) {
        *why = ORPHAN_WHY_CANNOT_ASK;
        return ORPHAN_UNKNOWN;
    }
    *why = reopened_by(survey, segment, arena);
    if (*why)
        return ORPHAN_UNKNOWN;
    *why = arena_printf(arena, ORPHAN_WHY_YES, DURATION_TEXT(age));
    return ORPHAN_YES;
}

const char *orphan_name(Orphan orphan)
{
    static const char *const names[] = {
        [ORPHAN_NO] = "no", [ORPHAN_YES] = "yes", [ORPHAN_UNKNOWN] = "unknown"};
    return names[orphan];
}
