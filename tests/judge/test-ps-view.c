/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ps-view.h"

#define MEMORY .has_memory = true, .readable = true

enum { N_PROCESSES = 8, N_SEGMENTS = 4 };

static void survey_make(Survey *survey)
{
    static const Process processes[N_PROCESSES] = {
        {.pid = 1},
        {.pid = 100,
         MEMORY,
         .role = ROLE_WORKER,
         .job = 300,
         .rss_bytes = 5,
         .pss_bytes = U64_UNKNOWN,
         .fds = 9},
        {.pid = 200, MEMORY, .role = ROLE_TRAINER, .job = 200, .rss_bytes = 50, .pss_bytes = 40, .fds = 7},
        {.pid = 201, MEMORY, .role = ROLE_WORKER, .job = 200, .rss_bytes = 60, .pss_bytes = 10, .fds = 7},
        {.pid = 202, MEMORY, .role = ROLE_MANAGER, .job = 200, .rss_bytes = 1, .pss_bytes = 1, .fds = 1},
        {.pid = 300, MEMORY, .role = ROLE_TRAINER, .job = 300, .rss_bytes = 70, .pss_bytes = 70, .fds = 3},
        {.pid = 400, MEMORY, .rss_bytes = 2, .pss_bytes = 2, .shm_bytes = 4096, .segments = 1, .fds = 2},
        {.pid = 500, MEMORY, .rss_bytes = 3, .pss_bytes = 3, .fds = 2},
    };
    static int holders_a[] = {100, 300};
    static int holders_b[] = {201, 400};
    static const Segment segments[N_SEGMENTS] = {
        {.name = {"b", 1},
         .inode = 1,
         .size_bytes = 10,
         .allocated_bytes = 30,
         .holders = holders_a,
         .n_holders = 2},
        {.name = {"a", 1},
         .inode = 2,
         .size_bytes = 30,
         .allocated_bytes = 10,
         .holders = holders_b,
         .n_holders = 2},
        {.name = {"ab", 2},
         .inode = 3,
         .size_bytes = 20,
         .allocated_bytes = 20,
         .holders = holders_b,
         .n_holders = 1},
        {.name = {"ab", 2}, .inode = 4, .size_bytes = 20, .allocated_bytes = 20, .on_mount = true},
    };
    *survey = (Survey){.n_processes = N_PROCESSES, .n_segments = N_SEGMENTS};
    survey->processes = arena_alloc(&survey->arena, sizeof processes);
    survey->segments = arena_alloc(&survey->arena, sizeof segments);
    assert_non_null(survey->processes);
    assert_non_null(survey->segments);
    memcpy(survey->processes, processes, sizeof processes);
    memcpy(survey->segments, segments, sizeof segments);
}

static void test_selection_and_order(void **state)
{
    (void)state;
    Survey survey;
    survey_make(&survey);
    static const struct {
        PsSelection selection;
        int pids[N_PROCESSES + 1];
        uint64_t inodes[N_SEGMENTS + 1];
    } cases[] = {
        /* Jobs in the order of their trainers, though a worker has a smaller pid; holders after them. */
        {{0}, {200, 201, 202, 300, 100, 400}, {1, 3, 4, 2}},
        {{.all = true}, {200, 201, 202, 300, 100, 1, 400, 500}, {1, 3, 4, 2}},
        {{.sort = PS_SORT_PID}, {100, 200, 201, 202, 300, 400}, {1, 3, 4, 2}},
        {{.sort = PS_SORT_RSS}, {300, 201, 200, 100, 400, 202}, {1, 3, 4, 2}},
        {{.sort = PS_SORT_PSS}, {300, 200, 201, 400, 202, 100}, {1, 3, 4, 2}}, /* the unknown one last */
        {{.sort = PS_SORT_FDS}, {100, 200, 201, 300, 400, 202}, {1, 3, 4, 2}},
        {{.sort = PS_SORT_SHM}, {400, 100, 200, 201, 202, 300}, {1, 3, 4, 2}},
        {{.sort = PS_SORT_SIZE}, {200, 201, 202, 300, 100, 400}, {2, 3, 4, 1}},
        {{.sort = PS_SORT_ALLOCATED}, {200, 201, 202, 300, 100, 400}, {1, 3, 4, 2}},
        {{.sort = PS_SORT_NAME}, {200, 201, 202, 300, 100, 400}, {2, 3, 4, 1}},
        {{.sort = PS_SORT_HOLDERS}, {200, 201, 202, 300, 100, 400}, {1, 2, 3, 4}},
        /* A job by its trainer, its worker, its manager. */
        {{.pid = 200}, {200, 201, 202}, {3, 2}},
        {{.pid = 201}, {200, 201, 202}, {3, 2}},
        {{.pid = 202}, {200, 201, 202}, {3, 2}},
        {{.pid = 100}, {300, 100}, {1}},
        {{.pid = 400}, {400}, {2}}, /* no job: the process alone */
        {{.pid = 500}, {500}, {0}},
        {{.pid = 1, .all = true}, {1}, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        PsView view;
        assert_int_equal(ps_view_make(&survey, &cases[i].selection, &arena, &view), 0);
        size_t n = 0;
        for (; cases[i].pids[n]; n++) {
            assert_true(n < view.n_processes);
            assert_int_equal(view.processes[n].process->pid, cases[i].pids[n]);
        }
        assert_int_equal(view.n_processes, n);
        for (n = 0; cases[i].inodes[n]; n++) {
            assert_true(n < view.n_segments);
            assert_int_equal(view.segments[n].segment->inode, cases[i].inodes[n]);
        }
        assert_int_equal(view.n_segments, n);
    }
    arena_free(&survey.arena);
}

static void test_gone(void **state)
{
    (void)state;
    Survey survey;
    survey_make(&survey);
    _cleanup_arena_ Arena arena = {0};
    PsView view = {.n_processes = 77};
    assert_int_equal(ps_view_make(&survey, &(PsSelection){.pid = 999}, &arena, &view), -ESRCH);
    assert_int_equal(view.n_processes, 77);
    arena_free(&survey.arena);
}

static void test_empty(void **state)
{
    (void)state;
    Survey survey = {0};
    _cleanup_arena_ Arena arena = {0};
    PsView view;
    assert_int_equal(ps_view_make(&survey, &(PsSelection){.all = true}, &arena, &view), 0);
    assert_int_equal(view.n_processes, 0);
    assert_int_equal(view.n_segments, 0);
}

static void test_sort_names(void **state)
{
    (void)state;
    for (PsSort sort = PS_SORT_PID; sort < PS_SORTS; sort++) {
        PsSort found = PS_SORT_NONE;
        assert_int_equal(ps_sort_find(text_of(ps_sort_name(sort)), &found), 0);
        assert_int_equal(found, sort);
    }
    PsSort found = PS_SORT_NONE;
    assert_int_equal(ps_sort_find(TEXT(""), &found), -EINVAL);
    assert_int_equal(ps_sort_find(TEXT("RSS"), &found), -EINVAL);
    assert_int_equal(ps_sort_find(TEXT("rss "), &found), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_selection_and_order),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_sort_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
