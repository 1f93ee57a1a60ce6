/*
 * The command: in a process group of its own, with the terminal when we have it. It starts with the signal
 * mask, the dispositions and the limits that we were started with.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/* What the supervisor changes about itself, and the command gets as it was. */
typedef struct Inherited {
    sigset_t mask;
    struct sigaction chld;
    struct rlimit files;
} Inherited;

typedef struct Child {
    pid_t pid;      /* 0: ended, and its number may be somebody else's */
    pid_t group;    /* ours */
    int terminal;   /* standard input, -1 when that is no terminal */
    int status;     /* as waitpid has it, once it has ended */
    bool status_is; /* it has ended */
} Child;

/*
 * `environment` as execvpe takes it. 0, or the negative errno of what kept the command from starting, with
 * *ret_ran telling whether a process came so far as to try (-ENOENT is then the command's).
 */
int child_start(char *const *command, char *const *environment, const Inherited *inherited, Child *ret,
                bool *ret_ran);

/* Sends a signal to the command alone, or to all of its group. Does nothing when it has ended. */
void child_signal(const Child *child, int signo, bool group);

/*
 * The command was stopped, by SIGTSTP or because it needs the terminal (SIGTTIN, SIGTTOU). Takes the
 * terminal, stops us and whoever stands with us in our group, and when somebody continues us, goes on as
 * child_continue does. To be called with SIGTSTP and SIGTTOU blocked.
 */
void child_stopped(const Child *child, int signo);

/* Somebody continued us: the shell, which may have put us in the foreground, too. */
void child_continue(const Child *child);

/* The command has ended with this status: takes the terminal back. */
void child_ended(Child *child, int status);
