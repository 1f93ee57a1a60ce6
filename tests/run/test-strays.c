/* SPDX-License-Identifier: Apache-2.0 */
/* What outlives the command: with real processes, and times that the test sets. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "macro.h"
#include "protocol.h"
#include "strays.h"

static Root root;

static void on_signal(int signo)
{
    _exit(signo);
}

/* Starts a child and waits until it has run `ready`. */
static pid_t child_make(void (*ready)(void))
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_DFL); /* a shell's background jobs ignore these two */
        signal(SIGQUIT, SIG_DFL);
        if (ready)
            ready();
        (void)!write(ends[1], "x", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

/* The signal that ended it, or its negative exit code. */
static int end_await(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static bool is_there(pid_t pid)
{
    siginfo_t info = {0};
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    return info.si_pid == 0;
}

static void ignore_term(void)
{
    signal(SIGTERM, SIG_IGN);
}

static void *sleep_on(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static bool shows_zombie(pid_t pid)
{
    ProcStat stat;
    return proc_stat_read(&root, pid, &stat) == 0 && stat.state == 'Z';
}

/* Python processes end thread by thread. Their children stay theirs until the last thread has ended. */
static void test_one_whose_first_thread_has_ended_is_still_there(void **state)
{
    (void)state;
    Strays strays;
    pid_t before = child_make(NULL);
    strays_open(&root, &strays);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t other;
        pthread_create(&other, NULL, sleep_on, NULL);
        syscall(SYS_exit, 0);
    }
    while (!shows_zombie(pid))
        usleep(1000);
    assert_true(strays_any(&strays, &root));
    strays_begin(&strays, &root, 0, false, 100);
    strays_reaped(&strays, &root, 100.1);
    assert_false(strays.managers); /* it may have a manager that is not reparented to us yet */
    kill(pid, SIGKILL);
    (void)end_await(pid);
    assert_false(strays_any(&strays, &root));
    kill(before, SIGKILL);
    (void)end_await(before);
}

static void test_have_time_when_nobody_was_told(void **state)
{
    (void)state;
    Strays strays;
    strays_open(&root, &strays);
    pid_t pid = child_make(NULL);
    pid_t stubborn = child_make(ignore_term);
    strays_begin(&strays, &root, 0, false, 100);
    assert_false(strays_are_told(&strays));
    assert_int_equal(strays_timeout(&strays, 100), 3000);
    strays_advance(&strays, &root, 102.9);
    assert_false(strays_are_due(&strays, 102.9));
    assert_int_equal(strays.stage, STRAYS_AWAITED);
    assert_true(strays_are_due(&strays, 103));
    strays_advance(&strays, &root, 103);
    assert_int_equal(strays.stage, STRAYS_ASKED);
    assert_int_equal(end_await(pid), SIGTERM);
    strays_reaped(&strays, &root, 103.1);
    assert_int_equal(strays.asked, 2);
    strays_advance(&strays, &root, 104.9);
    assert_true(is_there(stubborn));
    strays_advance(&strays, &root, 105);
    assert_int_equal(end_await(stubborn), SIGKILL);
}

static void test_are_told_with_the_command(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        Strays strays;
        strays_open(&root, &strays);
        pid_t pid = child_make(NULL);
        strays_begin(&strays, &root, signals[i], false, 100);
        assert_true(strays_are_told(&strays));
        assert_false(strays_are_due(&strays, 200));
        assert_int_equal(end_await(pid), signals[i]);
        strays_reaped(&strays, &root, 100);
    }
}

/* A process that got Ctrl-C from the terminal is not sent a second one, but gets SIGTERM soon. */
static void test_are_not_interrupted_twice(void **state)
{
    (void)state;
    Strays strays;
    strays_open(&root, &strays);
    pid_t pid = child_make(NULL);
    strays_begin(&strays, &root, SIGINT, true, 100);
    strays_advance(&strays, &root, 100.9);
    assert_true(is_there(pid));
    strays_advance(&strays, &root, 101);
    assert_int_equal(end_await(pid), SIGTERM);
}

static void have_child(void)
{
    if (fork() == 0)
        for (;;)
            pause();
}

/* Processes that are reparented to us are signalled too, each of them once. */
static void test_adopted_are_told(void **state)
{
    (void)state;
    Strays strays;
    strays_open(&root, &strays);
    pid_t parent = child_make(have_child);
    pid_t stubborn = child_make(ignore_term);
    strays_begin(&strays, &root, SIGTERM, false, 100);
    assert_int_equal(end_await(parent), SIGTERM);
    strays_reaped(&strays, &root, 100);
    assert_int_equal(strays.asked, 3);
    int status = 0;
    pid_t adopted = waitpid(-1, &status, 0);
    assert_true(adopted > 0 && adopted != parent && adopted != stubborn);
    assert_int_equal(WTERMSIG(status), SIGTERM);
    strays_reaped(&strays, &root, 100);
    assert_int_equal(strays.asked, 3);
    kill(stubborn, SIGKILL);
    (void)end_await(stubborn);
}

static void be_manager(void)
{
    prctl(PR_SET_NAME, "torch_shm_manager");
    signal(MANAGER_SIGNAL, on_signal);
}

static void test_the_manager_is_last(void **state)
{
    (void)state;
    Strays strays;
    strays_open(&root, &strays);
    pid_t pid = child_make(NULL);
    pid_t manager = child_make(be_manager);
    strays_begin(&strays, &root, SIGTERM, false, 100);
    assert_int_equal(end_await(pid), SIGTERM);
    assert_true(is_there(manager));
    strays_reaped(&strays, &root, 100);
    assert_int_equal(strays.asked, 1);
    assert_int_equal(end_await(manager), -MANAGER_SIGNAL);
}

static void be_plain_manager(void)
{
    prctl(PR_SET_NAME, "torch_shm_manager");
}

/* A manager without the library ignores the signal, and is given the usual time. */
static void test_a_plain_manager_is_awaited(void **state)
{
    (void)state;
    Strays strays;
    strays_open(&root, &strays);
    pid_t manager = child_make(be_plain_manager);
    strays_begin(&strays, &root, SIGTERM, false, 100);
    strays_reaped(&strays, &root, 100);
    assert_true(strays.managers);
    assert_int_equal(strays_timeout(&strays, 100), 250); /* until it is signalled again */
    usleep(50000);
    assert_true(is_there(manager));
    strays_advance(&strays, &root, 103);
    assert_int_equal(end_await(manager), SIGTERM);
}

static void on_started(int signo)
{
    (void)signo;
    signal(MANAGER_SIGNAL, on_signal);
    kill(getppid(), SIGUSR1);
}

static void be_manager_later(void)
{
    prctl(PR_SET_NAME, "torch_shm_manager");
    signal(SIGUSR1, on_started);
}

/* A manager that has not loaded the library yet misses the first signal. */
static void test_a_manager_that_starts_is_told_again(void **state)
{
    (void)state;
    Strays strays;
    sigset_t started;
    int signo = 0;
    sigemptyset(&started);
    sigaddset(&started, SIGUSR1);
    strays_open(&root, &strays);
    pid_t manager = child_make(be_manager_later);
    sigprocmask(SIG_BLOCK, &started, NULL);
    strays_begin(&strays, &root, SIGTERM, false, 100);
    strays_reaped(&strays, &root, 100);
    kill(manager, SIGUSR1);
    assert_int_equal(sigwait(&started, &signo), 0);
    strays_advance(&strays, &root, 100.1);
    assert_true(is_there(manager));
    strays_advance(&strays, &root, 100.25);
    assert_int_equal(end_await(manager), -MANAGER_SIGNAL);
    assert_int_equal(strays.asked, 0);
}

static void test_children_from_before_are_left_alone(void **state)
{
    (void)state;
    Strays strays;
    pid_t before = child_make(NULL);
    strays_open(&root, &strays);
    strays_begin(&strays, &root, SIGTERM, false, 100);
    assert_false(strays_any(&strays, &root));
    assert_true(is_there(before));
    kill(before, SIGKILL);
    (void)end_await(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_whose_first_thread_has_ended_is_still_there),
        cmocka_unit_test(test_have_time_when_nobody_was_told),
        cmocka_unit_test(test_are_told_with_the_command),
        cmocka_unit_test(test_are_not_interrupted_twice),
        cmocka_unit_test(test_adopted_are_told),
        cmocka_unit_test(test_the_manager_is_last),
        cmocka_unit_test(test_a_plain_manager_is_awaited),
        cmocka_unit_test(test_a_manager_that_starts_is_told_again),
        cmocka_unit_test(test_children_from_before_are_left_alone),
    };
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (root_open(NULL, &root) < 0)
        return 77;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    root_close(&root);
    return failed;
}
