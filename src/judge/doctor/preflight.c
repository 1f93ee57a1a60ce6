/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "doctor-text.h"
#include "preflight.h"
#include "units.h"

#define MIB (UINT64_C(1) << 20)

/* What NCCL takes for one connection, plus the semaphores of Python's queues, a page each: with less left in
 * /dev/shm, a job may fail even if tensors are kept out of it. */
#define SHM_SPARE_BYTES  (16 * MIB)
#define SHM_SPARE_INODES 64U

/* `run` raises the limit of open files to the hard limit, so only a low hard limit is a threat. */
#define OPEN_FILES_HARD_LOW 1024U

/* A private /dev/shm of this size is no threat of its own, however short memory is. */
#define PRIVATE_LEAST_BYTES (64 * MIB)

typedef struct Flight {
    const Machine *machine; /* with the /dev/shm that the job will have */
    const GuardOffer *guard;
    const PreflightPlan *plan;
    Arena *arena;
    Preflight *preflight;
    int error;
} Flight;

/* --- What counts -------------------------------------------------------------------------------------- */

/* What the threat is, in words. NULL: it is no threat to this job. "": no memory; no_memory() turns the NULL
 * of arena_printf into it. */
typedef const char *(*Describe)(Flight *flight, Severity *severity);

typedef struct Concern {
    const char *id; /* of the finding */
    Describe describe;
    bool by_shm; /* another /dev/shm, or the guard, is a remedy */
} Concern;

static const char *no_memory(const char *text)
{
    return text ? text : "";
}

/* Python's locks and queues need files there, with or without the guard: no worker starts without them. */
static bool shm_is_unusable(const ShmMount *shm)
{
    return shm->state == SHM_ABSENT || shm->read_only || shm->no_access;
}

static const char *shm_missing(Flight *flight, Severity *severity)
{
    const ShmMount *shm = &flight->machine->shm;
    (void)severity;
    if (shm_is_unusable(shm))
        return shm->state == SHM_ABSENT ? PREFLIGHT_SHM_MISSING : PREFLIGHT_SHM_NOT_WRITABLE;
    return flight->plan->guarded ? NULL : PREFLIGHT_SHM_NOT_TMPFS;
}

static const char *shm_too_small(Flight *flight, Severity *severity)
{
    (void)severity;
    if (flight->plan->guarded)
        return NULL;
    return no_memory(
        arena_printf(flight->arena, PREFLIGHT_SHM_TOO_SMALL, SIZE_TEXT(flight->machine->shm.size_bytes)));
}

static const char *shm_nearly_full(Flight *flight, Severity *severity)
{
    const ShmMount *shm = &flight->machine->shm;
    if (flight->plan->guarded && shm->available_bytes >= SHM_SPARE_BYTES)
        return NULL;
    if (flight->plan->guarded)
        *severity = SEVERITY_WARNING;
    return no_memory(arena_printf(
        flight->arena, flight->plan->guarded ? PREFLIGHT_SHM_NEARLY_FULL_GUARDED : PREFLIGHT_SHM_NEARLY_FULL,
        SIZE_TEXT(shm->available_bytes)));
}

static const char *shm_inodes_low(Flight *flight, Severity *severity)
{
    const ShmMount *shm = &flight->machine->shm;
    if (flight->plan->guarded && shm->inodes_free >= SHM_SPARE_INODES)
        return NULL;
    if (flight->plan->guarded)
        *severity = SEVERITY_WARNING;
    return no_memory(arena_printf(
        flight->arena, PLURAL(shm->inodes_free, PREFLIGHT_SHM_INODES_ONE, PREFLIGHT_SHM_INODES_MANY),
        (unsigned long long)shm->inodes_free));
}

static const char *memory_low(Flight *flight, Severity *severity)
{
    const MemInfo *memory = &flight->machine->memory;
    (void)severity;
    return no_memory(arena_printf(flight->arena, PREFLIGHT_MEMORY_LOW, SIZE_TEXT(memory->available_bytes),
                                  SIZE_TEXT(memory->total_bytes)));
}

