/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor: one loop that runs a command, serves the guard in its processes, passes signals on, and
 * leaves nothing behind. The order is run_open, then for each attempt run_guard or not, run_start, run_finish
 * and perhaps run_pause, and run_free.
 *
 * A supervisor that is killed (SIGKILL) takes the job with it: sentinel.h. One that crashes does not: the
 * guard in the job then goes the plain way, and what is left of the supervisor waits for the command:
 * crash.h. A command that is measured (run_watch) is of no use without us, and ends in both cases.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "child.h"
#include "evidence.h"
#include "figures.h"
#include "moment-relay.h"
#include "stray-work.h"
#include "units.h"

typedef struct Run Run;

/* What the user wants of the guard. */
typedef struct GuardWish {
    bool only_witness;   /* watch how processes end, and leave their memory alone */
    SizeWish budget;     /* off: nobody has to ask for memory */
    double wait_seconds; /* how long a worker may wait for room; negative: not said */
    bool no_pin;         /* register nothing with CUDA */
    const char *outer; /* the socket of the run that this one joins, whose guard serves the command; only how
                          processes end is told to us, too. NULL: it is a run of its own */
} GuardWish;

/* Workers wait for room, and get on by rescues alone (budget.h). */
typedef struct Crawl {
    double seconds;
    Keeper keeper; /* of the most memory; pid 0: not known */
} Crawl;

/* Once a second while a command runs, and once more, with `over`, after it. */
typedef struct RunTick {
    double seconds; /* since the command was started */
    pid_t pid;
    GuardFigures guard; /* zeros without the guard */
    const Crawl *crawl; /* to be told now; NULL: nothing */
    bool wrote;         /* the job wrote to the terminal of run_line within the last second, or left the
                           cursor elsewhere than on an empty line, or we cannot know */
    bool over;
} RunTick;

/* For whoever looks at a command more closely than once a second, and takes its output. */
typedef struct RunWatch {
    unsigned msec; /* between two pulses */

    /* bytes: of all tensors that the guard has served so far. */
    void (*pulse)(void *context, double seconds, uint64_t bytes);

    /* What the command and its processes wrote to standard output and error, as it comes in. NULL: it goes
     * where ours goes. */
    void (*output)(void *context, double seconds, Text piece);
    void *context;
} RunWatch;

typedef struct RunResult {
    pid_t pid;
    int code;        /* the command's, or 128 + signal */
    int signal;      /* that ended it; 0: none */
    int passed_on;   /* the last signal that we were sent to end the command; 0: none */
    int told_to_end; /* the last signal that we were sent to end all this, also when the command had ended by
                        itself and we saw to what it had left; 0: none */
    bool typed;      /* it died of a Ctrl-C: finish by run_die */
    unsigned strays; /* processes that it left running and that we ended */
    unsigned left;   /* processes that it left running and that could not be ended */
    StrayWork work;  /* of those that we ended; known when the command returned 0 and nobody told us to end */
    bool cut_off;    /* by run_end */
    double seconds;
    bool guarded;
    bool joined; /* the guard was an outer run's, which has the figures */
    GuardFigures guard;
    Keeper keeper; /* the process that kept most while it crawled; pid 0: it did not, for long */
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
int run_guard(Run *run, const char *library, const GuardWish *wish);

/* The command gets this private /dev/shm, which was tried and must stay. */
void run_private_shm(Run *run, const PrivateShm *shm);

/* Nobody will ask for evidence or peaks: the job's processes are not looked at. For whoever does that
 * himself.
 */
void run_unwatched(Run *run);

/* Another thread looks at the job, and hands on what it sees: its processes are not looked at twice. The
 * relay must stay until run_finish has returned for the last time. */
int run_relay(Run *run, MomentRelay *relay);

/* `settings` are "NAME=value" for the command's environment, NULL-terminated. *ret_stage: what the errno is
 * about. */
int run_start(Run *run, char *const *command, char *const *settings, ChildStage *ret_stage);
pid_t run_pid(const Run *run); /* of the command that was started last */

/* As broker_line; after run_guard, and whenever that changes. */
void run_line(Run *run, uint64_t terminal, bool drawn);

void run_on_tick(Run *run, void (*tick)(void *context, const RunTick *tick), void *context);

/* For the commands that are started from here on; what it points to must stay. Their output, when it is
 * taken, goes to it and nowhere else. */
int run_watch(Run *run, const RunWatch *watch);

/*
 * From a tick, a pulse or an output: the command has run long enough. It is asked to end (SIGTERM), killed
 * when it has not after END_SECONDS, and what it leaves behind is not waited for before it is asked to end,
 * too.
 */
enum { END_SECONDS = 5 };
void run_end(Run *run);

/* Until the command and all that it left behind have ended. The guard has then no memory left, and is to be
 * started anew for another attempt. */
int run_finish(Run *run, RunResult *ret);

/* What was seen of the command that has ended; without one, of nothing. ret lives in arena. -ENOMEM. */
int run_evidence(Run *run, const RunResult *result, Arena *arena, Evidence *ret);
Peaks run_peaks(const Run *run);

/* From a pulse: as journal_peek. */
void run_peek(Run *run);

/* As journal_processes and journal_roles. */
int run_processes(const Run *run, Arena *arena, ProcessPeak **ret, size_t *ret_n);
void run_roles(const Run *run, uint64_t *ret_trainers, uint64_t *ret_workers);

/* Between two attempts. False: we were sent a signal to end, now or while nobody was in here; *ret_typed: it
 * was a Ctrl-C, finish by run_die. */
bool run_pause(Run *run, unsigned seconds, bool *ret_typed);

/*
 * Ends this process by SIGINT. A shell sees 130 either way, but leaves a loop, or a script, only when the
 * command itself has died of the Ctrl-C: one that handled it, and exited, is taken to mean that all is well.
 */
_Noreturn void run_die(void);
