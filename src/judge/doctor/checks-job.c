/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "check.h"
#include "units.h"

/* Descriptors and mappings come and go by the batch: with a fifth left an epoch may still end well. */
#define COUNT_WARNING  0.80
#define COUNT_CRITICAL 0.95

/* The usual default is 1024, and works for most; below it even a few workers come close. */
enum { OPEN_FILES_USUAL = 1024 };

/* Threads that every process has for the traffic itself. Measured with PyTorch 1.13 and 2.13: three in a
 * worker (main, its queue's feeder, the resource sharer); in a trainer one feeder for each worker, main and
 * up to two more, for which there is room here to pin memory and to save checkpoints. That CUDA's own, which
 * do no work on the CPU, are no more than 24 is a guess on the safe side. */
enum { WORKER_THREADS = 3, TRAINER_THREADS = 8, CUDA_THREADS = 24 };

/* What is left are pools (OpenMP, MKL, OpenBLAS, OpenCV). They sleep between calls, so as many as CPUs are
 * fine, twice as many are worth a word, and with four times as many the processes stand in each other's way.
 */
#define THREADS_INFO    2.0
#define THREADS_WARNING 4.0

/* The share of the memory that copies of the dataset may take before it is worth telling. */
#define COPIES_SHARE 0.25

enum { PIDS_TOLD_MAX = 8 };

typedef struct Fullest {
    const Process *process; /* the one nearest to its limit; NULL when none could be judged */
    double share;
    size_t n_unknown;
} Fullest;

static const char *strategy_note = "with the file_descriptor strategy each shared tensor takes one";

static void fullest_by_files(CheckContext *check, Fullest *ret)
{
    Fullest fullest = {0};
    for (const Process *process = check_next(check, NULL); process; process = check_next(check, process)) {
        if (!process->readable || process->open_files_soft == U64_UNKNOWN) {
            fullest.n_unknown++;
            continue;
        }
        /* A limit of 0 lets nothing be opened any more. */
        double share = process->open_files_soft == 0 ? 1 : share_of(process->fds, process->open_files_soft);
        if (!fullest.process || share > fullest.share) {
            fullest.process = process;
            fullest.share = share;
        }
    }
    *ret = fullest;
}

/* The running processes need not be started anew: prlimit changes the limits of others. */
static void advise_prlimit(CheckContext *check, const Process *fullest)
{
    uint64_t target = open_files_target(fullest->open_files_soft, fullest->open_files_hard);
    if (fullest->open_files_hard == U64_UNKNOWN || target <= fullest->open_files_soft)
        return;
    const char *pids = "";
    size_t n = 0;
    for (const Process *process = check_next(check, NULL); process; process = check_next(check, process))
        if (pids && n < PIDS_TOLD_MAX && process->job == fullest->job && process->open_files_soft < target &&
            process->open_files_hard >= target) {
            pids = arena_printf(check->arena, "%s%s%d", pids, n ? " " : "", process->pid);
            n++;
        }
    bool own = check->machine->sandbox.root || check->machine->uid == fullest->uid;
    if (!own && !root_within_reach(check->machine))
        return;
    check_fix(check, own ? NEEDS_NOTHING : NEEDS_ROOT, "Raise the limit of the running processes at once.",
              pids ? arena_printf(check->arena, "for p in %s; do %sprlimit --pid $p --nofile=%llu:; done",
                                  pids, own ? "" : "sudo ", (unsigned long long)target)
                   : NULL);
    if (!pids)
        check_advice(check, -ENOMEM);
}

static void check_open_files_idle(CheckContext *check)
{
    const RLimits *limits = &check->machine->limits;
    if (limits->open_files_soft == U64_UNKNOWN) {
        check_skipped(check, "the limit of open files is not known");
        return;
    }
    if (limits->open_files_soft >= OPEN_FILES_USUAL)
        return;
    check_advice(check, advise_open_files(check->machine, check->arena, &check->fixes));
    check_found(
        check, SEVERITY_INFO, "Few files may be open at once",
        arena_printf(check->arena,
                     "Measured: a process started here may have %llu files open, where %d is usual; %s.",
                     (unsigned long long)limits->open_files_soft, OPEN_FILES_USUAL, strategy_note));
}

