/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table.h"

static const char *const cells[][4] = {
    {"torch_12345_678901234_17", "1.0", "a remark", "the command that it was started with"},
    {"sem.x", "1024.5", "", ""},
    {"名前", "?", "b", "cmd"},
};

static void cell(const void *context, size_t row, size_t column, Buffer *out)
{
    (void)context;
    (void)buffer_append_text(out, cells[row][column]);
}

static const Column columns[] = {
    {"NAME", .least = 10},
    {"SIZE", .right = true},
    {"REMARK", .appears_from = 70},
    {"COMMAND", .least = 8},
};

static char *printed(unsigned width, size_t n_rows)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    Terminal terminal = {.out = out, .columns = width, .utf8 = true};
    table_print(&terminal, &(Table){columns, ARRAY_SIZE(columns), n_rows, cell, NULL});
    fclose(out);
    return text;
}

static void test_wide(void **state)
{
    (void)state;
    _cleanup_free_ char *text = printed(120, 3);
    assert_string_equal(text,
                        "NAME                        SIZE  REMARK    COMMAND\n"
                        "torch_12345_678901234_17     1.0  a remark  the command that it was started with\n"
                        "sem.x                     1024.5\n"
                        "名前                           ?  b         cmd\n");
}

static void test_narrow_shortens_the_widest(void **state)
{
    (void)state;
    _cleanup_free_ char *text = printed(50, 3);
    assert_string_equal(text, "NAME                    SIZE  COMMAND\n"
                              "torch_1234…901234_17     1.0  the comman…rted with\n"
                              "sem.x                 1024.5\n"
                              "名前                       ?  cmd\n");
    TEXT_FOR_EACH_LINE (line, text_of(text))
        assert_true(text_columns(line) <= 50);
}

/* Columns that may not shrink stay whole, even when the table is then wider than the terminal. */
static void test_too_narrow(void **state)
{
    (void)state;
    _cleanup_free_ char *text = printed(12, 1);
    assert_string_equal(text, "NAME        SIZE  COMMAND\n"
                              "torch…4_17   1.0  the …ith\n");
}

static void test_empty(void **state)
{
    (void)state;
    _cleanup_free_ char *text = printed(80, 0);
    assert_string_equal(text, "NAME  SIZE  REMARK  COMMAND\n");
}

int main(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8") && !setlocale(LC_CTYPE, "en_US.UTF-8")) {
        fputs("no UTF-8 locale here: skipped\n", stderr);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_narrow_shortens_the_widest),
        cmocka_unit_test(test_too_narrow),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
