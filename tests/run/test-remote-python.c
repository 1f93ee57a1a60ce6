/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "macro.h"
#include "python-text.h"
#include "remote-python.h"

enum {
    VERSION = 1,
    FREE_THREADED = 2,
    MAIN_THREAD = 10,
    OBJECT_SIZE = 50,
    SUPPORT = 89,
    NUMBERS = REMOTE_TABLE_BYTES / 8
};

/* As CPython 3.14.8 has it, as far as it is read. */
static void table_make(uint64_t table[NUMBERS])
{
    static const uint64_t support[] = {24, 400, 12, 0, 4, 512};
    memset(table, 0, REMOTE_TABLE_BYTES);
    memcpy(table, "xdebugpy", 8);
    table[VERSION] = 0x030e08f0;
    table[4] = 700;
    table[5] = 800;
    table[7] = 7376;
    table[8] = 7344;
    table[MAIN_THREAD] = 7408;
    table[OBJECT_SIZE] = 16;
    memcpy(table + SUPPORT, support, sizeof support);
}

static void test_table_is_read(void **state)
{
    (void)state;
    uint64_t table[NUMBERS];
    int minor = 0;
    RemoteOffsets offsets = {0};
    table_make(table);
    assert_int_equal(remote_table_parse(table, sizeof table, &minor, &offsets), 0);
    assert_int_equal(minor, 14);
    assert_int_equal(offsets.interpreters, 800);
    assert_int_equal(offsets.main_thread, 7408);
    assert_int_equal(offsets.enabled, 12);
    assert_int_equal(offsets.pending, 400);
    assert_int_equal(offsets.path, 404);
    assert_int_equal(offsets.path_size, 512);
}

static void test_other_tables_are_refused(void **state)
{
    (void)state;
    static const struct {
        int at;
        uint64_t value;
        int r;
        int minor;
    } cases[] = {
        {0, 0, -EBADMSG, 0},
        {VERSION, 0x030d01f0, -EPROTONOSUPPORT, 13},
        {VERSION, 0x030f00f0, -EPROTONOSUPPORT, 15},
        {VERSION, 0x030e00c1, -EPROTONOSUPPORT, 14}, /* a release candidate */
        {VERSION, 0x040e00f0, -EBADMSG, 0},
        {VERSION, UINT64_MAX, -EBADMSG, 0},
        {FREE_THREADED, 1, -ENOTSUP, 14},
        {OBJECT_SIZE, 8, -ENOTSUP, 14}, /* 32-bit */
        {FREE_THREADED, 2, -EBADMSG, 0},
        {MAIN_THREAD, UINT64_MAX, -EBADMSG, 14},
        {SUPPORT, 1 << 25, -EBADMSG, 14},
        {SUPPORT + 1, UINT64_MAX - 3, -EBADMSG, 14}, /* the sum would be small */
        {SUPPORT + 5, 8, -EBADMSG, 14},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t table[NUMBERS];
        int minor = 0;
        RemoteOffsets offsets;
        table_make(table);
        table[cases[i].at] = cases[i].value;
        assert_int_equal(remote_table_parse(table, sizeof table, &minor, &offsets), cases[i].r);
        assert_int_equal(minor, cases[i].minor);
        table_make(table);
        assert_int_equal(remote_table_parse(table, sizeof table - 1, &minor, &offsets), -EBADMSG);
    }
}

static void test_process_without_python(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    RemotePython python = REMOTE_PYTHON_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    assert_int_equal(remote_python_open(&root, getpid(), &python), -ENOEXEC);
    assert_int_equal(remote_python_open(&root, INT32_MAX, &python), -ESRCH);
}

/* They are put into raw strings of Python. */
static void test_texts_can_be_quoted(void **state)
{
    (void)state;
    const char *const texts[] = {python_where, python_where_remote};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        assert_null(strstr(texts[i], "'''"));
        assert_int_equal(texts[i][strlen(texts[i]) - 1], '\n');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_read),
        cmocka_unit_test(test_other_tables_are_refused),
        cmocka_unit_test(test_process_without_python),
        cmocka_unit_test(test_texts_can_be_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
