/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor: one loop that runs a command, serves the guard in its processes, passes signals on, and
 * leaves nothing behind. The order is run_open, then for each attempt optionally run_guard, run_start,
 * run_finish and perhaps run_pause, and at last run_free.
 *
 * A supervisor that is killed (SIGKILL) takes the job with it: sentinel.h. One that crashes does not: the
 * guard in the job then uses the plain libc calls, and the rest of the supervisor waits for the command:
 * crash.h. A command that is measured (run_watch) is useless without us, and ends in both cases.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "child.h"
#include "evidence.h"
#include "figures.h"
#include "moment-relay.h"
#include "sites.h"
#include "stray-work.h"
#include "units.h"

typedef struct Run Run;

/* What the user wants of the guard. */
typedef struct GuardWish {
    bool only_witness;   /* watch how processes end, and leave their memory alone */
    SizeWish budget;     /* off: no process has to ask for memory */
    double wait_seconds; /* how long a worker may wait for room; negative: the default */
    bool no_pin;         /* register nothing with CUDA */
    bool no_lane;        /* let batches travel as PyTorch sends them */
    bool no_freeze;      /* make no dataset immortal */
    bool where;          /* find the line that leaks, as long as the job runs */
    const char *outer; /* the socket of the run that this one joins, whose guard serves the command; we, too,
                          are told how processes end. NULL: it is a run of its own */
} GuardWish;

/* Workers wait for room, and progress by rescues alone (budget.h). */
typedef struct Crawl {
    double seconds;
    Keeper keeper; /* of the most memory; pid 0: not known */
} Crawl;

/* Once a second while a command runs, and once more, with `over`, after it. */
typedef struct RunTick {
    double seconds; /* since the command was started */
    pid_t pid;
    GuardFigures guard; /* zeros without the guard */
    const Crawl *crawl; /* to be reported now; NULL: nothing */
    bool wrote; /* the job wrote to the terminal of run_line within the last second, or left the cursor
                   elsewhere than on an empty line, or this is unknown */
    bool over;
} RunTick;

/* For a caller that watches a command more closely than once a second, and takes its output. */
typedef struct RunWatch {
    unsigned msec; /* between two pulses */

    /* bytes: of all tensors that the guard has served so far. */
    void (*pulse)(void *context, double seconds, uint64_t bytes);

    /* Output of the command and its processes, as it arrives. NULL: it goes to our own. */
    void (*output)(void *context, double seconds, Text piece);
    void *context;
} RunWatch;

typedef struct RunResult {
    pid_t pid;
    int code;        /* the command's, or 128 + signal */
    int signal;      /* that ended it; 0: none */
    int passed_on;   /* the last signal that we were sent to end the command; 0: none */
    int told_to_end; /* the last signal that told us to end, including one that came after the command had
                        ended, while we ended the rest; 0: none */
    bool typed;      /* it died of a Ctrl-C: finish by run_die */
    unsigned strays; /* processes that it left running and that we ended */
    unsigned left;   /* processes that it left running and that could not be ended */
    StrayWork work; /* of those that we ended; known if the command returned 0 and no signal told us to end */
    bool cut_off;   /* by run_end */
    double seconds;
    bool guarded;
    bool joined; /* the guard was an outer run's, which has the figures */
    GuardFigures guard;
    BudgetBasis budget_basis;
    Keeper keeper; /* the process that kept most memory during a crawl; pid 0: there was no long crawl */
} RunResult;

/*
 * From here on this process takes signals in: they wait while run_finish is not running. Orphans of the job
 * become our children, and our own descriptor limit is raised.
 */
int run_open(Run **ret);
void run_free(Run *run);

/*
 * Starts to serve the guard; `library` must stay. -ENAMETOOLONG: its path contains a colon or a blank, which
 * LD_PRELOAD does not support. Otherwise negative errno, that of memfd_create where it is refused. On failure
 * the run has no guard.
 */
int run_guard(Run *run, const char *library, const GuardWish *wish);

/* The command gets this private /dev/shm, which was tried and must stay. */
void run_private_shm(Run *run, const PrivateShm *shm);

/* Neither evidence nor peaks will be requested: the job's processes are not looked at. For a caller that
 * looks itself. */
void run_unwatched(Run *run);

/* Another thread looks at the job and hands over what it sees, so that no process is looked at twice. The
 * relay must stay until run_finish has returned for the last time. */
int run_relay(Run *run, MomentRelay *relay);

/* The next command to be started is this child, which waits at the socket fd (forked-command.h). */
void run_forked(Run *run, pid_t pid, int fd);

/* Whether it still waits. */
bool run_forked_waits(const Run *run);

/* `settings` are "NAME=value" for the command's environment, NULL-terminated. *ret_stage: the stage that
 * failed. */
int run_start(Run *run, char *const *command, char *const *settings, ChildStage *ret_stage);
pid_t run_pid(const Run *run); /* of the command that was started last */

/* As broker_line; after run_guard, and whenever that changes. */
void run_line(Run *run, uint64_t terminal, bool drawn);

void run_on_tick(Run *run, void (*tick)(void *context, const RunTick *tick), void *context);

/* What the search for the line that leaks has found, in each window as it ends. */
void run_on_site(Run *run, void (*found)(void *context, const SiteWindow *window), void *context);

/* The newest of them, of all commands; valid until the next one. */
SiteWindows run_sites(const Run *run);

/* For the commands that are started from here on; `watch` and what it points to must stay. Output that is
 * taken goes nowhere else. */
int run_watch(Run *run, const RunWatch *watch);

/*
 * From a tick, a pulse or an output: the command has run long enough. It is asked to end (SIGTERM), and
 * killed after END_SECONDS. The processes that it leaves behind are asked to end at once.
 */
enum { END_SECONDS = 5 };
void run_end(Run *run);

/* Returns when the command and all that it left behind have ended. The guard then has no memory left, and
 * must be started again for another attempt. */
int run_finish(Run *run, RunResult *ret);

/* What was seen of the ended command; empty without one. ret lives in arena. -ENOMEM. */
int run_evidence(Run *run, const RunResult *result, Arena *arena, Evidence *ret);
Peaks run_peaks(const Run *run);

/* From a pulse: as journal_peek. */
void run_peek(Run *run);

/* As journal_processes and journal_roles. */
int run_processes(const Run *run, Arena *arena, ProcessPeak **ret, size_t *ret_n);
void run_roles(const Run *run, uint64_t *ret_trainers, uint64_t *ret_workers);

/* Between two attempts. False: a signal told us to end, now or since run_finish; *ret_typed: it was a Ctrl-C,
 * finish by run_die. */
bool run_pause(Run *run, unsigned seconds, bool *ret_typed);

/*
 * Ends this process by SIGINT. A shell sees 130 either way, but leaves a loop or a script only if the command
 * itself died of the Ctrl-C: a command that handled it and exited is assumed to have dealt with it.
 */
_Noreturn void run_die(void);