void check_open_files_low(CheckContext *check)
{
    if (check->n_jobs == 0) {
        check_open_files_idle(check);
        return;
    }
    Fullest fullest;
    Severity severity;
    fullest_by_files(check, &fullest);
    if (fullest.n_unknown > 0)
        check_skipped(check,
                      arena_printf(check->arena, "the open files of %zu training processes may not be read",
                                   fullest.n_unknown));
    if (!fullest.process || !used_severity(fullest.share, COUNT_WARNING, COUNT_CRITICAL, &severity))
        return;
    const Process *process = fullest.process;
    advise_prlimit(check, process);
    check_advice(check, advise_open_files(check->machine, check->arena, &check->fixes));
    check_found(check, severity, "A training process is nearly out of file descriptors",
                arena_printf(check->arena, "Measured: pid %d (%s) has %u of %llu files open; %s.",
                             process->pid, role_name(process->role), process->fds,
                             (unsigned long long)process->open_files_soft, strategy_note));
}

void check_max_map_count_low(CheckContext *check)
{
    uint64_t limit = check->machine->max_map_count;
    if (check->n_jobs == 0)
        return;
    if (limit == U64_UNKNOWN) {
        check_skipped(check, "vm.max_map_count could not be read");
        return;
    }
    const Process *fullest = NULL;
    for (const Process *process = check_next(check, NULL); process; process = check_next(check, process))
        if (process->maps != U64_UNKNOWN && (!fullest || process->maps > fullest->maps))
            fullest = process;
    if (!fullest) {
        check_skipped(check, "the mappings of the training processes could not be counted");
        return;
    }
    Severity severity;
    if (!used_severity(limit == 0 ? 1 : share_of(fullest->maps, limit), COUNT_WARNING, COUNT_CRITICAL,
                       &severity))
        return;
    check_advice(check, advise_max_map_count(check->machine, check->arena, &check->fixes));
    check_found(
        check, severity, "A training process has nearly as many mappings as the kernel allows",
        arena_printf(check->arena,
                     "Measured: pid %d (%s) has %llu mappings, vm.max_map_count is %llu; each shared tensor "
                     "takes one.",
                     fullest->pid, role_name(fullest->role), (unsigned long long)fullest->maps,
                     (unsigned long long)limit));
}

/* "2.5 CPUs are granted, by the control group's quota". */
static const char *cpus_clause(CheckContext *check)
{
    const Machine *machine = check->machine;
    double quota = machine->cgroup.cpu_quota;
    bool limits = quota > 0 && quota <= machine->cpus && quota != (double)machine->cpus_seen;
    return arena_printf(check->arena, "%.3g CPU%s granted%s", machine->cpus,
                        machine->cpus == 1 ? " is" : "s are", limits ? ", by the control group's quota" : "");
}

void check_workers_exceed_cpus(CheckContext *check)
{
    const Machine *machine = check->machine;
    uint32_t workers = check_workers(check);
    if (workers == 0)
        return;
    if (machine->cpus <= 0) {
        check_skipped(check, "how many CPUs are granted is not known");
        return;
    }
    /* A quota of 2.5 lets three run, most of the time. PyTorch's own warning draws the same line. */
    if ((double)workers <= ceil(machine->cpus))
        return;
    const char *cpus = cpus_clause(check);
    check_fix(check, NEEDS_NOTHING,
              arena_printf(
                  check->arena,
                  "Use num_workers=%.0f for each trainer, unless the workers mostly wait for a disk or the "
                  "network.",
                  MAX(floor(machine->cpus / (double)check->n_jobs), 1.0)),
              NULL);
    check_advice(check, advise_cpus(machine, workers, check->arena, &check->fixes));
    check_found(check, SEVERITY_WARNING, "There are more DataLoader workers than CPUs",
                cpus ? arena_printf(check->arena, "Measured: %u workers of %zu trainer%s run, and %s.",
                                    workers, check->n_jobs, check->n_jobs == 1 ? "" : "s", cpus)
                     : NULL);
}

