/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cgroup.h"
#include "proc-path.h"
#include "proc-status.h"

/* Version 1 has no word for "no limit" but the largest multiple of the page size in 63 bits; the largest
 * pages are 64 KiB. */
#define LIMIT_NONE_BYTES (UINT64_C(0x7fffffffffff0000))

enum {
    GROUP_PATH_MAX = PATH_MAX + 512, /* a mount point and a group's path */
    GROUP_DEPTH_MAX = 256,
    GROUP_FILE_MAX = 64 * 1024,
};

int cgroup_line_parse(Text line, CgroupLine *ret)
{
    Text number;
    CgroupLine found = {0};
    if (!text_until(&line, ':', &number) || text_u32(number, 10, &found.hierarchy) < 0 ||
        !text_until(&line, ':', &found.controllers) || line.size == 0 || line.data[0] != '/')
        return -EBADMSG;
    found.path = line;
    *ret = found;
    return 0;
}

int cgroup_limit_parse(Text text, uint64_t *ret_bytes)
{
    uint64_t bytes = 0;
    text = text_trim(text);
    if (text_equal(text, "max"))
        bytes = U64_UNKNOWN;
    else if (text_u64(text, 10, &bytes) < 0)
        return -EBADMSG;
    *ret_bytes = bytes >= LIMIT_NONE_BYTES ? U64_UNKNOWN : bytes;
    return 0;
}

int cgroup_key_parse(Text text, const char *key, uint64_t *ret)
{
    TEXT_FOR_EACH_LINE (line, text) {
        Text name;
        Text number;
        if (text_word(&line, &name) && text_equal(name, key) && text_word(&line, &number) &&
            text_trim(line).size == 0 && text_u64(number, 10, ret) == 0)
            return 0;
    }
    return -ENODATA;
}

int cgroup_cpu_max_parse(Text text, double *ret_cpus)
{
    Text quota_text;
    Text period_text;
    uint64_t quota = 0;
    uint64_t period = 0;
    if (!text_word(&text, &quota_text) || !text_word(&text, &period_text) || text_trim(text).size > 0 ||
        text_u64(period_text, 10, &period) < 0 || period == 0 ||
        (!text_equal(quota_text, "max") && text_u64(quota_text, 10, &quota) < 0))
        return -EBADMSG;
    *ret_cpus = (double)quota / (double)period;
    return 0;
}

/* A controller's hierarchy and the process's place in it, as far as the mounts show them. */
typedef struct Place {
    int version;
    const char *mount_point;    /* below the root: "sys/fs/cgroup/memory" */
    const char *mount_root;     /* the group that is mounted there, "" for "/" */
    char below[GROUP_PATH_MAX]; /* from there to the process's own group: "" or "/a/b" */
} Place;

/* One group on the way from the process's own group up to the mount. */
typedef struct GroupLevel {
    const Root *root;
    const Place *place;
    size_t below; /* how much of place->below leads to it */
    Buffer *text; /* scratch */
} GroupLevel;

static Text group_read(const GroupLevel *group, const char *file)
{
    char path[2 * GROUP_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s%.*s/%s", group->place->mount_point, (int)group->below,
                     group->place->below, file);
    if ((size_t)n >= sizeof path || root_read(group->root, path, GROUP_FILE_MAX, group->text) < 0)
        buffer_clear(group->text);
    return (Text){buffer_text(group->text), group->text->size};
}

/* A missing file means no limit: the topmost group of version 2 has no limit files. */
static uint64_t group_limit(const GroupLevel *group, const char *file)
{
    uint64_t bytes = U64_UNKNOWN;
    return cgroup_limit_parse(group_read(group, file), &bytes) < 0 ? U64_UNKNOWN : bytes;
}

static uint64_t group_number(const GroupLevel *group, const char *file)
{
    uint64_t number = 0;
    return text_u64(text_trim(group_read(group, file)), 10, &number) < 0 ? U64_UNKNOWN : number;
}

