/* SPDX-License-Identifier: Apache-2.0 */
#include "proc-statm.h"
#include "temp-root.h"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t page_bytes;
        int r;
        ProcStatm statm;
    } cases[] = {
        {"100 20 5 1 0 30 0\n", 4096, 0, {409600, 81920, 20480}},
        {"100 20 5 1 0 30 0\n", 65536, 0, {6553600, 1310720, 327680}},
        {"0 0 0 0 0 0 0\n", 4096, 0, {0}},
        {"100 20 5", 4096, -EBADMSG, {0}}, /* truncated */
        {"100 20\n", 4096, -EBADMSG, {0}},
        {"100 -20 5 1 0 30 0\n", 4096, -EBADMSG, {0}},
        {"4503599627370496 20 5 1 0 30 0\n", 4096, -EBADMSG, {0}},
        {"a b c d\n", 4096, -EBADMSG, {0}},
        {"", 4096, -EBADMSG, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ProcStatm statm = {0};
        assert_int_equal(proc_statm_parse(text_of(cases[i].text), cases[i].page_bytes, &statm), cases[i].r);
        assert_memory_equal(&statm, &cases[i].statm, sizeof statm);
    }
}

static void test_read_live(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    ProcStatm statm;
    assert_int_equal(proc_statm_read(&root, getpid(), &statm), 0);
    assert_true(statm.size_bytes > statm.resident_bytes && statm.resident_bytes > statm.shared_bytes);
    assert_int_equal(proc_statm_read(&root, INT32_MAX, &statm), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_read_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
