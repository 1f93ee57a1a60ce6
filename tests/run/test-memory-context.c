/* SPDX-License-Identifier: Apache-2.0 */
#include "temp-root.h"

#include "memory-context.h"

static void group_write(const TempRoot *temp, const char *group, const char *used, unsigned kills)
{
    char path[128];
    char text[128];
    snprintf(path, sizeof path, "sys/fs/cgroup/%s/memory.max", group);
    temp_root_write(temp, path, "1000000\n");
    snprintf(path, sizeof path, "sys/fs/cgroup/%s/memory.current", group);
    temp_root_write(temp, path, used);
    snprintf(path, sizeof path, "sys/fs/cgroup/%s/memory.stat", group);
    temp_root_write(temp, path, "anon 5\ninactive_file 1000\nshmem 7\n");
    snprintf(path, sizeof path, "sys/fs/cgroup/%s/memory.events", group);
    snprintf(text, sizeof text, "low 0\noom 9\noom_kill %u\n", kills);
    temp_root_write(temp, path, text);
}

static TempRoot machine_make(void)
{
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/self/cgroup", "0::/job\n");
    temp_root_write(&temp, "proc/self/mountinfo",
                    "30 1 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
    temp_root_write(&temp, "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    temp_root_write(&temp, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 500 kB\n");
    temp_root_write(&temp, "proc/vmstat", "nr_free_pages 1\noom_kill 10\n");
    temp_root_write(&temp, "proc/sys/vm/max_map_count", "65530\n");
    temp_root_write(&temp, "proc/5/cgroup", "0::/job\n");
    temp_root_write(&temp, "proc/5/limits",
                    "Limit                     Soft Limit           Hard Limit           Units     \n"
                    "Max open files            1024                 4096                 files     \n");
    temp_root_write(&temp, "dev/kmsg",
                    "6,1,5000000,-;Out of memory: Killed process 70 (old) total-vm:1kB, anon-rss:1kB, "
                    "file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n");
    temp_root_write(&temp, ".capture/statfs", "proc/5/root/dev/shm 1021994 4096 100 40 40 10 10\n");
    group_write(&temp, "job", "50000\n", 3);
    return temp;
}

static void test_before_and_after(void **state)
{
    (void)state;
    TempRoot temp = machine_make();
    _cleanup_arena_ Arena arena = {0};
    MemoryContext memory;
    Evidence evidence = {0};
    memory_context_open(temp_root_open(&temp), &memory);
    group_write(&temp, "job", "900000\n", 4);
    temp_root_write(&temp, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 100 kB\n");
    memory_context_look(&memory, 5);
    group_write(&temp, "job", "60000\n", 5);
    temp_root_write(&temp, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
    temp_root_write(&temp, "proc/vmstat", "nr_free_pages 1\noom_kill 13\n");
    temp_root_write(&temp, "dev/kmsg",
                    "6,1,5000000,-;Out of memory: Killed process 70 (old) total-vm:1kB, anon-rss:1kB, "
                    "file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n"
                    "6,2,6000000,-;Out of memory: Killed process 71 (new) total-vm:1kB, anon-rss:1kB, "
                    "file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n");
    assert_int_equal(memory_context_finish(&memory, &arena, &evidence), 0);
    assert_int_equal(evidence.group_kills, 2);
    assert_int_equal(evidence.machine_kills, 3);
    assert_int_equal(evidence.group_limit_bytes, 1000000);
    assert_int_equal(evidence.group_used_most_bytes, 899000);
    assert_int_equal(evidence.available_least_bytes, 100 * 1024);
    assert_int_equal(evidence.shm_size_bytes, 100 * 4096);
    assert_int_equal(evidence.shm_free_least_bytes, 40 * 4096);
    assert_int_equal(memory.shm_used_most_bytes, 60 * 4096);
    assert_int_equal(evidence.open_files_soft, 1024);
    assert_int_equal(evidence.max_map_count, 65530);
    assert_int_equal(evidence.kills_error, 0);
    assert_int_equal(evidence.kills.n, 1);
    assert_int_equal(evidence.kills.items[0].pid, 71);
    memory_context_close(&memory);
    temp_root_free(&temp);
}

/* The command moved to its own group. If no look saw a kill there, their number is unknown, not 0. */
static void test_another_group(void **state)
{
    (void)state;
    static const struct {
        unsigned seen;
        uint64_t kills;
    } cases[] = {{7, U64_UNKNOWN}, {8, 1}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        TempRoot temp = machine_make();
        _cleanup_arena_ Arena arena = {0};
        MemoryContext memory;
        Evidence evidence = {0};
        memory_context_open(temp_root_open(&temp), &memory);
        temp_root_write(&temp, "proc/5/cgroup", "0::/own\n");
        group_write(&temp, "own", "500\n", 7);
        memory_context_look(&memory, 5);
        group_write(&temp, "own", "500\n", cases[i].seen);
        memory_context_look(&memory, 5);
        memory_context_look(&memory, 0);
        assert_int_equal(memory_context_finish(&memory, &arena, &evidence), 0);
        assert_int_equal(evidence.group_kills, cases[i].kills);
        memory_context_close(&memory);
        temp_root_free(&temp);
    }
}

static void test_nothing_is_known(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/nothing", "");
    _cleanup_arena_ Arena arena = {0};
    MemoryContext memory;
    Evidence evidence = {0};
    memory_context_open(temp_root_open(&temp), &memory);
    memory_context_look(&memory, 5);
    assert_int_equal(memory_context_finish(&memory, &arena, &evidence), 0);
    assert_int_equal(evidence.group_kills, U64_UNKNOWN);
    assert_int_equal(evidence.machine_kills, U64_UNKNOWN);
    assert_int_equal(evidence.group_limit_bytes, U64_UNKNOWN);
    assert_int_equal(evidence.group_used_most_bytes, U64_UNKNOWN);
    assert_int_equal(evidence.available_least_bytes, U64_UNKNOWN);
    assert_int_equal(evidence.shm_size_bytes, U64_UNKNOWN);
    assert_int_equal(evidence.shm_free_least_bytes, U64_UNKNOWN);
    assert_int_equal(evidence.open_files_soft, U64_UNKNOWN);
    assert_int_equal(evidence.max_map_count, U64_UNKNOWN);
    assert_true(evidence.kills_error < 0);
    memory_context_close(&memory);
    temp_root_free(&temp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_and_after),
        cmocka_unit_test(test_another_group),
        cmocka_unit_test(test_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