void check_threads_exceed_cpus(CheckContext *check)
{
    const Machine *machine = check->machine;
    uint64_t pool_threads = 0;
    uint64_t threads = 0;
    uint64_t processes = 0;
    for (const Process *process = check_next(check, NULL); process; process = check_next(check, process)) {
        if (process->role != ROLE_WORKER && process->role != ROLE_TRAINER)
            continue;
        uint64_t plumbing = WORKER_THREADS;
        if (process->role == ROLE_TRAINER)
            plumbing = TRAINER_THREADS + check_job(check, process->job)->workers;
        plumbing += process->cuda ? CUDA_THREADS : 0;
        pool_threads += process->threads - MIN(plumbing, process->threads);
        threads += process->threads;
        processes++;
    }
    if (processes == 0)
        return;
    if (machine->cpus <= 0) {
        check_skipped(check, "how many CPUs are granted is not known");
        return;
    }
    if ((double)pool_threads < THREADS_INFO * machine->cpus)
        return;
    const char *cpus = cpus_clause(check);
    check_fix(
        check, NEEDS_NOTHING,
        "Start the training with one thread for each pool; PyTorch's workers need no more. It holds for "
        "the trainer too: one that computes on the CPU gets slower and wants more.",
        "export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1");
    check_fix(check, NEEDS_NOTHING,
              "Where the dataset uses OpenCV, switch its pool off at the top of the script.",
              "import cv2; cv2.setNumThreads(0)");
    check_found(
        check, (double)pool_threads >= THREADS_WARNING * machine->cpus ? SEVERITY_WARNING : SEVERITY_INFO,
        "The training processes have many more threads than CPUs",
        cpus
            ? arena_printf(check->arena,
                           "Measured: %llu threads in %llu processes, and %s. Estimated: %llu of them belong "
                           "to pools (OpenMP, MKL, OpenBLAS, OpenCV). Unknown: how many run at once.",
                           (unsigned long long)threads, (unsigned long long)processes, cpus,
                           (unsigned long long)pool_threads)
            : NULL);
}

static size_t count_workers(const CheckContext *check, StartMethod a, StartMethod b, bool trainer_cuda,
                            bool worker_cuda)
{
    size_t n = 0;
    for (const Process *process = check_next(check, NULL); process; process = check_next(check, process)) {
        if (process->role != ROLE_WORKER || (process->start != a && process->start != b))
            continue;
        const Process *trainer = survey_process(check->survey, process->job);
        n += (!trainer_cuda || (trainer && trainer->cuda)) && (!worker_cuda || process->cuda);
    }
    return n;
}

/* Nearly every training on a GPU looks like this and is right to: it is only told, never held against it. */
void check_fork_after_cuda(CheckContext *check)
{
    size_t n = count_workers(check, START_FORK, START_FORK, true, false);
    if (n == 0)
        return;
    check_fix(check, NEEDS_NOTHING,
              "Keep CUDA out of the dataset and of collate_fn, or start workers afresh: give the DataLoader "
              "multiprocessing_context='spawn'.",
              NULL);
    check_found(
        check, SEVERITY_INFO, "Workers were forked from a trainer that uses CUDA",
        arena_printf(check->arena,
                     "Measured: %zu forked worker%s below a trainer with a CUDA device open. That works as "
                     "long as the dataset's code does not touch CUDA: in a forked process it cannot be "
                     "initialised again.",
                     n, n == 1 ? "" : "s"));
}

