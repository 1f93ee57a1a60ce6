/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>

#include "rlimits.h"
#include "temp-root.h"

#define HEAD "Limit                     Soft Limit           Hard Limit           Units     \n"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        RLimits limits;
    } cases[] = {
        {HEAD "Max open files            1024                 524288               files     \n"
              "Max locked memory         8388608              unlimited            bytes     \n"
              "Max address space         unlimited            unlimited            bytes     \n"
              "Max nice priority         0                    0                    \n",
         0,
         {1024, 524288, RLIMIT_UNLIMITED, 8388608}},
        {"Max open files unlimited unlimited files",
         0,
         {RLIMIT_UNLIMITED, RLIMIT_UNLIMITED, U64_UNKNOWN, U64_UNKNOWN}},
        {"Max open files 18446744073709551615 18446744073709551615 files\nMax address space 5 6 bytes\n",
         0,
         {RLIMIT_UNLIMITED, RLIMIT_UNLIMITED, 5, U64_UNKNOWN}},
        {"Max open files 1024 5242", -EBADMSG, {0}}, /* truncated */
        {"Max open files 1024 18446744073709551616 files\n", -EBADMSG, {0}},
        {"Max open files many more files\n", -EBADMSG, {0}},
        {"Max open filesystems 1 2 files\n", -EBADMSG, {0}},
        {"Max open files", -EBADMSG, {0}},
        {HEAD, -EBADMSG, {0}},
        {"", -EBADMSG, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        RLimits limits = {0};
        assert_int_equal(rlimits_parse(text_of(cases[i].text), &limits), cases[i].r);
        assert_memory_equal(&limits, &cases[i].limits, sizeof limits);
    }
}

static void test_read_self(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    struct rlimit expected;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &expected), 0);
    RLimits limits;
    assert_int_equal(rlimits_read(&root, 0, &limits), 0);
    assert_int_equal(limits.open_files_soft, MIN(expected.rlim_cur, RLIMIT_UNLIMITED));
    assert_int_equal(limits.open_files_hard, MIN(expected.rlim_max, RLIMIT_UNLIMITED));
    assert_int_equal(rlimits_read(&root, getpid(), &limits), 0);
    assert_int_equal(rlimits_read(&root, INT32_MAX, &limits), -ENOENT);
}

static void test_sysctl(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *text;
        int r;
        uint64_t value;
    } cases[] = {
        {"vm/max_map_count", "65530\n", 0, 65530},
        {"vm/signed", "-1\n", -EBADMSG, 0},
        {"kernel/printk", "4\t4\t1\t7\n", -EBADMSG, 0},
        {"kernel/empty", "", -EBADMSG, 0},
    };
    TempRoot temp = temp_root_make();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char path[128];
        snprintf(path, sizeof path, "proc/sys/%s", cases[i].name);
        temp_root_write(&temp, path, cases[i].text);
    }
    const Root *root = temp_root_open(&temp);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t value = 0;
        assert_int_equal(sysctl_read(root, cases[i].name, &value), cases[i].r);
        assert_int_equal(value, cases[i].value);
    }
    uint64_t value = 0;
    char name[400] = {0};
    memset(name, 'x', sizeof name - 1);
    assert_int_equal(sysctl_read(root, "vm/none", &value), -ENOENT);
    assert_int_equal(sysctl_read(root, name, &value), -ENOENT);
    temp_root_free(&temp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_read_self),
        cmocka_unit_test(test_sysctl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
