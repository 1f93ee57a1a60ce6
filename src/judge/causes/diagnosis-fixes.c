/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about each cause: one table, for logs and for jobs. */
#include <string.h>

#include "cause-context.h"
#include "units.h"

/* What is known beside the cause. */
typedef enum Situation {
    LOG = 1 << 0,           /* a log alone is judged */
    RUN = 1 << 1,           /* a job is judged, whose end was seen */
    FROM_LOG = 1 << 2,      /* RUN: what the job's processes wrote decided */
    MACHINE = 1 << 3,       /* the machine is known */
    GUARDED = 1 << 4,       /* RUN: the guard was in the job */
    UNGUARDED = 1 << 5,     /* RUN: it was not, but could have been */
    LARGE_SHM = 1 << 6,     /* LOG: /dev/shm is larger here than we would advise */
    INODES = 1 << 7,        /* files ran out in /dev/shm, not room, and it is known what to do about it */
    MEMORY = 1 << 8,        /* RAM was short */
    MAPPED_FILE = 1 << 9,   /* a mapped file is to blame, or may be */
    EXCEPTION = 1 << 10,    /* LOG: a Python exception decided */
    IN_WORKER = 1 << 11,    /* LOG: it was raised in a worker */
    NCCL_FAILED = 1 << 12,  /* LOG: NCCL reports an error */
    PYTHON_STACK = 1 << 13, /* RUN: the Python stack of the crash is known */
    REQUESTED = 1 << 14,    /* RUN: shmguard was asked to end the job */
    NO_DETAIL = 1 << 15,    /* the cause has no finer name */
    DETAIL_NCCL = 1 << 16,
    DETAIL_SIGKILL = 1 << 17,
    DETAIL_COLLECTIVE = 1 << 18,
    DETAIL_PYTHON_SEGMENT = 1 << 19,
} Situation;

static const uint64_t SHM_GUESS_BYTES = GIB;

/* A log does not show how much would have been enough: twice as much as there is now, but no more than half
 * of the memory, which is tmpfs's own default. */
static uint64_t shm_first_guess(const Machine *machine)
{
    uint64_t now = machine->shm.state == SHM_OK ? machine->shm.size_bytes : 0;
    uint64_t guess = MAX(now < UINT64_MAX / 2 ? now * 2 : now, SHM_GUESS_BYTES);
    return MIN(guess, memory_granted_bytes(machine) / 2);
}

static bool shm_is_large(const Machine *machine)
{
    const ShmMount *shm = &machine->shm;
    return shm->state == SHM_OK && (shm->size_bytes == 0 || shm->size_bytes >= shm_first_guess(machine));
}

/* --- Fixes that depend on more than the table says --- */

static int fix_of_clue(CauseContext *context, Diagnosis *diagnosis)
{
    const ClueInfo *info = context->clue == CLUES ? NULL : &clue_infos[context->clue];
    return info && info->fix
               ? fix_add(context->arena, &diagnosis->fixes, NEEDS_NOTHING, info->fix, info->command)
               : 0;
}

/* Those of the log alone, which are about the very lines that matched. */
static int fixes_of_log(CauseContext *context, Diagnosis *diagnosis)
{
    const Fixes *fixes = &context->log->fixes;
    int r = 0;
    for (size_t i = 0; i < fixes->n && r >= 0; i++)
        r = fix_add(context->arena, &diagnosis->fixes, fixes->items[i].needs, fixes->items[i].what,
                    fixes->items[i].command);
    return r;
}

static int fix_measure_shm(CauseContext *context, Diagnosis *diagnosis)
{
    uint64_t guess = context->machine ? shm_first_guess(context->machine) : SHM_GUESS_BYTES;
    return fix_add(context->arena, &diagnosis->fixes, NEEDS_NOTHING,
                   cause_printf(context,
                                "Run `shmguard doctor` where the job runs, and while it does: it sees how "
                                "much the job needs. A log does not tell; %s is a first guess.",
                                SIZE_TEXT(guess)),
                   "shmguard doctor");
}