void check_workers_use_cuda(CheckContext *check)
{
    size_t n = count_workers(check, START_SPAWN, START_FORKSERVER, false, true);
    if (n == 0)
        return;
    check_fix(
        check, NEEDS_NOTHING,
        "Load on the CPU in the workers and move batches to the GPU in the trainer, with pin_memory=True.",
        NULL);
    check_found(
        check, SEVERITY_INFO, "DataLoader workers use the GPU themselves",
        arena_printf(check->arena,
                     "Measured: %zu spawned worker%s with a CUDA device open. Each has a context of its own "
                     "on the GPU, which takes memory there; how much is unknown.",
                     n, n == 1 ? "" : "s"));
}

typedef struct Copies {
    size_t n;
    uint64_t bytes;
    size_t n_estimated; /* of n: private memory not measured, resident memory without shared pages taken */
    size_t n_unknown;
} Copies;

static void copies_count(const CheckContext *check, StartMethod a, StartMethod b, bool estimate, Copies *ret)
{
    Copies copies = {0};
    for (const Process *process = check_next(check, NULL); process; process = check_next(check, process)) {
        if (process->role != ROLE_WORKER || (process->start != a && process->start != b))
            continue;
        uint64_t bytes = process->uss_bytes;
        if (bytes == U64_UNKNOWN && estimate && process->rss_bytes != U64_UNKNOWN) {
            bytes = process->rss_bytes - MIN(process->rss_shmem_bytes, process->rss_bytes);
            copies.n_estimated++;
        }
        if (bytes == U64_UNKNOWN) {
            copies.n_unknown++;
            continue;
        }
        copies.n++;
        copies.bytes = bytes_add(copies.bytes, bytes);
    }
    *ret = copies;
}

static bool copies_are_large(CheckContext *check, const Copies *copies)
{
    uint64_t memory = memory_granted_bytes(check->machine);
    if (copies->n_unknown > 0)
        check_skipped(check, arena_printf(check->arena, "the private memory of %zu workers was not measured",
                                          copies->n_unknown));
    return copies->n > 0 && memory != U64_UNKNOWN && share_of(copies->bytes, memory) >= COPIES_SHARE;
}

static const char *copies_evidence(CheckContext *check, const Copies *copies, const char *meaning)
{
    uint64_t memory = memory_granted_bytes(check->machine);
    return arena_printf(check->arena, "%s: %zu worker%s %s of private memory, of %s that there is. %s",
                        copies->n_estimated ? "Estimated from resident memory" : "Measured", copies->n,
                        copies->n == 1 ? " has" : "s together have", SIZE_TEXT(copies->bytes),
                        SIZE_TEXT(memory), meaning);
}

void check_spawn_copies(CheckContext *check)
{
    Copies copies;
    /* A spawned process shares no pages with its trainer but libraries', so what is resident is nearly all
     * its own. */
    copies_count(check, START_SPAWN, START_FORKSERVER, true, &copies);
    if (!copies_are_large(check, &copies))
        return;
    check_fix(
        check, NEEDS_NOTHING,
        "Have the dataset open its data in the worker (memory-mapped files, a database) instead of carrying "
        "it along, or use fewer workers.",
        NULL);
    check_advice(check, advise_less_memory(check->machine, check->arena, &check->fixes));
    check_found(check, SEVERITY_WARNING, "Spawned workers have much private memory",
                copies_evidence(check, &copies,
                                "Under spawn and forkserver each has a copy of the dataset of its own."));
}

void check_fork_copies(CheckContext *check)
{
    Copies copies;
    copies_count(check, START_FORK, START_FORK, false, &copies);
    if (!copies_are_large(check, &copies))
        return;
    check_fix(
        check, NEEDS_NOTHING,
        "Keep the dataset's index in NumPy arrays or tensors instead of lists and dicts of Python objects, "
        "whose reference counts make pages private.",
        NULL);
    check_advice(check, advise_less_memory(check->machine, check->arena, &check->fixes));
    check_found(
        check, SEVERITY_WARNING, "Forked workers have much private memory",
        copies_evidence(check, &copies,
                        "Often it is the dataset, copied page by page as reference counts change: that ends "
                        "at the dataset's size. Whether it grows without end takes a recording to tell."));
}
