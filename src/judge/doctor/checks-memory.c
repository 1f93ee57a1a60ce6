/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "check.h"
#include "units.h"

/* The free share. On most machines the last tenth of the memory holds only a few batches; in the last
 * twentieth the OOM killer acts next. */
#define MEMORY_WARNING  0.10
#define MEMORY_CRITICAL 0.05

/* Per cent of the time in which some tasks, or all of them, waited for memory. Losing a tenth of the time is
 * noticeable; systemd-oomd starts to kill when all tasks wait for 60% of it. */
#define PRESSURE_SOME_WARNING  10.0
#define PRESSURE_FULL_WARNING  5.0
#define PRESSURE_FULL_CRITICAL 40.0

/* Swap is the last reserve. It only matters where memory is short, which is below the second of these free
 * shares. */
#define SWAP_LOW     0.10
#define SWAP_MATTERS 0.20

#define OOM_RECENT_SECONDS (24 * 3600.0)

/* A checkpoint with the optimiser's state is a few times as large as the model: gigabytes. One that cannot be
 * written ends the training. Large disks are filled to the last few per cent on purpose: 50 GiB left is not
 * low. */
#define DISK_CRITICAL_BYTES (1 * GIB)
#define DISK_WARNING_BYTES  (5 * GIB)
#define DISK_WARNING_SHARE  0.05
#define DISK_PLENTY_BYTES   (50 * GIB)
#define DISK_INODES_SHARE   0.01

/* File systems that never have free space. */
#define SQUASHFS_MAGIC 0x73717368U
#define ISOFS_MAGIC    0x9660U
#define EROFS_MAGIC    0xE0F5E1E2U

static void advise_against_copies(CheckContext *check)
{
    static const char command[] = "shmguard run -- python train.py";
    if (check_workers(check) == 0)
        return;
    unsigned python = check_python(check);
    switch (python_freezes(python)) {
    case FREEZES_UNKNOWN:
        check_fix(check, NEEDS_RESTART, _(DOCTOR_COPIES_FIX), command);
        break;
    case FREEZES_NEVER:
        check_fix(check, NEEDS_NOTHING, SENTENCE(check, DOCTOR_COPIES_SHARE, python), NULL);
        break;
    case FREEZES_MAYBE:
        check_fix(check, NEEDS_RESTART, _(DOCTOR_COPIES_FREEZE), command);
        break;
    }
}

void check_memory_low(CheckContext *check)
{
    const MemInfo *memory = &check->machine->memory;
    if (memory->total_bytes == U64_UNKNOWN || memory->total_bytes == 0 ||
        memory->available_bytes == U64_UNKNOWN) {
        check_skipped(check, DOCTOR_MEMORY_LOW_SKIPPED);
        return;
    }
    Severity severity;
    double left = share_of(memory->available_bytes, memory->total_bytes);
    if (!free_severity(left, MEMORY_WARNING, MEMORY_CRITICAL, &severity))
        return;
    check_fix(check, NEEDS_NOTHING, DOCTOR_MEMORY_LOW_FIX, "ps -eo pid,rss,args --sort=-rss | head");
    check_advice(check, advise_less_memory(check->machine, check->arena, &check->fixes));
    advise_against_copies(check);
    check_found(check, severity, DOCTOR_MEMORY_LOW_TITLE,
                SENTENCE(check, DOCTOR_MEMORY_LOW, SIZE_TEXT(memory->available_bytes),
                         SIZE_TEXT(memory->total_bytes), left * 100, SIZE_TEXT(memory->shmem_bytes),
                         SIZE_TEXT(memory->swap_free_bytes)));
}

void check_cgroup_near_limit(CheckContext *check)
{
    const Cgroup *cgroup = &check->machine->cgroup;
    if (cgroup->version == 0) {
        check_skipped(check, DOCTOR_CGROUP_SKIPPED);
        return;
    }
    if (cgroup->memory_limit_bytes == U64_UNKNOWN)
        return;
    if (cgroup->memory_used_bytes == U64_UNKNOWN) {
        check_skipped(check, DOCTOR_CGROUP_USED_SKIPPED);
        return;
    }
    uint64_t used = cgroup->memory_used_bytes;
    if (cgroup->memory_reclaimable_bytes != U64_UNKNOWN)
        used -= MIN(cgroup->memory_reclaimable_bytes, used);
    uint64_t limit = cgroup->memory_limit_bytes;
    Severity severity;
    if (!free_severity(share_of(limit - MIN(used, limit), limit), MEMORY_WARNING, MEMORY_CRITICAL, &severity))
        return;
    const char *path = check_escape(check, text_of(cgroup->limited_by));
    check_advice(check, advise_less_memory(check->machine, check->arena, &check->fixes));
    advise_against_copies(check);
    check_found(check, severity, DOCTOR_CGROUP_TITLE,
                check_join(check,
                           SENTENCE(check, DOCTOR_CGROUP, SIZE_TEXT(used), SIZE_TEXT(limit),
                                    SIZE_TEXT(cgroup->memory_shmem_bytes)),
                           !path   ? NULL
                           : *path ? SENTENCE(check, DOCTOR_CGROUP_LIMITED_BY, path)
                                   : DOCTOR_CGROUP_NAMELESS));
}

