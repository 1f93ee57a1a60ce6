/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measured.h"

#define MIB (UINT64_C(1) << 20)

static void test_scale(void **state)
{
    (void)state;
    static const struct {
        PlanMeasured measured;
        PlanLoader asked;
        bool ranks_given;
        uint64_t ranks;
        uint64_t bytes; /* of one trainer */
        bool scaled;
    } cases[] = {
        /* As it was measured, without workers, and divided among the trainers. */
        {{.peak_bytes = 50 * MIB, .need_bytes = 50 * MIB, .trainers = 1, .workers = 2},
         {.prefetch = 2, .held = 1},
         false,
         1,
         50 * MIB,
         false},
        {{.peak_bytes = 50 * MIB, .need_bytes = 50 * MIB, .trainers = 1},
         {.prefetch = 2, .held = 1},
         false,
         1,
         50 * MIB,
         false},
        {{.peak_bytes = 50 * MIB, .need_bytes = 50 * MIB, .trainers = 2, .workers = 2},
         {.prefetch = 2, .held = 1},
         false,
         2,
         25 * MIB,
         false},
        {{.peak_bytes = 50 * MIB, .need_bytes = 50 * MIB, .trainers = 2, .workers = 2},
         {.prefetch = 2, .held = 1},
         true,
         7,
         25 * MIB,
         false},
        /* 5 batches in flight with 2 workers, 9 with 4; twice the samples. */
        {{.peak_bytes = 50 * MIB, .need_bytes = 50 * MIB, .trainers = 1, .workers = 2},
         {.workers = 4, .prefetch = 2, .held = 1},
         false,
         1,
         90 * MIB,
         true},
        {{.peak_bytes = 50 * MIB, .need_bytes = 50 * MIB, .trainers = 1, .workers = 2, .batch = 16},
         {.batch = 32, .prefetch = 2, .held = 1},
         false,
         1,
         100 * MIB,
         true},
        /* One sample of a job that needs more than it holds now. */
        {{.peak_bytes = 40 * MIB, .need_bytes = 50 * MIB, .now = true, .trainers = 1, .workers = 2},
         {.prefetch = 2, .held = 1},
         false,
         1,
         50 * MIB,
         true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        PlanMeasured measured = cases[i].measured;
        PlanQuestion question = {.ranks = 7};
        assert_int_equal(measured_scale(&measured, &cases[i].asked, cases[i].ranks_given, &question), 0);
        assert_int_equal(question.ranks, cases[i].ranks);
        assert_int_equal(question.per_process_bytes, cases[i].bytes);
        assert_int_equal(measured.scaled, cases[i].scaled);
    }
    PlanMeasured huge = {.need_bytes = UINT64_MAX - 1, .trainers = 1, .workers = 1};
    PlanQuestion question = {0};
    assert_int_equal(measured_scale(&huge, &(PlanLoader){.workers = 1 << 20, .prefetch = 1 << 20, .held = 1},
                                    false, &question),
                     -EOVERFLOW);
}

static void test_notes(void **state)
{
    (void)state;
    static ProcessPeak processes[] = {{.pid = 1, .role = ROLE_TRAINER, .own_bytes = 100 * MIB},
                                      {.pid = 2, .role = ROLE_WORKER, .own_bytes = 10 * MIB},
                                      {.pid = 3, .role = ROLE_WORKER, .own_bytes = U64_UNKNOWN}};
    static const struct {
        PlanMeasured measured;
        PlanLoader asked;
        const char *notes[3];
    } cases[] = {
        {{.trainers = 1, .workers = 2}, {.prefetch = 2, .held = 1}, {NULL}},
        {{.guarded = true, .workers = 2},
         {.prefetch = 2, .held = 1},
         {"prefetch_factor=2 and batches kept by the trainer: 1."}},
        {{.now = true, .workers = 1, .batch = 8},
         {.workers = 4, .batch = 16},
         {"The job holds this much now;", "Measured with 1 worker, scaled to 4.",
          "Measured with a batch size of 8, scaled to 16."}},
        {{.workers = 2, .code = 3, .processes = processes, .n_processes = ARRAY_SIZE(processes)},
         {.workers = 4},
         {"Measured with 2 workers, scaled to 4.", "up to 280.0 MiB of RAM", "exit code 3"}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Plan plan = {.trainers = 2};
        assert_int_equal(measured_notes(&cases[i].measured, &cases[i].asked, &arena, &plan), 0);
        size_t n = 0;
        for (; n < ARRAY_SIZE(cases[i].notes) && cases[i].notes[n]; n++) {
            assert_true(n < plan.n_notes);
            if (!strstr(plan.notes[n], cases[i].notes[n]))
                fail_msg("case %zu: %s", i, plan.notes[n]);
        }
        assert_int_equal(plan.n_notes, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scale), cmocka_unit_test(test_notes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
