/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running check: what it examines, and where its results go. Private to checks*.c.
 *
 * A check is the function of one row of CHECKS, below. It calls check_found when something is wrong,
 * check_skipped when it could not look, and neither when all is well. The first error (no memory) is kept in
 * `error`; nothing is added after it, so checks need not test for it.
 */
#pragma once

#include "checks.h"
#include "doctor-text.h"
#include "need.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

typedef struct CheckContext {
    const Survey *survey;
    const Machine *machine; /* of the survey */
    const GuardOffer *guard;
    int pid;       /* that the user asked about; 0: the whole machine */
    JobNeed *jobs; /* the examined jobs, in rising order of the trainer's pid */
    size_t n_jobs;
    size_t jobs_capacity;
    Arena *arena;
    Findings *findings;
    const char *id; /* of the running check */
    Fixes fixes;    /* for its finding */
    int error;
} CheckContext;

/* title and evidence come from the arena or are literals; NULL means no memory. Takes check->fixes. */
void check_found(CheckContext *check, Severity severity, const char *title, const char *evidence);
void check_skipped(CheckContext *check, const char *why);

/* A sentence of doctor-text.h, from the arena; NULL: no memory. */
#define SENTENCE(check, ...) arena_printf((check)->arena, __VA_ARGS__)
/* Two of them with a blank between them. NULL when one of them is NULL. */
const char *check_join(CheckContext *check, const char *first, const char *second);

/* Adds a fix, or keeps the error that an advise_* function returned. */
void check_fix(CheckContext *check, FixNeeds needs, const char *what, const char *command);
void check_advice(CheckContext *check, int r);

/* NULL when that job is not examined. */
const JobNeed *check_job(const CheckContext *check, int trainer);

/* Whether the process belongs to an examined job. */
bool check_covers(const CheckContext *check, const Process *process);
/* The next process of an examined job; the first one when `process` is NULL. NULL at the end. */
const Process *check_next(const CheckContext *check, const Process *process);

/* Of all workers of the examined jobs: 3.N; 0: not known, or not the same. */
unsigned check_python(const CheckContext *check);
uint32_t check_workers(const CheckContext *check); /* of all examined jobs */

/* A copy without control characters, for titles and evidence. NULL: no memory. */
const char *check_escape(CheckContext *check, Text text);

/* part / whole; 0 when the whole is 0. */
double share_of(uint64_t part, uint64_t whole);

/* The severity of a used share: false below `warning`. */
bool used_severity(double used, double warning, double critical, Severity *ret);
/* The severity of a free share: false at `warning` and above. */
bool free_severity(double left, double warning, double critical, Severity *ret);

/*
 * Every check, once: X(id, function, least and worst severity, meaning). This list yields the table and the
 * prototypes, so that a function without a row does not compile, nor does a row without a function link.
 * Findings of one severity are shown in this order: first what kills a training, then what slows it.
 */
#define CHECKS(X)                                                                                            \
    X("shm-missing", check_shm_missing, WARNING, CRITICAL, DOCTOR_SHM_MISSING_MEANING)                       \
    X("shm-too-small", check_shm_too_small, WARNING, CRITICAL, DOCTOR_SHM_TOO_SMALL_MEANING)                 \
    X("shm-nearly-full", check_shm_nearly_full, WARNING, CRITICAL, DOCTOR_SHM_NEARLY_FULL_MEANING)           \
    X("shm-inodes-low", check_shm_inodes_low, WARNING, CRITICAL, DOCTOR_SHM_INODES_LOW_MEANING)              \
    X("memory-low", check_memory_low, WARNING, CRITICAL, DOCTOR_MEMORY_LOW_MEANING)                          \
    X("cgroup-near-limit", check_cgroup_near_limit, WARNING, CRITICAL, DOCTOR_CGROUP_MEANING)                \
    X("oom-recent", check_oom_recent, INFO, WARNING, DOCTOR_OOM_MEANING)                                     \
    X("open-files-low", check_open_files_low, INFO, CRITICAL, DOCTOR_OPEN_FILES_LOW_MEANING)                 \
    X("max-map-count-low", check_max_map_count_low, WARNING, CRITICAL, DOCTOR_MAX_MAP_COUNT_MEANING)         \
    X("disk-low", check_disk_low, WARNING, CRITICAL, DOCTOR_DISK_LOW_MEANING)                                \
    X("shm-share-of-memory", check_shm_share_of_memory, WARNING, WARNING, DOCTOR_SHM_SHARE_MEANING)          \
    X("memory-pressure", check_memory_pressure, WARNING, CRITICAL, DOCTOR_MEMORY_PRESSURE_MEANING)           \
    X("swap-low", check_swap_low, INFO, WARNING, DOCTOR_SWAP_LOW_MEANING)                                    \
    X("shm-orphans", check_shm_orphans, INFO, WARNING, DOCTOR_SHM_ORPHANS_MEANING)                           \
    X("remove-ipc", check_remove_ipc, INFO, WARNING, DOCTOR_REMOVE_IPC_MEANING)                              \
    X("workers-exceed-cpus", check_workers_exceed_cpus, WARNING, WARNING, DOCTOR_WORKERS_MEANING)            \
    X("threads-exceed-cpus", check_threads_exceed_cpus, INFO, WARNING, DOCTOR_THREADS_MEANING)               \
    X("spawn-copies", check_spawn_copies, WARNING, WARNING, DOCTOR_SPAWN_COPIES_MEANING)                     \
    X("fork-copies", check_fork_copies, WARNING, WARNING, DOCTOR_FORK_COPIES_MEANING)                        \
    X("workers-use-cuda", check_workers_use_cuda, INFO, INFO, DOCTOR_WORKERS_CUDA_MEANING)                   \
    X("fork-after-cuda", check_fork_after_cuda, INFO, INFO, DOCTOR_FORK_CUDA_MEANING)                        \
    X("workers-are-threads", check_workers_are_threads, INFO, INFO, DOCTOR_WORKERS_ARE_THREADS_MEANING)      \
    X("shm-huge-pages", check_shm_huge_pages, INFO, INFO, DOCTOR_SHM_HUGE_PAGES_MEANING)                     \
    X("shm-of-pod", check_shm_of_pod, INFO, INFO, DOCTOR_SHM_OF_POD_MEANING)                                 \
    X("shm-of-job", check_shm_of_job, INFO, INFO, DOCTOR_SHM_OF_JOB_MEANING)                                 \
    X("shm-need", check_shm_need, INFO, INFO, DOCTOR_SHM_NEED_MEANING)                                       \
    X("guard-unavailable", check_guard_unavailable, INFO, INFO, DOCTOR_GUARD_UNAVAILABLE_MEANING)

#define PROTOTYPE(id, run, least, worst, meaning) void run(CheckContext *check);
CHECKS(PROTOTYPE)
#undef PROTOTYPE