static const char *cgroup_near_limit(Flight *flight, Severity *severity)
{
    const Cgroup *cgroup = &flight->machine->cgroup;
    uint64_t used = cgroup->memory_used_bytes;
    if (cgroup->memory_reclaimable_bytes != U64_UNKNOWN)
        used -= MIN(cgroup->memory_reclaimable_bytes, used);
    (void)severity;
    return no_memory(arena_printf(flight->arena, PREFLIGHT_CGROUP, SIZE_TEXT(used),
                                  SIZE_TEXT(cgroup->memory_limit_bytes)));
}

static const char *memory_pressure(Flight *flight, Severity *severity)
{
    (void)severity;
    return no_memory(arena_printf(flight->arena, PREFLIGHT_PRESSURE, flight->machine->pressure.some_avg60));
}

static const char *swap_low(Flight *flight, Severity *severity)
{
    if (*severity == SEVERITY_INFO)
        return NULL;
    return no_memory(
        arena_printf(flight->arena, PREFLIGHT_SWAP_LOW, SIZE_TEXT(flight->machine->memory.swap_free_bytes)));
}

static const char *open_files_low(Flight *flight, Severity *severity)
{
    uint64_t hard = flight->machine->limits.open_files_hard;
    if (hard >= OPEN_FILES_HARD_LOW)
        return NULL;
    *severity = SEVERITY_WARNING;
    return no_memory(arena_printf(flight->arena,
                                  PLURAL(hard, PREFLIGHT_OPEN_FILES_ONE, PREFLIGHT_OPEN_FILES_MANY),
                                  (unsigned long long)hard));
}

static const char *disk_low(Flight *flight, Severity *severity)
{
    const FsStat *disk = &flight->machine->disk;
    (void)severity;
    return no_memory(disk->inodes == 0
                         ? arena_printf(flight->arena, PREFLIGHT_DISK_LOW, SIZE_TEXT(disk->available_bytes))
                         : arena_printf(flight->arena, PREFLIGHT_DISK_LOW_INODES,
                                        SIZE_TEXT(disk->available_bytes),
                                        (unsigned long long)disk->inodes_free));
}

/*
 * The findings that may concern a job before it runs, the most deadly first. oom-recent is not among them: it
 * stays for a day, or for the life of a container, and others say whether memory is short now.
 */
static const Concern concerns[] = {
    {"shm-missing", shm_missing, true},          {"shm-too-small", shm_too_small, true},
    {"shm-nearly-full", shm_nearly_full, true},  {"shm-inodes-low", shm_inodes_low, true},
    {"memory-low", memory_low, false},           {"cgroup-near-limit", cgroup_near_limit, false},
    {"open-files-low", open_files_low, false},   {"disk-low", disk_low, false},
    {"memory-pressure", memory_pressure, false}, {"swap-low", swap_low, false},
};

/* --- What to do --------------------------------------------------------------------------------------- */

/* What options of `run` can do about /dev/shm. NULL: nothing more. */
static const char *remedy_by_option(const Flight *flight)
{
    const Sandbox *sandbox = &flight->machine->sandbox;
    const ShmMount *shm = &flight->machine->shm;
    if (!flight->plan->guarded && flight->guard->ready && !shm_is_unusable(shm))
        return PREFLIGHT_REMOVE_NO_GUARD;
    if (!flight->plan->shm_tried && shm->state != SHM_ABSENT &&
        (sandbox->sys_admin || sandbox->user_namespaces == YES))
        return PREFLIGHT_USE_SHM_AUTO;
    return NULL;
}

/* The first fix that fits on the line, with its command if it has one. */
static const char *remedy_by_fix(Flight *flight, const Fixes *fixes, size_t room)
{
    for (size_t i = 0; i < fixes->n; i++) {
        const Fix *fix = &fixes->items[i];
        Text what = text_of(fix->what);
        if (text_ends(what, "."))
            what.size--;
        size_t columns = text_columns(what);
        if (!fix->command && columns + 1 <= room)
            return fix->what;
        if (fix->command && !strchr(fix->command, '\n') &&
            columns + 2 + text_columns(text_of(fix->command)) <= room)
            return no_memory(
                arena_printf(flight->arena, "%.*s: %s", (int)what.size, what.data, fix->command));
    }
    return PREFLIGHT_RUN_DOCTOR;
}

