#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "budget.h"
#include "macro.h"

enum { MIB = 1 << 20 };

/* What each process has in use, by its pid. */
static uint64_t held[16];

static uint64_t held_by(int pid, const void *context)
{
    (void)context;
    return held[pid];
}

static Facts facts_of(uint64_t used, uint64_t spare, double now)
{
    return (Facts){.used_bytes = used, .spare_bytes = spare, .held_by = held_by, .now = now};
}

static void ask(Budget *budget, uint64_t id, uint64_t bytes, double now)
{
    assert_int_equal(budget_ask(budget, &(Request){.id = id, .pid = (int)id, .bytes = bytes, .asked = now}),
                     0);
}

static uint64_t granted(Budget *budget, uint64_t used, uint64_t spare, double now)
{
    Request request;
    Facts facts = facts_of(used, spare, now);
    return budget_decide(budget, &facts, &request) == DECISION_GRANTED ? request.id : 0;
}

static uint64_t refused(Budget *budget, uint64_t used, uint64_t spare, double now)
{
    Request request;
    Facts facts = facts_of(used, spare, now);
    return budget_decide(budget, &facts, &request) == DECISION_REFUSED ? request.id : 0;
}

static int set_up(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(held); i++)
        held[i] = 0;
    Budget *budget = calloc(1, sizeof *budget);
    *budget = (Budget){.limit_bytes = 100 * MIB, .wait_seconds = 60};
    *state = budget;
    return 0;
}

static int tear_down(void **state)
{
    budget_free(*state);
    free(*state);
    return 0;
}

static void test_what_fits_is_granted_at_once(void **state)
{
    Budget *budget = *state;
    ask(budget, 1, 40 * MIB, 10);
    assert_int_equal(granted(budget, 60 * MIB, UINT64_MAX, 10), 1);
    assert_int_equal(granted(budget, 60 * MIB, UINT64_MAX, 10), 0);
    assert_int_equal(budget->waits, 0);
    ask(budget, 2, 40 * MIB + 1, 10);
    assert_int_equal(granted(budget, 60 * MIB, UINT64_MAX, 10), 0);
    assert_int_equal(granted(budget, 60 * MIB - 1, UINT64_MAX, 10.5), 2);
    assert_int_equal(budget->waits, 1);
    assert_true(budget->waited_seconds > 0.4 && budget->waited_seconds < 0.6);
}

static void test_the_one_with_the_least_goes_first(void **state)
{
    Budget *budget = *state;
    held[1] = 30 * MIB;
    held[3] = 10 * MIB;
    ask(budget, 1, 10 * MIB, 1);
    ask(budget, 2, 10 * MIB, 1.1);
    ask(budget, 3, 10 * MIB, 1.2);
    ask(budget, 4, 10 * MIB, 1.3);
    assert_int_equal(granted(budget, 90 * MIB, UINT64_MAX, 1.35), 2);
    assert_int_equal(granted(budget, 90 * MIB, UINT64_MAX, 1.35), 4);
    assert_int_equal(granted(budget, 90 * MIB, UINT64_MAX, 1.35), 3);
    ask(budget, 5, 10 * MIB, 1.4);
    assert_int_equal(granted(budget, 90 * MIB, UINT64_MAX, 4), 1); /* it has waited long enough */
}

static void test_a_rescue_when_nothing_is_let_go(void **state)
{
    Budget *budget = *state;
    for (int i = 0; i < 10; i++)
        budget_released(budget, 100 + i * 0.2); /* a pace of 0.2 s */
    ask(budget, 1, 20 * MIB, 101.8);
    assert_int_equal(granted(budget, 100 * MIB, UINT64_MAX, 102.1), 0);
    assert_int_equal(granted(budget, 100 * MIB, UINT64_MAX, 102.3), 1);
    /* The next one in a row takes twice as long. */
    ask(budget, 2, 20 * MIB, 102.3);
    assert_int_equal(granted(budget, 120 * MIB, UINT64_MAX, 103), 0);
    assert_int_equal(granted(budget, 120 * MIB, UINT64_MAX, 103.2), 2);
    /* A release ends the row. */
    budget_released(budget, 103.3);
    ask(budget, 3, 20 * MIB, 103.3);
    assert_int_equal(granted(budget, 120 * MIB, UINT64_MAX, 104.2), 3);
}

static void test_no_rescue_without_memory(void **state)
{
    Budget *budget = *state;
    ask(budget, 1, 20 * MIB, 5);
    assert_int_equal(granted(budget, 0, 10 * MIB, 50), 0);
    assert_int_equal(refused(budget, 0, 10 * MIB, 64.9), 0);
    assert_int_equal(refused(budget, 0, 10 * MIB, 65), 1);
    assert_true(budget->refused_for_want);
    assert_int_equal(budget->refused, 1);
    assert_int_equal(budget->refused_last.bytes, 20 * MIB);
    assert_int_equal(budget->n, 0);
}

/* A trainer that pauses for minutes: its workers pass the ceiling one by one, and none of them fails. */
static void test_a_long_pause_refuses_nobody(void **state)
{
    Budget *budget = *state;
    for (uint64_t id = 1; id <= 8; id++)
        ask(budget, id, 10 * MIB, 0);
    double early = 0;
    size_t n = 0;
    for (double now = 0; n < 8; now += 0.05) {
        Request request;
        Facts facts = facts_of(100 * MIB + n * 10 * MIB, UINT64_MAX, now);
        Decision decision = budget_decide(budget, &facts, &request);
        assert_int_not_equal(decision, DECISION_REFUSED);
        if (decision == DECISION_GRANTED && ++n == 4)
            early = now;
        assert_true(now < 61);
    }
    assert_true(early > 1); /* not all at once */
}

static void test_larger_than_all_of_it(void **state)
{
    Budget *budget = *state;
    ask(budget, 1, 10 * MIB, 1);
    ask(budget, 2, 100 * MIB + 1, 1);
    assert_int_equal(refused(budget, 95 * MIB, UINT64_MAX, 1), 2);
    assert_false(budget->refused_for_want);
    assert_int_equal(budget->n, 1);
}

static void test_whoever_goes_leaves_the_queue(void **state)
{
    Budget *budget = *state;
    for (uint64_t id = 1; id < 16; id++)
        ask(budget, id, 90 * MIB, 1);
    for (uint64_t id = 1; id < 15; id++)
        budget_withdraw(budget, id);
    budget_withdraw(budget, 99);
    assert_int_equal(granted(budget, 0, UINT64_MAX, 1), 15);
    assert_int_equal(budget->n, 0);
}

static void test_without_a_ceiling_memory_decides(void **state)
{
    Budget *budget = *state;
    budget->limit_bytes = UINT64_MAX;
    ask(budget, 1, UINT64_C(1) << 40, 1);
    assert_int_equal(granted(budget, UINT64_C(1) << 50, UINT64_MAX, 1), 1);
    ask(budget, 2, 10 * MIB, 1);
    assert_int_equal(granted(budget, 0, 9 * MIB, 1), 0);
    assert_int_equal(granted(budget, 0, 10 * MIB, 1), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_fits_is_granted_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_one_with_the_least_goes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_rescue_when_nothing_is_let_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_rescue_without_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_long_pause_refuses_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_larger_than_all_of_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_whoever_goes_leaves_the_queue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_a_ceiling_memory_decides, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
