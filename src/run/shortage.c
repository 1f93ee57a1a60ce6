#include "shortage.h"
#include "cgroup.h"
#include "meminfo.h"
#include "pressure.h"

/*
 * Tasks that wait for memory a tenth of their time are slowed down visibly. The twentieth part that must stay
 * available is about what a machine needs for its page cache to be of any use; a large one does not need more
 * than RESERVE_MOST for that. TIGHT_PART: workers make a batch in memory of their own, all of them at once,
 * before they put it into shared memory.
 */
enum { WAITING_PERCENT = 10, SPARE_PART = 20, TIGHT_PART = 3 };
#define TIGHT_MOST_BYTES   (UINT64_C(4) << 30)
#define RESERVE_MOST_BYTES (UINT64_C(2) << 30)

static uint64_t reserve_bytes(uint64_t total_bytes)
{
    return MIN(total_bytes / SPARE_PART, RESERVE_MOST_BYTES);
}

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
           memory.available_bytes < reserve_bytes(memory.total_bytes);
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
           group.memory_room_bytes < reserve_bytes(group.memory_limit_bytes);
}

bool shortage_now(const Shortage *shortage)
{
    return machine_is_short(&shortage->root) || tasks_wait(&shortage->root) || group_is_short(shortage);
}

static void spare_limit(Spare *spare, uint64_t room_bytes, uint64_t total_bytes, uint64_t swap_bytes)
{
    spare->bytes = MIN(spare->bytes, room_bytes - MIN(room_bytes, reserve_bytes(total_bytes)));
    spare->most_bytes = MIN(spare->most_bytes, room_bytes + swap_bytes);
    spare->tight |= room_bytes < MIN(total_bytes / TIGHT_PART, TIGHT_MOST_BYTES);
}

Spare shortage_spare(const Shortage *shortage)
{
    Cgroup group;
    MemInfo memory;
    Spare spare = {U64_UNKNOWN, U64_UNKNOWN, false};
    uint64_t swap = 0;
    if (meminfo_read(&shortage->root, &memory) == 0 && memory.available_bytes != U64_UNKNOWN) {
        swap = memory.swap_free_bytes == U64_UNKNOWN ? 0 : memory.swap_free_bytes;
        spare_limit(&spare, memory.available_bytes, memory.total_bytes, swap);
    }
    if (cgroup_read(&shortage->root, 0, &shortage->mounts, &group) == 0 &&
        group.memory_room_bytes != U64_UNKNOWN)
        spare_limit(&spare, group.memory_room_bytes, group.memory_limit_bytes,
                    MIN(swap, group.swap_limit_bytes));
    return spare;
}