static int fix_guard(CauseContext *context, Diagnosis *diagnosis)
{
    return advise_guard(context->guard, context->arena, &diagnosis->fixes);
}

static int fix_smaller_batches(CauseContext *context, Diagnosis *diagnosis)
{
    return advise_smaller_batches(context->arena, &diagnosis->fixes);
}

static int fix_larger_shm(CauseContext *context, Diagnosis *diagnosis)
{
    uint64_t wanted = shm_first_guess(context->machine);
    if (context->evidence) {
        uint64_t size = context->evidence->shm_size_bytes;
        wanted = MAX(size < UINT64_MAX / 2 ? size * 2 : 0, SHM_GUESS_BYTES);
    }
    return advise_shm_mount(context->machine, wanted, context->arena, &diagnosis->fixes);
}

static int fix_inodes(CauseContext *context, Diagnosis *diagnosis)
{
    return advise_shm_inodes(context->machine, context->arena, &diagnosis->fixes);
}

static int fix_memory(CauseContext *context, Diagnosis *diagnosis)
{
    return advise_less_memory(context->machine, context->arena, &diagnosis->fixes);
}

static int fix_open_files(CauseContext *context, Diagnosis *diagnosis)
{
    return advise_open_files(context->machine, context->arena, &diagnosis->fixes);
}

static int fix_maps(CauseContext *context, Diagnosis *diagnosis)
{
    return advise_max_map_count(context->machine, context->arena, &diagnosis->fixes);
}

static int fix_remove_ipc(CauseContext *context, Diagnosis *diagnosis)
{
    return advise_remove_ipc(context->machine, context->arena, &diagnosis->fixes);
}

static int fix_budget(CauseContext *context, Diagnosis *diagnosis)
{
    return fix_add(context->arena, &diagnosis->fixes, NEEDS_NOTHING,
                   cause_printf(context,
                                "Raise --budget to several times the largest batch (%s), or remove --budget.",
                                SIZE_TEXT(refused_most_bytes(context->evidence))),
                   NULL);
}

static int fix_kernel_log(CauseContext *context, Diagnosis *diagnosis)
{
    const Machine *machine = context->machine;
    bool root = machine && root_within_reach(machine) && machine->sandbox.kind == ENVIRONMENT_BARE;
    FixNeeds needs = !machine || machine->kills_error == 0 ? NEEDS_NOTHING : root ? NEEDS_ROOT : NEEDS_ADMIN;
    bool plain = needs == NEEDS_NOTHING || (root && machine->sandbox.root);
    return fix_add(context->arena, &diagnosis->fixes, needs,
                   needs == NEEDS_ADMIN ? "Have somebody look for I/O errors in the host's kernel log."
                                        : "Look for I/O errors in the kernel's log.",
                   plain ? "dmesg | grep -i error" : "sudo dmesg | grep -i error");
}

/* --- The table --- */

#define OF(cause) (1U << (cause))
#define SHM       OF(CAUSE_SHM_EXHAUSTED)
#define ANY_CAUSE (OF(CAUSE_IDS) - 1)

typedef struct FixRule {
    unsigned causes;
    unsigned when;   /* all of these hold */
    unsigned unless; /* none of these does */
    FixNeeds needs;
    const char *what;
    const char *command;
    int (*advise)(CauseContext *context, Diagnosis *diagnosis); /* in place of the three */
} FixRule;

