/* SPDX-License-Identifier: Apache-2.0 */
#include "explain-context.h"
#include "units.h"

static const uint64_t SHM_GUESS_BYTES = UINT64_C(1) << 30;

/* A log does not tell how much would have been enough: twice as much as there is now, but no more than half
 * of the memory, which is tmpfs's own default. */
static uint64_t shm_first_guess(const Machine *machine)
{
    uint64_t now = machine->shm.state == SHM_OK ? machine->shm.size_bytes : 0;
    uint64_t guess = MAX(now < UINT64_MAX / 2 ? now * 2 : now, SHM_GUESS_BYTES);
    return MIN(guess, memory_granted_bytes(machine) / 2);
}

static bool shm_is_large(const Machine *machine, uint64_t guess)
{
    return machine->shm.state == SHM_OK && (machine->shm.size_bytes == 0 || machine->shm.size_bytes >= guess);
}

static void fixes_larger_shm(ExplainContext *context)
{
    uint64_t guess = context->machine ? shm_first_guess(context->machine) : SHM_GUESS_BYTES;
    bool large = context->machine && shm_is_large(context->machine, guess);
    if (large)
        explain_fix(context, NEEDS_NOTHING,
                    "Run `shmguard doctor` while the job runs: /dev/shm is large here, so either the log "
                    "comes from elsewhere, or the job has very much in flight.",
                    "shmguard doctor");
    else
        explain_fix(context, NEEDS_NOTHING,
                    arena_printf(context->arena,
                                 "Run `shmguard doctor` where the job runs, and while it does: it sees how "
                                 "much the job needs. A log does not tell; %s is a first guess.",
                                 SIZE_TEXT(guess)),
                    "shmguard doctor");
    if (context->r < 0)
        return;
    if (context->machine && !large) {
        context->r =
            advise_shm_size(context->machine, context->guard, guess, context->arena, &context->out->fixes);
        return;
    }
    context->r = advise_guard(context->guard, context->arena, &context->out->fixes);
    if (context->r >= 0)
        context->r = advise_smaller_batches(context->arena, &context->out->fixes);
    if (!context->machine)
        explain_fix(context, NEEDS_RESTART, "Start the container or job with a larger /dev/shm.", NULL);
}

static void fixes_inodes(ExplainContext *context)
{
    if (context->machine && context->r >= 0)
        context->r = advise_shm_inodes(context->machine, context->arena, &context->out->fixes);
    else
        explain_fix(context, NEEDS_ADMIN, "Have /dev/shm mounted with more inodes (option nr_inodes).", NULL);
}

static void fixes_shm(ExplainContext *context)
{
    if (context->clue == CLUE_SHM_INODES)
        fixes_inodes(context);
    else
        fixes_larger_shm(context);
    explain_fix(context, NEEDS_NOTHING, "See who holds shared memory now.", "shmguard ps --segments");
    explain_fix(context, NEEDS_NOTHING, "See whether dead jobs left something behind that may be removed.",
                "shmguard clean --dry-run");
    if (context->clue == CLUE_SHM_NCCL || context->clue == CLUE_NCCL_SEGMENT)
        explain_fix(
            context, NEEDS_NOTHING,
            "Or let NCCL do without shared memory; slower where GPUs cannot reach each other directly.",
            "export NCCL_SHM_DISABLE=1");
}

static void fixes_kernel_log(ExplainContext *context)
{
    if (!context->machine || context->machine->kills_error == 0) {
        explain_fix(context, NEEDS_NOTHING, "Look for I/O errors in the kernel's log.",
                    "dmesg | grep -i error");
        return;
    }
    bool root = root_within_reach(context->machine) && context->machine->sandbox.kind == ENVIRONMENT_BARE;
    explain_fix(context, root ? NEEDS_ROOT : NEEDS_ADMIN,
                root ? "Look for I/O errors in the kernel's log."
                     : "Have somebody look for I/O errors in the host's kernel log.",
                root && context->machine->sandbox.root ? "dmesg | grep -i error"
                                                       : "sudo dmesg | grep -i error");
}

static void fixes_mapped_file(ExplainContext *context)
{
    explain_fix(
        context, NEEDS_NOTHING,
        "Do not change or cut files while a training has them mapped: write a new file and rename it.", NULL);
    explain_fix(context, NEEDS_NOTHING, "Compare the sizes of the dataset's files with what they should be.",
                NULL);
    fixes_kernel_log(context);
}

static void fixes_memory(ExplainContext *context)
{
    if (context->machine) {
        if (context->r >= 0)
            context->r = advise_less_memory(context->machine, context->arena, &context->out->fixes);
        return;
    }
    explain_fix(
        context, NEEDS_NOTHING,
        "Use less memory: fewer workers, a smaller batch or prefetch_factor, and arrays instead of lists "
        "of objects in the dataset.",
        NULL);
    explain_fix(context, NEEDS_RESTART, "Ask for more memory for the container or job.", NULL);
}

static void fixes_open_files(ExplainContext *context)
{
    if (!context->machine)
        explain_fix(context, NEEDS_NOTHING,
                    "Raise the limit of open files in the shell that starts the training.",
                    "ulimit -n $(ulimit -Hn)");
    else if (context->r >= 0)
        context->r = advise_open_files(context->machine, context->arena, &context->out->fixes);
}

