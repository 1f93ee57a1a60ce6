/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that outlive the command. As the job's subreaper we become the parent of each whose own parent
 * has gone, so all of them are, sooner or later, our children, and their numbers stay theirs until we have
 * waited for them.
 *
 * They may end by themselves for a while, unless the command ended because it was told to: then they are told
 * at once. Ends are noticed when they happen (strays_reaped), and only the patience of a stage takes time.
 *
 * torch_shm_manager is spared until all others have gone: two seconds after the last of its clients it
 * removes the files that they left in /dev/shm, and leaves by itself. When all others have gone we know what
 * it waits for, and MANAGER_SIGNAL tells it: the preload library in it ends its wait (guard/manager.c). A
 * manager that is still starting ignores the signal, so it is sent again and again. One without the library
 * always ignores it, and leaves as it does without us. After that it goes through the stages, too.
 */
#pragma once

#include <stdbool.h>

#include "proc-stat.h"

typedef enum StrayStage {
    STRAYS_NONE,    /* the command runs */
    STRAYS_AWAITED, /* they may leave by themselves */
    STRAYS_ASKED,   /* SIGTERM */
    STRAYS_KILLED,  /* SIGKILL */
    STRAYS_LEFT,    /* cannot be killed: another user's, or stuck in the kernel */
} StrayStage;

/* Children that we were born with (a shell's, that has exec'ed us) are none of the command's. */
enum { STRAYS_OTHERS_MAX = 64 };

/* Of more than these it is not remembered that they were asked, and they are not asked. */
enum { STRAYS_SIGNALLED_MAX = 512 };

typedef struct Strays {
    StrayStage stage;
    double until;    /* when the next stage begins */
    unsigned rounds; /* of SIGKILL */
    bool told;       /* they were told to end with the command */
    int signo;       /* that each gets once in this stage, also who becomes ours only now; 0: none */
    int signalled[STRAYS_SIGNALLED_MAX];
    size_t n_signalled;
    bool managers;  /* it is the managers' turn */
    double remind;  /* when those that may leave by themselves are told again that they may */
    unsigned asked; /* how many had to be asked */
    unsigned left;  /* how many were left */
    int others[STRAYS_OTHERS_MAX];
    size_t n_others;
} Strays;

bool stray_is_manager(const ProcStat *stat);

/* Before the command is started. */
void strays_open(const Root *root, Strays *ret);

/* The command has ended. `signo`: the signal that it was told to end by, which the strays get now; 0: none.
 * `told`: they have it already, as the terminal gives a Ctrl-C to a whole group. `now` is now_seconds(), here
 * and below. */
void strays_begin(Strays *strays, const Root *root, int signo, bool told, double now);

/* Whoever ends from now on may do so because it was told to. */
bool strays_are_told(const Strays *strays);

/* A child of ours is the command's, and was not there before it. */
bool strays_has(const Strays *strays, int pid);

/* Those that may end by themselves have had their time: strays_advance will ask them now. */
bool strays_are_due(const Strays *strays, double now);

/* Whether there are any, when we have children at all. */
bool strays_any(const Strays *strays, const Root *root);

/* Some processes have ended, the command or strays: those that were theirs are ours now. */
void strays_reaped(Strays *strays, const Root *root, double now);

/* Goes on to the next stage when it is time, and when that will be: milliseconds, -1: never. */
void strays_advance(Strays *strays, const Root *root, double now);
int strays_timeout(const Strays *strays, double now);

/* Goes on to the next stage now. */
void strays_hurry(Strays *strays, const Root *root, double now);
