/* SPDX-License-Identifier: Apache-2.0 */
#include "free-memory.h"
#include "cgroup.h"
#include "meminfo.h"
#include "pressure.h"

/*
 * Tasks that wait for memory for a tenth of their time are visibly slower. The twentieth that must stay
 * available is about what a machine needs for a useful page cache; a large machine needs no more than
 * RESERVE_MOST for that. TIGHT_PART: workers make a batch in private memory, all of them at once, before they
 * put it into shared memory.
 */
enum { WAITING_PERCENT = 10, SPARE_PART = 20, TIGHT_PART = 3 };
#define TIGHT_MOST_BYTES   (UINT64_C(4) << 30)
#define RESERVE_MOST_BYTES (UINT64_C(2) << 30)

static uint64_t reserve_bytes(uint64_t total_bytes)
{
    return MIN(total_bytes / SPARE_PART, RESERVE_MOST_BYTES);
}

int free_memory_open(const char *path, FreeMemory *ret)
{
    FreeMemory free_memory = {0};
    int r = root_open(path, &free_memory.root);
    if (r < 0)
        return r;
    (void)mounts_read(&free_memory.root, 0, &free_memory.arena, &free_memory.mounts);
    *ret = free_memory;
    return 0;
}

void free_memory_close(FreeMemory *free_memory)
{
    arena_free(&free_memory->arena);
    root_close(&free_memory->root);
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

static bool group_is_short(const FreeMemory *free_memory)
{
    Cgroup group;
    return cgroup_read(&free_memory->root, 0, &free_memory->mounts, &group) == 0 &&
           group.memory_room_bytes != U64_UNKNOWN &&
           group.memory_room_bytes < reserve_bytes(group.memory_limit_bytes);
}

bool free_memory_is_short(const FreeMemory *free_memory)
{
    return machine_is_short(&free_memory->root) || tasks_wait(&free_memory->root) ||
           group_is_short(free_memory);
}

static void spare_limit(Spare *spare, uint64_t room_bytes, uint64_t total_bytes, uint64_t swap_bytes)
{
    spare->bytes = MIN(spare->bytes, room_bytes - MIN(room_bytes, reserve_bytes(total_bytes)));
    spare->most_bytes = MIN(spare->most_bytes, room_bytes + swap_bytes);
    spare->tight |= room_bytes < MIN(total_bytes / TIGHT_PART, TIGHT_MOST_BYTES);
}

Spare free_memory_spare(const FreeMemory *free_memory)
{
    Cgroup group;
    MemInfo memory;
    Spare spare = {U64_UNKNOWN, U64_UNKNOWN, false, false};
    uint64_t swap = 0;
    if (meminfo_read(&free_memory->root, &memory) == 0 && memory.available_bytes != U64_UNKNOWN) {
        swap = memory.swap_free_bytes == U64_UNKNOWN ? 0 : memory.swap_free_bytes;
        spare_limit(&spare, memory.available_bytes, memory.total_bytes, swap);
    }
    if (cgroup_read(&free_memory->root, 0, &free_memory->mounts, &group) == 0 &&
        group.memory_room_bytes != U64_UNKNOWN) {
        uint64_t of_machine = spare.bytes;
        spare_limit(&spare, group.memory_room_bytes, group.memory_limit_bytes,
                    MIN(swap, group.swap_limit_bytes));
        spare.of_group = spare.bytes < of_machine;
    }
    return spare;
}

static uint64_t number_in(const Root *root, const char *name)
{
    Text value;
    uint64_t number = 0;
    return root_environment(root, name, &value) && text_u64(value, 10, &number) == 0 ? number : 0;
}

/* "4(x2),3": four tasks on each of the first two nodes, and three on the next one. 0: it does not say. */
static uint64_t slurm_tasks_parse(Text list, uint64_t node)
{
    for (Text part; text_until(&list, ',', &part);) {
        uint64_t tasks = 0;
        uint64_t nodes = 1;
        Text digits = text_digits(part);
        Text times = text_skip(part, digits.size);
        if (text_u64(digits, 10, &tasks) < 0 ||
            (text_starts(times, "(x") && text_u64(text_digits(text_skip(times, 2)), 10, &nodes) < 0))
            return 0;
        if (node < nodes)
            return tasks;
        node -= nodes;
    }
    return 0;
}

/* Both limits are in MiB; 0 stands for all memory of the node. */
uint64_t free_memory_allotted(const FreeMemory *free_memory)
{
    const Root *root = &free_memory->root;
    Text tasks_per_node = {0};
    uint64_t tasks = 0;
    uint64_t mib = number_in(root, "SLURM_MEM_PER_NODE");
    if (mib == 0 && __builtin_mul_overflow(number_in(root, "SLURM_MEM_PER_CPU"),
                                           number_in(root, "SLURM_CPUS_ON_NODE"), &mib))
        return U64_UNKNOWN;
    if (mib == 0 || mib > U64_UNKNOWN >> 20)
        return U64_UNKNOWN;
    if (root_environment(root, "SLURM_STEP_TASKS_PER_NODE", &tasks_per_node))
        tasks = slurm_tasks_parse(tasks_per_node, number_in(root, "SLURM_NODEID"));
    return (mib << 20) / MAX(tasks, UINT64_C(1));
}

uint64_t free_memory_total(const FreeMemory *free_memory)
{
    Cgroup group;
    MemInfo memory;
    uint64_t total = U64_UNKNOWN;
    if (meminfo_read(&free_memory->root, &memory) == 0)
        total = memory.total_bytes;
    if (cgroup_read(&free_memory->root, 0, &free_memory->mounts, &group) == 0)
        total = MIN(total, group.memory_limit_bytes);
    return total == U64_UNKNOWN ? 0 : total;
}