/* In the order in which they are given, among those that need the same. */
static const FixRule rules[] = {
    {ANY_CAUSE, LOG, .advise = fix_of_clue},

    {SHM, UNGUARDED,
     .what = "Run it without --no-guard: the batches are then kept outside /dev/shm, whose "
             "size no longer matters."},
    {SHM, GUARDED,
     .what = "The guard keeps PyTorch's tensors out of /dev/shm, so something else fills it (NCCL, other "
             "jobs, leftovers): find out what while the job runs.",
     .command = "shmguard ps --segments"},
    {SHM, INODES | MACHINE, .advise = fix_inodes},
    {SHM, INODES, MACHINE, NEEDS_ADMIN, "Have /dev/shm mounted with more inodes (option nr_inodes)."},
    {SHM, LOG | LARGE_SHM, INODES,
     .what = "Run `shmguard doctor` while the job runs: /dev/shm is large here, so either the log "
             "comes from elsewhere, or the job has very much in flight.",
     .command = "shmguard doctor"},
    {SHM, LOG, LARGE_SHM | INODES, .advise = fix_measure_shm},
    {SHM, LOG, INODES, .advise = fix_guard},
    {SHM, 0, INODES, .advise = fix_smaller_batches},
    {SHM, MACHINE, INODES | LARGE_SHM, .advise = fix_larger_shm},
    {SHM, 0, INODES | MACHINE, NEEDS_RESTART, "Start the container or job with a larger /dev/shm."},
    {SHM, LOG, .what = "See who holds shared memory now.", .command = "shmguard ps --segments"},
    {SHM, LOG, .what = "See whether dead jobs left something behind that may be removed.",
     .command = "shmguard clean --dry-run"},
    {SHM, LOG | DETAIL_NCCL,
     .what = "Or let NCCL do without shared memory; slower where GPUs cannot reach each other directly.",
     .command = "export NCCL_SHM_DISABLE=1"},

    {ANY_CAUSE, LOG | MAPPED_FILE,
     .what = "Do not change or cut files while a training has them mapped: write a new file and rename it."},
    {ANY_CAUSE, RUN | MAPPED_FILE,
     .what =
         "Do not change or truncate files while a training has them mapped: write a new file and rename it."},
    {ANY_CAUSE, LOG | MAPPED_FILE,
     .what = "Compare the sizes of the dataset's files with what they should be."},
    {ANY_CAUSE, LOG | MAPPED_FILE, .advise = fix_kernel_log},
    {ANY_CAUSE, RUN | MAPPED_FILE,
     .what = "Compare the file's size with what it should be, and look for I/O errors.",
     .command = "dmesg | grep -i error"},

    {ANY_CAUSE, MEMORY | MACHINE, .advise = fix_memory},
    {ANY_CAUSE, LOG | MEMORY, MACHINE,
     .what =
         "Use less memory: fewer workers, a smaller batch or prefetch_factor, and arrays instead of lists "
         "of objects in the dataset."},
    {ANY_CAUSE, RUN | MEMORY, MACHINE,
     .what = "Lower num_workers first, because each worker has its own memory; then batch_size and "
             "prefetch_factor."},
    {ANY_CAUSE, MEMORY, MACHINE, NEEDS_RESTART, "Ask for more memory for the container or job."},
    {OF(CAUSE_BUDGET_EXCEEDED), 0, MEMORY, .advise = fix_budget},
    {OF(CAUSE_BUDGET_EXCEEDED), 0, MEMORY, .what = "Or make the batches smaller: lower batch_size."},

    {OF(CAUSE_FD_EXHAUSTED), RUN,
     .what = "Hold fewer tensors: keep numbers (loss.item()) and clones of what the loader gives, not the "
             "batches themselves, and pack many small tensors into one."},
    {OF(CAUSE_FD_EXHAUSTED), MACHINE, .advise = fix_open_files},
    {OF(CAUSE_FD_EXHAUSTED), 0, MACHINE,
     .what = "Raise the limit of open files in the shell that starts the training.",
     .command = "ulimit -n $(ulimit -Hn)"},
    {OF(CAUSE_MAPS_EXHAUSTED), MACHINE, .advise = fix_maps},
    {OF(CAUSE_MAPS_EXHAUSTED), 0, MACHINE,
     .what = "Hold fewer shared tensors: each takes a mapping, however small it is. Pack many into one."},
    {OF(CAUSE_MAPS_EXHAUSTED), 0, MACHINE, NEEDS_ROOT, "Raise the kernel's limit of mappings.",
     "sysctl -w vm.max_map_count=262144"},

    {OF(CAUSE_SEGMENTS_DELETED), UNGUARDED,
     .what = "Run it without --no-guard: the supervisor then keeps the names, and no other "
             "program can delete them."},
    {OF(CAUSE_SEGMENTS_DELETED) | OF(CAUSE_KILLED) | OF(CAUSE_SEGFAULT) | OF(CAUSE_PYTHON_ERROR) |
         OF(CAUSE_WORKER_HANG) | OF(CAUSE_UNKNOWN),
     RUN | FROM_LOG, .advise = fixes_of_log},
    {OF(CAUSE_SEGMENTS_DELETED), RUN | MACHINE, .advise = fix_remove_ipc},
    {OF(CAUSE_SEGMENTS_DELETED), LOG | MACHINE, DETAIL_PYTHON_SEGMENT, .advise = fix_remove_ipc},
    {OF(CAUSE_SEGMENTS_DELETED), LOG, MACHINE | DETAIL_PYTHON_SEGMENT, NEEDS_ADMIN,
     "Set RemoveIPC=no in /etc/systemd/logind.conf, and stop jobs that clear /dev/shm."},

    {OF(CAUSE_KILLED), RUN, FROM_LOG | REQUESTED,
     .what = "Find out what ended it: look at the scheduler's log (time limit, preemption) and the "
             "container's events, and ask colleagues. Save checkpoints so that nothing is lost."},
    {OF(CAUSE_KILLED), LOG | DETAIL_SIGKILL,
     .what = "Run `shmguard doctor` on the machine where it happened: it looks for OOM kills in the kernel's "
             "log.",
     .command = "shmguard doctor"},
    {OF(CAUSE_SEGFAULT), RUN | PYTHON_STACK, FROM_LOG,
     .what = "Update or reinstall the package that the Python line calls, together with the other packages "
             "that have native code."},
    {OF(CAUSE_SEGFAULT), RUN, FROM_LOG | PYTHON_STACK,
     .what = "Run it with the fault handler enabled: it prints the Python line of the crash.",
     .command = "export PYTHONFAULTHANDLER=1"},
    {OF(CAUSE_SEGFAULT), RUN, FROM_LOG | PYTHON_STACK,
     .what = "Update or reinstall the packages that have native code, all together; suspect the newest one "
             "first."},

    {OF(CAUSE_WORKER_HANG), LOG | DETAIL_COLLECTIVE,
     .what = "Look at the output of every rank for the one that stopped first."},
    {OF(CAUSE_WORKER_HANG), LOG | NO_DETAIL,
     .what = "Find where the worker waits: dump its stack while it hangs.",
     .command = "py-spy dump --pid PID"},
    {OF(CAUSE_WORKER_HANG), LOG | NO_DETAIL,
     .what = "If items are only slow, raise the DataLoader's timeout= or add workers."},
    {OF(CAUSE_WORKER_HANG), LOG | NO_DETAIL,
     .what = "If it hangs at once, libraries with threads (OpenCV, tokenizers, OpenMP) may not survive "
             "fork: give the DataLoader multiprocessing_context='spawn', or switch their threads off."},

    {OF(CAUSE_PYTHON_ERROR), LOG | EXCEPTION | IN_WORKER,
     .what = "Fix the dataset, transform or collate_fn at the line shown above. With num_workers=0 "
             "a debugger can stop there."},
    {OF(CAUSE_PYTHON_ERROR), LOG | EXCEPTION, IN_WORKER,
     .what = "Fix the exception at the line shown above."},

    {OF(CAUSE_UNKNOWN), LOG,
     .what = "Run `shmguard doctor` on the machine where it happened: it looks for OOM kills in the kernel's "
             "log.",
     .command = "shmguard doctor"},
    {OF(CAUSE_UNKNOWN), LOG | NCCL_FAILED,
     .what = "Run it again with NCCL's own log, and look at every rank's output.",
     .command = "export NCCL_DEBUG=INFO"},
    {OF(CAUSE_UNKNOWN), LOG,
     .what = "Run it again with the fault handler on: it prints where a crash happens.",
     .command = "export PYTHONFAULTHANDLER=1"},
    {OF(CAUSE_UNKNOWN), LOG,
     .what = "Run it once with num_workers=0: an exception then shows its own traceback."},
};

