/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "orphans.h"

#define NOW 1700000000.0

typedef struct Case {
    const char *what;
    Segment segment;
    size_t unreadable;
    bool blind; /* not every process has a number here */
    bool root;
    Process other;
    Orphan expected;
    const char *why; /* a part of it */
} Case;

static int holder = 12;

static const Case cases[] = {
    {.what = "held",
     .segment = {.changed = NOW - 1000, .holders = &holder, .n_holders = 1},
     .expected = ORPHAN_NO,
     .why = "held by pid 12"},
    {.what = "left behind",
     .segment = {.changed = NOW - 61, .open = OPEN_NOWHERE},
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "fresh", .segment = {.changed = NOW - 59}, .expected = ORPHAN_NO, .why = "changed 59 s ago"},
    {.what = "from the future", .segment = {.changed = NOW + 5}, .expected = ORPHAN_NO, .why = "future"},
    {.what = "another namespace may hold it",
     .segment = {.changed = NOW - 1000},
     .blind = true,
     .expected = ORPHAN_UNKNOWN,
     .why = "not visible"},
    {.what = "the kernel's answer is not enough: an invisible process may reopen it by name",
     .segment = {.changed = NOW - 1000, .open = OPEN_NOWHERE},
     .blind = true,
     .expected = ORPHAN_UNKNOWN,
     .why = "not visible"},
    {.what = "the kernel knows of a process in another namespace",
     .segment = {.changed = NOW - 1000, .open = OPEN_SOMEWHERE},
     .blind = true,
     .expected = ORPHAN_NO,
     .why = "does not show it"},
    {.what = "its maker would have it open: the kernel's answer is enough",
     .segment = {.changed = NOW - 1000, .open = OPEN_NOWHERE, .kept_open = true},
     .blind = true,
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "an age is no proof",
     .segment = {.changed = NOW - 1000000, .open = OPEN_CANNOT_TELL, .kept_open = true},
     .blind = true,
     .expected = ORPHAN_UNKNOWN,
     .why = "only its owner"},
    {.what = "open in another namespace, however old",
     .segment = {.changed = NOW - 1000000, .open = OPEN_SOMEWHERE, .kept_open = true},
     .blind = true,
     .expected = ORPHAN_NO,
     .why = "does not show it"},
    {.what = "an image on its way, whose maker lives in a container",
     .segment = {.changed = NOW - 1000,
                 .kind = KIND_PYTHON,
                 .open = OPEN_NOWHERE,
                 .name = {"sgl_shm_mm_7_0a1b2c3d", 21}},
     .other = {.pid = 4242, .inner_pid = 7, .has_memory = true, .started = NOW - 1001},
     .expected = ORPHAN_UNKNOWN,
     .why = "its creator (pid 4242)"},
    {.what = "an image whose maker was process 1 of a container that is gone",
     .segment = {.changed = NOW - 1000,
                 .kind = KIND_PYTHON,
                 .open = OPEN_NOWHERE,
                 .name = {"sgl_shm_mm_1_0a1b2c3d", 21}},
     .other = {.pid = 1, .inner_pid = 1, .has_memory = true, .started = NOW - 5000},
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "a process of the same number in a container with a /dev/shm of its own",
     .segment = {.changed = NOW - 1000,
                 .kind = KIND_PYTHON,
                 .open = OPEN_NOWHERE,
                 .name = {"sgl_shm_mm_7_0a1b2c3d", 21}},
     .other = {.pid = 4242, .inner_pid = 7, .has_memory = true, .started = NOW - 1001, .shm_elsewhere = true},
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "an image whose maker has died",
     .segment = {.changed = NOW - 1000,
                 .kind = KIND_PYTHON,
                 .open = OPEN_NOWHERE,
                 .name = {"sgl_shm_mm_7_0a1b2c3d", 21}},
     .other = {.pid = 4242, .inner_pid = 8, .has_memory = true, .started = NOW - 1001},
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "an image in a container: its maker may be in another one, where a pid says nothing",
     .segment = {.changed = NOW - 1000,
                 .kind = KIND_PYTHON,
                 .open = OPEN_NOWHERE,
                 .name = {"sgl_shm_mm_7_0a1b2c3d", 21}},
     .blind = true,
     .expected = ORPHAN_UNKNOWN,
     .why = "not visible"},
    {.what = "the kernel was not asked",
     .segment = {.changed = NOW - 1000},
     .expected = ORPHAN_UNKNOWN,
     .why = "only its owner"},
    {.what = "the kernel cannot tell",
     .segment = {.changed = NOW - 1000, .open = OPEN_CANNOT_TELL},
     .expected = ORPHAN_UNKNOWN,
     .why = "only its owner"},
    {.what = "root in a container without the right to ask about another user's file",
     .segment = {.changed = NOW - 1000, .open = OPEN_CANNOT_TELL, .uid = 1000, .kept_open = true},
     .blind = true,
     .root = true,
     .expected = ORPHAN_UNKNOWN,
     .why = "its owner (uid 1000)"},
    {.what = "open in a process that is not visible",
     .segment = {.changed = NOW - 1000, .open = OPEN_SOMEWHERE},
     .expected = ORPHAN_NO,
     .why = "does not show it"},
    {.what = "some processes may not be read, but the kernel knows that none has it open",
     .segment = {.changed = NOW - 1000, .open = OPEN_NOWHERE},
     .unreadable = 3,
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "its maker lives",
     .segment =
         {.changed = NOW - 1000, .kind = KIND_TORCH, .open = OPEN_NOWHERE, .name = {"torch_9_1_2", 11}},
     .other = {.pid = 9, .role = ROLE_WORKER, .torch = true, .has_memory = true, .started = NOW - 1001},
     .expected = ORPHAN_UNKNOWN,
     .why = "its creator (pid 9)"},
    {.what = "the pid of its maker was reused",
     .segment =
         {.changed = NOW - 1000, .kind = KIND_TORCH, .open = OPEN_NOWHERE, .name = {"torch_9_1_2", 11}},
     .other = {.pid = 9, .role = ROLE_WORKER, .torch = true, .has_memory = true, .started = NOW - 900},
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "a semaphore of any program",
     .segment =
         {.changed = NOW - 1000, .kind = KIND_SEMAPHORE, .open = OPEN_NOWHERE, .name = {"sem.mycron", 10}},
     .expected = ORPHAN_UNKNOWN,
     .why = "may be opened again"},
    {.what = "a semaphore of Python's",
     .segment = {.changed = NOW - 1000,
                 .kind = KIND_SEMAPHORE,
                 .open = OPEN_NOWHERE,
                 .name = {"sem.mp-abcdefgh", 15}},
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "its manager lives",
     .segment = {.changed = NOW - 1000, .open = OPEN_NOWHERE, .kind = KIND_TORCH, .uid = 7},
     .other = {.pid = 9, .role = ROLE_MANAGER, .has_memory = true, .uid = 7, .started = NOW - 1001},
     .expected = ORPHAN_UNKNOWN,
     .why = "torch_shm_manager (pid 9)"},
    {.what = "a manager that came later is not its own",
     .segment = {.changed = NOW - 1000, .open = OPEN_NOWHERE, .kind = KIND_TORCH, .uid = 7},
     .other = {.pid = 9, .role = ROLE_MANAGER, .has_memory = true, .uid = 7, .started = NOW - 900},
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "another user's manager is not its own",
     .segment = {.changed = NOW - 1000, .open = OPEN_NOWHERE, .kind = KIND_TORCH, .uid = 7},
     .other = {.pid = 9, .role = ROLE_MANAGER, .has_memory = true, .uid = 8, .started = NOW - 1001},
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "a manager in another container is not its own",
     .segment = {.changed = NOW - 1000, .open = OPEN_NOWHERE, .kind = KIND_TORCH, .uid = 7},
     .other = {.pid = 9,
               .role = ROLE_MANAGER,
               .has_memory = true,
               .uid = 7,
               .started = NOW - 1001,
               .shm_elsewhere = true},
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "a dead manager that was not waited for does nothing",
     .segment = {.changed = NOW - 1000, .open = OPEN_NOWHERE, .kind = KIND_TORCH, .uid = 7},
     .other = {.pid = 9, .role = ROLE_MANAGER, .uid = 7, .started = NOW - 1001},
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
    {.what = "managers do not keep what is not PyTorch's",
     .segment = {.changed = NOW - 1000, .open = OPEN_NOWHERE, .kind = KIND_PYTHON, .uid = 7},
     .other = {.pid = 9, .role = ROLE_MANAGER, .has_memory = true, .uid = 7, .started = NOW - 1001},
     .expected = ORPHAN_YES,
     .why = "no process holds it"},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Process other = cases[i].other;
        Survey survey = {
            .machine = {.realtime = NOW,
                        .sandbox = {.sees_all = !cases[i].blind,
                                    .initial_pidns = !cases[i].blind,
                                    .root = cases[i].root}},
            .processes = &other,
            .n_processes = other.pid > 0,
            .n_unreadable = cases[i].unreadable,
        };
        const char *why = NULL;
        Orphan orphan = orphan_judge(&survey, &cases[i].segment, &arena, &why);
        if (orphan != cases[i].expected || !strstr(why, cases[i].why))
            fail_msg("%s: %s (%s)", cases[i].what, orphan_name(orphan), why);
        assert_int_equal(orphan_judge(&survey, &cases[i].segment, &arena, NULL), orphan);
    }
}

