/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in a training's output, and the rate that a trial comes to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tune-rate.h"

static void test_number(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double number; /* negative: refused */
    } cases[] = {
        {"0", 0},
        {"812.4", 812.4},
        {"1e3", 1000},
        {"2.5E-1", 0.25},
        {".5", 0.5},
        {"5.", 5},
        {"1,234", 1234},
        {"1,234.5", 1234.5},
        {"12,345,678", 12345678},
        {"", -1},
        {"-1", -1},
        {"+1", -1},
        {"nan", -1},
        {"inf", -1},
        {"0x10", -1},
        {"1,23", -1},
        {",123", -1},
        {"1,234,", -1},
        {"1234,567,8", -1},
        {"1.5,000", -1},
        {"1e999", -1},
        {"1 2", -1},
        {"12ab", -1},
        {"e5", -1},
        {".", -1},
        {"1..2", -1},
        {"1e", -1},
        {"--", -1},
        {"00000000000000000000000000000000000000000000000000000000000000000000000000000001", -1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        double number = -1;
        int r = rate_number_parse(text_of(cases[i].text), &number);
        if (cases[i].number < 0)
            assert_true(r == -EINVAL && number == -1);
        else
            assert_true(r == 0 && number == cases[i].number);
    }
}

typedef struct Numbers {
    double items[16];
    size_t n;
} Numbers;

static void number_take(void *context, double number)
{
    Numbers *numbers = context;
    assert_true(numbers->n < ARRAY_SIZE(numbers->items));
    numbers->items[numbers->n++] = number;
}

static void test_regex(void **state)
{
    (void)state;
    static const struct {
        const char *regex;
        const char *said; /* NULL: good */
    } cases[] = {
        {"rate: ([0-9.]+)", NULL},
        {"rate: [0-9.]+", "in parentheses"},
        {"rate: ([0-9.]+", "not a regular expression"},
        {"\033[(", "\\x1b[("},
        {"", "in parentheses"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        RateReader reader;
        _cleanup_buffer_ Buffer error = {0};
        int r = rate_reader_open(cases[i].regex, &reader, &error);
        assert_int_equal(r, cases[i].said ? -EINVAL : 0);
        if (cases[i].said)
            assert_non_null(strstr(buffer_text(&error), cases[i].said));
        rate_reader_close(&reader);
    }
}

/* The same, however the output is cut into pieces. */
static void test_reader(void **state)
{
    (void)state;
    static const char output[] = "loading\r\n"
                                 "step 1 rate: 10.5 it/s\n"
                                 "  0%| rate: 20\r 50%| rate: 30\r100%| rate: 4,000\n"
                                 "rate: soon\nrate: \n\n\n"
                                 "\xff\xfe rate: 50\n"
                                 "no end, rate: 99";
    static const double wanted[] = {10.5, 20, 30, 4000, 50};
    for (size_t piece = 1; piece <= sizeof output; piece++) {
        RateReader reader;
        _cleanup_buffer_ Buffer error = {0};
        Numbers numbers = {.n = 0};
        assert_int_equal(rate_reader_open("rate: ([^ ]*)", &reader, &error), 0);
        for (size_t i = 0; i < sizeof output - 1; i += piece)
            rate_reader_feed(&reader, (Text){output + i, MIN(piece, sizeof output - 1 - i)}, number_take,
                             &numbers);
        assert_int_equal(numbers.n, ARRAY_SIZE(wanted));
        for (size_t i = 0; i < numbers.n; i++)
            assert_true(numbers.items[i] == wanted[i]);
        assert_int_equal(reader.matches, 5);
        assert_int_equal(reader.nonsense, 2);
        assert_int_equal(reader.lines, 8);
        rate_reader_clear(&reader);
        assert_true(reader.lines == 0 && reader.last[0] == '\0');
        rate_reader_close(&reader);
    }

    /* A line without an end takes no memory and matches as far as it goes. */
    RateReader reader;
    _cleanup_buffer_ Buffer error = {0};
    Numbers numbers = {.n = 0};
    assert_int_equal(rate_reader_open("^a+(1)?b", &reader, &error), 0);
    for (size_t i = 0; i < 3 * RATE_LINE_MAX; i++)
        rate_reader_feed(&reader, TEXT("a"), number_take, &numbers);
    rate_reader_feed(&reader, (Text){"1\0b\nab\n", 7}, number_take, &numbers);
    assert_int_equal(numbers.n, 0);
    assert_int_equal(reader.lines, 2);
    assert_int_equal(reader.nonsense, 1); /* the group is not there */
    rate_reader_close(&reader);
}

static void test_counts(void **state)
{
    (void)state;
    MeterReading reading;
    RateMeter none = {.seconds = 8};
    meter_count(&none, 1, 0);
    assert_false(meter_read(&none, &reading));
    assert_false(meter_is_over(&none, 100)); /* it has not begun */

    /* 10 batches a second of 100 bytes, after a burst that fills the queues, and 50 s of start. */
    RateMeter meter = {.seconds = 8};
    uint64_t count = 0;
    for (double t = 50; t < 58.05; t += 0.02) {
        count += t < 50.5 ? 1000 : 0;
        meter_count(&meter, t, count + 100 * (uint64_t)((t - 50) * 10 + 1e-9));
    }
    assert_true(meter_is_over(&meter, 58.01) && !meter_is_over(&meter, 57.5));
    assert_true(meter_read(&meter, &reading));
    assert_true(fabs(reading.rate - 1000) < 5);
    assert_true(reading.error < 60 && reading.filled > 0.95);

    /* A batch takes 3 s: from change to change. */
    RateMeter slow = {.seconds = 20};
    for (double t = 0; t < 20; t += 0.02)
        meter_count(&slow, t, 100 * (uint64_t)(1 + t / 3 + 1e-9));
    assert_true(meter_read(&slow, &reading));
    assert_true(fabs(reading.rate - 100.0 / 3) < 0.5);

    /* What comes while it is being ended does not count. */
    meter_count(&meter, 59, 1000000);
    MeterReading again;
    assert_true(meter_read(&meter, &again) && fabs(again.rate - 1000) < 5);
}

static void test_values(void **state)
{
    (void)state;
    MeterReading reading;
    RateMeter meter = {.seconds = 4};
    meter_value(&meter, 10, 5); /* warming up */
    meter_value(&meter, 10.5, 5);
    assert_false(meter_read(&meter, &reading));
    for (int i = 0; i < 30; i++)
        meter_value(&meter, 11 + i * 0.1, i % 2 ? 99 : 101);
    meter_value(&meter, 14.5, 7); /* too late */
    assert_true(meter_read(&meter, &reading));
    assert_true(fabs(reading.rate - 100) < 0.5 && reading.error < 2);

    RateMeter once = {.seconds = 4};
    meter_value(&once, 10, 5);
    meter_value(&once, 12, 50);
    assert_true(meter_read(&once, &reading) && reading.rate == 50 && reading.error == 50);
    RateMeter zero = {.seconds = 4};
    meter_value(&zero, 10, 0);
    meter_value(&zero, 12, 0);
    assert_false(meter_read(&zero, &reading));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number), cmocka_unit_test(test_regex),  cmocka_unit_test(test_reader),
        cmocka_unit_test(test_counts), cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
