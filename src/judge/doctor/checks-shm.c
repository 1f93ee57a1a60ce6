/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "check.h"
#include "orphans.h"
#include "units.h"

/* What docker and Kubernetes give unasked: nearly every DataLoader with workers is above it. */
#define SHM_TINY_BYTES (64 * MIB)

/* Below this, a common job (4 workers, 9 batches in flight) is limited to batches of 114 MiB; most fit. */
#define SHM_SMALL_BYTES (1 * GIB)

/* To be recommended where no job tells what it needs. It is a limit, not a reservation: it costs nothing. */
#define SHM_USUAL_BYTES (8 * GIB)

/* More of the memory than this in batches leaves too little for the processes that make and use them. */
#define SHM_SHARE_MAX 0.25

/* A batch is often a tenth of the mount or more, so the last fifth may go at any moment; in the last
 * twentieth the next batch is likely not to fit. */
#define FULL_WARNING  0.80
#define FULL_CRITICAL 0.95

/* Leftovers that matter: as much as a batch takes, or enough memory that somebody misses it. */
#define ORPHANS_SHARE 0.10
#define ORPHANS_BYTES (1 * GIB)

/* Where as much as this is held by processes that we may not read, there may be jobs among them. Every
 * desktop keeps a little. */
#define UNSEEN_BYTES (1 * MIB)

/* For the example in the evidence: the number of workers that most scripts start with. */
enum { EXAMPLE_WORKERS = 4 };

/* systemd removes the segments of people, not those of system users. */
enum { FIRST_PERSON_UID = 1000 };

enum { JOBS_TOLD_MAX = 3 };

/* What the jobs to be judged ask of our /dev/shm. */
typedef struct ShmDemand {
    uint64_t need_bytes;        /* estimated: of the jobs, together */
    uint64_t others_bytes;      /* measured: what anybody else keeps there */
    uint64_t recommended_bytes; /* estimated: how large to make it; 0 without a need */
    uint64_t tight_bytes;       /* what must find room: both, the first with the margin */
    size_t n_estimated;         /* jobs whose batches we saw, on our mount */
    size_t n_workers;           /* jobs on our mount that have workers, seen batches or not */
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

/* A mount that can be judged. */
static bool has_shm(const CheckContext *check)
{
    return check->machine->shm.state == SHM_OK;
}

/* What to mount where no job tells. */
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
        check_skipped(check, "/dev/shm could not be read, so nothing is known of its size and use");
    else if (shm->state == SHM_ABSENT) {
        /* No guard here: Python's semaphores live in /dev/shm as well, and nothing starts without them. */
        check_advice(check, advise_shm_mount(check->machine, wanted, check->arena, &check->fixes));
        check_found(check, SEVERITY_CRITICAL, "There is no /dev/shm",
                    "Measured: the directory does not exist. Without it no DataLoader worker starts.");
    } else if (shm->read_only || shm->no_access) {
        check_advice(check, advise_shm_writable(check->machine, check->arena, &check->fixes));
        check_found(check, SEVERITY_CRITICAL, "/dev/shm cannot be written to",
                    shm->read_only ? "Measured: it is mounted read-only."
                                   : "Measured: this user may not create files in it.");
    } else if (shm->state == SHM_NOT_TMPFS) {
        check_advice(check, advise_guard(check->guard, check->arena, &check->fixes));
        check_advice(check, advise_shm_mount(check->machine, wanted, check->arena, &check->fixes));
        check_found(check, SEVERITY_WARNING, "/dev/shm is not a tmpfs",
                    "Measured: it is a directory of another file system, so every batch is written to a disk "
                    "or to the container's own layer.");
    }
}

/* With figures where the one job that there is tells its batches. */
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

    const char *smaller =
        per_cent == 0 || per_cent == 100
            ? ""
            : arena_printf(check->arena, ", or a batch_size of at most %u %% of today's", per_cent);
    if (!smaller)
        check_advice(check, -ENOMEM);
    else if (fits > HELD_DEFAULT)
        /* With prefetch_factor=1 each worker has one batch in flight. */
        check_fix(check, NEEDS_NOTHING,
                  arena_printf(check->arena,
                               "Keep less in flight: batches of %s (estimated) fit with num_workers=%llu and "
                               "prefetch_factor=1%s.",
                               SIZE_TEXT(job->batch_bytes),
                               (unsigned long long)MIN(fits - HELD_DEFAULT, (uint64_t)MAX(job->workers, 1U)),
                               smaller),
                  NULL);
    else
        check_fix(
            check, NEEDS_NOTHING,
            arena_printf(check->arena,
                         "Keep less in flight: batches of %s (estimated) do not fit with any worker; use "
                         "num_workers=0%s.",
                         SIZE_TEXT(job->batch_bytes), smaller),
            NULL);
}