static void threat_add(Flight *flight, const char *id, Severity severity, const char *text,
                       const char *remedy)
{
    Preflight *preflight = flight->preflight;
    if (!text || !*text || !*remedy)
        flight->error = -ENOMEM;
    size_t i = preflight->n;
    while (i > 0 && preflight->items[i - 1].severity < severity)
        i--;
    if (flight->error < 0 || i == THREATS_MAX)
        return;
    preflight->n = MIN(preflight->n + 1, (size_t)THREATS_MAX);
    memmove(&preflight->items[i + 1], &preflight->items[i],
            (preflight->n - 1 - i) * sizeof preflight->items[0]);
    preflight->items[i] = (Threat){id, severity, text, remedy};
}

static const Finding *finding_of(const Findings *findings, const char *id)
{
    for (size_t i = 0; i < findings->n; i++)
        if (strcmp(findings->items[i].id, id) == 0)
            return &findings->items[i];
    return NULL;
}

static void concern_weigh(Flight *flight, const Concern *concern, const Finding *finding)
{
    Severity severity = finding->severity;
    const char *text = concern->describe(flight, &severity);
    if (!text)
        return;
    const char *remedy = concern->by_shm ? remedy_by_option(flight) : NULL;
    size_t taken = text_columns(text_of(text)) + 2; /* ". " */
    if (!remedy)
        remedy = remedy_by_fix(flight, &finding->fixes, THREAT_COLUMNS - MIN(taken, (size_t)THREAT_COLUMNS));
    threat_add(flight, finding->id, severity, text, remedy);
}

/* Compares the sizes that the user asked for with the memory that is left. */
static void wishes_weigh(Flight *flight)
{
    const PreflightPlan *plan = flight->plan;
    uint64_t room = memory_room_bytes(flight->machine);
    if (room == U64_UNKNOWN)
        return;
    if (plan->guarded && plan->budget_bytes != U64_UNKNOWN && plan->budget_bytes > room)
        threat_add(
            flight, "budget", SEVERITY_WARNING,
            arena_printf(flight->arena, PREFLIGHT_BUDGET, SIZE_TEXT(plan->budget_bytes), SIZE_TEXT(room)),
            PREFLIGHT_SMALLER_BUDGET);
    if (plan->private_shm_bytes > room && plan->private_shm_bytes > PRIVATE_LEAST_BYTES)
        threat_add(flight, "private-shm", SEVERITY_WARNING,
                   arena_printf(flight->arena, PREFLIGHT_PRIVATE_SHM, SIZE_TEXT(plan->private_shm_bytes),
                                SIZE_TEXT(room)),
                   PREFLIGHT_SMALLER_PRIVATE_SHM);
}

int preflight_judge(const Machine *machine, const GuardOffer *guard, const PreflightPlan *plan, Arena *arena,
                    Preflight *ret)
{
    Survey survey = {.machine = *machine};
    uint64_t bytes = plan->private_shm_bytes;
    if (bytes > 0)
        survey.machine.shm =
            (ShmMount){.state = SHM_OK, .size_bytes = bytes, .available_bytes = bytes, .mounted = true};
    Findings findings;
    int r = checks_run(&survey, guard, 0, arena, &findings);
    if (r < 0)
        return r;

    Preflight preflight = {0};
    Flight flight = {&survey.machine, guard, plan, arena, &preflight, 0};
    for (size_t i = 0; i < ARRAY_SIZE(concerns); i++) {
        const Finding *finding = finding_of(&findings, concerns[i].id);
        if (finding)
            concern_weigh(&flight, &concerns[i], finding);
    }
    wishes_weigh(&flight);
    if (flight.error < 0)
        return flight.error;
    *ret = preflight;
    return 0;
}

Health preflight_health(const Preflight *preflight)
{
    if (preflight->n == 0)
        return HEALTH_OK;
    return preflight->items[0].severity == SEVERITY_CRITICAL ? HEALTH_CRITICAL : HEALTH_WARNING;
}