void check_memory_pressure(CheckContext *check)
{
    const Pressure *pressure = &check->machine->pressure;
    if (!check->machine->has_pressure) {
        check_skipped(check, DOCTOR_MEMORY_PRESSURE_SKIPPED);
        return;
    }
    if (pressure->some_avg60 < PRESSURE_SOME_WARNING && pressure->full_avg60 < PRESSURE_FULL_WARNING)
        return;
    /* Both averages, so that one bad moment is not critical. */
    bool critical =
        pressure->full_avg60 >= PRESSURE_FULL_CRITICAL && pressure->full_avg10 >= PRESSURE_FULL_CRITICAL;
    check_advice(check, advise_less_memory(check->machine, check->arena, &check->fixes));
    advise_against_copies(check);
    check_found(check, critical ? SEVERITY_CRITICAL : SEVERITY_WARNING, DOCTOR_MEMORY_PRESSURE_TITLE,
                SENTENCE(check, DOCTOR_MEMORY_PRESSURE, pressure->some_avg60, pressure->full_avg60));
}

void check_swap_low(CheckContext *check)
{
    const MemInfo *memory = &check->machine->memory;
    if (memory->swap_total_bytes == U64_UNKNOWN || memory->swap_free_bytes == U64_UNKNOWN ||
        memory->available_bytes == U64_UNKNOWN || memory->total_bytes == U64_UNKNOWN) {
        check_skipped(check, DOCTOR_SWAP_LOW_SKIPPED);
        return;
    }
    bool none = memory->swap_total_bytes == 0;
    bool matters = share_of(memory->available_bytes, memory->total_bytes) < SWAP_MATTERS;
    if (none ? !matters : share_of(memory->swap_free_bytes, memory->swap_total_bytes) >= SWAP_LOW)
        return;
    if (none)
        check_advice(check, advise_swap(check->machine, check->arena, &check->fixes));
    else
        check_advice(check, advise_less_memory(check->machine, check->arena, &check->fixes));
    advise_against_copies(check);
    check_found(check, matters && !none ? SEVERITY_WARNING : SEVERITY_INFO,
                none ? DOCTOR_SWAP_LOW_NONE_TITLE : DOCTOR_SWAP_LOW_TITLE,
                SENTENCE(check, DOCTOR_SWAP_LOW, SIZE_TEXT(memory->swap_free_bytes),
                         SIZE_TEXT(memory->swap_total_bytes), SIZE_TEXT(memory->available_bytes),
                         SIZE_TEXT(memory->total_bytes)));
}

/* Python, and the names that PyTorch gives to its processes and threads. */
static bool is_training_name(const char *comm)
{
    Text name = text_of(comm);
    return text_starts(name, "python") || text_starts(name, "pt_") || text_starts(name, "torch");
}

/* Seconds since the kill; negative when the log does not say, or when a captured tree does not say when it
 * was captured. */
static double kill_age(const Machine *machine, const OomKill *kill)
{
    bool unknown = kill->boottime < 0 || machine->boottime <= 0;
    return unknown ? -1 : MAX(machine->boottime - kill->boottime, 0.0);
}

/* The limit that caused the kill is that of a group which does not contain the examined job. Inside a
 * container, the kernel's path of a group and ours start at different places, so no kill is ruled out there.
 */
static bool is_of_another_group(const CheckContext *check, const OomKill *kill)
{
    const char *path = check->machine->cgroup.path;
    if (check->pid == 0 || kill->scope != OOM_SCOPE_CGROUP || kill->cgroup[0] != '/' ||
        check->machine->sandbox.kind != ENVIRONMENT_BARE || path[0] != '/' || path[1] == '\0' ||
        text_starts(text_of(path), "/.."))
        return false;
    size_t length = strlen(kill->cgroup);
    if (length == 1)
        return false; /* every group is below the root */
    bool cut = length == sizeof kill->cgroup - 1;
    bool above =
        strncmp(path, kill->cgroup, length) == 0 && (path[length] == '/' || path[length] == '\0' || cut);
    return !above;
}

