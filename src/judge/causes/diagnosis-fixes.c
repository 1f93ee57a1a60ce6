/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about each cause: one table, for logs and for jobs. */
#include <string.h>

#include "cause-context.h"
#include "causes-text.h"
#include "clues-text.h"
#include "units.h"

/* What is known in addition to the cause. */
typedef enum Situation {
    LOG = 1 << 0,           /* a log alone is judged */
    RUN = 1 << 1,           /* a job is judged, whose end was seen */
    FROM_LOG = 1 << 2,      /* RUN: what the job's processes wrote decided */
    MACHINE = 1 << 3,       /* the machine is known */
    GUARDED = 1 << 4,       /* RUN: the guard was in the job */
    UNGUARDED = 1 << 5,     /* RUN: it was not, but could have been */
    LARGE_SHM = 1 << 6,     /* LOG: /dev/shm of this machine is larger than we would advise */
    INODES = 1 << 7,        /* /dev/shm ran out of inodes, not of space */
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
    IN_SLURM = 1 << 20,      /* LOG: the log shows Slurm */
    IN_KUBERNETES = 1 << 21, /* LOG: the log shows Kubernetes */
    IN_DOCKER = 1 << 22,     /* LOG: the log shows Docker */
    THREADS = 1 << 23,       /* LOG: the DataLoader's workers are threads */
    WORKER_GONE = 1 << 24,   /* a worker ended for an unknown reason; LOG: or the log blames shared memory */
    FOREIGN = 1 << 25,       /* LOG: the log shows macOS or Windows */
    WINDOWS = 1 << 26,       /* LOG: the log shows Windows */
    HARMLESS = 1 << 27,      /* LOG: nothing but noise at the end of a program */
    IN_CONTAINER = 1 << 28,  /* LOG: the log shows a container */
    EMPTYDIR = 1 << 29,      /* LOG: /dev/shm is an emptyDir volume */
    IN_LIBRARY = 1 << 30,    /* LOG: only lines of libraries raised the exception */
} Situation;

static const uint64_t SHM_GUESS_BYTES = GIB;

/* For a container of which nothing is known. The size is a limit and takes no memory by itself. */
static const uint64_t SHM_CONTAINER_BYTES = 8 * GIB;

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

/* --- Fixes that need more than a row of the table --- */

/* Those who interrupt a program that waits do so because it hangs. */
static int fix_interrupted(CauseContext *context, Diagnosis *diagnosis)
{
    if (context->clue != CLUE_INTERRUPTED || !clue_is_seen(context, CLUE_WAITING))
        return 0;
    return fix_add(context->arena, &diagnosis->fixes, NEEDS_NOTHING, INTERRUPTED_WAITING_FIX,
                   "py-spy dump --pid PID");
}

static int fix_of_clue(CauseContext *context, Diagnosis *diagnosis)
{
    const ClueInfo *info = context->clue == CLUES ? NULL : &clue_infos[context->clue];
    if (context->clue == CLUE_NOT_PICKLABLE && clue_is_seen(context, CLUE_IN_WINDOWS)) /* without fork */
        return fix_add(context->arena, &diagnosis->fixes, NEEDS_NOTHING, NOT_PICKLABLE_WINDOWS_FIX, NULL);
    return info && info->fix && info->cause == diagnosis->cause.id
               ? fix_add(context->arena, &diagnosis->fixes, NEEDS_NOTHING, info->fix, info->command)
               : 0;
}

/* Those of the log alone, which are about the lines that matched. */
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
                   cause_printf(context, FIX_DOCTOR_MEASURE, SIZE_TEXT(guess)), "shmguard doctor");
}

static int fix_guard(CauseContext *context, Diagnosis *diagnosis)
{
    if (context->facts && context->clue == CLUE_SHM_FILE) /* the program's own files, not its batches */
        return 0;
    return advise_guard(context->guard, context->arena, &diagnosis->fixes);
}

