/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "check.h"
#include "units.h"

/* Descriptors and mappings come and go with each batch: with a fifth left, an epoch may still finish. */
#define COUNT_WARNING  0.80
#define COUNT_CRITICAL 0.95

/* 1024 is the usual default and is enough for most jobs; below it, even a few workers come close to the
 * limit. */
enum { OPEN_FILES_USUAL = 1024 };

/* Threads that every process needs to pass batches on. Measured with PyTorch 1.13 and 2.13: three in a worker
 * (main, its queue's feeder, the resource sharer); in a trainer one feeder per worker, main and up to two
 * more. The figure for trainers leaves room for threads that pin memory and save checkpoints. CUDA's own
 * threads do no work on the CPU; 24 of them is a guess on the safe side. */
enum { WORKER_THREADS = 3, TRAINER_THREADS = 8, CUDA_THREADS = 24 };

/* All other threads belong to pools (OpenMP, MKL, OpenBLAS, OpenCV). They sleep between calls, so one per CPU
 * is fine, two per CPU are worth a note, and with four per CPU the processes slow each other down. */
#define THREADS_INFO    2.0
#define THREADS_WARNING 4.0

/* The share of memory that copies of the dataset may take before it is worth a finding. */
#define COPIES_SHARE 0.25

enum { PIDS_TOLD_MAX = 8 };

typedef struct Fullest {
    const Process *process; /* the one closest to its limit; NULL when none could be examined */
    double share;
    size_t n_unknown;
} Fullest;

static void fullest_by_files(CheckContext *check, Fullest *ret)
{
    Fullest fullest = {0};
    for (const Process *process = check_next(check, NULL); process; process = check_next(check, process)) {
        if (!process->readable || process->open_files_soft == U64_UNKNOWN) {
            fullest.n_unknown++;
            continue;
        }
        /* With a limit of 0, nothing more can be opened. */
        double share = process->open_files_soft == 0 ? 1 : share_of(process->fds, process->open_files_soft);
        if (!fullest.process || share > fullest.share) {
            fullest.process = process;
            fullest.share = share;
        }
    }
    *ret = fullest;
}

/* The running processes need no restart: prlimit changes the limits of other processes. */
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
    check_fix(check, own ? NEEDS_NOTHING : NEEDS_ROOT, DOCTOR_OPEN_FILES_FIX,
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
        check_skipped(check, DOCTOR_OPEN_FILES_IDLE_SKIPPED);
        return;
    }
    if (limits->open_files_soft >= OPEN_FILES_USUAL)
        return;
    check_advice(check, advise_open_files(check->machine, check->arena, &check->fixes));
    check_found(check, SEVERITY_INFO, DOCTOR_OPEN_FILES_IDLE_TITLE,
                SENTENCE(check, DOCTOR_OPEN_FILES_IDLE, (unsigned long long)limits->open_files_soft,
                         OPEN_FILES_USUAL));
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
        check_skipped(check, SENTENCE(check,
                                      PLURAL(fullest.n_unknown, DOCTOR_OPEN_FILES_SKIPPED_ONE,
                                             DOCTOR_OPEN_FILES_SKIPPED_MANY),
                                      fullest.n_unknown));
    if (!fullest.process || !used_severity(fullest.share, COUNT_WARNING, COUNT_CRITICAL, &severity))
        return;
    const Process *process = fullest.process;
    advise_prlimit(check, process);
    check_advice(check, advise_open_files(check->machine, check->arena, &check->fixes));
    check_found(check, severity, DOCTOR_OPEN_FILES_LOW_TITLE,
                SENTENCE(check, DOCTOR_OPEN_FILES_LOW, process->pid, role_name(process->role), process->fds,
                         (unsigned long long)process->open_files_soft));
}

