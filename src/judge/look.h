/*
 * One check at work: what it looks at, and where it puts what it finds. Private to checks*.c.
 *
 * A check is a function for one id of the table in checks.c. It calls look_found when something is wrong,
 * look_skipped when it could not look, and neither when all is well. The first error (no memory) sticks in
 * `error`; from then on nothing is added, so checks need not ask.
 */
#pragma once

#include "checks.h"
#include "need.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

typedef struct Look {
    const Survey *survey;
    const Machine *machine; /* the survey's */
    const Guard *guard;
    int pid;       /* that was asked about, 0 for the machine */
    JobNeed *jobs; /* those to be judged, in rising order of the trainer's pid */
    size_t n_jobs;
    size_t jobs_capacity;
    Arena *arena;
    Findings *findings;
    const char *id; /* of the check at work */
    Fixes fixes;    /* for its finding */
    int error;
} Look;

/* title and evidence come from the arena (or are literals); NULL is taken for no memory. Takes look->fixes.
 */
void look_found(Look *look, Severity severity, const char *title, const char *evidence);
void look_skipped(Look *look, const char *why);

/* Adds a fix, or keeps the error that an advise_* function returned. */
void look_fix(Look *look, FixNeeds needs, const char *what, const char *command);
void look_advice(Look *look, int r);

/* NULL when that job is not to be judged. */
const JobNeed *look_job(const Look *look, int trainer);

/* The process belongs to a job that is to be judged. */
bool look_covers(const Look *look, const Process *process);
/* The first such process after that one, or after NULL of all. NULL at the end. */
const Process *look_next(const Look *look, const Process *process);

uint32_t look_workers(const Look *look); /* of all jobs to be judged */

/* Without control characters, for titles and evidence. NULL: no memory. */
const char *look_escape(Look *look, Text text);

/* part / whole, 0 when there is no whole. */
double share_of(uint64_t part, uint64_t whole);

/* The severity of a used share: false below `warning`. */
bool used_severity(double used, double warning, double critical, Severity *ret);
/* The severity of a free share: false from `warning` up. */
bool free_severity(double left, double warning, double critical, Severity *ret);

void check_shm_missing(Look *look);
void check_shm_too_small(Look *look);
void check_shm_need(Look *look);
void check_shm_nearly_full(Look *look);
void check_shm_inodes_low(Look *look);
void check_shm_orphans(Look *look);
void check_shm_share_of_memory(Look *look);
void check_shm_huge_pages(Look *look);
void check_remove_ipc(Look *look);
void check_guard_unavailable(Look *look);

void check_memory_low(Look *look);
void check_cgroup_near_limit(Look *look);
void check_memory_pressure(Look *look);
void check_swap_low(Look *look);
void check_oom_recent(Look *look);
void check_disk_low(Look *look);

void check_open_files_low(Look *look);
void check_max_map_count_low(Look *look);
void check_workers_exceed_cpus(Look *look);
void check_threads_exceed_cpus(Look *look);
void check_fork_after_cuda(Look *look);
void check_workers_use_cuda(Look *look);
void check_spawn_copies(Look *look);
void check_fork_copies(Look *look);
