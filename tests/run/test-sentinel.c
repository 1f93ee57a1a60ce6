/* SPDX-License-Identifier: Apache-2.0 */
/* When a supervisor is killed, its sentinel ends the job, and no other process. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "macro.h"
#include "proc-path.h"
#include "sentinel.h"

static const char MARK[] = "SENTINEL_TEST_MARK=shmguard-1-0123456789abcdef";

/* Every process of the job holds the write end, so the pipe reports end-of-file when all of them are gone. */
static int job_pipe[2];

typedef struct Job {
    pid_t supervisor;
    int lives; /* the read end of job_pipe */
} Job;

static bool is_over(const Job *job, int msec)
{
    struct pollfd ready = {.fd = job->lives, .events = POLLIN};
    return poll(&ready, 1, msec) > 0 && ready.revents & POLLHUP;
}

static _Noreturn void sleep_on(void)
{
    execl("/bin/sleep", "sleep", "60", NULL);
    _exit(1);
}

/* A command in a session of its own can be recognized only by its mark. */
static _Noreturn void supervisor_main(int ready, bool marked, bool ends_sentinel)
{
    Sentinel sentinel;
    fcntl(job_pipe[1], F_SETFD, 0); /* the sentinel must close it without the help of exec */
    if (sentinel_start(&sentinel) < 0)
        _exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        if (marked) {
            setsid();
            putenv((char *)MARK);
        } else
            setpgid(0, 0);
        sentinel_watch(sentinel.fd, marked ? 0 : getpid(), marked ? MARK : NULL);
        sleep_on();
    }
    close(job_pipe[1]);
    usleep(300000); /* until the command has called exec */
    if (ends_sentinel)
        sentinel_end(&sentinel);
    (void)!write(ready, "x", 1);
    for (;;)
        pause();
}

static Job job_start(bool marked, bool ends_sentinel)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe2(job_pipe, O_CLOEXEC), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(job_pipe[0]);
        supervisor_main(ready[1], marked, ends_sentinel);
    }
    close(job_pipe[1]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return (Job){pid, job_pipe[0]};
}

static void job_free(const Job *job)
{
    kill(job->supervisor, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0) /* we are the subreaper */
        ;
    close(job->lives);
}

static void test_a_kill_ends_the_group(void **state)
{
    (void)state;
    Job job = job_start(false, false);
    assert_false(is_over(&job, 0));
    kill(job.supervisor, SIGKILL);
    assert_true(is_over(&job, 10000));
    job_free(&job);
}

static void test_a_kill_ends_what_is_marked(void **state)
{
    (void)state;
    Job job = job_start(true, false);
    kill(job.supervisor, SIGKILL);
    assert_true(is_over(&job, 10000));
    job_free(&job);
}

/* A supervisor that crashes ends its sentinel first. */
static void test_without_a_sentinel_the_job_goes_on(void **state)
{
    (void)state;
    Job job = job_start(false, true);
    kill(job.supervisor, SIGKILL);
    assert_false(is_over(&job, 300));
    int status = 0;
    assert_int_equal(waitpid(job.supervisor, &status, 0), job.supervisor);
    siginfo_t info = {0};
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG), 0);
    assert_int_equal(info.si_pid, 0);
    FILE *children = fopen("/proc/thread-self/children", "r");
    int pid = 0;
    if (children) {
        assert_int_equal(fscanf(children, "%d", &pid), 1);
        fclose(children);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    close(job.lives);
}

static void file_read(pid_t pid, const char *name, char *ret, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, ret, size - 1);
    ret[n > 0 ? n : 0] = '\0';
    close(fd);
}

/* It ignores all signals that can be ignored, and cannot be mistaken for another process. */
static void test_it_keeps_to_itself(void **state)
{
    (void)state;
    Sentinel sentinel;
    char text[4096];
    assert_int_equal(sentinel_start(&sentinel), 0);
    for (int i = 0; i < 1000; i++) {
        file_read(sentinel.pid, "cmdline", text, sizeof text);
        if (strncmp(text, "guard-sent", 10) == 0)
            break;
        usleep(10000);
    }
    assert_memory_equal(text, "guard-sent", 10);
    file_read(sentinel.pid, "comm", text, sizeof text);
    assert_string_equal(text, "guard-sentinel\n");
    file_read(sentinel.pid, "environ", text, sizeof text);
    assert_string_equal(text, "");
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE, SIGALRM};
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        kill(sentinel.pid, signals[i]);
    usleep(50000);
    siginfo_t info = {0};
    assert_int_equal(waitid(P_PID, (id_t)sentinel.pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    assert_int_equal(info.si_pid, 0);
    kill(sentinel.pid, SIGSTOP); /* a stopped sentinel must not block us */
    sentinel_end(&sentinel);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    sentinel_end(&sentinel); /* already ended */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kill_ends_the_group),
        cmocka_unit_test(test_a_kill_ends_what_is_marked),
        cmocka_unit_test(test_without_a_sentinel_the_job_goes_on),
        cmocka_unit_test(test_it_keeps_to_itself),
    };
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
