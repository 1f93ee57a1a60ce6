/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "memory-context.h"
#include "proc-path.h"
#include "vmstat.h"

static void group_look(MemoryContext *memory, int pid)
{
    Cgroup group;
    if (cgroup_read(memory->root, pid, &memory->mounts, &group) < 0)
        return;
    bool same = strcmp(group.path, memory->group) == 0 && strcmp(group.limited_by, memory->limited_by) == 0;
    if (pid == 0 && !same && memory->has_group) {
        memory->group_lost = true;
        return;
    }
    memory->has_group = true;
    if (group.oom_kills != U64_UNKNOWN) {
        uint64_t before = same ? memory->group_kills_seen : U64_UNKNOWN;
        uint64_t rise = before == U64_UNKNOWN || group.oom_kills < before ? 0 : group.oom_kills - before;
        memory->group_kills = (memory->group_kills == U64_UNKNOWN ? 0 : memory->group_kills) + rise;
    }
    memory->group_kills_seen = group.oom_kills;
    snprintf(memory->group, sizeof memory->group, "%s", group.path);
    snprintf(memory->limited_by, sizeof memory->limited_by, "%s", group.limited_by);
    memory->group_limit_bytes = group.memory_limit_bytes;
    if (group.memory_used_bytes != U64_UNKNOWN)
        u64_raise(&memory->group_used_most_bytes,
                  group.memory_used_bytes - MIN(group.memory_used_bytes, group.memory_reclaimable_bytes));
}

static void machine_look(MemoryContext *memory)
{
    MemInfo meminfo;
    if (meminfo_read(memory->root, &meminfo) == 0)
        memory->available_least_bytes = MIN(memory->available_least_bytes, meminfo.available_bytes);
}

void memory_context_note_shm(MemoryContext *memory, uint64_t size_bytes, uint64_t free_bytes)
{
    if (size_bytes == 0 || size_bytes == U64_UNKNOWN || free_bytes == U64_UNKNOWN)
        return;
    memory->shm_size_bytes = size_bytes;
    memory->shm_free_least_bytes = MIN(memory->shm_free_least_bytes, free_bytes);
    u64_raise(&memory->shm_used_most_bytes, size_bytes - MIN(free_bytes, size_bytes));
}

void memory_context_look_shm(MemoryContext *memory, int pid)
{
    FsStat fs;
    if (root_statfs(memory->root, PROC_PATH(pid, "root/dev/shm"), &fs) == 0)
        memory_context_note_shm(memory, fs.size_bytes, fs.available_bytes);
}

static void limits_look(MemoryContext *memory, int pid)
{
    RLimits limits;
    if (rlimits_read(memory->root, pid, &limits) == 0)
        memory->open_files_soft = limits.open_files_soft;
}

void memory_context_look(MemoryContext *memory, int pid)
{
    machine_look(memory);
    group_look(memory, pid);
    if (pid == 0)
        return; /* our own /dev/shm and limits may differ */
    memory_context_look_shm(memory, pid);
    limits_look(memory, pid);
}

void memory_context_open(const Root *root, MemoryContext *ret)
{
    *ret = (MemoryContext){
        .root = root,
        .group_kills_seen = U64_UNKNOWN,
        .group_kills = U64_UNKNOWN,
        .group_limit_bytes = U64_UNKNOWN,
        .group_used_most_bytes = U64_UNKNOWN,
        .machine_kills_before = U64_UNKNOWN,
        .available_least_bytes = U64_UNKNOWN,
        .log_newest = -1,
        .shm_size_bytes = U64_UNKNOWN,
        .shm_used_most_bytes = U64_UNKNOWN,
        .shm_free_least_bytes = U64_UNKNOWN,
        .max_map_count = U64_UNKNOWN,
        .open_files_soft = U64_UNKNOWN,
    };
    _cleanup_arena_ Arena log = {0};
    OomKills kills = {0};
    (void)mounts_read(root, 0, &ret->arena, &ret->mounts);
    (void)vmstat_read_oom_kills(root, &ret->machine_kills_before);
    (void)sysctl_read(root, "vm/max_map_count", &ret->max_map_count);
    if (kmsg_read(root, &log, &kills) >= 0) {
        ret->log_kills_before = kills.n;
        for (size_t i = 0; i < kills.n; i++)
            ret->log_newest = MAX(ret->log_newest, kills.items[i].boottime);
    }
    memory_context_look(ret, 0);
}

void memory_context_close(MemoryContext *memory)
{
    arena_free(&memory->arena);
}

/* The log's clock stops while the machine sleeps, so new entries are recognized by those that were there
 * before. */
static int log_finish(const MemoryContext *memory, Arena *arena, Evidence *evidence)
{
    OomKills all = {0};
    int r = kmsg_read(memory->root, arena, &all);
    if (r == -ENOMEM)
        return r;
    evidence->kills_error = MIN(r, 0);
    for (size_t i = 0; r >= 0 && i < all.n; i++) {
        const OomKill *kill = &all.items[i];
        bool is_new =
            kill->boottime < 0 ? memory->log_kills_before == 0 : kill->boottime > memory->log_newest;
        if (!is_new)
            continue;
        OomKill *slot = ARENA_PUSH(arena, evidence->kills.items, evidence->kills.n, evidence->kills.capacity);
        if (!slot)
            return -ENOMEM;
        *slot = *kill;
    }
    return 0;
}

int memory_context_finish(MemoryContext *memory, Arena *arena, Evidence *ret)
{
    uint64_t kills = U64_UNKNOWN;
    uint64_t before = memory->machine_kills_before;
    memory_context_look(memory, 0);
    (void)vmstat_read_oom_kills(memory->root, &kills);
    ret->machine_kills =
        kills == U64_UNKNOWN || before == U64_UNKNOWN ? U64_UNKNOWN : kills - MIN(kills, before);
    bool missed = memory->group_lost && memory->group_kills == 0;
    ret->group_kills = missed ? U64_UNKNOWN : memory->group_kills;
    ret->group_limit_bytes = memory->group_limit_bytes;
    ret->group_used_most_bytes = memory->group_used_most_bytes;
    ret->available_least_bytes = memory->available_least_bytes;
    ret->shm_size_bytes = memory->shm_size_bytes;
    ret->shm_free_least_bytes = memory->shm_free_least_bytes;
    ret->open_files_soft = memory->open_files_soft;
    ret->max_map_count = memory->max_map_count;
    return log_finish(memory, arena, ret);
}