void check_max_map_count_low(CheckContext *check)
{
    uint64_t limit = check->machine->max_map_count;
    if (check->n_jobs == 0)
        return;
    if (limit == U64_UNKNOWN) {
        check_skipped(check, DOCTOR_MAX_MAP_COUNT_SKIPPED);
        return;
    }
    const Process *fullest = NULL;
    for (const Process *process = check_next(check, NULL); process; process = check_next(check, process))
        if (process->maps != U64_UNKNOWN && (!fullest || process->maps > fullest->maps))
            fullest = process;
    if (!fullest) {
        check_skipped(check, DOCTOR_MAPS_SKIPPED);
        return;
    }
    Severity severity;
    if (!used_severity(limit == 0 ? 1 : share_of(fullest->maps, limit), COUNT_WARNING, COUNT_CRITICAL,
                       &severity))
        return;
    check_advice(check, advise_max_map_count(check->machine, check->arena, &check->fixes));
    check_found(check, severity, DOCTOR_MAX_MAP_COUNT_TITLE,
                SENTENCE(check, DOCTOR_MAX_MAP_COUNT, fullest->pid, role_name(fullest->role),
                         (unsigned long long)fullest->maps, (unsigned long long)limit));
}

static const char *cpus_granted(CheckContext *check)
{
    const Machine *machine = check->machine;
    double quota = machine->cgroup.cpu_quota;
    bool limits = quota > 0 && quota <= machine->cpus && quota != (double)machine->cpus_seen;
    return SENTENCE(check,
                    limits ? PLURAL(machine->cpus, DOCTOR_CPUS_QUOTA_ONE, DOCTOR_CPUS_QUOTA_MANY)
                           : PLURAL(machine->cpus, DOCTOR_CPUS_ONE, DOCTOR_CPUS_MANY),
                    machine->cpus);
}

void check_workers_exceed_cpus(CheckContext *check)
{
    const Machine *machine = check->machine;
    uint32_t workers = check_workers(check);
    if (workers == 0)
        return;
    if (machine->cpus <= 0) {
        check_skipped(check, DOCTOR_CPUS_SKIPPED);
        return;
    }
    /* A quota of 2.5 lets three workers run most of the time. PyTorch's own warning uses the same threshold.
     */
    if ((double)workers <= ceil(machine->cpus))
        return;
    check_fix(check, NEEDS_NOTHING,
              SENTENCE(check, DOCTOR_WORKERS_FIX, MAX(floor(machine->cpus / (double)check->n_jobs), 1.0)),
              NULL);
    check_advice(check, advise_cpus(machine, workers, check->arena, &check->fixes));
    check_found(check, SEVERITY_WARNING, DOCTOR_WORKERS_TITLE,
                check_join(check,
                           SENTENCE(check, PLURAL(check->n_jobs, DOCTOR_WORKERS_ONE, DOCTOR_WORKERS_MANY),
                                    workers, check->n_jobs),
                           cpus_granted(check)));
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
        check_skipped(check, DOCTOR_CPUS_SKIPPED);
        return;
    }
    if ((double)pool_threads < THREADS_INFO * machine->cpus)
        return;
    check_fix(check, NEEDS_NOTHING, DOCTOR_THREADS_FIX,
              "export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1");
    check_fix(check, NEEDS_NOTHING, DOCTOR_THREADS_OPENCV_FIX, "import cv2; cv2.setNumThreads(0)");
    const char *measured =
        check_join(check,
                   SENTENCE(check, PLURAL(processes, DOCTOR_THREADS_ONE, DOCTOR_THREADS_MANY),
                            (unsigned long long)threads, (unsigned long long)processes),
                   cpus_granted(check));
    check_found(
        check, (double)pool_threads >= THREADS_WARNING * machine->cpus ? SEVERITY_WARNING : SEVERITY_INFO,
        DOCTOR_THREADS_TITLE,
        check_join(check, measured,
                   SENTENCE(check, PLURAL(pool_threads, DOCTOR_THREADS_POOLS_ONE, DOCTOR_THREADS_POOLS_MANY),
                            (unsigned long long)pool_threads)));
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

/* Nearly every training on a GPU does this, and may: it is information, never a warning. */
void check_fork_after_cuda(CheckContext *check)
{
    size_t n = count_workers(check, START_FORK, START_FORK, true, false);
    if (n == 0)
        return;
    check_fix(check, NEEDS_NOTHING, DOCTOR_FORK_CUDA_FIX, NULL);
    check_found(check, SEVERITY_INFO, DOCTOR_FORK_CUDA_TITLE,
                SENTENCE(check, PLURAL(n, DOCTOR_FORK_CUDA_ONE, DOCTOR_FORK_CUDA_MANY), n));
}

