/* SPDX-License-Identifier: Apache-2.0 */
#include "meminfo.h"
#include "temp-root.h"

#define KIB UINT64_C(1024)

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        MemInfo info;
    } cases[] = {
        {"MemTotal:       24684100 kB\nMemFree:        100 kB\nMemAvailable:   200 kB\nBuffers: 1 kB\n"
         "Cached:           30 kB\nSwapCached:            7 kB\nSwapTotal:             50 kB\n"
         "SwapFree:              40 kB\nShmem:             12 kB\nShmemHugePages:        9 kB\n",
         0,
         {24684100 * KIB, 100 * KIB, 200 * KIB, 30 * KIB, 12 * KIB, 50 * KIB, 40 * KIB}},
        /* before 3.14 */
        {"MemTotal: 8 kB\nMemFree: 2 kB\nCached: 3 kB\n",
         0,
         {8 * KIB, 2 * KIB, 5 * KIB, 3 * KIB, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN}},
        {"MemTotal: 8 kB\nMemFree: 2 kB",
         0,
         {8 * KIB, 2 * KIB, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN}},
        /* truncated in the unit, too large, negative */
        {"MemTotal: 8 kB\nMemFree: 99999999999999999999 kB\nShmem: -1 kB\nSwapFree: 12 k",
         0,
         {8 * KIB, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN}},
        {"MemTotal: 8 kB\nMemFree: 18014398509481983 kB\nCached: 18014398509481983 kB\n",
         0,
         {8 * KIB, 18014398509481983 * KIB, U64_UNKNOWN, 18014398509481983 * KIB, U64_UNKNOWN, U64_UNKNOWN,
          U64_UNKNOWN}},
        {"", -EBADMSG, {0}},
        {"\n\n", -EBADMSG, {0}},
        {"MemTotal: many kB\n", -EBADMSG, {0}},
        {"XMemTotal: 8 kB\n", -EBADMSG, {0}},
        {"MemFree: 8 kB\n", -EBADMSG, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        MemInfo info = {0};
        assert_int_equal(meminfo_parse(text_of(cases[i].text), &info), cases[i].r);
        assert_memory_equal(&info, &cases[i].info, sizeof info);
    }
}

static void test_read_live(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    MemInfo info;
    assert_int_equal(meminfo_read(&root, &info), 0);
    assert_true(info.total_bytes > info.free_bytes);
    assert_true(info.available_bytes <= info.total_bytes);
}

static void test_read_missing(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/uptime", "");
    MemInfo info;
    assert_int_equal(meminfo_read(temp_root_open(&temp), &info), -ENOENT);
    temp_root_free(&temp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_read_live),
        cmocka_unit_test(test_read_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
