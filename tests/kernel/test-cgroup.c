/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"
#include "temp-root.h"

enum { MIB = 1 << 20 };
#define V1_NONE "9223372036854771712\n"

static void test_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        uint32_t hierarchy;
        const char *controllers;
        const char *path;
    } cases[] = {
        {"4:memory:/a/b", 0, 4, "memory", "/a/b"},
        {"0::/", 0, 0, "", "/"},
        {"2:cpu,cpuacct:/x", 0, 2, "cpu,cpuacct", "/x"},
        {"9:name=systemd:/a:b c", 0, 9, "name=systemd", "/a:b c"},
        {"0::/../other", 0, 0, "", "/../other"},
        {"", -EBADMSG, 0, "", ""},
        {"4", -EBADMSG, 0, "", ""},
        {"4:", -EBADMSG, 0, "", ""},
        {"4:memory", -EBADMSG, 0, "", ""},
        {"4:memory:", -EBADMSG, 0, "", ""},
        {"4:memory:relative", -EBADMSG, 0, "", ""},
        {"x:memory:/", -EBADMSG, 0, "", ""},
        {"99999999999:memory:/", -EBADMSG, 0, "", ""},
        {":memory:/", -EBADMSG, 0, "", ""},
        {"::::", -EBADMSG, 0, "", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CgroupLine line = {0};
        assert_int_equal(cgroup_line_parse(text_of(cases[i].text), &line), cases[i].r);
        if (cases[i].r < 0)
            continue;
        assert_int_equal(line.hierarchy, cases[i].hierarchy);
        assert_true(text_equal(line.controllers, cases[i].controllers));
        assert_true(text_equal(line.path, cases[i].path));
    }
}

static void test_limit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        uint64_t bytes;
    } cases[] = {
        {"67108864\n", 0, 64 * MIB},
        {"0\n", 0, 0},
        {"max\n", 0, U64_UNKNOWN},
        {"max", 0, U64_UNKNOWN},
        {V1_NONE, 0, U64_UNKNOWN},
        {"9223372036854710272\n", 0, U64_UNKNOWN}, /* with pages of 64 KiB */
        {"9223372036854775807\n", 0, U64_UNKNOWN},
        {"18446744073709551615\n", 0, U64_UNKNOWN},
        {"1125899906842624\n", 0, UINT64_C(1) << 50}, /* more than any machine has, but still a limit */
        {"99999999999999999999\n", -EBADMSG, 7},
        {"", -EBADMSG, 7},
        {"-1\n", -EBADMSG, 7},
        {"64M\n", -EBADMSG, 7},
        {"max 1\n", -EBADMSG, 7},
        {"1 2\n", -EBADMSG, 7},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t bytes = 7;
        assert_int_equal(cgroup_limit_parse(text_of(cases[i].text), &bytes), cases[i].r);
        assert_true(bytes == cases[i].bytes);
    }
}

static void test_key(void **state)
{
    (void)state;
    Text text =
        TEXT("cache 1\ntotal_cache 2\nshmem 30\nbad\nworse x\ntwo 1 2\nhuge 99999999999999999999\nlast 4");
    uint64_t value = 7;
    assert_int_equal(cgroup_key_parse(text, "shmem", &value), 0);
    assert_int_equal(value, 30);
    assert_int_equal(cgroup_key_parse(text, "cache", &value), 0);
    assert_int_equal(value, 1);
    assert_int_equal(cgroup_key_parse(text, "last", &value), 0);
    assert_int_equal(value, 4);
    static const char *const missing[] = {"bad", "worse", "two", "huge", "ache", "shme", ""};
    for (size_t i = 0; i < ARRAY_SIZE(missing); i++)
        assert_int_equal(cgroup_key_parse(text, missing[i], &value), -ENODATA);
    assert_int_equal(cgroup_key_parse((Text){0}, "x", &value), -ENODATA);
    assert_int_equal(value, 4);
}

