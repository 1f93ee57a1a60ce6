/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "check.h"
#include "orphans.h"
#include "units.h"

/* The default of Docker and Kubernetes: nearly every DataLoader with workers needs more. */
#define SHM_TINY_BYTES (64 * MIB)

/* At this size, a common job (4 workers, 9 batches in flight) is limited to batches of 114 MiB, which most
 * batches fit. */
#define SHM_SMALL_BYTES (1 * GIB)

/* The recommendation where no job shows what it needs. It is a limit, not a reservation: it costs nothing. */
#define SHM_USUAL_BYTES (8 * GIB)

/* If batches take a larger share of the memory, too little is left for the processes that make and use them.
 */
#define SHM_SHARE_MAX 0.25

/* A batch is often a tenth of the mount or more, so the last fifth can fill at any moment; in the last
 * twentieth, the next batch probably does not fit. */
#define FULL_WARNING  0.80
#define FULL_CRITICAL 0.95

/* Leftovers that matter: as much as a batch, or enough memory to be missed. */
#define ORPHANS_SHARE 0.10
#define ORPHANS_BYTES (1 * GIB)

/* If processes that we may not read hold this much, jobs may be among them. Every desktop holds a little. */
#define UNSEEN_BYTES (1 * MIB)

/* For the example in the evidence: the number of workers that most scripts use at first. */
enum { EXAMPLE_WORKERS = 4 };

/* systemd removes the segments of regular users, not those of system users. */
enum { FIRST_PERSON_UID = 1000 };

enum { JOBS_TOLD_MAX = 3, ORIGINS_MAX = 8 };

/* What the examined jobs need of our /dev/shm. */
typedef struct ShmDemand {
    uint64_t need_bytes;        /* estimated: of all jobs together */
    uint64_t others_bytes;      /* measured: what all other processes keep there */
    uint64_t recommended_bytes; /* estimated: the size to mount; 0 without a need */
    uint64_t tight_bytes;       /* what must fit: need_bytes with the margin, and others_bytes */
    size_t n_estimated;         /* jobs whose batches we saw, on our mount */
    size_t n_workers;           /* jobs on our mount that have workers, whether or not batches were seen */
    size_t n_guarded;
    size_t n_elsewhere;
} ShmDemand;

static void shm_demand(const CheckContext *check, ShmDemand *ret)
{
    ShmDemand demand = {0};
    uint64_t held = 0;
    for (size_t i = 0; i < check->n_jobs; i++) {
        const JobNeed *job = &check->jobs[i];
        uint64_t need = job->mount_need_bytes;
        demand.need_bytes = bytes_add(demand.need_bytes, need - MIN(job->shared_bytes, need));
        held = bytes_add(held, job->mount_bytes - MIN(job->shared_bytes, job->mount_bytes));
        if (job->guarded)
            demand.n_guarded++;
        else if (job->elsewhere)
            demand.n_elsewhere++;
        else {
            demand.n_estimated += job->batch_bytes > 0;
            demand.n_workers += job->workers > 0;
        }
    }
    uint64_t used = check->machine->shm.used_bytes == U64_UNKNOWN ? 0 : check->machine->shm.used_bytes;
    demand.others_bytes = used - MIN(held, used);
    demand.tight_bytes = bytes_add(need_with_margin(demand.need_bytes, NEED_MARGIN), demand.others_bytes);
    demand.recommended_bytes = shm_recommend(demand.need_bytes, demand.tight_bytes, NEED_MARGIN);
    *ret = demand;
}

/* Whether there is a mount to examine. */
static bool has_shm(const CheckContext *check)
{
    return check->machine->shm.state == SHM_OK;
}

/* The size to mount where no job shows what it needs. */
static uint64_t usual_bytes(const Machine *machine)
{
    uint64_t memory = memory_granted_bytes(machine);
    uint64_t quarter = memory == U64_UNKNOWN ? SHM_USUAL_BYTES : bytes_scale(memory, SHM_SHARE_MAX);
    return MIN(SHM_USUAL_BYTES, shm_round_up(quarter));
}