static int fix_smaller_batches(CauseContext *context, Diagnosis *diagnosis)
{
    if (context->facts && context->clue == CLUE_SHM_FILE)
        return 0;
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

/* The log may come from a container, wherever it is read. */
static int fix_container_shm(CauseContext *context, Diagnosis *diagnosis)
{
    const Machine *machine = context->machine;
    const Machine *advised = machine && !shm_is_large(machine) ? machine : NULL;
    return advise_shm_container(advised, SHM_CONTAINER_BYTES, context->arena, &diagnosis->fixes);
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
    const Machine *machine = context->machine;
    const RLimits *limits = &machine->limits;
    bool by_name = context->facts && (clue_is_seen(context, CLUE_FILE_SYSTEM_USED) ||
                                      clue_is_seen(context, CLUE_SAYS_FILE_SYSTEM));
    int r = advise_file_limit(machine, context->arena, &diagnosis->fixes);
    /* Here the limit may be high enough, but not on the machine of the log. */
    if (r >= 0 && context->facts &&
        open_files_target(limits->open_files_soft, limits->open_files_hard) <= limits->open_files_soft)
        r = fix_add(context->arena, &diagnosis->fixes, NEEDS_NOTHING, FIX_OPEN_FILES,
                    "ulimit -n $(ulimit -Hn)");
    return r < 0 || by_name ? r : advise_share_by_name(context->arena, &diagnosis->fixes);
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
                   cause_printf(context, FIX_BUDGET, SIZE_TEXT(refused_most_bytes(context->evidence))), NULL);
}

static int fix_kernel_log(CauseContext *context, Diagnosis *diagnosis)
{
    const Machine *machine = context->machine;
    bool root = machine && root_within_reach(machine) && machine->sandbox.kind == ENVIRONMENT_BARE;
    FixNeeds needs = !machine || machine->kills_error == 0 ? NEEDS_NOTHING : root ? NEEDS_ROOT : NEEDS_ADMIN;
    bool plain = needs == NEEDS_NOTHING || (root && machine->sandbox.root);
    return fix_add(context->arena, &diagnosis->fixes, needs,
                   needs == NEEDS_ADMIN ? FIX_KERNEL_LOG_ADMIN : FIX_KERNEL_LOG,
                   plain ? "dmesg | grep -i error" : "sudo dmesg | grep -i error");
}

/* --- The table --- */

#define REMOUNT_COMMAND "sudo mount -o remount,size=8g /dev/shm"

#define OF(cause) (1U << (cause))
#define SHM       OF(CAUSE_SHM_EXHAUSTED)
#define LIMITED   (OF(CAUSE_CGROUP_OOM) | OF(CAUSE_PYTHON_ERROR))
#define ANY_CAUSE (OF(CAUSE_IDS) - 1)

typedef struct FixRule {
    unsigned causes;
    unsigned when;   /* all of these hold */
    unsigned unless; /* none of these does */
    FixNeeds needs;
    const char *what;
    const char *command;
    bool first; /* comes before all others, whatever it needs */
    int (*advise)(CauseContext *context, Diagnosis *diagnosis); /* instead of a fix of this row */
} FixRule;

