/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a stray was working: with real processes that work and real ones that sleep. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "stray-work.h"

static Root root;

static pid_t child_make(bool works)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    volatile unsigned n = 0;
    for (;;)
        if (works)
            n++;
        else
            pause();
}

/* A child that sleeps while its own child works, like a trainer and its workers. */
static pid_t family_make(void)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    setpgid(0, 0);
    (void)child_make(true);
    for (;;)
        pause();
}

static void child_end(pid_t pid)
{
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static bool is_never(const void *context, int pid)
{
    (void)context;
    (void)pid;
    return false;
}

static bool is_this(const void *context, int pid)
{
    return pid == *(const pid_t *)context;
}

/* Watches the strays for 0.6 s. */
static StrayWork work_of(const Strays *strays, bool (*is_idle)(const void *, int), const void *context)
{
    StrayTimes before = {0};
    StrayWork work = {0};
    double began = now_seconds();
    assert_int_equal(stray_times_read(&root, began, &before), 0);
    assert_true(before.n > 0);
    usleep(600000);
    assert_int_equal(stray_work_read(strays, &root, &before, now_seconds(), is_idle, context, &work), 0);
    stray_times_free(&before);
    return work;
}

static void test_sleepers_are_idle(void **state)
{
    (void)state;
    Strays strays;
    strays_open(&root, &strays);
    pid_t pid = child_make(false);
    assert_int_equal(work_of(&strays, is_never, NULL).n, 0);
    child_end(pid);
}

static void test_work_is_told(void **state)
{
    (void)state;
    Strays strays;
    strays_open(&root, &strays);
    pid_t sleeper = child_make(false);
    pid_t worker = child_make(true);
    StrayWork work = work_of(&strays, is_never, NULL);
    assert_int_equal(work.n, 1);
    assert_int_equal(work.pid, worker);
    assert_true(work.cpu_seconds > 0);
    assert_non_null(strstr(work.command, "test-stray-work"));
    assert_int_equal(work_of(&strays, is_this, &worker).n, 0);
    child_end(sleeper);
    child_end(worker);
}

static void test_work_of_children_counts(void **state)
{
    (void)state;
    Strays strays;
    strays_open(&root, &strays);
    pid_t pid = family_make();
    StrayWork work = work_of(&strays, is_never, NULL);
    assert_int_equal(work.n, 1);
    assert_int_equal(work.pid, pid);
    child_end(pid);
}

static void test_others_do_not_count(void **state)
{
    (void)state;
    Strays strays;
    pid_t before = child_make(true);
    strays_open(&root, &strays);
    assert_int_equal(work_of(&strays, is_never, NULL).n, 0);
    child_end(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sleepers_are_idle),
        cmocka_unit_test(test_work_is_told),
        cmocka_unit_test(test_work_of_children_counts),
        cmocka_unit_test(test_others_do_not_count),
    };
    if (root_open(NULL, &root) < 0)
        return 77;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    root_close(&root);
    return failed;
}
