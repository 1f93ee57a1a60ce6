/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "temp-root.h"

static void test_open(void **state)
{
    (void)state;
    Root root;
    assert_int_equal(root_open("/nonexistent/shmguard", &root), -ENOENT);
    assert_int_equal(root_open("/proc/self/status", &root), -ENOTDIR);

    TempRoot temp = temp_root_make();
    assert_int_equal(root_open(temp.path, &root), -EINVAL); /* without proc it is not a tree */
    temp_root_write(&temp, "proc/meminfo", "");
    assert_false(temp_root_open(&temp)->live);
    temp_root_free(&temp);

    assert_int_equal(root_open(NULL, &root), 0);
    assert_true(root.live);
    root_close(&root);
    assert_true(root.fd < 0);
    assert_int_equal(root_open("/", &root), 0);
    assert_true(root.live);
    root_close(&root);
}

static void test_read_and_link(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/7/comm", "python3\n");
    temp_root_write(&temp, "proc/7/empty", "");
    temp_root_link(&temp, "7", "proc/self");
    temp_root_link(&temp, "/memfd:a b\n (deleted)", "proc/7/fd/3");
    const Root *root = temp_root_open(&temp);

    _cleanup_buffer_ Buffer text = {0};
    assert_int_equal(root_read(root, "proc/self/comm", ROOT_FILE_MAX, &text), 0);
    assert_string_equal(buffer_text(&text), "python3\n");
    assert_int_equal(root_read(root, "proc/self/comm", 3, &text), 0);
    assert_string_equal(buffer_text(&text), "pyt");
    assert_int_equal(root_read(root, "proc/7/empty", ROOT_FILE_MAX, &text), 0);
    assert_int_equal(text.size, 0);
    assert_int_equal(root_read(root, "proc/8/comm", ROOT_FILE_MAX, &text), -ENOENT);
    assert_int_equal(root_read(root, "proc/7", ROOT_FILE_MAX, &text), -EISDIR);

    char link[64];
    assert_int_equal(root_link(root, "proc/7/fd/3", link, sizeof link), 21);
    assert_string_equal(link, "/memfd:a b\n (deleted)");
    assert_int_equal(root_link(root, "proc/7/fd/3", link, 5), 4);
    assert_string_equal(link, "/mem");
    assert_int_equal(root_link(root, "proc/7/comm", link, sizeof link), -EINVAL);
    assert_int_equal(root_link(root, "proc/7/fd/4", link, sizeof link), -ENOENT);

    assert_true(root_exists(root, "proc/7/fd/3")); /* the link itself counts, wherever it leads */
    assert_false(root_exists(root, "proc/7/fd/4"));
    temp_root_free(&temp);
}