void check_workers_use_cuda(CheckContext *check)
{
    size_t n = count_workers(check, START_SPAWN, START_FORKSERVER, false, true);
    if (n == 0)
        return;
    check_fix(check, NEEDS_NOTHING, DOCTOR_WORKERS_CUDA_FIX, NULL);
    check_found(check, SEVERITY_INFO, DOCTOR_WORKERS_CUDA_TITLE,
                SENTENCE(check, PLURAL(n, DOCTOR_WORKERS_CUDA_ONE, DOCTOR_WORKERS_CUDA_MANY), n));
}

void check_workers_are_threads(CheckContext *check)
{
    for (const Process *process = check_next(check, NULL); process; process = check_next(check, process)) {
        uint32_t n = process->signs.loaders;
        const JobNeed *job = n > 0 ? check_job(check, process->job) : NULL;
        if (!job)
            continue;
        check_found(
            check, SEVERITY_INFO, DOCTOR_WORKERS_ARE_THREADS_TITLE,
            check_join(check,
                       SENTENCE(check,
                                PLURAL(n, DOCTOR_WORKERS_ARE_THREADS_ONE, DOCTOR_WORKERS_ARE_THREADS_MANY),
                                process->pid, n),
                       job->workers > 0 ? DOCTOR_WORKERS_ARE_ALSO_PROCESSES : DOCTOR_WORKERS_ARE_THREADS));
        return;
    }
}

typedef struct Copies {
    size_t n;
    uint64_t bytes;
    size_t n_estimated; /* of n: private memory was not measured; resident memory without shared pages stands
                           in for it */
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
        check_skipped(
            check,
            SENTENCE(check, PLURAL(copies->n_unknown, DOCTOR_COPIES_SKIPPED_ONE, DOCTOR_COPIES_SKIPPED_MANY),
                     copies->n_unknown));
    return copies->n > 0 && memory != U64_UNKNOWN && share_of(copies->bytes, memory) >= COPIES_SHARE;
}

static const char *copies_evidence(CheckContext *check, const Copies *copies, const char *meaning)
{
    uint64_t memory = memory_granted_bytes(check->machine);
    const char *figures = SENTENCE(
        check,
        copies->n_estimated ? PLURAL(copies->n, DOCTOR_COPIES_ESTIMATED_ONE, DOCTOR_COPIES_ESTIMATED_MANY)
                            : PLURAL(copies->n, DOCTOR_COPIES_MEASURED_ONE, DOCTOR_COPIES_MEASURED_MANY),
        copies->n, SIZE_TEXT(copies->bytes), SIZE_TEXT(memory));
    return check_join(check, figures, meaning);
}

void check_spawn_copies(CheckContext *check)
{
    Copies copies;
    /* A spawned process shares only library pages with its trainer, so its resident memory is nearly all
     * private. */
    copies_count(check, START_SPAWN, START_FORKSERVER, true, &copies);
    if (!copies_are_large(check, &copies))
        return;
    check_fix(check, NEEDS_NOTHING, DOCTOR_SPAWN_COPIES_FIX, NULL);
    check_advice(check, advise_less_memory(check->machine, check->arena, &check->fixes));
    check_found(check, SEVERITY_WARNING, DOCTOR_SPAWN_COPIES_TITLE,
                copies_evidence(check, &copies, DOCTOR_SPAWN_COPIES));
}

void check_fork_copies(CheckContext *check)
{
    Copies copies;
    copies_count(check, START_FORK, START_FORK, false, &copies);
    if (!copies_are_large(check, &copies))
        return;
    if (python_freezes(check_python(check)) == FREEZES_MAYBE)
        check_fix(check, NEEDS_NOTHING, _(DOCTOR_FORK_COPIES_FREEZE), "shmguard run -- python train.py");
    check_fix(check, NEEDS_NOTHING, DOCTOR_FORK_COPIES_FIX, NULL);
    check_fix(check, NEEDS_NOTHING, DOCTOR_FORK_COPIES_SHARE, NULL);
    check_advice(check, advise_less_memory(check->machine, check->arena, &check->fixes));
    check_found(check, SEVERITY_WARNING, DOCTOR_FORK_COPIES_TITLE,
                copies_evidence(check, &copies, DOCTOR_FORK_COPIES));
}
