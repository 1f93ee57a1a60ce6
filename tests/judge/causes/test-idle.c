/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "idle.h"

enum { MOST = 3 };

static void test_reasons(void **state)
{
    (void)state;
    static const struct {
        bool guarded, shared;
        uint64_t turned_away;
        uint64_t with;
        Unguarded without[MOST]; /* up to the first without a pid */
        Idle idle;
        int worst; /* its pid; 0: none */
    } cases[] = {
        {.guarded = false, .idle = IDLE_NOT},
        {.guarded = true, .shared = true, .with = 3, .idle = IDLE_NOT},
        {.guarded = true, .idle = IDLE_UNKNOWN},
        {.guarded = true, .with = 2, .idle = IDLE_NO_TENSORS},
        {.guarded = true,
         .without = {{.pid = 5, .why = ABSENCE_STATIC}},
         .idle = IDLE_NOT_LOADED,
         .worst = 5},
        /* A helper without the guard does not matter if the training has it. */
        {.guarded = true, .with = 1, .without = {{.pid = 5, .why = ABSENCE_STATIC}}, .idle = IDLE_NO_TENSORS},
        {.guarded = true,
         .with = 1,
         .without = {{.pid = 5, .role = ROLE_TRAINER, .why = ABSENCE_NO_PRELOAD}},
         .idle = IDLE_NOT_LOADED,
         .worst = 5},
        {.guarded = true,
         .shared = true,
         .with = 1,
         .without = {{.pid = 5, .role = ROLE_WORKER, .why = ABSENCE_OFF}},
         .idle = IDLE_NOT,
         .worst = 5},
        {.guarded = true, .with = 1, .turned_away = 2, .idle = IDLE_OTHER_USER},
        {.guarded = true, .without = {{.pid = 5, .why = ABSENCE_USER}}, .idle = IDLE_OTHER_USER, .worst = 5},
        {.guarded = true, .without = {{.pid = 5, .why = ABSENCE_INNER_RUN}}, .idle = IDLE_INNER_RUN},
        {.guarded = true,
         .without = {{.pid = 4, .why = ABSENCE_INNER_RUN}, {.pid = 5, .why = ABSENCE_UNREADABLE_LIBRARY}},
         .idle = IDLE_NOT_LOADED,
         .worst = 5},
        {.guarded = true, .without = {{.pid = 5, .why = ABSENCE_UNREADABLE_PROCESS}}, .idle = IDLE_UNKNOWN},
        /* Without the guard no process can lack it. */
        {.guarded = false,
         .without = {{.pid = 5, .role = ROLE_TRAINER, .why = ABSENCE_OFF}},
         .idle = IDLE_NOT},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Unguarded without[MOST];
        memcpy(without, cases[i].without, sizeof without);
        Evidence evidence = EVIDENCE_NONE;
        evidence.guarded = cases[i].guarded;
        evidence.shared = cases[i].shared;
        evidence.turned_away = cases[i].turned_away;
        evidence.coverage = (Coverage){.guarded = cases[i].with, .unguarded = without};
        while (evidence.coverage.n_unguarded < MOST && without[evidence.coverage.n_unguarded].pid > 0)
            evidence.coverage.n_unguarded++;
        assert_int_equal(idle_judge(&evidence), cases[i].idle);
        const Unguarded *worst = unguarded_worst(&evidence);
        assert_int_equal(worst ? worst->pid : 0, cases[i].worst);
    }
}

static void test_words(void **state)
{
    (void)state;
    for (Absence why = ABSENCE_UNKNOWN; why < ABSENCES; why++) {
        assert_true(strlen(absence_name(why)) > 0);
        size_t n = strlen(absence_words(why));
        assert_true(n > 20);
        for (Absence other = ABSENCE_NONE; other < why; other++)
            assert_string_not_equal(absence_name(why), absence_name(other));
    }
    assert_null(idle_name(IDLE_NOT));
    assert_string_equal(idle_name(IDLE_NO_TENSORS), "no-tensors");
    assert_string_equal(idle_name(IDLE_NOT_LOADED), "not-loaded");
    assert_string_equal(idle_name(IDLE_OTHER_USER), "other-user");
    assert_string_equal(idle_name(IDLE_INNER_RUN), "inner-run");
    assert_string_equal(idle_name(IDLE_UNKNOWN), "unknown");
}

static void test_alike(void **state)
{
    (void)state;
    Unguarded without[] = {{.pid = 5, .role = ROLE_TRAINER, .why = ABSENCE_OFF},
                           {.pid = 6, .role = ROLE_WORKER, .why = ABSENCE_OFF},
                           {.pid = 7, .role = ROLE_WORKER, .why = ABSENCE_STATIC},
                           {.pid = 8, .role = ROLE_OTHER, .why = ABSENCE_OFF}};
    Evidence evidence = {.guarded = true, .coverage = {.unguarded = without, .n_unguarded = 4}};
    assert_int_equal(unguarded_alike(&evidence, unguarded_worst(&evidence)), 2);
    assert_null(unguarded_unreadable(&evidence));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
