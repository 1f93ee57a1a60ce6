#include "explain-case.h"
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

static void fixes_larger_shm(Case *it)
{
    uint64_t guess = it->machine ? shm_first_guess(it->machine) : SHM_GUESS_BYTES;
    bool large = it->machine && shm_is_large(it->machine, guess);
    if (large)
        case_fix(it, NEEDS_NOTHING,
                 "Run `shmguard doctor` while the job runs: /dev/shm is large here, so either the log "
                 "comes from elsewhere, or the job has very much in flight.",
                 "shmguard doctor");
    else
        case_fix(it, NEEDS_NOTHING,
                 arena_printf(it->arena,
                              "Run `shmguard doctor` where the job runs, and while it does: it sees how "
                              "much the job needs. A log does not tell; %s is a first guess.",
                              SIZE_TEXT(guess)),
                 "shmguard doctor");
    if (it->r < 0)
        return;
    if (it->machine && !large) {
        it->r = advise_shm_size(it->machine, it->guard, guess, it->arena, &it->out->fixes);
        return;
    }
    it->r = advise_guard(it->guard, it->arena, &it->out->fixes);
    if (it->r >= 0)
        it->r = advise_smaller_batches(it->arena, &it->out->fixes);
    if (!it->machine)
        case_fix(it, NEEDS_RESTART, "Start the container or job with a larger /dev/shm.", NULL);
}

static void fixes_inodes(Case *it)
{
    if (it->machine && it->r >= 0)
        it->r = advise_shm_inodes(it->machine, it->arena, &it->out->fixes);
    else
        case_fix(it, NEEDS_ADMIN, "Have /dev/shm mounted with more inodes (option nr_inodes).", NULL);
}

static void fixes_shm(Case *it)
{
    if (it->clue == CLUE_SHM_INODES)
        fixes_inodes(it);
    else
        fixes_larger_shm(it);
    case_fix(it, NEEDS_NOTHING, "See who holds shared memory now.", "shmguard ps --segments");
    case_fix(it, NEEDS_NOTHING, "See whether dead jobs left something behind that may be removed.",
             "shmguard clean --dry-run");
    if (it->clue == CLUE_SHM_NCCL || it->clue == CLUE_NCCL_SEGMENT)
        case_fix(it, NEEDS_NOTHING,
                 "Or let NCCL do without shared memory; slower where GPUs cannot reach each other directly.",
                 "export NCCL_SHM_DISABLE=1");
}

static void fixes_kernel_log(Case *it)
{
    if (!it->machine || it->machine->kills_error == 0) {
        case_fix(it, NEEDS_NOTHING, "Look for I/O errors in the kernel's log.", "dmesg | grep -i error");
        return;
    }
    bool root = root_within_reach(it->machine) && it->machine->sandbox.kind == ENVIRONMENT_BARE;
    case_fix(it, root ? NEEDS_ROOT : NEEDS_ADMIN,
             root ? "Look for I/O errors in the kernel's log."
                  : "Have somebody look for I/O errors in the host's kernel log.",
             root && it->machine->sandbox.root ? "dmesg | grep -i error" : "sudo dmesg | grep -i error");
}

static void fixes_mapped_file(Case *it)
{
    case_fix(it, NEEDS_NOTHING,
             "Do not change or cut files while a training has them mapped: write a new file and rename it.",
             NULL);
    case_fix(it, NEEDS_NOTHING, "Compare the sizes of the dataset's files with what they should be.", NULL);
    fixes_kernel_log(it);
}

static void fixes_memory(Case *it)
{
    if (it->machine) {
        if (it->r >= 0)
            it->r = advise_less_memory(it->machine, it->arena, &it->out->fixes);
        return;
    }
    case_fix(
        it, NEEDS_NOTHING,
        "Use less memory: fewer workers, a smaller batch or prefetch_factor, and arrays instead of lists "
        "of objects in the dataset.",
        NULL);
    case_fix(it, NEEDS_RESTART, "Ask for more memory for the container or job.", NULL);
}

static void fixes_open_files(Case *it)
{
    if (!it->machine)
        case_fix(it, NEEDS_NOTHING, "Raise the limit of open files in the shell that starts the training.",
                 "ulimit -n $(ulimit -Hn)");
    else if (it->r >= 0)
        it->r = advise_open_files(it->machine, it->arena, &it->out->fixes);
}

static void fixes_maps(Case *it)
{
    if (!it->machine)
        case_fix(it, NEEDS_NOTHING,
                 "Hold fewer shared tensors: each takes a mapping, however small it is. Pack many into one.",
                 NULL);
    if (!it->machine)
        case_fix(it, NEEDS_ROOT, "Raise the kernel's limit of mappings.",
                 "sysctl -w vm.max_map_count=262144");
    else if (it->r >= 0)
        it->r = advise_max_map_count(it->machine, it->arena, &it->out->fixes);
}

