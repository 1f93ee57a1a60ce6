/* SPDX-License-Identifier: Apache-2.0 */
/* When waiting for memory is worth a word, and the budget that would have avoided it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "macro.h"
#include "waits.h"

static void test_matter(void **state)
{
    (void)state;
    static const struct {
        Waits waits;
        double share;
        bool matter;
    } cases[] = {
        {{100, 99, 35}, 0.99, true}, {{100, 10, 1}, 0.1, true},
        {{100, 99, 0}, 0.99, false}, /* every wait ended because memory was released */
        {{100, 9, 1}, 0.09, false},  {{10, 4, 1}, 0.4, false},
        {{10, 20, 1}, 1, true},      {{0, 20, 1}, 0, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_true(waits_share(&cases[i].waits) == cases[i].share);
        assert_int_equal(waits_matter(&cases[i].waits), cases[i].matter);
    }
}

static void test_suggest(void **state)
{
    (void)state;
    const uint64_t mib = UINT64_C(1) << 20;
    assert_int_equal(budget_suggest(1), mib);
    assert_int_equal(budget_suggest(16 * mib), 16 * mib);
    assert_int_equal(budget_suggest(16 * mib + 1), 18 * mib);
    assert_int_equal(budget_suggest(470 * mib + 1), 480 * mib);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matter), cmocka_unit_test(test_suggest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
