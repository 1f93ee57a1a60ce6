/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command: in a process group of its own. It starts with the signal mask and the dispositions that we
 * were started with.
 *
 * It gets the terminal when it first needs it, and not before: others in our group, such as the pager that it
 * is piped into, have the terminal with us, and would be stopped at their first touch of it. A process
 * that reads from the terminal, or sets it, from another group is stopped (SIGTTIN, SIGTTOU); that tells us,
 * and it goes on where it was. Until then the keyboard's signals come to our group, and we pass them on.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "private-shm.h"

/* What the supervisor changes about itself, and the command gets as it was. */
typedef struct Inherited {
    sigset_t mask;
    struct sigaction chld;
    const PrivateShm *shm; /* what the command gets besides; NULL: the /dev/shm that we have */
    int output;            /* its standard output and error; negative: ours */
    int sentinel;          /* told of the command before it runs, with the mark of its processes */
    const char *mark;
} Inherited;

/* How far the start of a command came. */
typedef enum ChildStage {
    CHILD_NONE,   /* no process could be made */
    CHILD_NO_SHM, /* it did not get its private /dev/shm, although that was granted when it was tried */
    CHILD_NO_RUN, /* the command could not be run: -ENOENT is then its own */
} ChildStage;

typedef struct Child {
    pid_t pid;    /* 0: ended, and its number may be somebody else's */
    pid_t group;  /* ours */
    int terminal; /* that controls us, -1: none */
    bool needs_terminal;
    bool had_terminal; /* at its end */
    int status;        /* as waitpid has it, once it has ended */
    bool status_is;    /* it has ended */
} Child;

/*
 * `environment` as execvpe takes it. 0, or the negative errno of what kept the command from starting, with
 * how far it came in *ret_stage.
 */
int child_start(char *const *command, char *const *environment, const Inherited *inherited, Child *ret,
                ChildStage *ret_stage);

/* Sends a signal to the command alone, or to all of its group. Does nothing when it has ended. */
void child_signal(const Child *child, int signo, bool group);

/*
 * The command was stopped, by SIGTSTP or because it needs the terminal (SIGTTIN, SIGTTOU). When we have the
 * terminal, it is given to the command, which goes on. Otherwise takes the terminal, stops us and whoever
 * stands with us in our group, and when somebody continues us, goes on as child_continue does. To be called
 * with SIGTSTP and SIGTTOU blocked. SIGSTOP is not for us: who stops the command with it continues only the
 * command.
 */
void child_stopped(Child *child, int signo);

/* Somebody continued us: the shell, which may have put us in the foreground, too. */
void child_continue(const Child *child);

/* The command has ended with this status: takes the terminal back. */
void child_ended(Child *child, int status);
