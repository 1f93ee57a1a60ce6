/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/wait.h>

#include "smaps.h"
#include "temp-root.h"

#define KIB UINT64_C(1024)

#define HEAD_A                                                                                               \
    "7f0000000000-7f0000002000 rw-s 00000000 00:19 42                         /dev/shm/torch_1 (deleted)\n"
#define HEAD_B "7f0000002000-7f0000003000 r-xp 00001000 fe:01 43                         /usr/lib/a b.so\n"
#define SIZES                                                                                                \
    "Size:                  8 kB\nKernelPageSize:        4 kB\nRss:                   8 kB\n"                \
    "Pss:                   4 kB\nPss_Dirty:             2 kB\nShared_Clean:          0 kB\n"                \
    "Shared_Dirty:          4 kB\nPrivate_Clean:         1 kB\nPrivate_Dirty:         3 kB\n"                \
    "Private_Hugetlb:       2 kB\nSwap:                  5 kB\nSwapPss:               1 kB\n"                \
    "VmFlags: rd wr sh mr mw me ms sd \n"

static void test_rollup(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        Smaps smaps;
    } cases[] = {
        {"55d0-7ffd000 ---p 00000000 00:00 0                          [rollup]\nRss:    1744 kB\n"
         "Pss:     398 kB\nPss_Dirty:  116 kB\nPss_Anon:   1 kB\nPss_Shmem:   7 kB\nPrivate_Clean:  48 kB\n"
         "Private_Dirty:  116 kB\nPrivate_Hugetlb:  2048 kB\nSwap:  9 kB\nSwapPss: 3 kB\n",
         0,
         {1744 * KIB, 398 * KIB, 7 * KIB, 2212 * KIB, 9 * KIB}},
        /* before 5.8 and 4.4 */
        {"Rss: 8 kB\nPss: 4 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: 2 kB\nSwap: 0 kB\n",
         0,
         {8 * KIB, 4 * KIB, U64_UNKNOWN, 3 * KIB, 0}},
        /* truncated before the private lines, and within them */
        {"Rss: 8 kB\nPss: 4 kB\n", 0, {8 * KIB, 4 * KIB, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN}},
        {"Rss: 8 kB\nPss: 4 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: 2",
         0,
         {8 * KIB, 4 * KIB, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN}},
        {"Rss: 8 kB\nPss: 4 kB\nPrivate_Clean: 18014398509481983 kB\nPrivate_Dirty: 18014398509481983 kB\n",
         0,
         {8 * KIB, 4 * KIB, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN}},
        {"Rss: 8 kB\nPss: 4 k", -EBADMSG, {0}},
        {"Rss: 8 kB\nSwapPss: 4 kB\n", -EBADMSG, {0}},
        {"Pss: 4 kB\n", -EBADMSG, {0}},
        {"Rss: -8 kB\nPss: 4 kB\n", -EBADMSG, {0}},
        {"", -EBADMSG, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Smaps smaps = {0};
        assert_int_equal(smaps_rollup_parse(text_of(cases[i].text), &smaps), cases[i].r);
        assert_memory_equal(&smaps, &cases[i].smaps, sizeof smaps);
    }
}