/* --- What is known --- */

static unsigned situation_of_detail(const char *detail)
{
    static const struct {
        const char *detail;
        unsigned situation;
    } details[] = {
        {"nccl", DETAIL_NCCL},
        {"sigkill", DETAIL_SIGKILL},
        {"collective-timeout", DETAIL_COLLECTIVE},
        {"python-shared-memory", DETAIL_PYTHON_SEGMENT},
    };
    for (size_t i = 0; detail && i < ARRAY_SIZE(details); i++)
        if (strcmp(detail, details[i].detail) == 0)
            return details[i].situation;
    return detail ? 0 : NO_DETAIL;
}

static unsigned situation_of_log(const CauseContext *context, const Diagnosis *diagnosis)
{
    const LoggedException *exception = context->exception;
    return LOG | (context->machine && shm_is_large(context->machine) ? LARGE_SHM : 0) |
           (context->clue == CLUE_SHM_INODES ? INODES : 0) |
           (context->clue == CLUE_HOST_MEMORY ? MEMORY : 0) |
           (diagnosis->bus_guess && clue_is_seen(context, CLUE_MAPPED_FILE) ? MAPPED_FILE : 0) |
           (exception ? EXCEPTION : 0) | (exception == &context->facts->worker ? IN_WORKER : 0) |
           (clue_is_seen(context, CLUE_NCCL_ERROR) ? NCCL_FAILED : 0);
}

