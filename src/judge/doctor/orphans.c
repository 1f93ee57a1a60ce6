/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "doctor-text.h"
#include "orphans.h"
#include "units.h"

/*
 * "Yes" is a licence to delete, so each step below must be shown, in this order:
 *
 * 1. No visible process holds it.
 *
 * 2. It has not changed for a minute: the process that has just made it may be about to open it. Or there is
 * no such process: orphan_judge_of_gone.
 *
 * 3. The kernel itself says that no process has the file open or mapped, in any pid namespace: it grants a
 * lease. Neither a pid nor an age shows that. We cannot see all by ourselves: not another container that
 * shares the mount, descriptors in flight, private mappings, processes whose first thread has ended, or
 * processes that we may not read.
 *
 * 4. No process can be about to reopen it by name. That is so where the program that makes such files keeps
 * them open for as long as they are used (kept_open). With PyTorch's file_system strategy, a tensor that
 * waits in a queue is a closed file: its receiver has not opened it yet. So every process of the machine must
 * have a pid here; in a pid namespace below the initial one, another container may be about to open it. And
 * it cannot be decided while its maker lives, or a torch_shm_manager that is older than the file (it removes
 * the files of its job when the job ends). A named semaphore outlives its users by design; only Python's own
 * names are known to be made for one run.
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

/* The pid of the maker, in its own namespace, as the name has it. 0: it has none. */
static int maker_pid(const Segment *segment)
{
    static const char *const prefixes[] = {"torch_", "sgl_shm_mm_", "sglmm-", "multi_tokenizer_args_"};
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        if (!text_starts(segment->name, prefixes[i]))
            continue;
        int pid = 0;
        (void)text_pid(text_digits(text_skip(segment->name, strlen(prefixes[i]))), &pid);
        return pid;
    }
    return 0;
}

/* The process with the pid in the name, unless the pid has been reused. */
static const Process *maker_of(const Survey *survey, const Segment *segment)
{
    int pid = maker_pid(segment);
    for (size_t i = 0; pid > 0 && i < survey->n_processes; i++) {
        const Process *process = &survey->processes[i];
        /* Process 1 of a container may well be a server; that of the machine is not. */
        bool init = process->pid == 1 && survey->machine.sandbox.initial_pidns;
        if ((process->pid == pid || process->inner_pid == pid) && !init && process->has_memory &&
            !process->shm_elsewhere && (process->torch || segment->kind != KIND_TORCH) &&
            is_older(process, segment))
            return process;
    }
    return NULL;
}

/* Why a process may be about to reopen it; NULL when none can be. */
static const char *reopened_by(const Survey *survey, const Segment *segment, Arena *arena)
{
    if (segment->kind == KIND_SEMAPHORE)
        return text_starts(segment->name, "sem.mp-") ? NULL : ORPHAN_WHY_SEMAPHORE;
    const Process *manager = segment->kind == KIND_TORCH ? manager_of(survey, segment) : NULL;
    if (manager)
        return arena_printf(arena, ORPHAN_WHY_MANAGER, manager->pid);
    const Process *maker = maker_of(survey, segment);
    return maker ? arena_printf(arena, ORPHAN_WHY_MAKER, maker->pid) : NULL;
}

bool user_is_gone(const Survey *survey, uint32_t uid)
{
    if (uid == 0 || !survey->machine.sandbox.sees_all)
        return false;
    for (size_t i = 0; i < survey->n_processes; i++)
        if (survey->processes[i].uid == uid && survey->processes[i].has_memory)
            return false;
    return true;
}

static Orphan judge(const Survey *survey, const Segment *segment, double least_age, Arena *arena,
                    const char **ret_why)
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
    if (age < least_age) {
        *why = age < 0 ? ORPHAN_WHY_FUTURE : arena_printf(arena, ORPHAN_WHY_CHANGED, DURATION_TEXT(age));
        return ORPHAN_NO;
    }
    if (segment->open == OPEN_SOMEWHERE) {
        *why = ORPHAN_WHY_OPEN;
        return ORPHAN_NO;
    }
    if (!segment->kept_open && !machine->sandbox.sees_all) {
        *why = ORPHAN_WHY_INVISIBLE;
        return ORPHAN_UNKNOWN;
    }
    if (segment->open != OPEN_NOWHERE) {
        *why = machine->sandbox.root ? arena_printf(arena, ORPHAN_WHY_NO_LEASE, segment->uid)
                                     : ORPHAN_WHY_CANNOT_ASK;
        return ORPHAN_UNKNOWN;
    }
    *why = segment->kept_open ? NULL : reopened_by(survey, segment, arena);
    if (*why)
        return ORPHAN_UNKNOWN;
    *why = arena_printf(arena, ORPHAN_WHY_YES, DURATION_TEXT(age));
    return ORPHAN_YES;
}

Orphan orphan_judge(const Survey *survey, const Segment *segment, Arena *arena, const char **ret_why)
{
    return judge(survey, segment, ORPHAN_AGE_SECONDS, arena, ret_why);
}

Orphan orphan_judge_of_gone(const Survey *survey, const Segment *segment, Arena *arena, const char **ret_why)
{
    return judge(survey, segment, 0, arena, ret_why);
}

const char *orphan_name(Orphan orphan)
{
    static const char *const names[] = {
        [ORPHAN_NO] = "no", [ORPHAN_YES] = "yes", [ORPHAN_UNKNOWN] = "unknown"};
    return names[orphan];
}
