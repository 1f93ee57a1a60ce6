/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "proc-schedstat.h"
#include "temp-root.h"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        ProcSchedstat stat;
    } cases[] = {
        {"3052486 18790 12\n", 0, {3052486, 18790}},
        {"0 0 0\n", 0, {0, 0}},
        {"18446744073709551615 1 2 3\n", 0, {UINT64_MAX, 1}},
        {"", -EBADMSG, {0}},
        {"1 2\n", -EBADMSG, {0}},
        {"1 -2 3\n", -EBADMSG, {0}},
        {"1 2 x\n", -EBADMSG, {0}},
        {"18446744073709551616 1 2\n", -EBADMSG, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ProcSchedstat stat = {0};
        assert_int_equal(proc_schedstat_parse(text_of(cases[i].text), &stat), cases[i].r);
        assert_int_equal(stat.ran_nsec, cases[i].stat.ran_nsec);
        assert_int_equal(stat.waited_nsec, cases[i].stat.waited_nsec);
    }
}

static void test_read(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    ProcSchedstat stat;
    assert_int_equal(root_open(NULL, &root), 0);
    int r = proc_schedstat_read(&root, getpid(), &stat);
    if (r == -ENOENT)
        skip();
    assert_int_equal(r, 0);
    assert_true(stat.ran_nsec > 0);
    assert_int_equal(proc_schedstat_read(&root, 1 << 30, &stat), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse), cmocka_unit_test(test_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
