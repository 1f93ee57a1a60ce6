/* SPDX-License-Identifier: Apache-2.0 */
/* Which way a figure goes, and from which share on a meter warns. Forecasts are tested with the screen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trends.h"

#define MIB (UINT64_C(1) << 20)

enum { SAMPLES = 120 };

typedef struct Made {
    double seconds[SAMPLES];
    uint64_t values[SAMPLES];
} Made;

static uint64_t made_value(const void *context, size_t place)
{
    return ((const Made *)context)->values[place];
}

static void test_trend(void **state)
{
    (void)state;
    static const struct {
        uint64_t from;
        int64_t step; /* per sample */
        size_t known; /* the last so many samples */
        Direction direction;
    } cases[] = {
        {1000 * MIB, MIB, SAMPLES, DIRECTION_UP},
        {1000 * MIB, -(int64_t)MIB, SAMPLES, DIRECTION_DOWN},
        {1000 * MIB, 0, SAMPLES, DIRECTION_FLAT},
        {1000 * MIB, 4096, SAMPLES, DIRECTION_FLAT}, /* below a hundredth */
        {2 * MIB, 4096, SAMPLES, DIRECTION_FLAT},    /* below a MiB */
        {1000 * MIB, MIB, 7, DIRECTION_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Made made;
        for (size_t j = 0; j < SAMPLES; j++) {
            made.seconds[j] = (double)j;
            made.values[j] = j + cases[i].known < SAMPLES
                                 ? U64_UNKNOWN
                                 : cases[i].from + (uint64_t)((int64_t)j * cases[i].step);
        }
        Series series = {.seconds = made.seconds, .n = SAMPLES};
        CurrentTrend trend = trend_judge(&series, SAMPLES, SAMPLES, (double)MIB, made_value, &made);
        assert_int_equal(trend.direction, cases[i].direction);
        assert_true((trend.rate != 0) ==
                    (trend.direction == DIRECTION_UP || trend.direction == DIRECTION_DOWN));
    }
}

static void test_alerts(void **state)
{
    (void)state;
    assert_int_equal(alert_of_share(-1), ALERT_UNKNOWN);
    assert_int_equal(alert_of_share(0.79), ALERT_FINE);
    assert_int_equal(alert_of_share(0.8), ALERT_WARNING);
    assert_int_equal(alert_of_share(0.9), ALERT_CRITICAL);
    assert_int_equal(alert_of_budget(0, 0), ALERT_FINE);
    assert_int_equal(alert_of_budget(3, 0), ALERT_WARNING);
    assert_int_equal(alert_of_budget(0, 1), ALERT_CRITICAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trend), cmocka_unit_test(test_alerts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
