/* SPDX-License-Identifier: Apache-2.0 */
#include "python-version.h"
#include "temp-root.h"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *program;
        unsigned minor;
    } cases[] = {
        {"/usr/bin/python3.12", 12},
        {"/opt/conda/envs/a b/bin/python3.9", 9},
        {"/usr/bin/python3.13 (deleted)", 13},
        {"python3.14", 14},
        {"/usr/bin/python3", 0},
        {"/usr/bin/python3.", 0},
        {"/usr/bin/python3.13t", 0},
        {"/usr/bin/python3.13-dbg", 0},
        {"/usr/bin/python2.7", 0},
        {"/usr/bin/python3.1234", 0},
        {"/usr/bin/python3.12/", 0},
        {"/usr/bin/apython3.12", 0},
        {"/usr/bin/python3.-1", 0},
        {" (deleted)", 0},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(python_version_parse(text_of(cases[i].program)), cases[i].minor);
}

static void test_read(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    assert_int_equal(python_version_read(&root, getpid()), 0); /* this program is none */
    assert_int_equal(python_version_read(&root, INT32_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