static bool is_alarming(const CheckContext *check, const OomKill *kill)
{
    double age = kill_age(check->machine, kill);
    return age >= 0 && age <= OOM_RECENT_SECONDS && is_training_name(kill->comm) &&
           !is_of_another_group(check, kill);
}

/* The kill to report: the newest one of a training within the last day, else the newest. */
static const OomKill *kill_to_tell(const CheckContext *check)
{
    const OomKills *kills = &check->machine->kills;
    for (size_t i = kills->n; i > 0; i--)
        if (is_alarming(check, &kills->items[i - 1]))
            return &kills->items[i - 1];
    return &kills->items[kills->n - 1];
}

static const char *kill_scope(CheckContext *check, const OomKill *kill)
{
    const char *group = check_escape(check, text_of(kill->cgroup));
    switch (kill->scope) {
    case OOM_SCOPE_CGROUP:
        if (!group)
            return NULL;
        if (!*group)
            return DOCTOR_OOM_NAMELESS_GROUP;
        return SENTENCE(check, is_of_another_group(check, kill) ? DOCTOR_OOM_OTHER_GROUP : DOCTOR_OOM_GROUP,
                        group);
    case OOM_SCOPE_MACHINE:
        return DOCTOR_OOM_MACHINE;
    case OOM_SCOPE_UNKNOWN:
        break;
    }
    return DOCTOR_OOM_UNKNOWN;
}

static uint64_t known(uint64_t bytes)
{
    return bytes == U64_UNKNOWN ? 0 : bytes;
}

/* The memory of the killed process; each of the three figures may be missing. */
static const char *kill_memory(CheckContext *check, const OomKill *kill)
{
    bool has_anon = kill->anon_bytes != U64_UNKNOWN;
    bool has_file = kill->file_bytes != U64_UNKNOWN;
    bool has_shared = kill->shmem_bytes != U64_UNKNOWN;
    if (!has_anon && !has_file && !has_shared)
        return DOCTOR_OOM_VICTIM_UNKNOWN;
    uint64_t all =
        bytes_add(bytes_add(known(kill->anon_bytes), known(kill->file_bytes)), known(kill->shmem_bytes));
    /* Before Linux 4.5, shared memory has no figure of its own and is counted as file pages. */
    bool least = !has_anon || !has_file;
    if (!has_shared)
        return SENTENCE(check, least ? DOCTOR_OOM_VICTIM_SHARED_LEAST : DOCTOR_OOM_VICTIM_SHARED,
                        SIZE_TEXT(all));
    return SENTENCE(check, least ? DOCTOR_OOM_VICTIM_LEAST : DOCTOR_OOM_VICTIM, SIZE_TEXT(all),
                    SIZE_TEXT(kill->shmem_bytes));
}

static void tell_kill(CheckContext *check)
{
    const Machine *machine = check->machine;
    const OomKill *kill = kill_to_tell(check);
    const char *comm = check_escape(check, text_of(kill->comm));
    if (!comm) {
        check_advice(check, -ENOMEM);
        return;
    }
    double age = kill_age(machine, kill);
    const char *title = age < 0 ? SENTENCE(check, DOCTOR_OOM_TIMELESS_TITLE, comm, kill->pid)
                                : SENTENCE(check, DOCTOR_OOM_TITLE, comm, kill->pid, DURATION_TEXT(age));
    const char *evidence = check_join(check, kill_scope(check, kill), kill_memory(check, kill));
    if (machine->kills.n > 1)
        evidence = check_join(check, evidence, SENTENCE(check, DOCTOR_OOM_MORE, machine->kills.n));
    if (!is_of_another_group(check, kill))
        check_advice(check, advise_less_memory(machine, check->arena, &check->fixes));
    check_found(check, is_alarming(check, kill) ? SEVERITY_WARNING : SEVERITY_INFO, title, evidence);
}

static bool some(uint64_t count)
{
    return count != U64_UNKNOWN && count > 0;
}

