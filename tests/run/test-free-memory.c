/* SPDX-License-Identifier: Apache-2.0 */
#include "temp-root.h"

#include "free-memory.h"

#define PLENTY "MemTotal: 1000000 kB\nMemFree: 1 kB\nMemAvailable: 50000 kB\n"
#define CALM                                                                                                 \
    "some avg10=10.00 avg60=90.00 avg300=90.00 total=1\nfull avg10=9.00 avg60=0.00 avg300=0.00 total=1\n"

static void test_shortage(void **state)
{
    (void)state;
    static const struct {
        const char *meminfo;
        const char *pressure;
        const char *limit;
        const char *used;
        const char *inactive_file;
        bool is_short;
    } cases[] = {
        {PLENTY, CALM, "max\n", "999999999999\n", "0", false},
        {PLENTY, NULL, NULL, NULL, NULL, false},
        {"MemTotal: 1000000 kB\nMemAvailable: 49999 kB\n", CALM, NULL, NULL, NULL, true},
        {"MemTotal: 1000000 kB\n", CALM, NULL, NULL, NULL, false},
        {"garbage", "garbage", "garbage", "garbage", "x", false},
        {"", "", "", "", "", false},
        {PLENTY, "some avg10=10.01 avg60=0.00 avg300=0.00 total=1\n", NULL, NULL, NULL, true},
        {PLENTY, CALM, "1000000000\n", "950000000\n", "0", false},
        {PLENTY, CALM, "1000000000\n", "950000001\n", "0", true},
        {PLENTY, CALM, "1000000000\n", "1000000000\n", "600000000", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        TempRoot temp = temp_root_make();
        temp_root_write(&temp, "proc/meminfo", cases[i].meminfo);
        if (cases[i].pressure)
            temp_root_write(&temp, "proc/pressure/memory", cases[i].pressure);
        if (cases[i].limit) {
            char stat[128];
            snprintf(stat, sizeof stat, "anon 5\ninactive_file %s\nshmem 7\n", cases[i].inactive_file);
            temp_root_write(&temp, "proc/self/cgroup", "0::/job\n");
            temp_root_write(&temp, "proc/self/mountinfo",
                            "30 1 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
            temp_root_write(&temp, "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
            temp_root_write(&temp, "sys/fs/cgroup/job/memory.max", cases[i].limit);
            temp_root_write(&temp, "sys/fs/cgroup/job/memory.current", cases[i].used);
            temp_root_write(&temp, "sys/fs/cgroup/job/memory.stat", stat);
        }
        FreeMemory free_memory;
        assert_int_equal(free_memory_open(temp.path, &free_memory), 0);
        if (free_memory_is_short(&free_memory) != cases[i].is_short)
            fail_msg("case %zu", i);
        free_memory_close(&free_memory);
        temp_root_free(&temp);
    }
}

/* The group with the smallest limit is not always the first one to become full. */
static void test_spare(void **state)
{
    (void)state;
    static const struct {
        const char *available;
        const char *above_used;
        uint64_t spare;
        uint64_t most;
        bool tight;
    } cases[] = {
        /* limited by the job's own group: all of its page cache counts as free; it may not swap */
        {"900000", "0", 950000000 - 500000000 + 300000000, 1000000000 - 500000000 + 300000000, false},
        /* limited by the machine */
        {"100000", "0", (100000 - 50000) * UINT64_C(1024), (100000 + 2000) * UINT64_C(1024), true},
        /* limited by the parent group, which others use too */
        {"900000", "3900000000", 50000000, 100000000, true},
        {"40000", "0", 0, (40000 + 2000) * UINT64_C(1024), true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        TempRoot temp = temp_root_make();
        char meminfo[128];
        snprintf(meminfo, sizeof meminfo,
                 "MemTotal: 1000000 kB\nMemAvailable: %s kB\nSwapTotal: 3000 kB\nSwapFree: 2000 kB\n",
                 cases[i].available);
        temp_root_write(&temp, "proc/meminfo", meminfo);
        temp_root_write(&temp, "proc/self/cgroup", "0::/all/job\n");
        temp_root_write(&temp, "proc/self/mountinfo",
                        "30 1 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
        temp_root_write(&temp, "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
        temp_root_write(&temp, "sys/fs/cgroup/all/memory.max", "4000000000\n");
        temp_root_write(&temp, "sys/fs/cgroup/all/memory.current", cases[i].above_used);
        temp_root_write(&temp, "sys/fs/cgroup/all/job/memory.max", "1000000000\n");
        temp_root_write(&temp, "sys/fs/cgroup/all/job/memory.current", "500000000\n");
        temp_root_write(&temp, "sys/fs/cgroup/all/job/memory.stat",
                        "inactive_file 100000000\nactive_file 200000000\n");
        temp_root_write(&temp, "sys/fs/cgroup/all/job/memory.swap.max", "0\n");
        FreeMemory free_memory;
        assert_int_equal(free_memory_open(temp.path, &free_memory), 0);
        Spare spare = free_memory_spare(&free_memory);
        assert_int_equal(spare.bytes, cases[i].spare);
        assert_int_equal(spare.most_bytes, cases[i].most);
        assert_int_equal(spare.tight, cases[i].tight);
        free_memory_close(&free_memory);
        temp_root_free(&temp);
    }
}

static void test_allotted(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        uint64_t bytes;
    } cases[] = {
        {"", U64_UNKNOWN},
        {"SLURM_JOB_ID=7\n", U64_UNKNOWN},
        {"SLURM_MEM_PER_NODE=600\n", UINT64_C(600) << 20},
        {"SLURM_MEM_PER_NODE=0\n", U64_UNKNOWN}, /* all memory of the node */
        {"SLURM_MEM_PER_NODE=600M\n", U64_UNKNOWN},
        {"SLURM_MEM_PER_NODE=99999999999999999\n", U64_UNKNOWN},
        {"SLURM_MEM_PER_CPU=100\nSLURM_CPUS_ON_NODE=8\n", UINT64_C(800) << 20},
        {"SLURM_MEM_PER_CPU=100\n", U64_UNKNOWN},
        {"SLURM_MEM_PER_CPU=99999999999\nSLURM_CPUS_ON_NODE=99999999999\n", U64_UNKNOWN},
        {"SLURM_MEM_PER_NODE=600\nSLURM_STEP_TASKS_PER_NODE=4\n", UINT64_C(150) << 20},
        {"SLURM_MEM_PER_NODE=600\nSLURM_STEP_TASKS_PER_NODE=4(x2),3\nSLURM_NODEID=1\n", UINT64_C(150) << 20},
        {"SLURM_MEM_PER_NODE=600\nSLURM_STEP_TASKS_PER_NODE=4(x2),3\nSLURM_NODEID=2\n", UINT64_C(200) << 20},
        {"SLURM_MEM_PER_NODE=600\nSLURM_STEP_TASKS_PER_NODE=4(x2),3\nSLURM_NODEID=3\n", UINT64_C(600) << 20},
        {"SLURM_MEM_PER_NODE=600\nSLURM_STEP_TASKS_PER_NODE=4(x\n", UINT64_C(600) << 20},
        {"SLURM_MEM_PER_NODE=600\nSLURM_STEP_TASKS_PER_NODE=0\n", UINT64_C(600) << 20},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        TempRoot temp = temp_root_make();
        FreeMemory free_memory;
        temp_root_write(&temp, "proc/meminfo", PLENTY);
        temp_root_write(&temp, ".capture/env", cases[i].environment);
        assert_int_equal(free_memory_open(temp.path, &free_memory), 0);
        if (free_memory_allotted(&free_memory) != cases[i].bytes)
            fail_msg("case %zu", i);
        free_memory_close(&free_memory);
        temp_root_free(&temp);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shortage), cmocka_unit_test(test_spare),
                                       cmocka_unit_test(test_allotted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