/* Version 1 has separate keys for sums over the groups below. */
static uint64_t stat_key(Text text, const char *total_key, const char *key)
{
    uint64_t value = U64_UNKNOWN;
    if (cgroup_key_parse(text, total_key, &value) < 0)
        (void)cgroup_key_parse(text, key, &value);
    return value;
}

/* One step up. False at the mount. */
static bool group_up(GroupLevel *group)
{
    if (group->below == 0)
        return false;
    do
        group->below--;
    while (group->below > 0 && group->place->below[group->below] != '/');
    return true;
}

static void group_name(const GroupLevel *group, char *out, size_t size)
{
    snprintf(out, size, "%s%.*s", group->place->mount_root, (int)group->below, group->place->below);
    if (out[0] == '\0')
        snprintf(out, size, "/");
}

static bool has_dots(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/.."));) {
        at += 3;
        if (*at == '/' || *at == '\0')
            return true;
    }
    return false;
}

static unsigned path_depth(const char *path)
{
    unsigned depth = 0;
    for (; *path; path++)
        depth += *path == '/';
    return depth;
}

/*
 * Finds the place of the group at `path` (from /proc/PID/cgroup) under the mount. A container that sees the
 * host's paths has its own group mounted as the root of what it sees. There, and where a path leads out of
 * our cgroup namespace, the mount itself is the nearest group that we can read. Returns how well it fits.
 */
static unsigned place_set(Place *place, int version, const Mount *mount, const char *path)
{
    const char *top = strcmp(mount->root, "/") == 0 ? "" : mount->root;
    size_t n = strlen(top);
    bool inside = strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0') && !has_dots(path + n) &&
                  strlen(path + n) < sizeof place->below && path_depth(path + n) <= GROUP_DEPTH_MAX;
    place->version = version;
    place->mount_point = mount->mount_point + 1;
    place->mount_root = top;
    snprintf(place->below, sizeof place->below, "%s", inside && strcmp(path + n, "/") != 0 ? path + n : "");
    /* The mount that shows most of the way up to the top of the hierarchy. */
    return inside ? 2 + path_depth(place->below) : 1;
}

static bool place_find(const Mounts *mounts, const char *controller, const char *path, Place *ret)
{
    unsigned best = 0;
    Place place;
    for (size_t i = 0; i < mounts->n; i++) {
        const Mount *mount = &mounts->items[i];
        Text value;
        bool fits = controller ? strcmp(mount->type, "cgroup") == 0 &&
                                     mount_option(mount->super_options, controller, &value)
                               : strcmp(mount->type, "cgroup2") == 0;
        unsigned how_well = fits ? place_set(&place, controller ? 1 : 2, mount, path) : 0;
        if (how_well > best) {
            best = how_well;
            *ret = place;
        }
    }
    return best > 0;
}

static bool list_has(Text list, const char *name)
{
    Text item;
    while (text_until(&list, ',', &item))
        if (text_equal(item, name))
            return true;
    return false;
}

/* The process's path in the hierarchy of a version 1 controller, or in version 2's (controller NULL). */
static bool path_find(Text lines, const char *controller, char *ret, size_t size)
{
    TEXT_FOR_EACH_LINE (line, lines) {
        CgroupLine found;
        if (cgroup_line_parse(line, &found) < 0 ||
            !(controller ? list_has(found.controllers, controller)
                         : found.hierarchy == 0 && found.controllers.size == 0))
            continue;
        snprintf(ret, size, "%.*s", (int)MIN(found.path.size, size), found.path.data);
        return true;
    }
    return false;
}

/* Version 1 if it has the controller mounted, otherwise version 2. */
static bool controller_find(Text lines, const Mounts *mounts, const char *controller, Place *ret)
{
    char path[PATH_MAX];
    return (path_find(lines, controller, path, sizeof path) && place_find(mounts, controller, path, ret)) ||
           (path_find(lines, NULL, path, sizeof path) && place_find(mounts, NULL, path, ret));
}