void check_shm_missing(CheckContext *check)
{
    const ShmMount *shm = &check->machine->shm;
    ShmDemand demand;
    shm_demand(check, &demand);
    uint64_t wanted = MAX(demand.recommended_bytes, usual_bytes(check->machine));

    if (shm->state == SHM_UNKNOWN)
        check_skipped(check, DOCTOR_SHM_MISSING_SKIPPED);
    else if (shm->state == SHM_ABSENT) {
        /* The guard does not help here: Python's semaphores live in /dev/shm too, and nothing starts without
         * them. */
        check_advice(check, advise_shm_mount(check->machine, wanted, check->arena, &check->fixes));
        check_found(check, SEVERITY_CRITICAL, DOCTOR_SHM_MISSING_TITLE, DOCTOR_SHM_MISSING);
    } else if (shm->read_only || shm->no_access) {
        check_advice(check, advise_shm_writable(check->machine, check->arena, &check->fixes));
        check_found(check, SEVERITY_CRITICAL, DOCTOR_SHM_NOT_WRITABLE_TITLE,
                    shm->read_only ? DOCTOR_SHM_READ_ONLY : DOCTOR_SHM_NO_ACCESS);
    } else if (shm->state == SHM_NOT_TMPFS) {
        check_advice(check, advise_guard(check->guard, check->arena, &check->fixes));
        check_advice(check, advise_shm_mount(check->machine, wanted, check->arena, &check->fixes));
        check_found(check, SEVERITY_WARNING, DOCTOR_SHM_NOT_TMPFS_TITLE, DOCTOR_SHM_NOT_TMPFS);
    }
}

/* With figures, when there is one job and its batches were seen. */
static void advise_less_in_flight(CheckContext *check, const ShmDemand *demand)
{
    if (check->n_jobs != 1 || demand->n_estimated != 1) {
        check_advice(check, advise_smaller_batches(check->arena, &check->fixes));
        return;
    }
    const JobNeed *job = &check->jobs[0];
    uint64_t size = check->machine->shm.size_bytes;
    uint64_t taken = bytes_add(demand->others_bytes, job->other_bytes);
    uint64_t room = size - MIN(taken, size);
    uint64_t fits = room / job->batch_bytes; /* batches */
    double in_flight = (double)batches_in_flight(job->workers) * (double)job->batch_bytes;
    unsigned per_cent = (unsigned)floor(MIN((double)room / in_flight, 1.0) * 100);

    bool smaller = per_cent > 0 && per_cent < 100;
    const char *fix = NULL;
    if (fits > HELD_DEFAULT) {
        /* With prefetch_factor=1 each worker has one batch in flight. */
        unsigned long long workers = MIN(fits - HELD_DEFAULT, (uint64_t)MAX(job->workers, 1U));
        fix = smaller ? SENTENCE(check, DOCTOR_LESS_IN_FLIGHT_SMALLER_FIX, SIZE_TEXT(job->batch_bytes),
                                 workers, per_cent)
                      : SENTENCE(check, DOCTOR_LESS_IN_FLIGHT_FIX, SIZE_TEXT(job->batch_bytes), workers);
    } else
        fix = smaller ? SENTENCE(check, DOCTOR_NO_WORKERS_SMALLER_FIX, SIZE_TEXT(job->batch_bytes), per_cent)
                      : SENTENCE(check, DOCTOR_NO_WORKERS_FIX, SIZE_TEXT(job->batch_bytes));
    check_fix(check, NEEDS_NOTHING, fix, NULL);
}

/* Adds a sentence to `text` for each job on our mount. */
static const char *jobs_measured(CheckContext *check, const char *text)
{
    size_t told = 0;
    size_t left = 0;
    for (size_t i = 0; i < check->n_jobs; i++) {
        const JobNeed *job = &check->jobs[i];
        if (job->guarded || job->elsewhere)
            continue;
        if (told == JOBS_TOLD_MAX) {
            left++;
            continue;
        }
        told++;
        text = check_join(check, text,
                          SENTENCE(check, PLURAL(job->workers, DOCTOR_NEED_HELD_ONE, DOCTOR_NEED_HELD_MANY),
                                   job->trainer, SIZE_TEXT(job->mount_bytes), job->workers));
    }
    if (left == 0)
        return text;
    return check_join(check, text,
                      SENTENCE(check, PLURAL(left, DOCTOR_NEED_LEFT_ONE, DOCTOR_NEED_LEFT_MANY), left));
}