/* An ordinary open() of a FIFO in the tree would block forever. */
static void test_fifo_does_not_block(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    char path[512];
    temp_root_place(&temp, "proc/meminfo", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    _cleanup_buffer_ Buffer text = {0};
    assert_int_equal(root_read(temp_root_open(&temp), "proc/meminfo", ROOT_FILE_MAX, &text), 0);
    assert_int_equal(text.size, 0);
    temp_root_free(&temp);
}

/* A link within the path must not lead out of the tree, to the machine that the test runs on. */
static void test_links_stay_inside(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/7/comm", "inside\n");
    temp_root_link(&temp, "/proc", "out");
    temp_root_link(&temp, "/etc", "etc");
    const Root *root = temp_root_open(&temp);
    _cleanup_buffer_ Buffer text = {0};
    char link[64];

    assert_int_equal(root_read(root, "out/7/comm", ROOT_FILE_MAX, &text), 0);
    assert_string_equal(buffer_text(&text), "inside\n");
    assert_true(root_read(root, "out/self/status", ROOT_FILE_MAX, &text) < 0);
    assert_true(root_exists(root, "out/7/comm"));
    assert_false(root_exists(root, "out/self/status"));
    assert_int_equal(root_link(root, "out/self", link, sizeof link), -ENOENT);
    assert_int_equal(root_link(root, "etc/mtab", link, sizeof link), -ELOOP);
    assert_null(root_list(root, "out/self"));
    temp_root_free(&temp);
}

static void test_captured_tables(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/meminfo", "");
    temp_root_write(&temp, ".capture/stat",
                    "proc/9/fd/3 0:1 18446744073709551615 100777 0 1000 4096 8 1700000000.5 1700000001.25\n"
                    "garbage\n"
                    "too few 0:1 2\n"
                    "proc/9/fd/4 0:1 7 100600 1 0 18446744073709551615 99999999999999999999 0 0\n"
                    "dev/shm/a\\040b\\012c 0:25 12 100600 1 1000 4096 8 5 4\n"
                    "dev/shm 0:25 1 41777 2 0 60 0 1 1\n");
    temp_root_write(&temp, ".capture/open",
                    "dev/shm/a\\040b\\012c 0\ndev/shm 1\nproc/9/fd/3 2\nproc/9/fd/4 1\nelsewhere 0\nhalf");
    temp_root_write(&temp, ".capture/statfs",
                    "dev/shm 1021994 4096 16384 16000 15999 1000 998\nnonsense 1\n"
                    "proc/9/cwd ef53 18446744073709551615 2 2 2 2 2\nproc/self/cwd ef53 4096 100 50 40 10 5");
    temp_root_write(&temp, ".capture/env", "SLURM_JOB_ID=7\ncontainer=\nSLURM_JOB=no\n");
    temp_root_write(&temp, ".capture/clock", "1700000000.25 12345.5\n");
    temp_root_write(&temp, ".capture/ids", "1000\n");
    const Root *root = temp_root_open(&temp);

    FileStat stat;
    assert_int_equal(root_stat(root, "proc/9/fd/3", &stat), 0);
    assert_true(device_equal(stat.device, (Device){0, 1}));
    assert_true(stat.inode == UINT64_MAX);
    assert_int_equal(stat.mode, 0100777);
    assert_int_equal(stat.nlink, 0);
    assert_int_equal(stat.uid, 1000);
    assert_int_equal(stat.size_bytes, 4096);
    assert_int_equal(stat.allocated_bytes, 4096);
    assert_float_equal(stat.changed, 1700000001.25, 1e-6);
    assert_int_equal(root_stat(root, "dev/shm/a b\nc", &stat), 0);
    assert_int_equal(stat.inode, 12);
    assert_float_equal(stat.changed, 5, 1e-9);
    assert_int_equal(root_lstat(root, "dev/shm", &stat), 0);
    assert_int_equal(stat.inode, 1);
    assert_int_equal(root_stat(root, "proc/9/fd/4", &stat), -ENOENT); /* its line cannot be parsed */
    assert_int_equal(root_stat(root, "proc/9/fd/5", &stat), -ENOENT);

    assert_int_equal(root_captured_open(root, "dev/shm/a b\nc"), 0);
    assert_int_equal(root_captured_open(root, "dev/shm"), 1);
    assert_int_equal(root_captured_open(root, "proc/9/fd/3"), -ENODATA);
    assert_int_equal(root_captured_open(root, "proc/9/fd/4"), -ENODATA);
    assert_int_equal(root_captured_open(root, "elsewhere"), -ENODATA);

    FsStat fs;
    assert_int_equal(root_statfs(root, "dev/shm", &fs), 0);
    assert_int_equal(fs.type, 0x01021994);
    assert_int_equal(fs.size_bytes, 64 << 20);
    assert_int_equal(fs.free_bytes, 16000 * 4096);
    assert_int_equal(fs.available_bytes, 15999 * 4096);
    assert_int_equal(fs.inodes, 1000);
    assert_int_equal(fs.inodes_free, 998);
    assert_int_equal(root_statfs(root, "proc/self/cwd", &fs), 0);
    assert_int_equal(root_statfs(root, "proc/9/cwd", &fs), -ENOENT); /* too large to be valid */
    assert_int_equal(root_statfs(root, "nonsense", &fs), -ENOENT);

    Text value;
    assert_true(root_environment(root, "SLURM_JOB_ID", &value));
    assert_true(text_equal(value, "7"));
    assert_true(root_environment(root, "container", &value));
    assert_int_equal(value.size, 0);
    assert_false(root_environment(root, "SLURM", &value));
    assert_false(root_environment(root, "HOME", &value));

    assert_float_equal(root_realtime(root), 1700000000.25, 1e-6);
    assert_float_equal(root_boottime(root), 12345.5, 1e-9);
    assert_int_equal(root_uid(root), 1000);
    temp_root_free(&temp);
}

static void test_captured_nothing(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/meminfo", "");
    temp_root_write(&temp, ".capture/clock", "yesterday\n");
    temp_root_write(&temp, ".capture/ids", "-1\n");
    const Root *root = temp_root_open(&temp);
    FileStat stat;
    FsStat fs;
    Text value;
    assert_int_equal(root_stat(root, "proc", &stat), -ENOENT);
    assert_int_equal(root_statfs(root, "proc", &fs), -ENOENT);
    assert_false(root_environment(root, "PATH", &value));
    assert_float_equal(root_realtime(root), 0, 0);
    assert_float_equal(root_boottime(root), 0, 0);
    assert_int_equal(root_uid(root), 0);
    assert_null(root_list(root, "dev/shm"));
    temp_root_free(&temp);
}

static void test_live(void **state)
{
    (void)state;
    Root root;
    assert_int_equal(root_open("/", &root), 0);
    FileStat stat;
    FileStat link;
    FsStat fs;
    assert_int_equal(root_stat(&root, "proc/self", &stat), 0);
    assert_true(S_ISDIR(stat.mode));
    assert_int_equal(root_lstat(&root, "proc/self", &link), 0);
    assert_true(S_ISLNK(link.mode));
    assert_int_equal(root_stat(&root, "nonexistent", &stat), -ENOENT);
    assert_int_equal(root_statfs(&root, "proc", &fs), 0);
    assert_int_equal(fs.type, 0x9fa0); /* PROC_SUPER_MAGIC */

    Text value;
    setenv("SHMGUARD_TEST_VARIABLE", "a=b", 1);
    assert_true(root_environment(&root, "SHMGUARD_TEST_VARIABLE", &value));
    assert_true(text_equal(value, "a=b"));
    unsetenv("SHMGUARD_TEST_VARIABLE");
    assert_false(root_environment(&root, "SHMGUARD_TEST_VARIABLE", &value));

    assert_true(root_realtime(&root) > 1.5e9);
    assert_true(root_boottime(&root) > 0);
    assert_int_equal(root_uid(&root), geteuid());
    DIR *dir = root_list(&root, "proc/self/fd");
    assert_non_null(dir);
    closedir(dir);
    root_close(&root);
}

static void test_device_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned base;
        int r;
        Device device;
    } cases[] = {
        {"0:25", 10, 0, {0, 25}},     {"fd:1f", 16, 0, {0xfd, 0x1f}},      {"", 10, -EBADMSG, {0}},
        {"0", 10, -EBADMSG, {0}},     {"0:", 10, -EBADMSG, {0}},           {":1", 10, -EBADMSG, {0}},
        {"1:2:3", 10, -EBADMSG, {0}}, {"4294967296:0", 10, -EBADMSG, {0}}, {"fd:1", 10, -EBADMSG, {0}},
        {"0: 1", 10, -EBADMSG, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Device device = {0};
        assert_int_equal(device_numbers_parse(text_of(cases[i].text), cases[i].base, &device), cases[i].r);
        assert_true(device_equal(device, cases[i].device));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_read_and_link),
        cmocka_unit_test(test_fifo_does_not_block),
        cmocka_unit_test(test_links_stay_inside),
        cmocka_unit_test(test_captured_tables),
        cmocka_unit_test(test_captured_nothing),
        cmocka_unit_test(test_live),
        cmocka_unit_test(test_device_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