/* Counters outlive the log and are readable where it is not, but do not name the killed process. */
static void tell_kill_counts(CheckContext *check)
{
    const Machine *machine = check->machine;
    bool group = some(machine->cgroup.oom_kills);
    if (machine->kills_error != 0) {
        bool root = root_within_reach(machine) && machine->sandbox.kind == ENVIRONMENT_BARE;
        check_fix(check, root ? NEEDS_ROOT : NEEDS_ADMIN, root ? DOCTOR_OOM_LOG_FIX : DOCTOR_OOM_HOST_LOG_FIX,
                  arena_printf(check->arena, "%sdmesg -T | grep -iE 'out of memory|oom-kill'",
                               root ? sudo_prefix(machine) : "sudo "));
    }
    check_advice(check, advise_less_memory(machine, check->arena, &check->fixes));
    unsigned long long count = group ? machine->cgroup.oom_kills : machine->oom_kills;
    const char *killed =
        SENTENCE(check,
                 group ? PLURAL(count, DOCTOR_OOM_COUNT_GROUP_ONE, DOCTOR_OOM_COUNT_GROUP_MANY)
                       : PLURAL(count, DOCTOR_OOM_COUNT_ONE, DOCTOR_OOM_COUNT_MANY),
                 count);
    check_found(check, group ? SEVERITY_WARNING : SEVERITY_INFO,
                group ? DOCTOR_OOM_COUNT_GROUP_TITLE : DOCTOR_OOM_COUNT_TITLE,
                check_join(check, killed,
                           machine->kills_error == 0 ? DOCTOR_OOM_FORGOTTEN
                                                     : SENTENCE(check, DOCTOR_OOM_UNREADABLE,
                                                                error_text(abs(machine->kills_error)))));
}

void check_oom_recent(CheckContext *check)
{
    const Machine *machine = check->machine;
    if (machine->kills.n > 0)
        tell_kill(check);
    else if (some(machine->cgroup.oom_kills) || some(machine->oom_kills))
        tell_kill_counts(check);
    else if (machine->kills_error != 0 && machine->oom_kills == U64_UNKNOWN)
        check_skipped(check, SENTENCE(check, DOCTOR_OOM_SKIPPED, error_text(abs(machine->kills_error))));
}

void check_disk_low(CheckContext *check)
{
    const Machine *machine = check->machine;
    const FsStat *disk = &machine->disk;
    if (!machine->has_disk || disk->available_bytes == U64_UNKNOWN || disk->size_bytes == U64_UNKNOWN) {
        check_skipped(check, DOCTOR_DISK_LOW_SKIPPED);
        return;
    }
    if (disk->size_bytes == 0 || disk->type == SQUASHFS_MAGIC || disk->type == ISOFS_MAGIC ||
        disk->type == EROFS_MAGIC) {
        check_skipped(check, DOCTOR_DISK_READ_ONLY_SKIPPED);
        return;
    }
    uint64_t room = disk->available_bytes;
    bool narrow = room < DISK_WARNING_BYTES ||
                  (room < DISK_PLENTY_BYTES && share_of(room, disk->size_bytes) < DISK_WARNING_SHARE);
    bool no_inodes = disk->inodes > 0 && share_of(disk->inodes_free, disk->inodes) < DISK_INODES_SHARE;
    if (!narrow && !no_inodes)
        return;

    Text path = text_of(machine->disk_path ? machine->disk_path : ".");
    const char *shown = check_escape(check, path);
    const char *quoted = shell_quote(check->arena, path);
    if (!shown || !quoted) {
        check_advice(check, -ENOMEM);
        return;
    }
    check_fix(check, NEEDS_NOTHING, DOCTOR_DISK_LOW_FIX, NULL);
    if (text_equal(path, shown)) /* a path with control characters cannot be pasted */
        check_fix(check, NEEDS_NOTHING, DOCTOR_DISK_USAGE_FIX,
                  arena_printf(check->arena, "du -xh --max-depth=1 %s | sort -h | tail", quoted));
    /* Without a job, nothing is about to be written. */
    bool critical = room < DISK_CRITICAL_BYTES && check->n_jobs > 0;
    check_found(check, critical ? SEVERITY_CRITICAL : SEVERITY_WARNING,
                narrow ? DOCTOR_DISK_LOW_TITLE : DOCTOR_DISK_LOW_INODES_TITLE,
                disk->inodes == 0
                    ? SENTENCE(check, DOCTOR_DISK_LOW, SIZE_TEXT(room), SIZE_TEXT(disk->size_bytes), shown)
                    : SENTENCE(check, DOCTOR_DISK_LOW_INODES, SIZE_TEXT(room), SIZE_TEXT(disk->size_bytes),
                               (unsigned long long)disk->inodes_free, (unsigned long long)disk->inodes,
                               shown));
}