static const char *job_estimated(CheckContext *check, const JobNeed *job, uint64_t need_bytes)
{
    unsigned long long in_flight = batches_in_flight(job->workers);
    uint64_t other = job->other_bytes;
    uint64_t estimate = bytes_add(other, bytes_scale(job->batch_bytes, (double)in_flight));
    if (job->held_bytes > estimate && other > 0)
        return SENTENCE(check, DOCTOR_NEED_HOLDS_OTHER, SIZE_TEXT(job->batch_bytes), in_flight,
                        SIZE_TEXT(other), SIZE_TEXT(estimate), SIZE_TEXT(need_bytes));
    if (job->held_bytes > estimate)
        return SENTENCE(check, DOCTOR_NEED_HOLDS, SIZE_TEXT(job->batch_bytes), in_flight, SIZE_TEXT(estimate),
                        SIZE_TEXT(need_bytes));
    if (other > 0)
        return SENTENCE(check, DOCTOR_NEED_BATCHES_OTHER, SIZE_TEXT(job->batch_bytes), in_flight,
                        SIZE_TEXT(other), SIZE_TEXT(need_bytes));
    return SENTENCE(check, DOCTOR_NEED_BATCHES, SIZE_TEXT(job->batch_bytes), in_flight,
                    SIZE_TEXT(need_bytes));
}

static const char *demand_evidence(CheckContext *check, const ShmDemand *demand)
{
    uint64_t size = check->machine->shm.size_bytes;
    const char *text = size ? SENTENCE(check, DOCTOR_NEED_LARGE, SIZE_TEXT(size)) : DOCTOR_NEED_UNLIMITED;
    if (demand->others_bytes > 0)
        text = check_join(check, text, SENTENCE(check, DOCTOR_NEED_OTHERS, SIZE_TEXT(demand->others_bytes)));
    text = jobs_measured(check, text);
    text = check_join(check, text,
                      check->n_jobs == 1 ? job_estimated(check, &check->jobs[0], demand->need_bytes)
                                         : SENTENCE(check, DOCTOR_NEED_JOBS, SIZE_TEXT(demand->need_bytes)));
    return check_join(check, text,
                      SENTENCE(check, demand->others_bytes ? DOCTOR_NEED_MARGIN_OTHERS : DOCTOR_NEED_MARGIN,
                               SIZE_TEXT(demand->tight_bytes)));
}

/* No job to measure: would a common one fit? */
static void judge_idle_size(CheckContext *check)
{
    const ShmMount *shm = &check->machine->shm;
    uint64_t memory = memory_granted_bytes(check->machine);
    uint64_t small =
        memory == U64_UNKNOWN ? SHM_SMALL_BYTES : MIN(SHM_SMALL_BYTES, bytes_scale(memory, SHM_SHARE_MAX));
    if (shm->size_bytes >= small)
        return;
    check_advice(check, advise_shm_size(check->machine, check->guard, usual_bytes(check->machine),
                                        check->arena, &check->fixes));
    uint64_t batches = batches_in_flight(EXAMPLE_WORKERS);
    bool tiny = shm->size_bytes <= SHM_TINY_BYTES;
    check_found(check, tiny ? SEVERITY_CRITICAL : SEVERITY_WARNING,
                SENTENCE(check, DOCTOR_SHM_IDLE_TITLE, SIZE_TEXT(shm->size_bytes)),
                SENTENCE(check, DOCTOR_SHM_IDLE, SIZE_TEXT(shm->size_bytes), SIZE_TEXT(shm->used_bytes),
                         EXAMPLE_WORKERS, (unsigned long long)batches, SIZE_TEXT(shm->size_bytes / batches)));
}