static void fixes_maps(ExplainContext *context)
{
    if (!context->machine)
        explain_fix(
            context, NEEDS_NOTHING,
            "Hold fewer shared tensors: each takes a mapping, however small it is. Pack many into one.",
            NULL);
    if (!context->machine)
        explain_fix(context, NEEDS_ROOT, "Raise the kernel's limit of mappings.",
                    "sysctl -w vm.max_map_count=262144");
    else if (context->r >= 0)
        context->r = advise_max_map_count(context->machine, context->arena, &context->out->fixes);
}

static void fixes_deleted(ExplainContext *context)
{
    if (context->clue == CLUE_PYTHON_SEGMENT_GONE)
        return;
    if (!context->machine)
        explain_fix(context, NEEDS_ADMIN,
                    "Set RemoveIPC=no in /etc/systemd/logind.conf, and stop jobs that clear /dev/shm.", NULL);
    else if (context->r >= 0)
        context->r = advise_remove_ipc(context->machine, context->arena, &context->out->fixes);
}

/* What would tell more, when the log does not say enough. */
static void fixes_look_closer(ExplainContext *context)
{
    explain_fix(
        context, NEEDS_NOTHING,
        "Run `shmguard doctor` on the machine where it happened: it looks for OOM kills in the kernel's log.",
        "shmguard doctor");
    if (context->out->cause.id == CAUSE_KILLED)
        return;
    if (explain_has(context, CLUE_NCCL_ERROR))
        explain_fix(context, NEEDS_NOTHING,
                    "Run it again with NCCL's own log, and look at every rank's output.",
                    "export NCCL_DEBUG=INFO");
    explain_fix(context, NEEDS_NOTHING,
                "Run it again with the fault handler on: it prints where a crash happens.",
                "export PYTHONFAULTHANDLER=1");
    explain_fix(context, NEEDS_NOTHING,
                "Run it once with num_workers=0: an exception then shows its own traceback.", NULL);
}

static void fixes_hang(ExplainContext *context)
{
    if (context->clue == CLUE_COLLECTIVE_TIMEOUT)
        explain_fix(context, NEEDS_NOTHING,
                    "Look at the output of every rank for the one that stopped first.", NULL);
    if (context->clue != CLUE_TIMEOUT)
        return;
    explain_fix(context, NEEDS_NOTHING, "Find where the worker waits: dump its stack while it hangs.",
                "py-spy dump --pid PID");
    explain_fix(context, NEEDS_NOTHING,
                "If items are only slow, raise the DataLoader's timeout= or add workers.", NULL);
    explain_fix(context, NEEDS_NOTHING,
                "If it hangs at once, libraries with threads (OpenCV, tokenizers, OpenMP) may not survive "
                "fork: give the DataLoader multiprocessing_context='spawn', or switch their threads off.",
                NULL);
}

static void fixes_exception(ExplainContext *context)
{
    if (context->clue == CLUE_HOST_MEMORY)
        fixes_memory(context);
    else if (context->exception)
        explain_fix(
            context, NEEDS_NOTHING,
            context->exception == &context->facts->worker
                ? "Fix the dataset, transform or collate_fn at the line shown above. With num_workers=0 "
                  "a debugger can stop there."
                : "Fix the exception at the line shown above.",
            NULL);
}

void explain_fixes(ExplainContext *context)
{
    if (context->clue != CLUES && clue_infos[context->clue].fix)
        explain_fix(context, NEEDS_NOTHING, clue_infos[context->clue].fix, clue_infos[context->clue].command);
    switch (context->out->cause.id) {
    case CAUSE_SHM_EXHAUSTED:
        fixes_shm(context);
        if (explain_has(context, CLUE_MAPPED_FILE) &&
            (context->clue == CLUE_BUS || context->clue == CLUE_BUS_WORKER))
            fixes_mapped_file(context);
        break;
    case CAUSE_BUS_ERROR_FILE:
        fixes_mapped_file(context);
        break;
    case CAUSE_CGROUP_OOM:
    case CAUSE_SYSTEM_OOM:
        fixes_memory(context);
        break;
    case CAUSE_FD_EXHAUSTED:
        fixes_open_files(context);
        break;
    case CAUSE_MAPS_EXHAUSTED:
        fixes_maps(context);
        break;
    case CAUSE_SEGMENTS_DELETED:
        fixes_deleted(context);
        break;
    case CAUSE_WORKER_HANG:
        fixes_hang(context);
        break;
    case CAUSE_PYTHON_ERROR:
        fixes_exception(context);
        break;
    case CAUSE_KILLED:
        if (context->clue == CLUE_SIGKILL || context->clue == CLUE_SIGKILL_WORKER)
            fixes_look_closer(context);
        break;
    case CAUSE_UNKNOWN:
        fixes_look_closer(context);
        break;
    case CAUSE_OK:
    case CAUSE_BUDGET_EXCEEDED:
    case CAUSE_SEGFAULT:
    case CAUSE_IDS:
        break;
    }
    fixes_rank(&context->out->fixes);
}
