/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "units.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static void test_size_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        uint64_t bytes;
    } cases[] = {
        {"64M", 0, 64 * MIB},        {"64MiB", 0, 64 * MIB},
        {"64 mb", 0, 64 * MIB},      {"1g", 0, GIB},
        {"1.5GB", 0, GIB + GIB / 2}, {"4096", 0, 4096},
        {"4096B", 0, 4096},          {"18446744073709551615", 0, UINT64_MAX},
        {"5.75MiB", 0, 6029312},     {"", -EINVAL, 0},
        {"M", -EINVAL, 0},           {"-1M", -EINVAL, 0},
        {"1X", -EINVAL, 0},          {"1MM", -EINVAL, 0},
        {"1 M B", -EINVAL, 0},       {"1e3", -EINVAL, 0},
        {"16E", -ERANGE, 0},         {"99999999P", -ERANGE, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t bytes = 0;
        assert_int_equal(size_parse(text_of(cases[i].text), &bytes), cases[i].r);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void test_size_wish(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        SizeWish wish;
    } cases[] = {
        {"auto", 0, {WISH_AUTO, 0}},
        {"off", 0, {WISH_OFF, 0}},
        {"64M", 0, {WISH_SIZE, 64 * MIB}},
        {"1m", 0, {WISH_SIZE, MIB}},
        {"64", -ERANGE, {0}},
        {"0", -ERANGE, {0}},
        {"8E", -ERANGE, {0}},
        {"18446744073709551615", -ERANGE, {0}},
        {"", -EINVAL, {0}},
        {"on", -EINVAL, {0}},
        {"AUTO", -EINVAL, {0}},
        {"auto ", -EINVAL, {0}},
        {"-64M", -EINVAL, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        SizeWish wish = {0};
        assert_int_equal(size_wish_parse(text_of(cases[i].text), &wish), cases[i].r);
        assert_int_equal(wish.kind, cases[i].wish.kind);
        assert_int_equal(wish.bytes, cases[i].wish.bytes);
    }
}

static void test_duration_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds; /* negative: none */
    } cases[] = {
        {"0", 0},       {"30", 30},   {"1.5", 1.5}, {"2s", 2},     {"500ms", 0.5}, {"2m", 120},
        {"2 min", 120}, {"1h", 3600}, {"", -1},     {"s", -1},     {"-1", -1},     {"1d", -1},
        {"1S", -1},     {"1e3", -1},  {"inf", -1},  {"1s 2s", -1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        double seconds = -1;
        assert_int_equal(duration_parse(text_of(cases[i].text), &seconds),
                         cases[i].seconds < 0 ? -EINVAL : 0);
        assert_true(seconds == cases[i].seconds);
    }
    char digits[400];
    memset(digits, '9', sizeof digits);
    double seconds = -1;
    assert_int_equal(duration_parse((Text){digits, sizeof digits}, &seconds), -EINVAL);
}

static void test_size_format(void **state)
{
    (void)state;
    assert_string_equal(SIZE_TEXT(0), "0 B");
    assert_string_equal(SIZE_TEXT(1023), "1023 B");
    assert_string_equal(SIZE_TEXT(64 * MIB), "64.0 MiB");
    assert_string_equal(SIZE_TEXT(GIB - 1), "1.0 GiB");
    assert_string_equal(SIZE_TEXT(U64_UNKNOWN), "?");
    assert_string_equal(SIZE_FLAG(8 * GIB), "8g");
    assert_string_equal(SIZE_FLAG(GIB + GIB / 2), "1536m");
    assert_string_equal(SIZE_FLAG(1), "1m");
}

static void test_duration_format(void **state)
{
    (void)state;
    assert_string_equal(DURATION_TEXT(4), "4 s");
    assert_string_equal(DURATION_TEXT(180), "3 min");
    assert_string_equal(DURATION_TEXT(7200), "2 h");
    assert_string_equal(DURATION_TEXT(432000), "5 d");
}

static void test_signal_format(void **state)
{
    (void)state;
    assert_string_equal(SIGNAL_TEXT(SIGKILL), "SIGKILL");
    assert_string_equal(SIGNAL_TEXT(SIGRTMIN), "SIGRTMIN+0");
    assert_string_equal(SIGNAL_TEXT(SIGRTMIN + 6), "SIGRTMIN+6");
    assert_string_equal(SIGNAL_TEXT(99), "signal 99");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size_parse),      cmocka_unit_test(test_size_wish),
        cmocka_unit_test(test_duration_parse),  cmocka_unit_test(test_size_format),
        cmocka_unit_test(test_duration_format), cmocka_unit_test(test_signal_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
