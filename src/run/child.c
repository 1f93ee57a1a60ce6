/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "forked-command.h"
#include "macro.h"
#include "sentinel.h"

/* What the new process reports when it cannot become the command. */
typedef struct Failure {
    int error; /* negative errno */
    ChildStage stage;
} Failure;

/* Before exec, in the new process. Returns when the command cannot be run. */
static Failure child_exec(char *const *command, char *const *environment, const Inherited *inherited)
{
    setpgid(0, 0); /* parent and child both do this, because either may be first */
    ShmStep step;
    int r = inherited->shm ? private_shm_enter(inherited->shm, &step) : 0;
    if (r < 0)
        return (Failure){r, CHILD_NO_SHM};
    if (inherited->output >= 0 &&
        (dup2(inherited->output, STDOUT_FILENO) < 0 || dup2(inherited->output, STDERR_FILENO) < 0))
        return (Failure){-errno, CHILD_NO_RUN};
    sentinel_watch(inherited->sentinel, getpid(), inherited->mark);
    sigaction(SIGCHLD, &inherited->chld, NULL);
    sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
    execvpe(command[0], command, environment);
    return (Failure){-errno, CHILD_NO_RUN};
}

static Failure failure_read(int fd)
{
    Failure failure;
    ssize_t n = 0;
    do
        n = read(fd, &failure, sizeof failure);
    while (n < 0 && errno == EINTR);
    return n == sizeof failure ? failure : (Failure){0}; /* closed by exec: it runs */
}

int child_start(char *const *command, char *const *environment, const Inherited *inherited, Child *ret,
                ChildStage *ret_stage)
{
    int pipes[2];
    *ret_stage = CHILD_NONE;
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return -errno;
    _cleanup_close_ int reading = pipes[0];
    _cleanup_close_ int writing = pipes[1];
    Child child = {.group = getpgrp()};
    child.pid = fork();
    if (child.pid < 0)
        return -errno;
    if (child.pid == 0) {
        Failure failure = child_exec(command, environment, inherited);
        ssize_t n = write(writing, &failure, sizeof failure);
        _exit(n == sizeof failure ? 127 : 126);
    }
    setpgid(child.pid, child.pid);
    child.terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    fd_close(TAKE_FD(writing));

    Failure failure = failure_read(reading);
    if (failure.error < 0) {
        int status = 0;
        waitpid(child.pid, &status, 0);
        child_ended(&child, status);
        *ret_stage = failure.stage;
        return failure.error;
    }
    *ret = child;
    return 0;
}

void child_release(pid_t pid, int fd, char *const *environment, const Inherited *inherited, Child *ret)
{
    *ret = (Child){.pid = pid, .group = getpgrp()};
    setpgid(pid, pid);
    ret->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    sentinel_watch(inherited->sentinel, pid, inherited->mark);
    forked_command_release(fd, environ, environment);
}

void child_signal(const Child *child, int signo, bool group)
{
    if (child->pid > 0)
        kill(group ? -child->pid : child->pid, signo);
}

/* Only if it is ours to give: the shell may have taken it meanwhile. */
static void terminal_move(const Child *child, pid_t from, pid_t to)
{
    if (child->terminal >= 0 && tcgetpgrp(child->terminal) == from)
        tcsetpgrp(child->terminal, to);
}

void child_stopped(Child *child, int signo)
{
    if (signo != SIGTSTP && signo != SIGTTIN && signo != SIGTTOU)
        return;
    if (signo != SIGTSTP) {
        child->needs_terminal = true;
        if (child->terminal >= 0 && tcgetpgrp(child->terminal) == child->group) {
            child_continue(child);
            return;
        }
    }
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    bool had_terminal = child->terminal >= 0 && tcgetpgrp(child->terminal) == child->pid;
    terminal_move(child, child->pid, child->group);

    /* Had the command been started without us, Ctrl-Z would have stopped the whole pipeline that we belong
     * to. In a group without a shell to continue it, the kernel ignores the signal, and we go on at once. */
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    kill(had_terminal ? 0 : getpid(), SIGTSTP);
    sigprocmask(SIG_BLOCK, &stop, NULL);

    child_continue(child);
}

void child_continue(const Child *child)
{
    if (child->pid > 0 && child->needs_terminal)
        terminal_move(child, child->group, child->pid);
    child_signal(child, SIGCONT, true);
}

void child_ended(Child *child, int status)
{
    child->had_terminal = child->terminal >= 0 && tcgetpgrp(child->terminal) == child->pid;
    terminal_move(child, child->pid, child->group);
    fd_close(TAKE_FD(child->terminal));
    child->pid = 0;
    child->status = status;
    child->status_is = true;
}