void check_shm_too_small(CheckContext *check)
{
    const ShmMount *shm = &check->machine->shm;
    if (!has_shm(check))
        return;
    ShmDemand demand;
    shm_demand(check, &demand);
    if (demand.n_elsewhere > 0)
        check_skipped(check, SENTENCE(check,
                                      PLURAL(demand.n_elsewhere, DOCTOR_SHM_ELSEWHERE_SKIPPED_ONE,
                                             DOCTOR_SHM_ELSEWHERE_SKIPPED_MANY),
                                      demand.n_elsewhere));
    if (shm->size_bytes == 0)
        return;

    if (demand.n_estimated == 0) {
        bool unconcerned = check->n_jobs > 0 && demand.n_guarded + demand.n_elsewhere == check->n_jobs;
        bool workerless = check->pid && check->n_jobs > 0 && demand.n_workers == 0;
        if (!unconcerned && !workerless)
            judge_idle_size(check);
        return;
    }
    if (demand.tight_bytes <= shm->size_bytes)
        return;
    bool fits = bytes_add(demand.need_bytes, demand.others_bytes) <= shm->size_bytes;
    check_advice(check, advise_guard(check->guard, check->arena, &check->fixes));
    advise_less_in_flight(check, &demand);
    check_advice(check,
                 advise_shm_mount(check->machine, demand.recommended_bytes, check->arena, &check->fixes));
    check_found(check, fits ? SEVERITY_WARNING : SEVERITY_CRITICAL,
                fits ? PLURAL(check->n_jobs, DOCTOR_SHM_BARELY_TITLE_ONE, DOCTOR_SHM_BARELY_TITLE_MANY)
                     : PLURAL(check->n_jobs, DOCTOR_SHM_TOO_SMALL_TITLE_ONE, DOCTOR_SHM_TOO_SMALL_TITLE_MANY),
                demand_evidence(check, &demand));
}

/* What the mount holds beyond the files that we know of. */
static uint64_t unseen_bytes(const CheckContext *check)
{
    uint64_t unseen = check->survey->unattributed_bytes;
    for (size_t i = 0; i < check->survey->n_segments; i++) {
        const Segment *segment = &check->survey->segments[i];
        if (segment->on_mount && segment->n_holders == 0)
            unseen -= MIN(segment->allocated_bytes, unseen);
    }
    return unseen;
}

/* What the jobs need where the mount is large enough: people ask how large it should be. */
void check_shm_need(CheckContext *check)
{
    ShmDemand demand;
    if (!has_shm(check))
        return;
    shm_demand(check, &demand);
    size_t unreadable = check->survey->n_unreadable;
    if (unreadable > 0 && unseen_bytes(check) >= UNSEEN_BYTES)
        check_skipped(check,
                      SENTENCE(check,
                               PLURAL(unreadable, DOCTOR_SHM_NEED_SKIPPED_ONE, DOCTOR_SHM_NEED_SKIPPED_MANY),
                               unreadable));
    uint64_t size = check->machine->shm.size_bytes;
    if (demand.n_estimated == 0 || (size > 0 && demand.tight_bytes > size))
        return;
    check_found(check, SEVERITY_INFO,
                PLURAL(check->n_jobs, DOCTOR_SHM_NEED_TITLE_ONE, DOCTOR_SHM_NEED_TITLE_MANY),
                demand_evidence(check, &demand));
}

void check_shm_share_of_memory(CheckContext *check)
{
    uint64_t need = 0;
    for (size_t i = 0; i < check->n_jobs; i++)
        need = bytes_add(need, check->jobs[i].need_bytes - check->jobs[i].shared_bytes);
    if (need == 0)
        return;
    const Machine *machine = check->machine;
    uint64_t memory = memory_granted_bytes(machine);
    if (memory == U64_UNKNOWN || memory == 0) {
        check_skipped(check, DOCTOR_SHM_SHARE_SKIPPED);
        return;
    }
    uint64_t wanted = need_with_margin(need, NEED_MARGIN);
    if (share_of(wanted, memory) <= SHM_SHARE_MAX)
        return;
    bool group = machine->cgroup.memory_limit_bytes < machine->memory.total_bytes;
    check_advice(check, advise_smaller_batches(check->arena, &check->fixes));
    check_advice(check, advise_less_memory(machine, check->arena, &check->fixes));
    check_found(
        check, SEVERITY_WARNING,
        group ? PLURAL(check->n_jobs, DOCTOR_SHM_SHARE_GROUP_TITLE_ONE, DOCTOR_SHM_SHARE_GROUP_TITLE_MANY)
              : PLURAL(check->n_jobs, DOCTOR_SHM_SHARE_TITLE_ONE, DOCTOR_SHM_SHARE_TITLE_MANY),
        SENTENCE(check, group ? DOCTOR_SHM_SHARE_GROUP : DOCTOR_SHM_SHARE, SIZE_TEXT(memory), SIZE_TEXT(need),
                 SIZE_TEXT(wanted), share_of(wanted, memory) * 100));
}

