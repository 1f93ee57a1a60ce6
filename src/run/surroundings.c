#include <stdio.h>
#include <string.h>

#include "proc-path.h"
#include "surroundings.h"
#include "vmstat.h"

static void group_look(Surroundings *surroundings, int pid)
{
    Cgroup group;
    if (cgroup_read(surroundings->root, pid, &surroundings->mounts, &group) < 0)
        return;
    bool same = strcmp(group.path, surroundings->group) == 0 &&
                strcmp(group.limited_by, surroundings->limited_by) == 0;
    if (pid == 0 && !same && surroundings->has_group) {
        surroundings->group_lost = true;
        return;
    }
    surroundings->has_group = true;
    if (group.oom_kills != U64_UNKNOWN) {
        uint64_t before = same ? surroundings->group_kills_seen : U64_UNKNOWN;
        uint64_t rise = before == U64_UNKNOWN || group.oom_kills < before ? 0 : group.oom_kills - before;
        surroundings->group_kills =
            (surroundings->group_kills == U64_UNKNOWN ? 0 : surroundings->group_kills) + rise;
    }
    surroundings->group_kills_seen = group.oom_kills;
    snprintf(surroundings->group, sizeof surroundings->group, "%s", group.path);
    snprintf(surroundings->limited_by, sizeof surroundings->limited_by, "%s", group.limited_by);
    surroundings->group_limit_bytes = group.memory_limit_bytes;
    if (group.memory_used_bytes != U64_UNKNOWN)
        u64_raise(&surroundings->group_used_most_bytes,
                  group.memory_used_bytes - MIN(group.memory_used_bytes, group.memory_reclaimable_bytes));
}

static void machine_look(Surroundings *surroundings)
{
    MemInfo memory;
    if (meminfo_read(surroundings->root, &memory) == 0)
        surroundings->available_least_bytes =
            MIN(surroundings->available_least_bytes, memory.available_bytes);
}

void surroundings_note_shm(Surroundings *surroundings, uint64_t size_bytes, uint64_t free_bytes)
{
    if (size_bytes == 0 || size_bytes == U64_UNKNOWN || free_bytes == U64_UNKNOWN)
        return;
    surroundings->shm_size_bytes = size_bytes;
    surroundings->shm_free_least_bytes = MIN(surroundings->shm_free_least_bytes, free_bytes);
    u64_raise(&surroundings->shm_used_most_bytes, size_bytes - MIN(free_bytes, size_bytes));
}

void surroundings_look_shm(Surroundings *surroundings, int pid)
{
    FsStat fs;
    if (root_statfs(surroundings->root, PROC_PATH(pid, "root/dev/shm"), &fs) == 0)
        surroundings_note_shm(surroundings, fs.size_bytes, fs.available_bytes);
}

static void limits_look(Surroundings *surroundings, int pid)
{
    RLimits limits;
    if (rlimits_read(surroundings->root, pid, &limits) == 0)
        surroundings->open_files_soft = limits.open_files_soft;
}

void surroundings_look(Surroundings *surroundings, int pid)
{
    machine_look(surroundings);
    group_look(surroundings, pid);
    if (pid == 0)
        return; /* our own /dev/shm and limits may be others */
    surroundings_look_shm(surroundings, pid);
    limits_look(surroundings, pid);
}

void surroundings_open(const Root *root, Surroundings *ret)
{
    *ret = (Surroundings){
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
    surroundings_look(ret, 0);
}

void surroundings_close(Surroundings *surroundings)
{
    arena_free(&surroundings->arena);
}

/* The log's clock stands still while the machine sleeps, so what is new is told by what was there before. */
static int log_finish(const Surroundings *surroundings, Arena *arena, Evidence *evidence)
{
    OomKills all = {0};
    int r = kmsg_read(surroundings->root, arena, &all);
    if (r == -ENOMEM)
        return r;
    evidence->kills_error = MIN(r, 0);
    for (size_t i = 0; r >= 0 && i < all.n; i++) {
        const OomKill *kill = &all.items[i];
        bool is_new = kill->boottime < 0 ? surroundings->log_kills_before == 0
                                         : kill->boottime > surroundings->log_newest;
        if (!is_new)
            continue;
        OomKill *slot = ARENA_PUSH(arena, evidence->kills.items, evidence->kills.n, evidence->kills.capacity);
        if (!slot)
            return -ENOMEM;
        *slot = *kill;
    }
    return 0;
}

int surroundings_finish(Surroundings *surroundings, Arena *arena, Evidence *ret)
{
    uint64_t kills = U64_UNKNOWN;
    uint64_t before = surroundings->machine_kills_before;
    surroundings_look(surroundings, 0);
    (void)vmstat_read_oom_kills(surroundings->root, &kills);
    ret->machine_kills =
        kills == U64_UNKNOWN || before == U64_UNKNOWN ? U64_UNKNOWN : kills - MIN(kills, before);
    bool missed = surroundings->group_lost && surroundings->group_kills == 0;
    ret->group_kills = missed ? U64_UNKNOWN : surroundings->group_kills;
    ret->group_limit_bytes = surroundings->group_limit_bytes;
    ret->group_used_most_bytes = surroundings->group_used_most_bytes;
    ret->available_least_bytes = surroundings->available_least_bytes;
    ret->shm_size_bytes = surroundings->shm_size_bytes;
    ret->shm_free_least_bytes = surroundings->shm_free_least_bytes;
    ret->open_files_soft = surroundings->open_files_soft;
    ret->max_map_count = surroundings->max_map_count;
    return log_finish(surroundings, arena, ret);
}