static void memory_use_read(const GroupLevel *group, Cgroup *ret)
{
    bool old = group->place->version == 1;
    ret->memory_used_bytes = group_number(group, old ? "memory.usage_in_bytes" : "memory.current");
    Text stat = group_read(group, "memory.stat");
    uint64_t inactive = stat_key(stat, "total_inactive_file", "inactive_file");
    ret->memory_reclaimable_bytes = inactive == U64_UNKNOWN ? 0 : inactive;
    ret->memory_shmem_bytes = stat_key(stat, "total_shmem", "shmem");
}

/* What may still be used in a group with a limit. Before the kernel kills, it drops every file page,
 * including pages that were read more than once: a data set that is read in each epoch fills the whole group
 * with those. */
static uint64_t group_room(const GroupLevel *group, uint64_t limit_bytes)
{
    Cgroup use;
    memory_use_read(group, &use);
    if (limit_bytes == U64_UNKNOWN || use.memory_used_bytes == U64_UNKNOWN)
        return U64_UNKNOWN;
    uint64_t active = stat_key(group_read(group, "memory.stat"), "total_active_file", "active_file");
    uint64_t files = use.memory_reclaimable_bytes + (active == U64_UNKNOWN ? 0 : active);
    return limit_bytes - MIN(limit_bytes, use.memory_used_bytes - MIN(use.memory_used_bytes, files));
}

static uint64_t group_oom_kills(const GroupLevel *group)
{
    uint64_t kills = U64_UNKNOWN;
    const char *file = group->place->version == 1 ? "memory.oom_control" : "memory.events";
    (void)cgroup_key_parse(group_read(group, file), "oom_kill", &kills);
    return kills;
}

static uint64_t group_swap_limit(const GroupLevel *group, uint64_t memory_limit_bytes)
{
    if (group->place->version == 2)
        return group_limit(group, "memory.swap.max");
    /* Version 1 limits memory and swap together. */
    uint64_t both = group_limit(group, "memory.memsw.limit_in_bytes");
    return both == U64_UNKNOWN || memory_limit_bytes == U64_UNKNOWN ? U64_UNKNOWN
                                                                    : both - MIN(both, memory_limit_bytes);
}

/* Below a group that does not use the hierarchy, the groups above do not count. Always 1 since Linux 5.11. */
static bool group_up_counted(GroupLevel *group)
{
    return group_up(group) &&
           (group->place->version == 2 || group_number(group, "memory.use_hierarchy") != 0);
}

static void memory_read(const Root *root, const Place *place, Buffer *scratch, Cgroup *ret)
{
    GroupLevel group = {root, place, strlen(place->below), scratch};
    bool old = place->version == 1;
    uint64_t kills_so_far = 0;
    uint64_t all = U64_UNKNOWN;

    memory_use_read(&group, ret);
    ret->oom_kills = group_oom_kills(&group);
    if (old)
        (void)cgroup_key_parse(group_read(&group, "memory.stat"), "hierarchical_memory_limit", &all);
    do {
        uint64_t limit = group_limit(&group, old ? "memory.limit_in_bytes" : "memory.max");
        ret->swap_limit_bytes = MIN(ret->swap_limit_bytes, group_swap_limit(&group, limit));
        ret->memory_room_bytes = MIN(ret->memory_room_bytes, group_room(&group, limit));

        /* Version 1 counts a kill only in the victim's group, version 2 also in every group above it. */
        uint64_t kills = group_oom_kills(&group);
        if (old && kills != U64_UNKNOWN)
            kills = kills_so_far += kills;

        /* Of two equal limits the upper one is reached first: its group contains more. */
        if (limit == U64_UNKNOWN || limit > ret->memory_limit_bytes)
            continue;
        ret->memory_limit_bytes = limit;
        ret->oom_kills = kills;
        group_name(&group, ret->limited_by, sizeof ret->limited_by);
        memory_use_read(&group, ret);
    } while (group_up_counted(&group));

    /* Version 1 also shows limits above the mounted part, but not the use there. */
    if (all < LIMIT_NONE_BYTES && all < ret->memory_limit_bytes) {
        ret->memory_limit_bytes = all;
        snprintf(ret->limited_by, sizeof ret->limited_by, "%.*s/..", (int)sizeof ret->limited_by - 4,
                 place->mount_root);
        ret->memory_used_bytes = U64_UNKNOWN;
        ret->memory_reclaimable_bytes = 0;
        ret->memory_shmem_bytes = U64_UNKNOWN;
    }
}