/* What has names that one inference server gives. */
typedef struct OriginBytes {
    const char *origin; /* NULL: none */
    uint64_t bytes;
} OriginBytes;

typedef struct Leftovers {
    size_t n;
    uint64_t bytes;
    OriginBytes largest; /* of these */
    size_t n_foreign;    /* of these, files of another user */
    size_t n_other;      /* of unknown origin, which clean does not touch; not in n */
    uint64_t other_bytes;
    size_t n_unknown;
    uint64_t unknown_bytes;
} Leftovers;

static void origins_add(OriginBytes origins[static ORIGINS_MAX], const char *origin, uint64_t bytes,
                        OriginBytes *largest)
{
    size_t i = 0;
    while (i < ORIGINS_MAX && origins[i].origin && strcmp(origins[i].origin, origin) != 0)
        i++;
    if (i == ORIGINS_MAX)
        return;
    origins[i] = (OriginBytes){origin, bytes_add(origins[i].bytes, bytes)};
    if (!largest->origin || origins[i].bytes > largest->bytes)
        *largest = origins[i];
}

static void leftovers_count(const CheckContext *check, Leftovers *ret)
{
    Leftovers left = {0};
    OriginBytes origins[ORIGINS_MAX] = {0};
    for (size_t i = 0; i < check->survey->n_segments; i++) {
        const Segment *segment = &check->survey->segments[i];
        if (segment->backing != BACKING_SHM || !segment->on_mount)
            continue;
        uint64_t bytes = segment->allocated_bytes == U64_UNKNOWN ? 0 : segment->allocated_bytes;
        switch (orphan_judge(check->survey, segment, check->arena, NULL)) {
        case ORPHAN_NO:
            break;
        case ORPHAN_UNKNOWN:
            left.n_unknown++;
            left.unknown_bytes = bytes_add(left.unknown_bytes, bytes);
            break;
        case ORPHAN_YES:
            if (segment->kind == KIND_OTHER) {
                left.n_other++;
                left.other_bytes = bytes_add(left.other_bytes, bytes);
                break;
            }
            left.n++;
            left.bytes = bytes_add(left.bytes, bytes);
            if (segment->origin)
                origins_add(origins, segment->origin, bytes, &left.largest);
            left.n_foreign += segment->uid != check->machine->uid;
        }
    }
    *ret = left;
}

/* In a pid namespace: another container may share this /dev/shm. */
static bool is_inside(const CheckContext *check)
{
    return !check->machine->sandbox.initial_pidns;
}

static void advise_clean(CheckContext *check, const Leftovers *left)
{
    if (left->n_unknown > 0 && is_inside(check))
        check_fix(check, NEEDS_NOTHING, DOCTOR_CLEAN_PRIVATE_FIX, "shmguard clean --private --dry-run");
    if (left->n == 0)
        return;
    check_fix(check, NEEDS_NOTHING, DOCTOR_DRY_RUN_FIX, "shmguard clean --dry-run");
    if (left->n > left->n_foreign || check->machine->sandbox.root)
        check_fix(check, check->machine->sandbox.root && left->n_foreign ? NEEDS_ROOT : NEEDS_NOTHING,
                  DOCTOR_CLEAN_FIX, "shmguard clean");
    if (left->n_foreign > 0 && !check->machine->sandbox.root)
        check_fix(check, root_within_reach(check->machine) ? NEEDS_ROOT : NEEDS_ADMIN, DOCTOR_CLEAN_ALL_FIX,
                  "sudo shmguard clean");
}