/* "job 12 has 4 workers and holds 20.0 MiB; …" for the jobs whose batches were seen. */
static const char *jobs_measured(CheckContext *check)
{
    const char *text = "";
    size_t told = 0;
    size_t left = 0;
    for (size_t i = 0; i < check->n_jobs && text; i++) {
        const JobNeed *job = &check->jobs[i];
        if (job->guarded || job->elsewhere)
            continue;
        if (told == JOBS_TOLD_MAX) {
            left++;
            continue;
        }
        told++;
        text =
            arena_printf(check->arena, "%s; the job of pid %d holds %s with %u worker%s", text, job->trainer,
                         SIZE_TEXT(job->mount_bytes), job->workers, job->workers == 1 ? "" : "s");
    }
    return text && left ? arena_printf(check->arena, "%s; %zu more jobs", text, left) : text;
}

static const char *job_estimated(CheckContext *check, const JobNeed *job, uint64_t need_bytes)
{
    uint64_t in_flight = batches_in_flight(job->workers);
    uint64_t estimate = bytes_add(job->other_bytes, bytes_scale(job->batch_bytes, (double)in_flight));
    const char *other = job->other_bytes ? arena_printf(check->arena, " besides %s that are no batches",
                                                        SIZE_TEXT(job->other_bytes))
                                         : "";
    if (!other)
        return NULL;
    const char *batches = arena_printf(check->arena, "a batch is %s and up to %llu are alive at once%s",
                                       SIZE_TEXT(job->batch_bytes), (unsigned long long)in_flight, other);
    if (!batches)
        return NULL;
    if (job->held_bytes > estimate)
        return arena_printf(check->arena,
                            "%s, which makes %s; the job already holds more (%s, measured) and needs that",
                            batches, SIZE_TEXT(estimate), SIZE_TEXT(need_bytes));
    return arena_printf(check->arena, "%s, so the job needs %s", batches, SIZE_TEXT(need_bytes));
}

static const char *jobs_estimated(CheckContext *check, const ShmDemand *demand)
{
    if (check->n_jobs == 1)
        return job_estimated(check, &check->jobs[0], demand->need_bytes);
    return arena_printf(check->arena, "the jobs need %s together", SIZE_TEXT(demand->need_bytes));
}

static const char *size_clause(CheckContext *check, const ShmDemand *demand)
{
    uint64_t size = check->machine->shm.size_bytes;
    const char *text =
        size ? arena_printf(check->arena, "/dev/shm is %s large", SIZE_TEXT(size)) : "/dev/shm has no limit";
    if (!text || demand->others_bytes == 0)
        return text;
    return arena_printf(check->arena, "%s; %s of it are used, but not by the jobs looked at", text,
                        SIZE_TEXT(demand->others_bytes));
}

static const char *demand_evidence(CheckContext *check, const ShmDemand *demand)
{
    const char *size = size_clause(check, demand);
    const char *measured = jobs_measured(check);
    const char *estimated = jobs_estimated(check, demand);
    if (!size || !measured || !estimated)
        return NULL;
    return arena_printf(check->arena, "Measured: %s%s. Estimated: %s; with a margin%s, %s.", size, measured,
                        estimated, demand->others_bytes ? " and what others use" : "",
                        SIZE_TEXT(demand->tight_bytes));
}

/* Nobody to measure: what would a usual job find? */
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
    check_found(
        check, tiny ? SEVERITY_CRITICAL : SEVERITY_WARNING,
        arena_printf(check->arena, "/dev/shm is only %s large", SIZE_TEXT(shm->size_bytes)),
        arena_printf(check->arena,
                     "Measured: its size is %s, %s of it used. Estimated: a DataLoader with %d workers has "
                     "up to %llu batches alive, so batches of more than %s do not fit and end in a bus "
                     "error.",
                     SIZE_TEXT(shm->size_bytes), SIZE_TEXT(shm->used_bytes), EXAMPLE_WORKERS,
                     (unsigned long long)batches, SIZE_TEXT(shm->size_bytes / batches)));
}