static void test_next(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *paths[3];
    } cases[] = {
        {HEAD_A SIZES HEAD_B SIZES, {"/dev/shm/torch_1", "/usr/lib/a b.so"}},
        {"junk\n\nRss: 1 kB\n" HEAD_A SIZES "more junk\n" HEAD_B SIZES,
         {"/dev/shm/torch_1", "/usr/lib/a b.so"}},
        /* a mapping without figures, or with only some of them, is skipped */
        {HEAD_A HEAD_B SIZES, {"/usr/lib/a b.so"}},
        {HEAD_A SIZES HEAD_B "Rss: 8 kB\nPss: 8 kB\nPrivate_Clean: 0 kB\n", {"/dev/shm/torch_1"}},
        {HEAD_A SIZES "7f0000002000-7f00", {"/dev/shm/torch_1"}},
        {HEAD_A, {NULL}},
        {SIZES, {NULL}},
        {"", {NULL}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Text rest = text_of(cases[i].text);
        MapEntry entry;
        Smaps sizes;
        size_t n = 0;
        for (; smaps_next(&rest, &entry, &sizes); n++) {
            assert_non_null(cases[i].paths[n]);
            assert_true(text_equal(entry.path, cases[i].paths[n]));
            assert_int_equal(sizes.rss_bytes, 8 * KIB);
            assert_int_equal(sizes.pss_bytes, 4 * KIB);
            assert_int_equal(sizes.pss_shmem_bytes, U64_UNKNOWN);
            assert_int_equal(sizes.private_bytes, 6 * KIB);
            assert_int_equal(sizes.swap_bytes, 5 * KIB);
        }
        assert_null(cases[i].paths[n]);
        assert_int_equal(rest.size, 0);
    }
}

static void test_sum_without_rollup(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/7/smaps", HEAD_A SIZES HEAD_B SIZES);
    temp_root_write(&temp, "proc/8/smaps", "");
    temp_root_write(&temp, "proc/9/smaps", "garbage\n");
    temp_root_write(&temp, "proc/10/stat", "");
    temp_root_link(&temp, "7", "proc/self");
    const Root *root = temp_root_open(&temp);
    Smaps smaps;
    for (int pid = 0; pid <= 7; pid += 7) {
        assert_int_equal(smaps_rollup_read(root, pid, &smaps), 0);
        assert_int_equal(smaps.rss_bytes, 16 * KIB);
        assert_int_equal(smaps.pss_bytes, 8 * KIB);
        assert_int_equal(smaps.pss_shmem_bytes, U64_UNKNOWN);
        assert_int_equal(smaps.private_bytes, 12 * KIB);
        assert_int_equal(smaps.swap_bytes, 10 * KIB);
    }
    assert_int_equal(smaps_rollup_read(root, 8, &smaps), -ESRCH);
    assert_int_equal(smaps_rollup_read(root, 9, &smaps), -EBADMSG);
    assert_int_equal(smaps_rollup_read(root, 10, &smaps), -ENOENT);
    assert_int_equal(smaps_rollup_read(root, 11, &smaps), -ENOENT);
    temp_root_free(&temp);
}

/* The sum over smaps must agree with the kernel's own sum. */
static void test_live(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    int child = fork(); /* its memory does not change while we read */
    assert_true(child >= 0);
    if (child == 0)
        for (;;)
            pause();
    int stopped = 0;
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, &stopped, WUNTRACED), child);

    Smaps rollup;
    assert_int_equal(smaps_rollup_read(&root, child, &rollup), 0);
    _cleanup_buffer_ Buffer buffer = {0};
    assert_int_equal(smaps_read(&root, child, &buffer), 0);
    Text rest = {buffer.data, buffer.size};
    MapEntry entry;
    Smaps sizes;
    uint64_t rss = 0;
    uint64_t private = 0;
    uint64_t n = 0;
    for (; smaps_next(&rest, &entry, &sizes); n++) {
        rss += sizes.rss_bytes;
        private += sizes.private_bytes;
    }
    /* Not compared exactly: when this process touches a page that it shares with the child, the page stops
     * being private in the child, or becomes private again. */
    assert_int_equal(rss, rollup.rss_bytes);
    assert_true(n > 5 && rollup.pss_bytes > 0 && rollup.pss_bytes <= rss);
    assert_true(private <= rss && rollup.private_bytes <= rss);

    siginfo_t info;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(smaps_rollup_read(&root, child, &rollup), -ESRCH); /* a zombie has no memory */
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(smaps_rollup_read(&root, child, &rollup), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rollup),
        cmocka_unit_test(test_next),
        cmocka_unit_test(test_sum_without_rollup),
        cmocka_unit_test(test_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