static void fixes_deleted(Case *it)
{
    if (it->clue == CLUE_PYTHON_SEGMENT_GONE)
        return;
    if (!it->machine)
        case_fix(it, NEEDS_ADMIN,
                 "Set RemoveIPC=no in /etc/systemd/logind.conf, and stop jobs that clear /dev/shm.", NULL);
    else if (it->r >= 0)
        it->r = advise_remove_ipc(it->machine, it->arena, &it->out->fixes);
}

/* What would tell more, when the log does not say enough. */
static void fixes_look_closer(Case *it)
{
    case_fix(
        it, NEEDS_NOTHING,
        "Run `shmguard doctor` on the machine where it happened: it looks for OOM kills in the kernel's log.",
        "shmguard doctor");
    if (it->out->cause.id == CAUSE_KILLED)
        return;
    if (case_has(it, CLUE_NCCL_ERROR))
        case_fix(it, NEEDS_NOTHING, "Run it again with NCCL's own log, and look at every rank's output.",
                 "export NCCL_DEBUG=INFO");
    case_fix(it, NEEDS_NOTHING, "Run it again with the fault handler on: it prints where a crash happens.",
             "export PYTHONFAULTHANDLER=1");
    case_fix(it, NEEDS_NOTHING, "Run it once with num_workers=0: an exception then shows its own traceback.",
             NULL);
}

static void fixes_hang(Case *it)
{
    if (it->clue == CLUE_COLLECTIVE_TIMEOUT)
        case_fix(it, NEEDS_NOTHING, "Look at the output of every rank for the one that stopped first.", NULL);
    if (it->clue != CLUE_TIMEOUT)
        return;
    case_fix(it, NEEDS_NOTHING, "Find where the worker waits: dump its stack while it hangs.",
             "py-spy dump --pid PID");
    case_fix(it, NEEDS_NOTHING, "If items are only slow, raise the DataLoader's timeout= or add workers.",
             NULL);
    case_fix(it, NEEDS_NOTHING,
             "If it hangs at once, libraries with threads (OpenCV, tokenizers, OpenMP) may not survive "
             "fork: give the DataLoader multiprocessing_context='spawn', or switch their threads off.",
             NULL);
}

static void fixes_exception(Case *it)
{
    if (it->clue == CLUE_HOST_MEMORY)
        fixes_memory(it);
    else if (it->exception)
        case_fix(it, NEEDS_NOTHING,
                 it->exception == &it->facts->worker
                     ? "Fix the dataset, transform or collate_fn at the line shown above. With num_workers=0 "
                       "a debugger can stop there."
                     : "Fix the exception at the line shown above.",
                 NULL);
}

void case_fixes(Case *it)
{
    if (it->clue != CLUES && clue_infos[it->clue].fix)
        case_fix(it, NEEDS_NOTHING, clue_infos[it->clue].fix, clue_infos[it->clue].command);
    switch (it->out->cause.id) {
    case CAUSE_SHM_EXHAUSTED:
        fixes_shm(it);
        if (case_has(it, CLUE_MAPPED_FILE) && (it->clue == CLUE_BUS || it->clue == CLUE_BUS_WORKER))
            fixes_mapped_file(it);
        break;
    case CAUSE_BUS_ERROR_FILE:
        fixes_mapped_file(it);
        break;
    case CAUSE_CGROUP_OOM:
    case CAUSE_SYSTEM_OOM:
        fixes_memory(it);
        break;
    case CAUSE_FD_EXHAUSTED:
        fixes_open_files(it);
        break;
    case CAUSE_MAPS_EXHAUSTED:
        fixes_maps(it);
        break;
    case CAUSE_SEGMENTS_DELETED:
        fixes_deleted(it);
        break;
    case CAUSE_WORKER_HANG:
        fixes_hang(it);
        break;
    case CAUSE_PYTHON_ERROR:
        fixes_exception(it);
        break;
    case CAUSE_KILLED:
        if (it->clue == CLUE_SIGKILL || it->clue == CLUE_SIGKILL_WORKER)
            fixes_look_closer(it);
        break;
    case CAUSE_UNKNOWN:
        fixes_look_closer(it);
        break;
    case CAUSE_OK:
    case CAUSE_BUDGET_EXCEEDED:
    case CAUSE_SEGFAULT:
    case CAUSE_IDS:
        break;
    }
    fixes_rank(&it->out->fixes);
}
