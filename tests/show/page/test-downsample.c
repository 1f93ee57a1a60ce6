/* SPDX-License-Identifier: Apache-2.0 */
/* Fewer points, and no peak lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "downsample.h"

enum { MANY = 10000 };

static void test_few_stay_as_they_are(void **state)
{
    (void)state;
    static const double seconds[] = {0, 1, 2, 5};
    static const uint64_t values[] = {3, U64_UNKNOWN, 7, 1};
    _cleanup_arena_ Arena arena = {0};
    Downsampling grid;
    uint64_t placed[4];
    assert_int_equal(downsample_times(seconds, 4, 4, &arena, &grid), 0);
    assert_int_equal(grid.n, 4);
    assert_true(grid.stretch_seconds == 0);
    downsample_values(&grid, seconds, 4, values, values, placed);
    assert_memory_equal(placed, values, sizeof values);
}

static void test_empty(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Downsampling grid;
    uint64_t placed[1] = {42};
    assert_int_equal(downsample_times(NULL, 0, 100, &arena, &grid), 0);
    assert_int_equal(grid.n, 0);
    downsample_values(&grid, NULL, 0, NULL, NULL, placed);
    assert_int_equal(placed[0], 42);

    static const double once[] = {5, 5, 5}; /* a span of nothing cannot be cut */
    assert_int_equal(downsample_times(once, 3, 2, &arena, &grid), 0);
    assert_true(grid.n >= 1);
}

/* One sample of ten thousand, wherever it stands, is still there, and so is the lowest. */
static void test_peaks_stay(void **state)
{
    (void)state;
    static double seconds[MANY];
    static uint64_t values[MANY];
    uint64_t placed[100];
    for (size_t i = 0; i < MANY; i++)
        seconds[i] = (double)i * 0.5;
    for (size_t at = 0; at < MANY; at += 37) {
        _cleanup_arena_ Arena arena = {0};
        Downsampling grid;
        size_t low = (at + 5003) % MANY;
        for (size_t i = 0; i < MANY; i++)
            values[i] = 1000 + i % 10;
        values[at] = 5000;
        values[low] = 1;
        assert_int_equal(downsample_times(seconds, MANY, 100, &arena, &grid), 0);
        assert_true(grid.n <= 100 && grid.n >= 90);
        downsample_values(&grid, seconds, MANY, values, values, placed);
        bool highest = false;
        bool lowest = false;
        for (size_t i = 0; i < grid.n; i++) {
            highest |= placed[i] == 5000 && grid.seconds[i] >= seconds[at] - grid.stretch_seconds &&
                       grid.seconds[i] <= seconds[at] + grid.stretch_seconds;
            lowest |= placed[i] == 1;
            assert_true(i == 0 || grid.seconds[i] > grid.seconds[i - 1]);
        }
        assert_true(highest && lowest);
    }
}

/* A process that lives for a while, with samples that the job does not have and without some that it has. */
static void test_other_times(void **state)
{
    (void)state;
    static double seconds[MANY];
    double own[] = {1000.2, 1000.7, 1003, 4999};
    uint64_t values[] = {5, U64_UNKNOWN, 9, 2};
    uint64_t placed[200];
    _cleanup_arena_ Arena arena = {0};
    Downsampling grid;
    for (size_t i = 0; i < MANY; i++)
        seconds[i] = (double)i * 0.5;
    assert_int_equal(downsample_times(seconds, MANY, 200, &arena, &grid), 0);
    downsample_values(&grid, own, ARRAY_SIZE(own), values, values, placed);
    uint64_t most = U64_UNKNOWN;
    size_t known = 0;
    for (size_t i = 0; i < grid.n; i++) {
        u64_raise(&most, placed[i]);
        known += placed[i] != U64_UNKNOWN;
        assert_true(placed[i] == U64_UNKNOWN || grid.seconds[i] >= 900);
    }
    assert_int_equal(most, 9);
    assert_true(known >= 2 && known <= 6);
}

/* What is stacked was there together: a value stands beside its key. */
static void test_key_decides(void **state)
{
    (void)state;
    static double seconds[MANY];
    static uint64_t key[MANY];
    static uint64_t values[MANY];
    uint64_t keys[64];
    uint64_t placed[64];
    _cleanup_arena_ Arena arena = {0};
    Downsampling grid;
    for (size_t i = 0; i < MANY; i++) {
        seconds[i] = (double)i;
        key[i] = (i * 7919) % 1000;
        values[i] = key[i] * 3;
    }
    assert_int_equal(downsample_times(seconds, MANY, 64, &arena, &grid), 0);
    downsample_values(&grid, seconds, MANY, key, key, keys);
    downsample_values(&grid, seconds, MANY, key, values, placed);
    for (size_t i = 0; i < grid.n; i++)
        assert_int_equal(placed[i], keys[i] * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_stay_as_they_are), cmocka_unit_test(test_empty),
        cmocka_unit_test(test_peaks_stay),           cmocka_unit_test(test_other_times),
        cmocka_unit_test(test_key_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