static void test_cpu_max(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        double cpus;
    } cases[] = {
        {"200000 100000\n", 0, 2},   {"50000 100000\n", 0, 0.5},   {"max 100000\n", 0, 0},
        {"100000 0\n", -EBADMSG, 7}, {"max\n", -EBADMSG, 7},       {"", -EBADMSG, 7},
        {"1 2 3\n", -EBADMSG, 7},    {"-1 100000\n", -EBADMSG, 7}, {"max max\n", -EBADMSG, 7},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        double cpus = 7;
        assert_int_equal(cgroup_cpu_max_parse(text_of(cases[i].text), &cpus), cases[i].r);
        assert_float_equal(cpus, cases[i].cpus, 1e-9);
    }
}

typedef struct File {
    const char *path;
    const char *text;
} File;

static int read_tree(const char *lines, const char *mountinfo, const File *files, Cgroup *ret)
{
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/meminfo", "");
    temp_root_link(&temp, "7", "proc/self");
    temp_root_write(&temp, "proc/7/cgroup", lines);
    for (const File *file = files; file->path; file++)
        temp_root_write(&temp, file->path, file->text);
    _cleanup_arena_ Arena arena = {0};
    Mounts mounts;
    assert_int_equal(mounts_parse(text_of(mountinfo), &arena, &mounts), 0);
    const Root *root = temp_root_open(&temp);
    Cgroup by_number;
    int r = cgroup_read(root, 0, &mounts, ret);
    assert_int_equal(cgroup_read(root, 7, &mounts, &by_number), r);
    assert_string_equal(by_number.path, ret->path);
    assert_true(by_number.memory_limit_bytes == ret->memory_limit_bytes);
    temp_root_free(&temp);
    return r;
}

#define V1_MOUNTS                                                                                            \
    "31 1 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"                                                       \
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"                            \
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"                                      \
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                                      \
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
#define V2_MOUNTS "30 1 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
#define M         "sys/fs/cgroup/memory/"
#define U         "sys/fs/cgroup/"