/* Whose user has no process left, so that none can be about to open what it has just made. */
static void test_user_is_gone(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint32_t uid;
        Process other;
        bool blind;
        bool gone;
    } of[] = {
        {"nobody is left", 7, {.pid = 9, .uid = 8, .has_memory = true}, false, true},
        {"one process is left", 7, {.pid = 9, .uid = 7, .has_memory = true}, false, false},
        {"a dead one that was not waited for", 7, {.pid = 9, .uid = 7}, false, true},
        {"others may be hidden", 7, {.pid = 9, .uid = 8, .has_memory = true}, true, false},
        {"root is never gone", 0, {.pid = 9, .uid = 8, .has_memory = true}, false, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
        Process other = of[i].other;
        Survey survey = {.machine.sandbox.sees_all = !of[i].blind, .processes = &other, .n_processes = 1};
        if (user_is_gone(&survey, of[i].uid) != of[i].gone)
            fail_msg("%s", of[i].what);
    }
    _cleanup_arena_ Arena arena = {0};
    Survey survey = {.machine = {.realtime = NOW, .sandbox.sees_all = true}};
    Segment young = {.changed = NOW - 1, .open = OPEN_NOWHERE, .kind = KIND_TORCH, .uid = 7};
    assert_int_equal(orphan_judge(&survey, &young, &arena, NULL), ORPHAN_NO);
    assert_int_equal(orphan_judge_of_gone(&survey, &young, &arena, NULL), ORPHAN_YES);
    young.open = OPEN_SOMEWHERE;
    assert_int_equal(orphan_judge_of_gone(&survey, &young, &arena, NULL), ORPHAN_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_user_is_gone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