/* In a hybrid setup version 2 is mounted without the controllers that version 1 has. */
static bool place_has_memory(const Root *root, const Place *place, Buffer *scratch)
{
    GroupLevel group = {root, place, 0, scratch};
    Text rest = group_read(&group, "cgroup.controllers");
    Text word;
    while (text_word(&rest, &word))
        if (text_equal(word, "memory"))
            return true;
    return place->version == 1;
}

static double group_quota(const GroupLevel *group)
{
    double cpus = 0;
    if (group->place->version == 2) {
        (void)cgroup_cpu_max_parse(group_read(group, "cpu.max"), &cpus);
        return cpus;
    }
    uint64_t quota =
        group_number(group, "cpu.cfs_quota_us"); /* -1 means none, and does not parse as a number */
    uint64_t period = group_number(group, "cpu.cfs_period_us");
    return quota == U64_UNKNOWN || period == U64_UNKNOWN || period == 0 ? 0 : (double)quota / (double)period;
}

static double cpu_quota_read(const Root *root, const Place *place, Buffer *scratch)
{
    GroupLevel group = {root, place, strlen(place->below), scratch};
    double smallest = 0;
    do {
        double cpus = group_quota(&group);
        if (cpus > 0 && (smallest == 0 || cpus < smallest))
            smallest = cpus;
    } while (group_up(&group));
    return smallest;
}

/* The effective cpuset already respects the groups above; a group without the controller has that of the next
 * one. */
static uint32_t cpuset_read(const Root *root, const Place *place, Buffer *scratch)
{
    static const char *const names[2][2] = {{"cpuset.effective_cpus", "cpuset.cpus"},
                                            {"cpuset.cpus.effective", "cpuset.cpus"}};
    GroupLevel group = {root, place, strlen(place->below), scratch};
    do
        for (size_t i = 0; i < 2; i++) {
            uint32_t cpus = cpu_list_count(group_read(&group, names[place->version - 1][i]));
            if (cpus > 0)
                return cpus;
        }
    while (group_up(&group));
    return 0;
}

int cgroup_read(const Root *root, int pid, const Mounts *mounts, Cgroup *ret)
{
    *ret = (Cgroup){
        .memory_limit_bytes = U64_UNKNOWN,
        .memory_used_bytes = U64_UNKNOWN,
        .memory_room_bytes = U64_UNKNOWN,
        .memory_shmem_bytes = U64_UNKNOWN,
        .swap_limit_bytes = U64_UNKNOWN,
        .oom_kills = U64_UNKNOWN,
    };
    _cleanup_buffer_ Buffer lines_buffer = {0};
    _cleanup_buffer_ Buffer scratch = {0};
    int r = proc_read(root, pid, "cgroup", &lines_buffer);
    if (r < 0)
        return r;
    Text lines = {buffer_text(&lines_buffer), lines_buffer.size};
    if (!path_find(lines, "memory", ret->path, sizeof ret->path))
        (void)path_find(lines, NULL, ret->path, sizeof ret->path);

    Place place;
    if (controller_find(lines, mounts, "memory", &place) && place_has_memory(root, &place, &scratch)) {
        ret->version = place.version;
        memory_read(root, &place, &scratch, ret);
    }
    if (controller_find(lines, mounts, "cpu", &place))
        ret->cpu_quota = cpu_quota_read(root, &place, &scratch);
    if (controller_find(lines, mounts, "cpuset", &place))
        ret->cpuset_cpus = cpuset_read(root, &place, &scratch);
    return ret->version == 0 ? -ENODATA : 0;
}
