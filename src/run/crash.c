/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "crash.h"
#include "macro.h"
#include "protocol.h"
#include "run.h"
#include "sentinel.h"
#include "signals.h"
#include "supervisor-text.h"

static const struct {
    int signo;
    const char *words;
} crashes[] = {
#define CRASH(signo)                                                                                         \
    {                                                                                                        \
        signo, CRASH_SAID(#signo)                                                                            \
    }
    CRASH(SIGSEGV), CRASH(SIGBUS), CRASH(SIGABRT), CRASH(SIGFPE), CRASH(SIGILL),
};

/* All that the handler reads. It is written when no handler can read it: before the handlers are installed,
 * or as one atomic word. */
static _Atomic pid_t command_left; /* 0: none */
static pid_t supervisor;
static int sentinel_left;
static _Atomic uint32_t *where_left;
static char command_text[16];
static atomic_flag under_way = ATOMIC_FLAG_INIT;
static char stack[1 << 16]; /* for a crash by stack overflow */

void crash_signals(sigset_t *ret)
{
    sigemptyset(ret);
    for (size_t i = 0; i < ARRAY_SIZE(crashes); i++)
        sigaddset(ret, crashes[i].signo);
}

/* Async-signal-safe throughout. */
static void on_crash(int signo)
{
    static char name[] = "shmguard";
    static char word[] = CRASH_WORD;
    static char *const arguments[] = {name, word, command_text, NULL};
    /* Not in a child between its fork and its exec. */
    if (atomic_load(&command_left) > 0 && getpid() == supervisor) {
        if (atomic_flag_test_and_set(&under_way))
            for (;;) /* another thread crashed first: its exec ends this one */
                pause();
        sentinel_watch(sentinel_left, 0, NULL);
        if (where_left) /* nobody will end the window */
            atomic_store(where_left, where_word(UINT32_MAX, WHERE_OFF, WHERE_BEGIN));
        for (size_t i = 0; i < ARRAY_SIZE(crashes); i++)
            if (crashes[i].signo == signo)
                (void)!write(STDERR_FILENO, crashes[i].words, strlen(crashes[i].words));
        execve("/proc/self/exe", arguments, environ);
    }
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(signo, &standard, NULL);
    raise(signo); /* it is blocked until we return */
}

/* Handlers that exist already belong to others: to a sanitizer, or to the guard of an outer run, which shows
 * us the default and calls us afterwards. */
static void handlers_install(void)
{
    struct sigaction ours = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    crash_signals(&ours.sa_mask); /* a crash within the handler is final */
    sigaltstack(&own, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(crashes); i++) {
        struct sigaction now;
        if (sigaction(crashes[i].signo, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaction(crashes[i].signo, &ours, NULL);
    }
}

void crash_prepare(pid_t command, int sentinel_fd, _Atomic uint32_t *where)
{
    atomic_store(&command_left, 0);
    supervisor = getpid();
    sentinel_left = sentinel_fd;
    where_left = where;
    snprintf(command_text, sizeof command_text, "%d", (int)command);
    atomic_store(&command_left, command);
    handlers_install();
}

void crash_forget(void)
{
    atomic_store(&command_left, 0);
}

/* --- Afterwards --------------------------------------------------------------------------------------- */

/* True: the command has ended. */
static bool children_wait(Child *child)
{
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
        if (pid != child->pid)
            continue;
        if (WIFSTOPPED(status))
            child_stopped(child, WSTOPSIG(status));
        else
            child_ended(child, status);
    }
    return child->status_is;
}

int crash_await(pid_t command)
{
    sigset_t taken;
    sigset_t blocked;
    prctl(PR_SET_NAME, "shmguard"); /* exec has made it "exe" */
    signals_taken(&taken);
    /* The blocked signals are those of the thread that crashed. As in a run, SIGTTOU is blocked so that we
     * may move the terminal. */
    blocked = taken;
    sigaddset(&blocked, SIGTTOU);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    if (waitid(P_PID, (id_t)command, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) < 0)
        return -errno;
    Child child = {.pid = command, .group = getpgrp()};
    child.terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    child.needs_terminal = child.terminal >= 0 && tcgetpgrp(child.terminal) == command;
    bool typed = false;
    while (!children_wait(&child)) {
        siginfo_t info = {0};
        int signo = sigwaitinfo(&taken, &info);
        if (signo == SIGCONT)
            child_continue(&child);
        else if (signo > 0 && signo != SIGCHLD) {
            typed = signo == SIGINT && info.si_code == SI_KERNEL;
            child_signal(&child, signo, info.si_code == SI_KERNEL);
        }
    }
    int signo = WIFSIGNALED(child.status) ? WTERMSIG(child.status) : 0;
    if (signo == SIGINT && (typed || child.had_terminal))
        run_die();
    return signo ? 128 + signo : WEXITSTATUS(child.status);
}
