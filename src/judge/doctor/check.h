/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running check: what it examines, and where its results go. Private to checks*.c.
 *
 * A check is the function of one row of the table in checks.c. It calls check_found when something is wrong,
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

uint32_t check_workers(const CheckContext *check); /* of all examined jobs */

/* A copy without control characters, for titles and evidence. NULL: no memory. */
const char *check_escape(CheckContext *check, Text text);

/* part / whole; 0 when the whole is 0. */
double share_of(uint64_t part, uint64_t whole);

/* The severity of a used share: false below `warning`. */
bool used_severity(double used, double warning, double critical, Severity *ret);
/* The severity of a free share: false at `warning` and above. */
bool free_severity(double left, double warning, double critical, Severity *ret);

void check_shm_missing(CheckContext *check);
void check_shm_too_small(CheckContext *check);
void check_shm_need(CheckContext *check);
void check_shm_nearly_full(CheckContext *check);
void check_shm_inodes_low(CheckContext *check);
void check_shm_orphans(CheckContext *check);
void check_shm_share_of_memory(CheckContext *check);
void check_shm_huge_pages(CheckContext *check);
void check_remove_ipc(CheckContext *check);
void check_guard_unavailable(CheckContext *check);

void check_memory_low(CheckContext *check);
void check_cgroup_near_limit(CheckContext *check);
void check_memory_pressure(CheckContext *check);
void check_swap_low(CheckContext *check);
void check_oom_recent(CheckContext *check);
void check_disk_low(CheckContext *check);

void check_open_files_low(CheckContext *check);
void check_max_map_count_low(CheckContext *check);
void check_workers_exceed_cpus(CheckContext *check);
void check_threads_exceed_cpus(CheckContext *check);
void check_fork_after_cuda(CheckContext *check);
void check_workers_use_cuda(CheckContext *check);
void check_spawn_copies(CheckContext *check);
void check_fork_copies(CheckContext *check);