/* Fixes that need the same are shown in this order. */
static const FixRule rules[] = {
    {SHM, LOG | EMPTYDIR, 0, NEEDS_RESTART, FIX_EMPTYDIR, "emptyDir:\n  medium: Memory\n  sizeLimit: 8Gi",
     true},
    {SHM, LOG | IN_CONTAINER, INODES | EMPTYDIR, .advise = fix_container_shm, .first = true},

    {OF(CAUSE_KILLED), LOG, .advise = fix_interrupted},
    {ANY_CAUSE, LOG, .advise = fix_of_clue},

    {SHM, UNGUARDED, .what = FIX_DROP_NO_GUARD_SHM},
    {SHM, GUARDED, .what = FIX_FIND_WHAT_FILLS, .command = "shmguard ps --segments"},
    {SHM, INODES | MACHINE, .advise = fix_inodes},
    {SHM, INODES, MACHINE, NEEDS_ADMIN, FIX_MORE_INODES},
    {SHM, LOG | LARGE_SHM, INODES | EMPTYDIR, .what = FIX_DOCTOR_LARGE, .command = "shmguard doctor"},
    {SHM, LOG, LARGE_SHM | INODES | EMPTYDIR, .advise = fix_measure_shm},
    {SHM, LOG, INODES | THREADS, .advise = fix_guard},
    {SHM, 0, INODES, .advise = fix_smaller_batches},
    {SHM, MACHINE, INODES | LARGE_SHM | EMPTYDIR, .advise = fix_larger_shm},
    {SHM, RUN, INODES | MACHINE, NEEDS_RESTART, FIX_LARGER_SHM},
    {SHM, LOG | LARGE_SHM, INODES | IN_CONTAINER | EMPTYDIR, NEEDS_ROOT, FIX_REMOUNT, REMOUNT_COMMAND},
    {SHM, LOG, MACHINE | INODES | IN_CONTAINER | EMPTYDIR, NEEDS_ROOT, FIX_REMOUNT, REMOUNT_COMMAND},
    {SHM, LOG, INODES | IN_CONTAINER | EMPTYDIR, .advise = fix_container_shm},
    {SHM, LOG, EMPTYDIR, .what = FIX_SEE_HOLDERS, .command = "shmguard ps --segments"},
    {SHM, LOG, EMPTYDIR, .what = FIX_SEE_LEFTOVERS, .command = "shmguard clean --dry-run"},
    {SHM, LOG | DETAIL_NCCL, .what = FIX_NCCL_NO_SHM, .command = "export NCCL_SHM_DISABLE=1"},

    {ANY_CAUSE, MAPPED_FILE, .what = FIX_KEEP_FILES},
    {ANY_CAUSE, LOG | MAPPED_FILE, .what = FIX_COMPARE_SIZES},
    {ANY_CAUSE, LOG | MAPPED_FILE, .what = FIX_MAPPED_DISK, .command = "df -h"},
    {ANY_CAUSE, LOG | MAPPED_FILE, FOREIGN, .advise = fix_kernel_log},
    {ANY_CAUSE, RUN | MAPPED_FILE, .what = FIX_COMPARE_SIZE, .command = "dmesg | grep -i error"},

    {ANY_CAUSE, MEMORY | MACHINE, FOREIGN, .advise = fix_memory},
    {ANY_CAUSE, MEMORY, MACHINE, .what = FIX_LESS_MEMORY},
    {ANY_CAUSE, MEMORY | FOREIGN | MACHINE, .what = FIX_LESS_MEMORY},
    {ANY_CAUSE, MEMORY, MACHINE | LOG, NEEDS_RESTART, FIX_MORE_MEMORY},
    {ANY_CAUSE, LOG | MEMORY | WINDOWS, .what = FIX_PAGING_FILE},
    {OF(CAUSE_SYSTEM_OOM), LOG, 0, NEEDS_RESTART, FIX_MACHINE_MEMORY},
    {LIMITED, LOG | MEMORY | IN_SLURM, 0, NEEDS_RESTART, FIX_MEMORY_SLURM, "sbatch --mem=64G job.sh"},
    {LIMITED, LOG | MEMORY | IN_KUBERNETES, 0, NEEDS_RESTART, FIX_MEMORY_KUBERNETES,
     "resources:\n  limits:\n    memory: 64Gi"},
    {LIMITED, LOG | MEMORY | IN_DOCKER, 0, NEEDS_RESTART, FIX_MEMORY_DOCKER,
     "docker run --memory=64g IMAGE COMMAND"},
    {LIMITED, LOG | MEMORY, IN_SLURM | IN_KUBERNETES | IN_DOCKER | FOREIGN, NEEDS_RESTART,
     FIX_MEMORY_SOMEWHERE},
    {OF(CAUSE_BUDGET_EXCEEDED), 0, MEMORY, .advise = fix_budget},
    {OF(CAUSE_BUDGET_EXCEEDED), 0, MEMORY, .what = FIX_SMALLER},

    {OF(CAUSE_FD_EXHAUSTED), RUN, .what = CLUE_FD_FIX},
    {OF(CAUSE_FD_EXHAUSTED), MACHINE, .advise = fix_open_files},
    {OF(CAUSE_FD_EXHAUSTED), 0, MACHINE, .what = FIX_OPEN_FILES, .command = "ulimit -n $(ulimit -Hn)"},
    {OF(CAUSE_FD_EXHAUSTED), LOG | NO_DETAIL, FOREIGN, NEEDS_RESTART, FIX_FILES_DOCKER,
     "docker run --ulimit nofile=65536:65536 IMAGE COMMAND"},
    {OF(CAUSE_MAPS_EXHAUSTED), MACHINE, .advise = fix_maps},
    {OF(CAUSE_MAPS_EXHAUSTED), 0, MACHINE, .what = FIX_HOLD_FEWER},
    {OF(CAUSE_MAPS_EXHAUSTED), 0, MACHINE, NEEDS_ROOT, FIX_MAPS, "sysctl -w vm.max_map_count=262144"},

    {OF(CAUSE_SEGMENTS_DELETED), UNGUARDED, .what = FIX_DROP_NO_GUARD_NAMES},
    {OF(CAUSE_SEGMENTS_DELETED) | OF(CAUSE_KILLED) | OF(CAUSE_SEGFAULT) | OF(CAUSE_PYTHON_ERROR) |
         OF(CAUSE_WORKER_HANG) | OF(CAUSE_UNKNOWN),
     RUN | FROM_LOG, .advise = fixes_of_log},
    {OF(CAUSE_SEGMENTS_DELETED), RUN | MACHINE, .advise = fix_remove_ipc},
    {OF(CAUSE_SEGMENTS_DELETED), LOG | MACHINE, DETAIL_PYTHON_SEGMENT, .advise = fix_remove_ipc},
    {OF(CAUSE_SEGMENTS_DELETED), LOG, MACHINE | DETAIL_PYTHON_SEGMENT, NEEDS_ADMIN, FIX_REMOVE_IPC},

    {OF(CAUSE_KILLED), RUN, FROM_LOG | REQUESTED, .what = FIX_FIND_SENDER},
    {OF(CAUSE_KILLED), LOG | DETAIL_SIGKILL, FOREIGN, .what = FIX_DOCTOR_KILLS, .command = "shmguard doctor"},
    {OF(CAUSE_KILLED), LOG | DETAIL_SIGKILL | IN_KUBERNETES, .what = FIX_POD_KILLED,
     .command = COMMAND_POD_KILLED},
    {OF(CAUSE_KILLED), LOG | DETAIL_SIGKILL, IN_KUBERNETES | IN_SLURM | FOREIGN, .what = FIX_CONTAINER_KILLED,
     .command = "docker inspect -f '{{.State.OOMKilled}}' NAME"},
    {OF(CAUSE_KILLED), LOG | DETAIL_SIGKILL, .what = FIX_IF_MEMORY},
    {OF(CAUSE_SEGFAULT), RUN | PYTHON_STACK, FROM_LOG, .what = FIX_UPDATE_ONE},
    {OF(CAUSE_SEGFAULT), RUN, FROM_LOG | PYTHON_STACK, .what = CLUE_SEGFAULT_FIX,
     .command = "export PYTHONFAULTHANDLER=1"},
    {OF(CAUSE_SEGFAULT), RUN, FROM_LOG | PYTHON_STACK, .what = FIX_UPDATE_ALL},
    {OF(CAUSE_SEGFAULT) | OF(CAUSE_UNKNOWN), LOG, WINDOWS | HARMLESS, .what = CLUE_SEGFAULT_FIX,
     .command = "export PYTHONFAULTHANDLER=1"},
    {OF(CAUSE_SEGFAULT) | OF(CAUSE_UNKNOWN), LOG | WINDOWS, HARMLESS, .what = CLUE_SEGFAULT_FIX,
     .command = "set PYTHONFAULTHANDLER=1"},
    {OF(CAUSE_SEGFAULT), LOG, .what = FIX_CRASH_NO_WORKERS},
    {OF(CAUSE_SEGFAULT), LOG, FOREIGN, .what = FIX_CORE, .command = "coredumpctl gdb"},

    {OF(CAUSE_WORKER_HANG), LOG | DETAIL_COLLECTIVE, .what = FIX_RANKS},
    {OF(CAUSE_WORKER_HANG), LOG | DETAIL_COLLECTIVE, .what = FIX_PY_SPY_RANKS,
     .command = "py-spy dump --pid PID"},
    {OF(CAUSE_WORKER_HANG), LOG | DETAIL_COLLECTIVE, .what = FIX_GROUP_TIMEOUT,
     .command = "init_process_group(timeout=datetime.timedelta(hours=2))"},
    {OF(CAUSE_WORKER_HANG), LOG | NO_DETAIL, .what = FIX_PY_SPY, .command = "py-spy dump --pid PID"},
    {OF(CAUSE_WORKER_HANG), LOG | NO_DETAIL, .what = FIX_TIMEOUT},
    {OF(CAUSE_WORKER_HANG), LOG | NO_DETAIL, .what = FIX_FORK_HANG},

    {OF(CAUSE_PYTHON_ERROR), LOG | EXCEPTION | IN_WORKER, .what = FIX_WORKER_EXCEPTION},
    {OF(CAUSE_PYTHON_ERROR), LOG | EXCEPTION, IN_WORKER | IN_LIBRARY, .what = FIX_EXCEPTION},
    {OF(CAUSE_PYTHON_ERROR), LOG | EXCEPTION | IN_LIBRARY, .what = FIX_EXCEPTION_LIBRARY},

    {OF(CAUSE_UNKNOWN), LOG | HARMLESS, .what = FIX_HARMLESS},
    {OF(CAUSE_UNKNOWN), LOG | NO_DETAIL, HARMLESS | FOREIGN, .what = FIX_DOCTOR_KILLS,
     .command = "shmguard doctor"},
    {OF(CAUSE_UNKNOWN), LOG | NCCL_FAILED, .what = FIX_NCCL_DEBUG, .command = "export NCCL_DEBUG=INFO"},
    {OF(CAUSE_UNKNOWN), LOG, HARMLESS, .what = FIX_NO_WORKERS},
    {OF(CAUSE_UNKNOWN), RUN | WORKER_GONE, .what = FIX_EXIT_CALLS},
    {OF(CAUSE_UNKNOWN), RUN | WORKER_GONE, .what = FIX_NO_WORKERS},
    {OF(CAUSE_UNKNOWN) | OF(CAUSE_WORKER_HANG), LOG | WORKER_GONE, FOREIGN, NEEDS_RESTART, FIX_TRY_SHM,
     "docker run --shm-size=8g IMAGE COMMAND"},
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

/* A /dev/shm of 64 MiB is what Docker gives a container by default. */
static bool shows_container(const CauseContext *context)
{
    return clue_is_seen(context, CLUE_IN_DOCKER) || clue_is_seen(context, CLUE_IN_KUBERNETES) ||
           context->facts->shm_size_bytes == 64 * MIB;
}

static bool only_noise(const CauseContext *context, const Diagnosis *diagnosis)
{
    if (context->clue != CLUES || context->exception || diagnosis->cause.confidence == 0)
        return false;
    for (Clue clue = 0; clue < CLUES; clue++)
        if (clue_infos[clue].tier == TIER_SYMPTOM && clue != CLUE_TEARDOWN && clue != CLUE_LEAKED &&
            !(clue == CLUE_PEER_LOST && clue_is_seen(context, CLUE_FINISHED)) && clue_is_seen(context, clue))
            return false;
    return true;
}

static unsigned situation_of_log(const CauseContext *context, const Diagnosis *diagnosis)
{
    const LoggedException *exception = context->exception;
    return LOG | (context->machine && shm_is_large(context->machine) ? LARGE_SHM : 0) |
           (context->clue == CLUE_SHM_INODES ? INODES : 0) |
           (context->clue == CLUE_HOST_MEMORY || context->clue == CLUE_PINNED_MEMORY ? MEMORY : 0) |
           (clue_is_seen(context, CLUE_IN_SLURM) ? IN_SLURM : 0) |
           (clue_is_seen(context, CLUE_IN_KUBERNETES) ? IN_KUBERNETES : 0) |
           (clue_is_seen(context, CLUE_IN_DOCKER) ? IN_DOCKER : 0) |
           (clue_is_seen(context, CLUE_WORKER_THREADS) ? THREADS : 0) |
           (clue_is_seen(context, CLUE_WORKER_EXITED) || clue_is_seen(context, CLUE_POOL_BROKEN) ||
                    clue_is_seen(context, CLUE_SAYS_SHM)
                ? WORKER_GONE
                : 0) |
           (clue_is_seen(context, CLUE_IN_WINDOWS) ? WINDOWS | FOREIGN : 0) |
           (log_is_macos(context) ? FOREIGN : 0) | (shows_container(context) ? IN_CONTAINER : 0) |
           (only_noise(context, diagnosis) ? HARMLESS : 0) |
           (context->clue == CLUE_SHM_EMPTYDIR ? EMPTYDIR : 0) |
           (exception && exception->inner.file[0] && !exception->user.file[0] ? IN_LIBRARY : 0) |
           (diagnosis->bus_guess &&
                    (clue_is_seen(context, CLUE_MAPPED_FILE) || diagnosis->cause.confidence <= BUS_DOUBTFUL)
                ? MAPPED_FILE
                : 0) |
           (exception ? EXCEPTION : 0) | (exception == &context->facts->worker ? IN_WORKER : 0) |
           (clue_is_seen(context, CLUE_NCCL_ERROR) ? NCCL_FAILED : 0);
}

static unsigned situation_of_run(const CauseContext *context, const Diagnosis *diagnosis)
{
    const Evidence *evidence = context->evidence;
    bool inodes = diagnosis->detail && strcmp(diagnosis->detail, "inodes") == 0;
    bool left = diagnosis->detail && strcmp(diagnosis->detail, "worker-exited") == 0;
    bool refused = diagnosis->cause.id == CAUSE_BUDGET_EXCEEDED && evidence->refused_for_want;
    return RUN | (diagnosis->from_log ? FROM_LOG : 0) | (evidence->guarded ? GUARDED : 0) |
           (!evidence->guarded && context->guard->ready ? UNGUARDED : 0) |
           (inodes && context->machine ? INODES : 0) | (left ? WORKER_GONE : 0) | (refused ? MEMORY : 0) |
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
    Fixes *fixes = &diagnosis->fixes;
    size_t first = 0;
    for (size_t i = 0; i < ARRAY_SIZE(rules) && context->r >= 0; i++) {
        const FixRule *rule = &rules[i];
        if (!(rule->causes & cause) || (rule->when & ~situation) || (rule->unless & situation))
            continue;
        int r = rule->advise
                    ? rule->advise(context, diagnosis)
                    : fix_add(context->arena, &diagnosis->fixes, rule->needs, rule->what, rule->command);
        if (r < 0)
            context->r = r;
        if (rule->first)
            first = fixes->n;
    }
    if (fixes->n > first)
        fixes_rank(&(Fixes){fixes->items + first, fixes->n - first, 0});
}