void check_shm_too_small(CheckContext *check)
{
    const ShmMount *shm = &check->machine->shm;
    if (!has_shm(check))
        return;
    ShmDemand demand;
    shm_demand(check, &demand);
    if (demand.n_elsewhere > 0)
        check_skipped(check,
                      arena_printf(check->arena,
                                   "%zu of the jobs keep their batches in a /dev/shm of their own, whose "
                                   "size cannot be seen from here",
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
                arena_printf(check->arena, "/dev/shm is %s for %s",
                             fits ? "barely large enough" : "too small",
                             check->n_jobs == 1 ? "the job that runs" : "the jobs that run"),
                demand_evidence(check, &demand));
}

/* What the mount holds and no file that we know of explains. */
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

/* How large it should be, where it is large enough: people ask. */
void check_shm_need(CheckContext *check)
{
    ShmDemand demand;
    if (!has_shm(check))
        return;
    shm_demand(check, &demand);
    if (check->survey->n_unreadable > 0 && unseen_bytes(check) >= UNSEEN_BYTES)
        check_skipped(
            check,
            arena_printf(check->arena, "%zu process%s may not be read; what jobs among them need is unknown",
                         check->survey->n_unreadable, check->survey->n_unreadable == 1 ? "" : "es"));
    uint64_t size = check->machine->shm.size_bytes;
    if (demand.n_estimated == 0 || (size > 0 && demand.tight_bytes > size))
        return;
    check_found(check, SEVERITY_INFO,
                arena_printf(check->arena, "/dev/shm is large enough for %s",
                             check->n_jobs == 1 ? "the job that runs" : "the jobs that run"),
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
        check_skipped(check, "neither the machine's memory nor a limit of the control group is known");
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
        arena_printf(check->arena, "Shared memory for %s would take more than a quarter of %s",
                     check->n_jobs == 1 ? "the job" : "the jobs",
                     group ? "the control group's memory" : "the machine's memory"),
        arena_printf(check->arena,
                     "Measured: %s may use %s. Estimated: the batches in flight need %s of it, with a "
                     "margin %s (%.0f %%); /dev/shm is memory too, and counts in full.",
                     group ? "the control group" : "the machine", SIZE_TEXT(memory), SIZE_TEXT(need),
                     SIZE_TEXT(wanted), share_of(wanted, memory) * 100));
}

typedef struct Leftovers {
    size_t n;
    uint64_t bytes;
    size_t n_foreign; /* of these, files of another user */
    size_t n_other;   /* of unknown origin, which clean does not touch; not in n */
    uint64_t other_bytes;
    size_t n_unknown;
    uint64_t unknown_bytes;
} Leftovers;

static void leftovers_count(const CheckContext *check, Leftovers *ret)
{
    Leftovers left = {0};
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
            left.n_foreign += segment->uid != check->machine->uid;
        }
    }
    *ret = left;
}

static void advise_clean(CheckContext *check, const Leftovers *left)
{
    check_fix(check, NEEDS_NOTHING, "See what would be removed.", "shmguard clean --dry-run");
    if (left->n > left->n_foreign || check->machine->sandbox.root)
        check_fix(check, check->machine->sandbox.root && left->n_foreign ? NEEDS_ROOT : NEEDS_NOTHING,
                  "Remove what belongs to nobody.", "shmguard clean");
    if (left->n_foreign > 0 && !check->machine->sandbox.root)
        check_fix(check, root_within_reach(check->machine) ? NEEDS_ROOT : NEEDS_ADMIN,
                  "Remove the leftovers of other users as well.", "sudo shmguard clean");
}