void check_shm_orphans(CheckContext *check)
{
    Leftovers left;
    leftovers_count(check, &left);
    if (left.n_unknown > 0)
        check_skipped(check,
                      SENTENCE(check,
                               is_inside(check) ? PLURAL(left.n_unknown, DOCTOR_SHM_ORPHANS_INSIDE_ONE,
                                                         DOCTOR_SHM_ORPHANS_INSIDE_MANY)
                                                : PLURAL(left.n_unknown, DOCTOR_SHM_ORPHANS_SKIPPED_ONE,
                                                         DOCTOR_SHM_ORPHANS_SKIPPED_MANY),
                               left.n_unknown, SIZE_TEXT(left.unknown_bytes)));
    if (left.n == 0)
        return;
    bool much =
        left.bytes >= ORPHANS_BYTES || share_of(left.bytes, check->machine->shm.size_bytes) >= ORPHANS_SHARE;
    uint64_t size = check->machine->shm.size_bytes;
    const char *evidence =
        check_join(check,
                   SENTENCE(check, PLURAL(left.n, DOCTOR_SHM_ORPHANS_ONE, DOCTOR_SHM_ORPHANS_MANY), left.n,
                            ORPHAN_AGE_SECONDS),
                   size ? SENTENCE(check, DOCTOR_SHM_LARGE, SIZE_TEXT(size)) : DOCTOR_SHM_UNLIMITED);
    if (left.largest.origin)
        evidence = check_join(
            check, evidence,
            SENTENCE(check, DOCTOR_SHM_ORPHANS_ORIGIN, SIZE_TEXT(left.largest.bytes), left.largest.origin));
    if (left.n_other > 0)
        evidence = check_join(
            check, evidence,
            SENTENCE(check, PLURAL(left.n_other, DOCTOR_SHM_ORPHANS_OTHER_ONE, DOCTOR_SHM_ORPHANS_OTHER_MANY),
                     left.n_other, SIZE_TEXT(left.other_bytes)));
    advise_clean(check, &left);
    check_found(check, much ? SEVERITY_WARNING : SEVERITY_INFO,
                SENTENCE(check, DOCTOR_SHM_ORPHANS_TITLE, SIZE_TEXT(left.bytes)), evidence);
}

void check_shm_nearly_full(CheckContext *check)
{
    const ShmMount *shm = &check->machine->shm;
    Severity severity;
    if (!has_shm(check) || shm->used_bytes == U64_UNKNOWN || shm->size_bytes == U64_UNKNOWN ||
        !used_severity(share_of(shm->used_bytes, shm->size_bytes), FULL_WARNING, FULL_CRITICAL, &severity))
        return;
    Leftovers left;
    leftovers_count(check, &left);
    ShmDemand demand;
    shm_demand(check, &demand);
    advise_clean(check, &left);
    check_fix(check, NEEDS_NOTHING, DOCTOR_HOLDERS_FIX, "shmguard ps --segments");
    uint64_t wanted = demand.recommended_bytes ? demand.recommended_bytes : usual_bytes(check->machine);
    wanted = MAX(wanted, shm_round_up(bytes_scale(shm->used_bytes, 2)));
    check_advice(check, advise_shm_size(check->machine, check->guard, wanted, check->arena, &check->fixes));
    check_found(check, severity,
                SENTENCE(check, DOCTOR_SHM_NEARLY_FULL_TITLE,
                         floor(share_of(shm->used_bytes, shm->size_bytes) * 100)),
                SENTENCE(check, DOCTOR_SHM_NEARLY_FULL, SIZE_TEXT(shm->used_bytes),
                         SIZE_TEXT(shm->size_bytes), SIZE_TEXT(check->survey->attributed_bytes),
                         SIZE_TEXT(check->survey->unattributed_bytes)));
}

void check_shm_inodes_low(CheckContext *check)
{
    const ShmMount *shm = &check->machine->shm;
    Severity severity;
    if (!has_shm(check) || shm->inodes == 0)
        return;
    if (shm->inodes == U64_UNKNOWN || shm->inodes_free == U64_UNKNOWN) {
        check_skipped(check, DOCTOR_SHM_INODES_LOW_SKIPPED);
        return;
    }
    uint64_t used = shm->inodes - MIN(shm->inodes_free, shm->inodes);
    if (!used_severity(share_of(used, shm->inodes), FULL_WARNING, FULL_CRITICAL, &severity))
        return;
    Leftovers left;
    leftovers_count(check, &left);
    advise_clean(check, &left);
    check_advice(check, advise_shm_inodes(check->machine, check->arena, &check->fixes));
    check_found(
        check, severity, DOCTOR_SHM_INODES_LOW_TITLE,
        SENTENCE(check, DOCTOR_SHM_INODES_LOW, (unsigned long long)used, (unsigned long long)shm->inodes));
}

