#include "orphans.h"
#include "units.h"

/*
 * "Yes" is a licence to delete, so each step below must be shown, in this order:
 *
 *  1. Nobody that we can see holds it.
 *  2. It has not changed for a minute: who has just made it may be about to open it.
 *  3. Every process of the machine has a number here. In a pid namespace below the machine's own, another
 * container may share the mount, and pid liveness says nothing.
 *  4. The descriptors of every process could be read; or the kernel itself says that nobody has the file
 * open. Root's processes are closed to ordinary users, so for them only the kernel's word will do.
 *  5. Nobody can be about to reopen it by name. Under PyTorch's file_system strategy a tensor that waits in a
 * queue is such a file: its sender may have gone, its receiver has not opened it yet. Those files have a
 * torch_shm_manager that is older than they are and removes them when its job ends. While one lives, it is
 * not for us to say.
 */
static const Process *manager_of(const Survey *survey, const Segment *segment)
{
    for (size_t i = 0; i < survey->n_processes; i++) {
        const Process *process = &survey->processes[i];
        /* The start is known to a clock tick; one second covers the rounding of either clock. */
        if (process->role == ROLE_MANAGER && process->has_memory && process->uid == segment->uid &&
            !process->shm_elsewhere && process->started <= segment->changed + 1)
            return process;
    }
    return NULL;
}

Orphan orphan_judge(const Survey *survey, const Segment *segment, Arena *arena, const char **ret_why)
{
    const char *unused;
    const char **why = ret_why ? ret_why : &unused;
    const Machine *machine = &survey->machine;

    if (segment->n_holders > 0) {
        *why = arena_printf(arena, "held by pid %d%s", segment->holders[0],
                            segment->n_holders > 1 ? " and others" : "");
        return ORPHAN_NO;
    }
    double age = machine->realtime - segment->changed;
    if (age < ORPHAN_AGE_SECONDS) {
        *why = age < 0 ? "its time of change lies in the future"
                       : arena_printf(arena, "changed %s ago, wait until a minute has passed",
                                      DURATION_TEXT(age));
        return ORPHAN_NO;
    }
    if (!machine->sandbox.sees_all) {
        *why = "processes that cannot be seen from here may share this /dev/shm";
        return ORPHAN_UNKNOWN;
    }
    if (segment->open == OPEN_SOMEWHERE) {
        *why = "open in a process whose descriptors may not be read";
        return ORPHAN_NO;
    }
    if (survey->n_unreadable > 0 && segment->open != OPEN_NOWHERE) {
        *why = arena_printf(arena, "the descriptors of %zu process%s may not be read, root would see them",
                            survey->n_unreadable, survey->n_unreadable == 1 ? "" : "es");
        return ORPHAN_UNKNOWN;
    }
    const Process *manager = segment->kind == KIND_TORCH ? manager_of(survey, segment) : NULL;
    if (manager) {
        *why = arena_printf(arena, "torch_shm_manager (pid %d) is alive and may still hand it out",
                            manager->pid);
        return ORPHAN_UNKNOWN;
    }
    *why = arena_printf(arena, "nobody holds it, unchanged for %s", DURATION_TEXT(age));
    return ORPHAN_YES;
}

const char *orphan_name(Orphan orphan)
{
    static const char *const names[] = {
        [ORPHAN_NO] = "no", [ORPHAN_YES] = "yes", [ORPHAN_UNKNOWN] = "unknown"};
    return names[orphan];
}
