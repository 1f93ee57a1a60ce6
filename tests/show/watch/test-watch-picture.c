/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "watch-picture.h"

static void expect(const Picture *picture, const char *wanted)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    picture_write(picture, &(Terminal){.out = out});
    fclose(out);
    assert_string_equal(text, wanted);
    free(text);
}

static void test_text(void **state)
{
    (void)state;
    static const struct {
        unsigned column;
        unsigned width;
        const char *text;
        const char *utf8;
        const char *plain;
    } cases[] = {
        {0, 10, "abc", "abc\n", "abc\n"},
        {2, 10, "abcdefghij", "  abcdef\n", "  abcdef\n"},
        {0, 2, "abc", "ab\n", "ab\n"},
        {8, 2, "abc", "\n", "\n"},
        {0, 0, "abc", "\n", "\n"},
        {0, 8, "数据", "数据\n", "??\n"},
        {5, 8, "数据", "     数\n", "     ??\n"}, /* half of a character is none */
        {7, 8, "数", "\n", "       ?\n"},
        {0, 8, "e\xcc\x81x", "e\xcc\x81x\n", "ex\n"}, /* combining */
        {0, 8, "\xcc\x81x", "x\n", "x\n"},            /* with nothing */
        {0, 8, "a    ", "a\n", "a\n"},
    };
    _cleanup_picture_ Picture picture = {0};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(picture_clear(&picture, 8, 1, true), 0);
        (void)picture_text(&picture, 0, cases[i].column, cases[i].width, INK_PLAIN, text_of(cases[i].text));
        expect(&picture, cases[i].utf8);
        assert_int_equal(picture_clear(&picture, 8, 1, false), 0);
        (void)picture_text(&picture, 0, cases[i].column, cases[i].width, INK_PLAIN, text_of(cases[i].text));
        expect(&picture, cases[i].plain);
    }
    (void)picture_text(&picture, 5, 0, 8, INK_PLAIN, TEXT("outside"));
}

/* What is drawn over one half of a wide character takes the other half with it. */
static void test_over_wide(void **state)
{
    (void)state;
    _cleanup_picture_ Picture picture = {0};
    for (unsigned column = 0; column < 4; column++) {
        static const char *const wanted[] = {"x 据\n", " x据\n", "数x\n", "数 x\n"};
        assert_int_equal(picture_clear(&picture, 4, 1, true), 0);
        assert_int_equal(picture_text(&picture, 0, 0, 4, INK_PLAIN, text_of("数据")), 4);
        picture_text(&picture, 0, column, 1, INK_PLAIN, TEXT("x"));
        expect(&picture, wanted[column]);
    }
    assert_int_equal(picture_clear(&picture, 4, 1, true), 0);
    picture_text(&picture, 0, 0, 4, INK_PLAIN, text_of("数据"));
    picture_text(&picture, 0, 1, 2, INK_PLAIN, text_of("宽"));
    expect(&picture, " 宽\n");
}

static void test_many_marks(void **state)
{
    (void)state;
    _cleanup_picture_ Picture picture = {0};
    Buffer text = {0};
    (void)buffer_append_text(&text, "e");
    for (int i = 0; i < 100; i++)
        (void)buffer_append_text(&text, "\xcc\x81");
    (void)buffer_append_text(&text, "x");
    assert_int_equal(picture_clear(&picture, 4, 1, true), 0);
    assert_int_equal(picture_text(&picture, 0, 0, 4, INK_PLAIN, (Text){text.data, text.size}), 2);
    buffer_free(&text);
}

static void test_runs(void **state)
{
    (void)state;
    _cleanup_picture_ Picture picture = {0};
    _cleanup_buffer_ Buffer text = {0};
    assert_int_equal(picture_clear(&picture, 6, 1, true), 0);
    picture_text(&picture, 0, 0, 6, INK_GOOD, text_of("ab"));
    picture_right(&picture, 0, 2, 4, INK_BAD, "数x");
    PictureRun run;
    unsigned column = 0;
    assert_true(picture_run(&picture, 0, &column, &run, &text));
    assert_int_equal(run.ink, INK_GOOD);
    assert_string_equal(buffer_text(&text), "ab");
    buffer_clear(&text);
    assert_true(picture_run(&picture, 0, &column, &run, &text));
    assert_int_equal(run.ink, INK_PLAIN);
    assert_string_equal(buffer_text(&text), " ");
    buffer_clear(&text);
    assert_true(picture_run(&picture, 0, &column, &run, &text));
    assert_int_equal(run.ink, INK_BAD);
    assert_int_equal(run.column, 3);
    assert_int_equal(run.columns, 3);
    assert_string_equal(buffer_text(&text), "数x");
    assert_false(picture_run(&picture, 0, &column, &run, &text));
}

int main(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_over_wide),
        cmocka_unit_test(test_many_marks),
        cmocka_unit_test(test_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
