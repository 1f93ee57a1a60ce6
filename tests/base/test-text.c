/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text.h"

static void test_u64(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned base;
        int r;
        uint64_t value;
    } cases[] = {
        {"0", 10, 0, 0},
        {"18446744073709551615", 10, 0, UINT64_MAX},
        {"18446744073709551616", 10, -ERANGE, 0},
        {"ff", 16, 0, 255},
        {"FF", 16, 0, 255},
        {"8", 8, -EINVAL, 0},
        {"", 10, -EINVAL, 0},
        {"-1", 10, -EINVAL, 0},
        {" 1", 10, -EINVAL, 0},
        {"1 ", 10, -EINVAL, 0},
        {"0x10", 16, -EINVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t value = 0;
        assert_int_equal(text_u64(text_of(cases[i].text), cases[i].base, &value), cases[i].r);
        assert_int_equal(value, cases[i].value);
    }
}

static void test_key_is_whole(void **state)
{
    (void)state;
    Text value;
    assert_true(text_key(TEXT("Cached:   12 kB"), "Cached", &value));
    assert_true(text_equal(value, "12 kB"));
    assert_false(text_key(TEXT("SwapCached: 12 kB"), "Cached", &value));
    assert_false(text_key(TEXT("CachedX: 12 kB"), "Cached", &value));
    assert_false(text_key(TEXT("Cached"), "Cached", &value));
}

static void test_lines_and_words(void **state)
{
    (void)state;
    const char *expected[] = {"a b", "", "c"};
    size_t n = 0;
    TEXT_FOR_EACH_LINE (line, TEXT("a b\n\nc"))
        assert_true(text_equal(line, expected[n++]));
    assert_int_equal(n, 3);

    Text rest = TEXT("  one\ttwo ");
    Text word;
    assert_true(text_word(&rest, &word));
    assert_true(text_equal(word, "one"));
    assert_true(text_word(&rest, &word));
    assert_true(text_equal(word, "two"));
    assert_false(text_word(&rest, &word));
}

static void test_parts(void **state)
{
    (void)state;
    Text rest = TEXT("untouched");
    assert_true(text_equal(text_skip(TEXT("abc"), 2), "c"));
    assert_true(text_equal(text_skip(TEXT("abc"), 3), ""));
    assert_true(text_equal(text_skip(TEXT("abc"), 9), ""));
    assert_true(text_equal(text_digits(TEXT("12ab3")), "12"));
    assert_true(text_equal(text_digits(TEXT("-1")), ""));
    assert_true(text_equal(text_digits(TEXT("")), ""));
    assert_false(text_after(TEXT("pid 7"), "(pid ", &rest));
    assert_false(text_after(TEXT(""), "x", &rest));
    assert_true(text_equal(rest, "untouched"));
    assert_true(text_after(TEXT("a (pid 7) (pid 8)"), "(pid ", &rest));
    assert_true(text_equal(rest, "7) (pid 8)"));
    Text whole = TEXT("ends here");
    assert_true(text_after(whole, "here", &rest));
    assert_ptr_equal(rest.data, whole.data + whole.size); /* an empty rest still points to the end */
}

static void test_whole_lines(void **state)
{
    (void)state;
    assert_true(text_equal(text_whole_lines(TEXT("a\nb\nha")), "a\nb\n"));
    assert_true(text_equal(text_whole_lines(TEXT("a\n")), "a\n"));
    assert_int_equal(text_whole_lines(TEXT("half")).size, 0);
    assert_int_equal(text_whole_lines((Text){NULL, 0}).size, 0);
}

static void test_escape(void **state)
{
    (void)state;
    static const struct {
        Text raw;
        const char *safe;
    } cases[] = {
        {TEXT("plain"), "plain"},
        {TEXT("a\nb\tc\033[31m"), "a\\nb\\tc\\x1b[31m"},
        {TEXT("back\\slash"), "back\\\\slash"},
        {TEXT("中文 é"), "中文 é"},
        {TEXT("\xff\xc0\x80"), "\\xff\\xc0\\x80"},
        {TEXT("\xed\xa0\x80"), "\\xed\\xa0\\x80"},
        {TEXT("\xe2\x80\xae"), "\\xe2\\x80\\xae"},
        {TEXT("nul\0"), "nul\\x00"},
        {TEXT("cut \xe4\xb8"), "cut \\xe4\\xb8"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buffer_ Buffer out = {0};
        assert_int_equal(text_escape(cases[i].raw, &out), 0);
        assert_string_equal(buffer_text(&out), cases[i].safe);
    }
}

static void test_unescape_octal(void **state)
{
    (void)state;
    char out[32];
    size_t n = text_unescape_octal(TEXT("a\\040b\\134\\0"), out);
    assert_int_equal(n, 6);
    assert_memory_equal(out, "a b\\\\0", 6);
}

static void test_kib_and_decimal(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    assert_int_equal(text_kib(TEXT("16 kB"), &bytes), 0);
    assert_int_equal(bytes, 16384);
    assert_int_equal(text_kib(TEXT("16"), &bytes), -EINVAL);
    assert_int_equal(text_kib(TEXT("16 kB more"), &bytes), -EINVAL);
    assert_int_equal(text_kib(TEXT("18446744073709551615 kB"), &bytes), -ERANGE);

    double value = 0;
    assert_int_equal(text_decimal(TEXT("12.50"), &value), 0);
    assert_float_equal(value, 12.5, 1e-9);
    assert_int_equal(text_decimal(TEXT("."), &value), -EINVAL);
    assert_int_equal(text_decimal(TEXT("1e5"), &value), -EINVAL);
    assert_int_equal(text_decimal(TEXT("1.2.3"), &value), -EINVAL);
}

/* Where lines may end, shown as "|". */
static void test_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *pieces;
    } cases[] = {
        {"", ""},
        {"word", "word"},
        {"/dev/shm", "/dev/shm"},
        {"内存", "内|存"},
        {"内存。", "内|存。"},
        {"（内存）", "（内|存）"},
        {"“内存”，", "“内|存”，"},
        {"为4GiB，", "为|4GiB，"},
        {"x\xff内", "x\xff|内"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Text rest = text_of(cases[i].text);
        Text piece;
        _cleanup_buffer_ Buffer pieces = {0};
        while (text_piece(&rest, &piece)) {
            if (pieces.size > 0)
                assert_int_equal(buffer_append_text(&pieces, "|"), 0);
            assert_int_equal(buffer_append(&pieces, piece.data, piece.size), 0);
        }
        assert_string_equal(buffer_text(&pieces), cases[i].pieces);
    }
}

/* In the locale of C, in which the C library knows no wide characters. */
static void test_wide_columns(void **state)
{
    (void)state;
    assert_int_equal(text_columns(text_of("内存")), 4);
    assert_int_equal(text_columns(text_of("（内存）：12 MiB")), 16);
    assert_int_equal(text_columns(text_of("한글かな")), 8);
    assert_int_equal(text_columns(text_of("\xff")), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u64),
        cmocka_unit_test(test_key_is_whole),
        cmocka_unit_test(test_lines_and_words),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_whole_lines),
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_unescape_octal),
        cmocka_unit_test(test_kib_and_decimal),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_wide_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
