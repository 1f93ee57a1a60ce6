/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "budget.h"
#include "macro.h"

enum { MIB = 1 << 20 };

/* The number of batches that each process has begun. */
static uint64_t batches[32];

static Facts facts_of(uint64_t used, uint64_t spare, double now)
{
    return (Facts){.used_bytes = used, .spare_bytes = spare, .most_bytes = spare, .now = now};
}

static void ask(Budget *budget, uint64_t id, uint64_t bytes, double now)
{
    Request request = {.id = id, .pid = (int)id, .bytes = bytes, .batch = batches[id], .asked = now};
    assert_int_equal(budget_ask(budget, &request), 0);
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
    memset(batches, 0, sizeof batches);
    Budget *budget = calloc(1, sizeof *budget);
    *budget = (Budget){.limit_bytes = 100 * MIB, .wished = true, .wait_seconds = 60};
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

/* A segment that was made longer has a part of its pages, and that part is counted as used. */
static void test_what_is_held_is_not_asked_for_again(void **state)
{
    Budget *budget = *state;
    Request request = {.id = 1, .pid = 1, .bytes = 40 * MIB, .held_bytes = 30 * MIB, .asked = 10};
    assert_int_equal(budget_ask(budget, &request), 0);
    assert_int_equal(granted(budget, 90 * MIB + 1, UINT64_MAX, 10), 0);
    assert_int_equal(granted(budget, 90 * MIB, 10 * MIB - 1, 10), 0);
    assert_int_equal(granted(budget, 90 * MIB, 10 * MIB, 10), 1);
}

/* Requests are granted in the order in which an in-order loader needs them, not in the order in which they
 * arrived. */
static void test_whoever_is_needed_soonest_goes_first(void **state)
{
    Budget *budget = *state;
    static const uint64_t at[] = {[2] = 7, [3] = 6, [4] = 5, [5] = 6, [6] = 1, [7] = 1};
    for (uint64_t id = 7; id >= 2; id--) {
        batches[id] = at[id];
        ask(budget, id, 10 * MIB, 1);
    }
    static const uint64_t order[] = {6, 7, 4, 3, 5, 2};
    for (size_t i = 0; i < ARRAY_SIZE(order); i++)
        assert_int_equal(granted(budget, 90 * MIB, UINT64_MAX, 1.1), order[i]);
}

/* Workers ask for the tensors of their batches in the worst order. The trainer takes the batches in turn and
 * holds one of them. It must never wait long, and the limit must hold except for the batch of one rescue. */
static void loader_run(Budget *budget, unsigned workers, unsigned tensors, uint64_t batch_bytes)
{
    enum { STEPS = 160, PREFETCH = 2, WORKERS_MAX = 16 };
    unsigned made[WORKERS_MAX + 1] = {0};  /* tensors in total */
    unsigned taken[WORKERS_MAX + 1] = {0}; /* batches */
    uint64_t used = 0;
    uint64_t most = 0;
    double now = 100;
    for (uint64_t id = workers; id >= 1; id--)
        ask(budget, id, batch_bytes / tensors, now);
    for (unsigned step = 0; step < STEPS; now += 0.02) {
        Request request;
        Facts facts = facts_of(used, UINT64_MAX, now);
        bool idle[WORKERS_MAX + 1] = {false};
        while (budget_decide(budget, &facts, &request) == DECISION_GRANTED) {
            made[request.id]++;
            facts.used_bytes = used += request.bytes;
            most = MAX(most, used);
            idle[request.id] = true; /* busy copying: it asks again after all others have */
        }
        unsigned worker = step % workers + 1;
        if (made[worker] / tensors > taken[worker]) {
            idle[worker] |= made[worker] == (taken[worker] + PREFETCH) * tensors;
            taken[worker]++;
            if (step++ > 0) {
                used -= batch_bytes;
                budget_released(budget, now);
            }
        }
        for (unsigned id = workers; id >= 1; id--) {
            batches[id] = made[id] / tensors;
            if (idle[id] && made[id] < (taken[id] + PREFETCH) * tensors)
                ask(budget, id, batch_bytes / tensors, now);
        }
        assert_true(now < 100 + STEPS * 0.2);
    }
    assert_true(most <= budget->limit_bytes + batch_bytes);
}

static void test_an_in_order_loader_is_served_in_order(void **state)
{
    loader_run(*state, 16, 1, 30 * MIB);
}

static void test_batches_of_several_tensors(void **state)
{
    loader_run(*state, 8, 4, 32 * MIB);
}

static void test_a_rescue_when_nothing_is_let_go(void **state)
{
    Budget *budget = *state;
    for (int i = 0; i < 10; i++)
        budget_released(budget, 100 + i * 0.2); /* a pace of 0.2 s */
    ask(budget, 1, 20 * MIB, 101.8);
    assert_int_equal(granted(budget, 100 * MIB, UINT64_MAX, 102.1), 0);
    assert_int_equal(granted(budget, 100 * MIB, UINT64_MAX, 102.3), 1);
    /* Each consecutive rescue takes twice as long as the one before. */
    ask(budget, 2, 20 * MIB, 102.3);
    assert_int_equal(granted(budget, 120 * MIB, UINT64_MAX, 103), 0);
    assert_int_equal(granted(budget, 120 * MIB, UINT64_MAX, 103.2), 2);
    /* A release ends the series. */
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

/* While a trainer pauses for minutes, its workers exceed the limit one by one, and none is refused. */
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

/* A limit that we chose is only a guess: a larger request is granted if the memory exists. */
static void test_larger_than_a_guess(void **state)
{
    Budget *budget = *state;
    budget->wished = false;
    ask(budget, 1, 200 * MIB, 1);
    assert_int_equal(refused(budget, 0, UINT64_MAX, 1), 0);
    assert_int_equal(granted(budget, 0, UINT64_MAX, 1.6), 1);
    ask(budget, 2, 200 * MIB, 2);
    assert_int_equal(refused(budget, 0, 150 * MIB, 62), 2);
    assert_true(budget->refused_for_want);
}

/* Only a rescue may use the reserve. */
static void test_the_reserve_is_for_a_rescue(void **state)
{
    Budget *budget = *state;
    Request request;
    ask(budget, 1, 20 * MIB, 1);
    Facts facts = facts_of(0, 10 * MIB, 1);
    facts.most_bytes = 30 * MIB;
    assert_int_equal(budget_decide(budget, &facts, &request), DECISION_NONE);
    facts.now = 1.6;
    assert_int_equal(budget_decide(budget, &facts, &request), DECISION_GRANTED);
}

/* A rescue covers all tensors of one batch, and no other batch meanwhile. */
static void test_a_rescue_is_for_a_whole_batch(void **state)
{
    Budget *budget = *state;
    ask(budget, 1, 20 * MIB, 1);
    ask(budget, 2, 20 * MIB, 1);
    assert_int_equal(granted(budget, 100 * MIB, UINT64_MAX, 1.6), 1);
    ask(budget, 1, 20 * MIB, 1.8);
    assert_int_equal(granted(budget, 120 * MIB, UINT64_MAX, 1.8), 1);
    batches[1] = 1;
    ask(budget, 1, 20 * MIB, 1.81);
    assert_int_equal(granted(budget, 140 * MIB, UINT64_MAX, 1.81), 0);
    assert_int_equal(granted(budget, 140 * MIB, UINT64_MAX, 2.9), 2);
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

/* A trainer that keeps its batches proceeds only by rescues. This is reported after 10 s, and again after 30
 * s and 90 s more. */
static void test_a_crawl_is_told(void **state)
{
    Budget *budget = *state;
    double told[4] = {0};
    size_t n = 0;
    uint64_t used = 95 * MIB;
    for (double now = 100; now < 300; now += 0.5) {
        if (budget->n == 0)
            ask(budget, 1, 10 * MIB, now);
        if (granted(budget, used, UINT64_MAX, now)) {
            used += 10 * MIB;
            batches[1]++;
        }
        if (budget_crawl_is_due(budget, now)) {
            assert_true(n < ARRAY_SIZE(told));
            told[n++] = now;
        }
    }
    assert_int_equal(n, 3);
    assert_true(told[0] >= 110 && told[0] < 112);
    assert_true(told[1] >= told[0] + 30 && told[1] < told[0] + 32);
    assert_true(told[2] >= told[1] + 90 && told[2] < told[1] + 92);
    assert_true(budget->rescues_all >= 35 && budget->rescues_all == (used / MIB - 95) / 10);
    assert_int_equal(budget->wanted_bytes, used + (budget->n > 0 ? 10 : 0) * MIB);
    assert_true(budget->wanted_exists);
}

static void test_what_is_no_crawl(void **state)
{
    Budget *budget = *state;
    ask(budget, 1, 10 * MIB, 1);
    for (double now = 1; now < 60; now += 1) { /* a slow trainer, but it releases its batches */
        assert_int_equal(granted(budget, 95 * MIB, 5 * MIB, now), 0);
        if ((int)now % 8 == 0)
            budget_released(budget, now);
        assert_false(budget_crawl_is_due(budget, now));
    }
    assert_int_equal(granted(budget, 90 * MIB, UINT64_MAX, 60), 1);
    assert_true(budget_crawled(budget, 90) == 0); /* no request is waiting */

    ask(budget, 1, 10 * MIB, 100); /* two short waits, far apart */
    assert_int_equal(granted(budget, 95 * MIB, 5 * MIB, 100), 0);
    budget_withdraw(budget, 1);
    ask(budget, 1, 10 * MIB, 200);
    assert_int_equal(granted(budget, 95 * MIB, 5 * MIB, 200), 0);
    assert_false(budget_crawl_is_due(budget, 201));
    assert_false(budget->wanted_exists);
}

/* A trainer whose steps take a minute is only slow; it does not keep its batches. */
static void test_a_long_step_is_no_crawl(void **state)
{
    Budget *budget = *state;
    budget->wait_seconds = 1000;
    ask(budget, 1, 10 * MIB, 1);
    for (double now = 1; now < 600; now += 1) {
        assert_int_equal(granted(budget, 95 * MIB, 5 * MIB, now), 0);
        if ((int)now % 60 == 0)
            budget_released(budget, now);
        assert_true(!budget_crawl_is_due(budget, now) || now < 180);
    }
    assert_true(budget->crawl_told <= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_fits_is_granted_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_whoever_is_needed_soonest_goes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_in_order_loader_is_served_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batches_of_several_tensors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_rescue_when_nothing_is_let_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_rescue_without_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_long_pause_refuses_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_larger_than_all_of_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_larger_than_a_guess, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_reserve_is_for_a_rescue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_rescue_is_for_a_whole_batch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_whoever_goes_leaves_the_queue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_a_ceiling_memory_decides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_crawl_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_held_is_not_asked_for_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_no_crawl, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_long_step_is_no_crawl, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