void check_shm_of_pod(CheckContext *check)
{
    const ShmMount *shm = &check->machine->shm;
    if (!has_shm(check) || shm->owner != SHM_OF_POD)
        return;
    const char *evidence = check_join(
        check, SENTENCE(check, DOCTOR_SHM_OF_POD, SIZE_TEXT(shm->used_bytes), SIZE_TEXT(shm->size_bytes)),
        shm->sized ? DOCTOR_SHM_OF_POD_SIZED : DOCTOR_SHM_OF_POD_UNSIZED);
    check_fix(check, NEEDS_RESTART, DOCTOR_SHM_OF_POD_FIX, NULL);
    check_fix(check, NEEDS_RESTART, DOCTOR_SHM_OF_POD_CLEAN_FIX, "shmguard clean --private");
    check_found(check, SEVERITY_INFO, DOCTOR_SHM_OF_POD_TITLE,
                check_join(check, evidence, DOCTOR_SHM_OF_POD_COUNTS));
}

void check_shm_of_job(CheckContext *check)
{
    const ShmMount *shm = &check->machine->shm;
    if (has_shm(check) && shm->owner == SHM_OF_JOB)
        check_found(check, SEVERITY_INFO, DOCTOR_SHM_OF_JOB_TITLE,
                    SENTENCE(check, DOCTOR_SHM_OF_JOB, SIZE_TEXT(shm->size_bytes)));
}

void check_shm_huge_pages(CheckContext *check)
{
    const ShmMount *shm = &check->machine->shm;
    if (!has_shm(check) || !shm->huge || shm->size_bytes == 0)
        return;
    check_found(check, SEVERITY_INFO, DOCTOR_SHM_HUGE_PAGES_TITLE,
                SENTENCE(check, DOCTOR_SHM_HUGE_PAGES, SIZE_TEXT(shm->size_bytes)));
}

/* logind unlinks files, so it only harms segments that still have a name: those of the file_system strategy,
 * of NCCL and of Python. With file_descriptor, a batch loses its name before the user could log out. */
static size_t count_named_segments(const CheckContext *check)
{
    size_t n = 0;
    for (size_t i = 0; i < check->survey->n_segments; i++) {
        const Segment *segment = &check->survey->segments[i];
        if (segment->deleted || !segment->on_mount || segment->backing != BACKING_SHM ||
            segment->uid < FIRST_PERSON_UID)
            continue;
        for (size_t j = 0; j < segment->n_holders; j++) {
            const Process *holder = survey_process(check->survey, segment->holders[j]);
            if (holder && check_covers(check, holder)) {
                n++;
                break;
            }
        }
    }
    return n;
}

static bool is_for_people(const CheckContext *check)
{
    bool people = check->n_jobs == 0 && check->machine->uid >= FIRST_PERSON_UID;
    for (const Process *process = check_next(check, NULL); process; process = check_next(check, process))
        people = people || (process->role == ROLE_TRAINER && process->uid >= FIRST_PERSON_UID);
    return people;
}

void check_remove_ipc(CheckContext *check)
{
    const Sandbox *sandbox = &check->machine->sandbox;
    if ((sandbox->kind != ENVIRONMENT_BARE && sandbox->kind != ENVIRONMENT_LXC) || !is_for_people(check) ||
        sandbox->remove_ipc == NO ||
        check->machine->shm.owner == SHM_OF_JOB) /* logind does not see that one */
        return;
    if (sandbox->remove_ipc == DONT_KNOW) {
        check_skipped(check, DOCTOR_REMOVE_IPC_SKIPPED);
        return;
    }
    size_t named = count_named_segments(check);
    check_advice(check, advise_remove_ipc(check->machine, check->arena, &check->fixes));
    check_found(
        check, named ? SEVERITY_WARNING : SEVERITY_INFO, DOCTOR_REMOVE_IPC_TITLE,
        check_join(check, DOCTOR_REMOVE_IPC,
                   named
                       ? SENTENCE(check, PLURAL(named, DOCTOR_REMOVE_IPC_ONE, DOCTOR_REMOVE_IPC_MANY), named)
                       : DOCTOR_REMOVE_IPC_NONE));
}

void check_guard_unavailable(CheckContext *check)
{
    if (check->guard->ready)
        return;
    check_found(check, SEVERITY_INFO, DOCTOR_GUARD_UNAVAILABLE_TITLE,
                check->guard->why_not ? SENTENCE(check, DOCTOR_GUARD_UNAVAILABLE, check->guard->why_not)
                                      : DOCTOR_GUARD_UNAVAILABLE_WHY);
}
