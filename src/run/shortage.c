#include "shortage.h"
#include "cgroup.h"
#include "meminfo.h"
#include "pressure.h"

/*
 * Tasks that wait for memory a tenth of their time are slowed down visibly. The twentieth part that must stay
 * available is about what a machine needs for its page cache to be of any use.
 */
enum { WAITING_PERCENT = 10, SPARE_PART = 20 };

int shortage_open(const char *path, Shortage *ret)
{
    Shortage shortage = {0};
    int r = root_open(path, &shortage.root);
    if (r < 0)
        return r;
    (void)mounts_read(&shortage.root, 0, &shortage.arena, &shortage.mounts);
    *ret = shortage;
    return 0;
}

void shortage_close(Shortage *shortage)
{
    arena_free(&shortage->arena);
    root_close(&shortage->root);
}

static bool machine_is_short(const Root *root)
{
    MemInfo memory;
    return meminfo_read(root, &memory) == 0 && memory.available_bytes != U64_UNKNOWN &&
           memory.available_bytes < memory.total_bytes / SPARE_PART;
}

static bool tasks_wait(const Root *root)
{
    Pressure pressure;
    return pressure_read(root, &pressure) == 0 && pressure.some_avg10 > WAITING_PERCENT;
}

static bool group_is_short(const Shortage *shortage)
{
    Cgroup group;
    return cgroup_read(&shortage->root, 0, &shortage->mounts, &group) == 0 &&
           group.memory_room_bytes != U64_UNKNOWN &&
           group.memory_room_bytes < group.memory_limit_bytes / SPARE_PART;
}

bool shortage_now(const Shortage *shortage)
{
    return machine_is_short(&shortage->root) || tasks_wait(&shortage->root) || group_is_short(shortage);
}

uint64_t shortage_spare_bytes(const Shortage *shortage)
{
    Cgroup group;
    MemInfo memory;
    uint64_t spare = U64_UNKNOWN;
    if (meminfo_read(&shortage->root, &memory) == 0 && memory.available_bytes != U64_UNKNOWN)
        spare = memory.available_bytes - MIN(memory.available_bytes, memory.total_bytes / SPARE_PART);
    if (cgroup_read(&shortage->root, 0, &shortage->mounts, &group) == 0 &&
        group.memory_room_bytes != U64_UNKNOWN)
        spare = MIN(spare, group.memory_room_bytes -
                               MIN(group.memory_room_bytes, group.memory_limit_bytes / SPARE_PART));
    return spare;
}