void check_shm_orphans(CheckContext *check)
{
    Leftovers left;
    leftovers_count(check, &left);
    if (left.n_unknown > 0)
        check_skipped(check,
                      arena_printf(check->arena,
                                   "whether anybody needs %zu more segment%s (%s) cannot be told from here; "
                                   "shmguard ps --segments lists them",
                                   left.n_unknown, left.n_unknown == 1 ? "" : "s",
                                   SIZE_TEXT(left.unknown_bytes)));
    if (left.n == 0)
        return;
    bool much =
        left.bytes >= ORPHANS_BYTES || share_of(left.bytes, check->machine->shm.size_bytes) >= ORPHANS_SHARE;
    const char *others = left.n_other == 0
                             ? ""
                             : arena_printf(check->arena, " %zu more (%s) of unknown origin are not touched.",
                                            left.n_other, SIZE_TEXT(left.other_bytes));
    advise_clean(check, &left);
    check_found(check, much ? SEVERITY_WARNING : SEVERITY_INFO,
                arena_printf(check->arena, "%s of shared memory belong to nobody", SIZE_TEXT(left.bytes)),
                others
                    ? arena_printf(check->arena,
                                   "Measured: %zu segment%s that no process has open and that did not change "
                                   "for %d s, in a /dev/shm of %s.%s",
                                   left.n, left.n == 1 ? "" : "s", ORPHAN_AGE_SECONDS,
                                   check->machine->shm.size_bytes ? SIZE_TEXT(check->machine->shm.size_bytes)
                                                                  : "no limit",
                                   others)
                    : NULL);
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
    if (left.n > 0)
        advise_clean(check, &left);
    check_fix(check, NEEDS_NOTHING, "See who holds it.", "shmguard ps --segments");
    uint64_t wanted = demand.recommended_bytes ? demand.recommended_bytes : usual_bytes(check->machine);
    wanted = MAX(wanted, shm_round_up(bytes_scale(shm->used_bytes, 2)));
    check_advice(check, advise_shm_size(check->machine, check->guard, wanted, check->arena, &check->fixes));
    check_found(
        check, severity,
        arena_printf(check->arena, "/dev/shm is %.0f %% full",
                     floor(share_of(shm->used_bytes, shm->size_bytes) * 100)),
        arena_printf(check->arena,
                     "Measured: %s of %s are used: %s by processes that can be seen, %s by nobody or by "
                     "processes that cannot.",
                     SIZE_TEXT(shm->used_bytes), SIZE_TEXT(shm->size_bytes),
                     SIZE_TEXT(check->survey->attributed_bytes),
                     SIZE_TEXT(check->survey->unattributed_bytes)));
}

void check_shm_inodes_low(CheckContext *check)
{
    const ShmMount *shm = &check->machine->shm;
    Severity severity;
    if (!has_shm(check) || shm->inodes == 0)
        return;
    if (shm->inodes == U64_UNKNOWN || shm->inodes_free == U64_UNKNOWN) {
        check_skipped(check, "the number of files in /dev/shm is not known");
        return;
    }
    uint64_t used = shm->inodes - MIN(shm->inodes_free, shm->inodes);
    if (!used_severity(share_of(used, shm->inodes), FULL_WARNING, FULL_CRITICAL, &severity))
        return;
    Leftovers left;
    leftovers_count(check, &left);
    if (left.n > 0)
        advise_clean(check, &left);
    check_advice(check, advise_shm_inodes(check->machine, check->arena, &check->fixes));
    check_found(
        check, severity, "/dev/shm has nearly no room for more files",
        arena_printf(check->arena,
                     "Measured: %llu of %llu inodes are used. Each shared tensor takes one, however small "
                     "it is.",
                     (unsigned long long)used, (unsigned long long)shm->inodes));
}

void check_shm_huge_pages(CheckContext *check)
{
    const ShmMount *shm = &check->machine->shm;
    if (!has_shm(check) || !shm->huge || shm->size_bytes == 0)
        return;
    check_found(
        check, SEVERITY_INFO, "/dev/shm uses huge pages: small tensors take more room than they need",
        arena_printf(check->arena,
                     "Measured: the mount has the option huge=always, which rounds the room of each tensor "
                     "up to 2 MiB, and is %s large.",
                     SIZE_TEXT(shm->size_bytes)));
}

/* logind unlinks files, so it can only harm segments that still have a name: those of the file_system
 * strategy, of NCCL and of Python. Under file_descriptor a batch has lost its name before anybody could log
 * out. */
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
        sandbox->remove_ipc == NO)
        return;
    if (sandbox->remove_ipc == DONT_KNOW) {
        check_skipped(check, "logind's settings could not be read");
        return;
    }
    size_t named = count_named_segments(check);
    const char *at_stake = named ? arena_printf(check->arena, "%zu segment%s of the jobs looked at would go",
                                                named, named == 1 ? "" : "s")
                                 : "no job looked at has such files now";
    check_advice(check, advise_remove_ipc(check->machine, check->arena, &check->fixes));
    check_found(check, named ? SEVERITY_WARNING : SEVERITY_INFO,
                "Logging out deletes the shared memory of trainings that go on",
                at_stake
                    ? arena_printf(check->arena,
                                   "Measured: logind has RemoveIPC=yes, which deletes all files of a user in "
                                   "/dev/shm when their last session ends; %s.",
                                   at_stake)
                    : NULL);
}

void check_guard_unavailable(CheckContext *check)
{
    if (check->guard->ready)
        return;
    check_found(check, SEVERITY_INFO, "shmguard run cannot guard a training here",
                check->guard->why_not ? arena_printf(check->arena, "Measured: %s.", check->guard->why_not)
                                      : "Why not is unknown.");
}
