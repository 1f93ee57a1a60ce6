/* SPDX-License-Identifier: Apache-2.0 */
#include "temp-root.h"
#include "vmstat.h"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        uint64_t kills;
    } cases[] = {
        {"nr_free_pages 5\noom_kill 3\nnuma_hit 1\n", 0, 3},
        {"oom_kill 18446744073709551615\n", 0, UINT64_MAX},
        {"drop_slab 0\noom_kill_process 4\n", -ENODATA, 0},
        {"oom_kill 12", -ENODATA, 0}, /* could be a truncated 120 */
        {"oom_kill\n", -EBADMSG, 0},
        {"oom_kill -1\n", -EBADMSG, 0},
        {"oom_kill 18446744073709551616\n", -EBADMSG, 0},
        {"", -ENODATA, 0},
        {"\n \n", -ENODATA, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t kills = 0;
        assert_int_equal(vmstat_parse_oom_kills(text_of(cases[i].text), &kills), cases[i].r);
        assert_int_equal(kills, cases[i].kills);
    }
}

static void test_read(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/vmstat", "oom_kill 7\n");
    uint64_t kills = 0;
    assert_int_equal(vmstat_read_oom_kills(temp_root_open(&temp), &kills), 0);
    assert_int_equal(kills, 7);
    temp_root_free(&temp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
