/*
 * The supervisor: one loop that runs a command, serves the guard in its processes, passes signals on, and
 * leaves nothing behind. The order is run_open, run_guard or not, run_start, run_finish, run_free.
 *
 * A supervisor that is killed takes nobody with it: the guard in the job then goes the plain way.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "figures.h"

typedef struct Run Run;

typedef struct RunResult {
    pid_t pid;
    int code;        /* the command's, or 128 + signal */
    int signal;      /* that ended it; 0: none */
    int passed_on;   /* the last signal that we were sent to end the command; 0: none */
    bool typed;      /* it died of a Ctrl-C: finish by run_die */
    unsigned strays; /* processes that it left running and that we ended */
    unsigned left;   /* processes that it left running and that could not be ended */
    double seconds;
    bool guarded;
    GuardFigures guard;
} RunResult;

/*
 * Signals are taken in from here on, for the rest of this process: they wait while nobody is in run_finish.
 * Orphans of the job become our children, and our own limit of descriptors is raised.
 */
int run_open(Run **ret);
void run_free(Run *run);

/*
 * Starts to serve the guard; `library` must stay. -ENAMETOOLONG: its path holds a colon or a blank, which
 * LD_PRELOAD cannot have. Otherwise negative errno, of memfd_create where that is refused. The run is then
 * one without the guard.
 */
int run_guard(Run *run, const char *library);

/* *ret_ran: the errno is that of running the command itself. */
int run_start(Run *run, char *const *command, bool *ret_ran);

/* Until the command and all that it left behind have ended. */
int run_finish(Run *run, RunResult *ret);

/*
 * Ends this process by SIGINT. A shell sees 130 either way, but leaves a loop, or a script, only when the
 * command itself has died of the Ctrl-C: one that handled it, and exited, is taken to mean that all is well.
 */
_Noreturn void run_die(void);