/* Version 1 next to an empty version 2 hierarchy, as in systemd's hybrid setup. */
static void test_v1_hybrid(void **state)
{
    (void)state;
    static const File files[] = {
        {M "memory.limit_in_bytes", V1_NONE},
        {M "memory.use_hierarchy", "1\n"},
        {M "job/memory.limit_in_bytes", "1073741824\n"},
        {M "job/memory.usage_in_bytes", "524288000\n"},
        {M "job/memory.use_hierarchy", "1\n"},
        {M "job/memory.memsw.limit_in_bytes", "1610612736\n"},
        {M "job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"},
        {M "job/memory.stat",
         "cache 1\ninactive_file 5\nshmem 6\ntotal_inactive_file 4096\ntotal_shmem 8192\n"},
        {M "job/inner/memory.limit_in_bytes", V1_NONE},
        {M "job/inner/memory.usage_in_bytes", "1\n"},
        {M "job/inner/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"},
        {M "job/inner/memory.stat", "hierarchical_memory_limit 1073741824\n"},
        {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
        {"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n"},
        {"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"},
        {"sys/fs/cgroup/cpu,cpuacct/job/inner/cpu.cfs_quota_us", "400000\n"},
        {"sys/fs/cgroup/cpu,cpuacct/job/inner/cpu.cfs_period_us", "100000\n"},
        {"sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-7\n"},
        {"sys/fs/cgroup/unified/cgroup.controllers", "\n"},
        {0},
    };
    Cgroup group;
    assert_int_equal(
        read_tree("9:name=systemd:/\n4:memory:/job/inner\n3:cpuset:/\n2:cpu,cpuacct:/job/inner\n0::/\n",
                  V1_MOUNTS, files, &group),
        0);
    assert_int_equal(group.version, 1);
    assert_string_equal(group.path, "/job/inner");
    assert_string_equal(group.limited_by, "/job");
    assert_int_equal(group.memory_limit_bytes, 1024 * MIB);
    assert_int_equal(group.memory_used_bytes, 500 * MIB);
    assert_int_equal(group.memory_reclaimable_bytes, 4096);
    assert_int_equal(group.memory_shmem_bytes, 8192);
    assert_int_equal(group.swap_limit_bytes, 512 * MIB);
    assert_int_equal(group.oom_kills, 5); /* the sum of both groups */
    assert_float_equal(group.cpu_quota, 1.5, 1e-9);
    assert_int_equal(group.cpuset_cpus, 8);
}

static void test_v1_without_limit(void **state)
{
    (void)state;
    static const File files[] = {
        {M "memory.limit_in_bytes", V1_NONE},
        {M "memory.usage_in_bytes", "4096\n"},
        {M "memory.stat",
         "cache 1\nshmem 12\ninactive_file 5\nhierarchical_memory_limit 9223372036854771712\n"},
        {M "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n"}, /* before 4.13 */
        {0},
    };
    Cgroup group;
    assert_int_equal(read_tree("4:memory:/\n", V1_MOUNTS, files, &group), 0);
    assert_int_equal(group.version, 1);
    assert_string_equal(group.limited_by, "");
    assert_true(group.memory_limit_bytes == U64_UNKNOWN);
    assert_int_equal(group.memory_used_bytes, 4096);
    assert_int_equal(group.memory_reclaimable_bytes, 5);
    assert_int_equal(group.memory_shmem_bytes, 12);
    assert_true(group.swap_limit_bytes == U64_UNKNOWN);
    assert_true(group.oom_kills == U64_UNKNOWN);
    assert_float_equal(group.cpu_quota, 0, 0);
    assert_int_equal(group.cpuset_cpus, 0);
}

/* Docker on version 1: /proc has the host's path, but only the container's own part of it is mounted. */
static void test_v1_container(void **state)
{
    (void)state;
    static const File files[] = {
        {M "memory.limit_in_bytes", "67108864\n"},
        {M "memory.usage_in_bytes", "70000000\n"}, /* briefly above the limit */
        {M "memory.stat", "total_inactive_file 1\nhierarchical_memory_limit 67108864\n"},
        {0},
    };
    static const struct {
        const char *lines;
        const char *mount_root;
        const char *limited_by;
    } cases[] = {
        {"4:memory:/docker/abc\n", "/docker/abc", "/docker/abc"},
        {"4:memory:/docker/abc/sub\n", "/docker/abc", "/docker/abc"}, /* the sub-group is gone */
        {"4:memory:/docker/abcdef\n", "/docker/abc", "/docker/abc"},  /* a similar name, but not below it */
        {"4:memory:/\n", "/", "/"},
        {"4:memory:/../../etc\n", "/", "/"},
        {"4:memory:/a/../../../..\n", "/", "/"},
        {"4:memory:/docker/abc\n", "/", "/"},
        {"4:memory:/docker/abc (deleted)\n", "/", "/"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char mountinfo[256];
        snprintf(mountinfo, sizeof mountinfo,
                 "35 31 0:32 %s /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", cases[i].mount_root);
        Cgroup group;
        assert_int_equal(read_tree(cases[i].lines, mountinfo, files, &group), 0);
        assert_int_equal(group.memory_limit_bytes, 64 * MIB);
        assert_int_equal(group.memory_used_bytes, 70000000);
        assert_string_equal(group.limited_by, cases[i].limited_by);
    }
}

/* A pod's limit is set above what its container can see. Version 1 reports it all the same. */
static void test_v1_limit_out_of_sight(void **state)
{
    (void)state;
    static const File files[] = {
        {M "memory.limit_in_bytes", "1073741824\n"},
        {M "memory.usage_in_bytes", "1048576\n"},
        {M "memory.stat", "total_inactive_file 1\nhierarchical_memory_limit 536870912\n"},
        {0},
    };
    Cgroup group;
    assert_int_equal(
        read_tree("4:memory:/kubepods/pod1/c1\n",
                  "35 31 0:32 /kubepods/pod1/c1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", files,
                  &group),
        0);
    assert_int_equal(group.memory_limit_bytes, 512 * MIB);
    assert_string_equal(group.limited_by, "/kubepods/pod1/c1/..");
    assert_true(group.memory_used_bytes == U64_UNKNOWN);
}

static void test_v1_no_hierarchy(void **state)
{
    (void)state;
    static const File files[] = {
        {M "a/memory.limit_in_bytes", "1048576\n"},
        {M "a/memory.use_hierarchy", "0\n"},
        {M "a/b/memory.limit_in_bytes", "67108864\n"},
        {M "a/b/memory.stat", "hierarchical_memory_limit 67108864\n"},
        {0},
    };
    Cgroup group;
    assert_int_equal(read_tree("4:memory:/a/b\n", V1_MOUNTS, files, &group), 0);
    assert_int_equal(group.memory_limit_bytes, 64 * MIB);
    assert_string_equal(group.limited_by, "/a/b");
}

/* Only the grandparent has a limit. */
static void test_v2_nested(void **state)
{
    (void)state;
    static const File files[] = {
        {U "cgroup.controllers", "cpuset cpu io memory pids\n"},
        {U "cpuset.cpus.effective", "0-63\n"},
        {U "memory.stat", "inactive_file 1\n"},
        {U "user.slice/memory.max", "max\n"},
        {U "user.slice/job/memory.max", "2147483648\n"},
        {U "user.slice/job/memory.current", "2147483647\n"},
        {U "user.slice/job/memory.swap.max", "0\n"},
        {U "user.slice/job/memory.events", "low 0\nhigh 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 0\n"},
        {U "user.slice/job/memory.stat", "anon 1\nfile 2\nshmem 1073741824\ninactive_file 65536\n"},
        {U "user.slice/job/cpu.max", "max 100000\n"},
        {U "user.slice/job/cpuset.cpus.effective", "0-3,8\n"},
        {U "user.slice/job/a/memory.max", "max\n"},
        {U "user.slice/job/a/cpu.max", "250000 100000\n"},
        {U "user.slice/job/a/b/memory.max", "max\n"},
        {U "user.slice/job/a/b/memory.current", "1\n"},
        {U "user.slice/job/a/b/memory.swap.max", "max\n"},
        {U "user.slice/job/a/b/memory.events", "oom_kill 1\n"},
        {U "user.slice/job/a/b/cpu.max", "800000 100000\n"},
        {0},
    };
    Cgroup group;
    assert_int_equal(read_tree("0::/user.slice/job/a/b\n", V2_MOUNTS, files, &group), 0);
    assert_int_equal(group.version, 2);
    assert_string_equal(group.path, "/user.slice/job/a/b");
    assert_string_equal(group.limited_by, "/user.slice/job");
    assert_true(group.memory_limit_bytes == UINT64_C(2147483648));
    assert_true(group.memory_used_bytes == UINT64_C(2147483647));
    assert_int_equal(group.memory_reclaimable_bytes, 65536);
    assert_int_equal(group.memory_shmem_bytes, 1024 * MIB);
    assert_int_equal(group.swap_limit_bytes, 0);
    assert_int_equal(group.oom_kills, 3);
    assert_float_equal(group.cpu_quota, 2.5, 1e-9);
    assert_int_equal(group.cpuset_cpus, 5);
}

static void test_v2_tightest_wins(void **state)
{
    (void)state;
    static const struct {
        const char *outer;
        const char *inner;
        const char *limited_by;
        uint64_t limit;
    } cases[] = {
        {"1048576\n", "2097152\n", "/o", MIB},
        {"2097152\n", "1048576\n", "/o/i", MIB},
        {"1048576\n", "1048576\n", "/o", MIB},
        {"max\n", "1048576\n", "/o/i", MIB},
        {"garbage\n", "1048576\n", "/o/i", MIB},
        {"", "1048576\n", "/o/i", MIB},
        {"max\n", "max\n", "", U64_UNKNOWN},
        {"0\n", "1\n", "/o", 0},
        {"1125899906842624\n", "max\n", "/o", UINT64_C(1) << 50},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const File files[] = {
            {U "cgroup.controllers", "memory\n"},
            {U "o/memory.max", cases[i].outer},
            {U "o/i/memory.max", cases[i].inner},
            {0},
        };
        Cgroup group;
        assert_int_equal(read_tree("0::/o/i\n", V2_MOUNTS, files, &group), 0);
        assert_true(group.memory_limit_bytes == cases[i].limit);
        assert_string_equal(group.limited_by, cases[i].limited_by);
    }
}

/* A container with its own cgroup namespace. */
static void test_v2_container(void **state)
{
    (void)state;
    static const File files[] = {
        {U "cgroup.controllers", "cpu memory\n"}, {U "memory.max", "67108864\n"},
        {U "memory.current", "1048576\n"},        {U "memory.events", "oom_kill 0\n"},
        {U "cpu.max", "50000 100000\n"},          {0},
    };
    static const char *const lines[] = {"0::/\n", "0::/../host-process\n", "0::/gone\n"};
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        Cgroup group;
        assert_int_equal(read_tree(lines[i], V2_MOUNTS, files, &group), 0);
        assert_int_equal(group.version, 2);
        assert_string_equal(group.limited_by, "/");
        assert_int_equal(group.memory_limit_bytes, 64 * MIB);
        assert_int_equal(group.oom_kills, 0);
        assert_float_equal(group.cpu_quota, 0.5, 1e-9);
    }
}

/* Of two mounts of a hierarchy, the one that shows more of the parents is used. */
static void test_two_mounts(void **state)
{
    (void)state;
    static const File files[] = {
        {U "cgroup.controllers", "memory\n"}, {U "a/memory.max", "1048576\n"},
        {U "a/b/memory.max", "max\n"},        {"mnt/part/cgroup.controllers", "memory\n"},
        {"mnt/part/memory.max", "max\n"},     {0},
    };
    Cgroup group;
    assert_int_equal(
        read_tree("0::/a/b\n", "50 1 0:28 /a/b /mnt/part rw - cgroup2 cgroup2 rw\n" V2_MOUNTS, files, &group),
        0);
    assert_int_equal(group.memory_limit_bytes, MIB);
}

static void test_nothing_to_see(void **state)
{
    (void)state;
    static const struct {
        const char *lines;
        const char *mountinfo;
    } cases[] = {
        {"", V2_MOUNTS},
        {"garbage\n::\n\n", V2_MOUNTS},
        {"0::/\n", ""},
        {"4:memory:/a\n", ""},
        {"4:memory:/a\n", "30 1 0:28 / /sys/fs/cgroup rw - cgroup cgroup rw,cpu\n"},
        {"0::/\n", V2_MOUNTS}, /* the memory controller is missing */
    };
    static const File files[] = {{U "cgroup.controllers", "cpu memoryless\n"}, {0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Cgroup group;
        assert_int_equal(read_tree(cases[i].lines, cases[i].mountinfo, files, &group), -ENODATA);
        assert_int_equal(group.version, 0);
        assert_true(group.memory_limit_bytes == U64_UNKNOWN);
        assert_true(group.memory_used_bytes == U64_UNKNOWN);
        assert_true(group.oom_kills == U64_UNKNOWN);
    }
}

static void test_process_is_gone(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/meminfo", "");
    Mounts mounts = {0};
    Cgroup group;
    assert_int_equal(cgroup_read(temp_root_open(&temp), 99, &mounts, &group), -ENOENT);
    assert_int_equal(group.version, 0);
    assert_true(group.memory_limit_bytes == U64_UNKNOWN);
    temp_root_free(&temp);
}

/* A path that is longer than any buffer and deeper than any real path. */
static void test_hostile_path(void **state)
{
    (void)state;
    static const File files[] = {{U "cgroup.controllers", "memory\n"}, {U "memory.max", "1048576\n"}, {0}};
    static const char *const parts[] = {"/a", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "//", "/.",
                                        "/..."};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        _cleanup_buffer_ Buffer lines = {0};
        assert_int_equal(buffer_append_text(&lines, "0::"), 0);
        while (lines.size < 16384)
            assert_int_equal(buffer_append_text(&lines, parts[i]), 0);
        Cgroup group;
        assert_int_equal(read_tree(buffer_text(&lines), V2_MOUNTS, files, &group), 0);
        assert_int_equal(group.version, 2);
        assert_int_equal(strlen(group.path), sizeof group.path - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_cpu_max),
        cmocka_unit_test(test_v1_hybrid),
        cmocka_unit_test(test_v1_without_limit),
        cmocka_unit_test(test_v1_container),
        cmocka_unit_test(test_v1_limit_out_of_sight),
        cmocka_unit_test(test_v1_no_hierarchy),
        cmocka_unit_test(test_v2_nested),
        cmocka_unit_test(test_v2_tightest_wins),
        cmocka_unit_test(test_v2_container),
        cmocka_unit_test(test_two_mounts),
        cmocka_unit_test(test_nothing_to_see),
        cmocka_unit_test(test_process_is_gone),
        cmocka_unit_test(test_hostile_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
