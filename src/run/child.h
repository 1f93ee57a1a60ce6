/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command, in a process group of its own. It starts with the signal mask and the dispositions that we
 * were started with.
 *
 * It gets the terminal when it first needs it, and not before: other processes of our group, such as a pager
 * that its output is piped into, use the terminal through us, and would be stopped when they touch it. A
 * process that reads from or configures the terminal from another group is stopped (SIGTTIN, SIGTTOU); this
 * tells us, and it continues where it was. Until then the keyboard's signals come to our group, and we pass
 * them on.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "private-shm.h"

/* What the supervisor changes for itself; the command gets the original. */
typedef struct Inherited {
    sigset_t mask;
    struct sigaction chld;
    const PrivateShm *shm; /* what the command gets in addition; NULL: our own /dev/shm */
    int output;            /* its standard output and error; negative: ours */
    int sentinel;          /* told of the command before it runs, with the mark of its processes */
    const char *mark;
} Inherited;

/* How far the start of a command came. */
typedef enum ChildStage {
    CHILD_NONE,   /* no process could be made */
    CHILD_NO_SHM, /* it did not get its private /dev/shm, although the trial was allowed */
    CHILD_NO_RUN, /* the command could not be run: -ENOENT is then its own */
} ChildStage;

typedef struct Child {
    pid_t pid;    /* 0: it has ended, and its number may belong to another process */
    pid_t group;  /* ours */
    int terminal; /* that controls us, -1: none */
    bool needs_terminal;
    bool had_terminal; /* at its end */
    int status;        /* as waitpid has it, once it has ended */
    bool status_is;    /* it has ended */
} Child;

/*
 * `environment` as for execvpe. 0, or the negative errno that kept the command from starting, with the stage
 * it reached in *ret_stage.
 */
int child_start(char *const *command, char *const *environment, const Inherited *inherited, Child *ret,
                ChildStage *ret_stage);

/* The same with a command that waits at this socket (forked-command.h), whose pid is known. */
void child_release(pid_t pid, int fd, char *const *environment, const Inherited *inherited, Child *ret);

/* Sends a signal to the command alone, or to all of its group. Does nothing when it has ended. */
void child_signal(const Child *child, int signo, bool group);

/*
 * The command was stopped, by SIGTSTP or because it needs the terminal (SIGTTIN, SIGTTOU). If we have the
 * terminal, the command gets it and goes on. Otherwise this takes the terminal, stops us and all of our
 * group, and after we are continued, proceeds as child_continue does. SIGTSTP and SIGTTOU must be blocked.
 * SIGSTOP is not for us: a process that stops the command with it continues only the command.
 */
void child_stopped(Child *child, int signo);

/* We were continued, by the shell, which may also have put us in the foreground. */
void child_continue(const Child *child);

/* The command has ended with this status: takes the terminal back. */
void child_ended(Child *child, int status);
