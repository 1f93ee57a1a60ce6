/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "terminal.h"

static void test_shorten(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t columns;
        const char *short_text;
    } cases[] = {
        {"torch_12345_678_9", 17, "torch_12345_678_9"},
        {"torch_12345_678_9", 20, "torch_12345_678_9"},
        {"torch_12345_678_9", 9, "torc…78_9"},
        {"torch_12345_678_9", 10, "torch…78_9"},
        {"abcdef", 1, "…"},
        {"abcdef", 2, "a…"},
        {"abcdef", 0, ""},
        {"", 5, ""},
        {"一二三四五", 10, "一二三四五"},
        {"一二三四五", 6, "一…五"}, /* half a wide character cannot be shown: 5 columns */
        {"一二三四五", 5, "一…五"},
        {"e\xcc\x81"
         "e\xcc\x81"
         "e\xcc\x81"
         "e\xcc\x81",
         3, "e\xcc\x81…e\xcc\x81"}, /* combining accents stay on their letters */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buffer_ Buffer out = {0};
        assert_int_equal(text_shorten(text_of(cases[i].text), cases[i].columns, "…", &out), 0);
        assert_string_equal(buffer_text(&out), cases[i].short_text);
    }
}

/* What `print` writes to a terminal of that width. */
typedef void (*Print)(const Terminal *terminal);

static char *printed(Print print, unsigned columns, bool utf8)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    print(&(Terminal){.out = out, .columns = columns, .utf8 = utf8});
    assert_int_equal(fclose(out), 0);
    return text;
}

static void print_prose(const Terminal *terminal)
{
    fputs("label ", terminal->out);
    terminal_wrap(terminal, 6, 6, "one two  three\nfour a-word-that-is-longer-than-the-line five");
}

static void test_wrap(void **state)
{
    (void)state;
    _cleanup_free_ char *narrow = printed(print_prose, 20, true);
    assert_string_equal(narrow, "label one two three\n"
                                "      four\n"
                                "      a-word-that-is-longer-than-the-line\n"
                                "      five\n");
    _cleanup_free_ char *wide = printed(print_prose, 500, true);
    assert_string_equal(wide, "label one two three four a-word-that-is-longer-than-the-line five\n");
}

static void print_hostile(const Terminal *terminal)
{
    terminal_wrap(terminal, 0, 0, "evil\033[2J \xff C:\\dir");
    terminal_verbatim(terminal, 2, "a\\b\n\033]0;title\007\n\nlast");
    terminal_wrap(terminal, 0, 0, "");
    terminal_wrap(terminal, 0, 0, NULL);
}

static void test_strangers_are_escaped(void **state)
{
    (void)state;
    _cleanup_free_ char *text = printed(print_hostile, 80, true);
    assert_string_equal(text, "evil\\x1b[2J \\xff C:\\dir\n"
                              "  a\\b\n"
                              "  \\x1b]0;title\\x07\n"
                              "\n"
                              "  last\n"
                              "\n\n");
}

static void print_styles(const Terminal *terminal)
{
    terminal_print(terminal, STYLE_BAD, "%s %d", "bad", 1);
    terminal_print(terminal, STYLE_PLAIN, " plain");
    fputs(terminal_mark(terminal, MARK_BAD), terminal->out);
}

static void test_styles_and_marks(void **state)
{
    (void)state;
    _cleanup_free_ char *plain = printed(print_styles, 80, false);
    assert_string_equal(plain, "bad 1 plainX");

    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    print_styles(&(Terminal){.out = out, .columns = 80, .utf8 = true, .color = true});
    fclose(out);
    assert_string_equal(text, "\033[1;31mbad 1\033[0m plain✗");
    free(text);
}

static void test_terminal_of(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    static const struct {
        const char *columns;
        unsigned expected;
    } cases[] = {{NULL, 80}, {"132", 132},         {"0", 80}, {"-3", 80}, {"x", 80},
                 {"1", 40},  {"99999999999", 1000}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        unsetenv("COLUMNS");
        if (cases[i].columns)
            setenv("COLUMNS", cases[i].columns, 1);
        assert_int_equal(terminal_of(file, COLOR_AUTO).columns, cases[i].expected);
    }
    unsetenv("COLUMNS");
    setenv("NO_COLOR", "1", 1);
    assert_false(terminal_of(file, COLOR_AUTO).color);
    assert_false(terminal_of(file, COLOR_NEVER).color);
    assert_true(terminal_of(file, COLOR_ALWAYS).color);
    unsetenv("NO_COLOR");
    assert_false(terminal_of(file, COLOR_AUTO).color); /* a file is no terminal */
    fclose(file);
}

int main(void)
{
    /* Widths of characters are the locale's. */
    if (!setlocale(LC_CTYPE, "C.UTF-8") && !setlocale(LC_CTYPE, "en_US.UTF-8")) {
        fputs("no UTF-8 locale here: skipped\n", stderr);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shorten),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_strangers_are_escaped),
        cmocka_unit_test(test_styles_and_marks),
        cmocka_unit_test(test_terminal_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