static unsigned situation_of_run(const CauseContext *context, const Diagnosis *diagnosis)
{
    const Evidence *evidence = context->evidence;
    bool inodes = diagnosis->detail && strcmp(diagnosis->detail, "inodes") == 0;
    bool refused = diagnosis->cause.id == CAUSE_BUDGET_EXCEEDED && evidence->refused_for_want;
    return RUN | (diagnosis->from_log ? FROM_LOG : 0) | (evidence->guarded ? GUARDED : 0) |
           (!evidence->guarded && context->guard->ready ? UNGUARDED : 0) |
           (inodes && context->machine ? INODES : 0) | (refused ? MEMORY : 0) |
           (diagnosis->stack ? PYTHON_STACK : 0) | (evidence->passed_on != 0 ? REQUESTED : 0);
}

static unsigned situation_of(const CauseContext *context, const Diagnosis *diagnosis)
{
    CauseId id = diagnosis->cause.id;
    bool oom = id == CAUSE_CGROUP_OOM || id == CAUSE_SYSTEM_OOM;
    return (context->facts ? situation_of_log(context, diagnosis) : situation_of_run(context, diagnosis)) |
           situation_of_detail(diagnosis->detail) | (context->machine ? MACHINE : 0) | (oom ? MEMORY : 0) |
           (id == CAUSE_BUS_ERROR_FILE ? MAPPED_FILE : 0);
}

void diagnosis_fixes(CauseContext *context, Diagnosis *diagnosis)
{
    unsigned cause = OF(diagnosis->cause.id);
    unsigned situation = situation_of(context, diagnosis);
    for (size_t i = 0; i < ARRAY_SIZE(rules) && context->r >= 0; i++) {
        const FixRule *rule = &rules[i];
        if (!(rule->causes & cause) || (rule->when & ~situation) || (rule->unless & situation))
            continue;
        int r = rule->advise
                    ? rule->advise(context, diagnosis)
                    : fix_add(context->arena, &diagnosis->fixes, rule->needs, rule->what, rule->command);
        if (r < 0)
            context->r = r;
    }
    fixes_rank(&diagnosis->fixes);
}
