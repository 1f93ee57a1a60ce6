/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that outlive the command. As the job's subreaper we become the parent of each process whose own
 * parent has ended, so sooner or later all of them are our children, and their numbers stay theirs until we
 * have waited for them.
 *
 * They may end by themselves for a while, unless the command ended because it was told to: then they are told
 * at once. Ends are noticed when they happen (strays_reaped); only the time of a stage must pass.
 *
 * torch_shm_manager is spared until all others have gone: two seconds after its last client it removes the
 * files that the clients left in /dev/shm, and exits. When all others have gone, there is nothing left for it
 * to wait for, and MANAGER_SIGNAL tells it: the preload library in it ends its wait (guard/manager.c). A
 * manager that is still starting ignores the signal, so it is sent repeatedly. One without the library always
 * ignores it, and exits as it does without us. After that it goes through the stages, too.
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

/* Children that we had from the start (of a shell that has exec'ed us) are not the command's. */
enum { STRAYS_OTHERS_MAX = 64 };

/* No more than these are remembered as asked, and further ones are not asked. */
enum { STRAYS_SIGNALLED_MAX = 512 };

typedef struct Strays {
    StrayStage stage;
    double until;    /* when the next stage begins */
    unsigned rounds; /* of SIGKILL */
    bool told;       /* they were told to end with the command */
    int signo; /* that each process gets once in this stage, including those that become ours only now; 0:
                  none */
    int signalled[STRAYS_SIGNALLED_MAX];
    size_t n_signalled;
    bool managers;  /* it is the managers' turn */
    double remind;  /* when managers are told again that they may leave */
    unsigned asked; /* how many had to be asked */
    unsigned left;  /* how many were left */
    int others[STRAYS_OTHERS_MAX];
    size_t n_others;
} Strays;

bool stray_is_manager(const ProcStat *stat);

/* Before the command is started. */
void strays_open(const Root *root, Strays *ret);

/* The command has ended. `signo`: the signal that told it to end, which the strays get now; 0: none. `told`:
 * they have got it already, as a Ctrl-C at the terminal goes to a whole group. `now` is now_seconds(), here
 * and below. */
void strays_begin(Strays *strays, const Root *root, int signo, bool told, double now);

/* Processes that end from now on may do so because they were told to. */
bool strays_are_told(const Strays *strays);

/* A child of ours is the command's if it was not there before it. */
bool strays_has(const Strays *strays, int pid);

/* Those that may end by themselves have had their time: strays_advance will ask them now. */
bool strays_are_due(const Strays *strays, double now);

/* Whether there are any, when we have children at all. */
bool strays_any(const Strays *strays, const Root *root);

/* The command or strays have ended: their children are ours now. */
void strays_reaped(Strays *strays, const Root *root, double now);

/* Enters the next stage when it is time, and says when that will be: milliseconds, -1: never. */
void strays_advance(Strays *strays, const Root *root, double now);
int strays_timeout(const Strays *strays, double now);

/* Enters the next stage now. */
void strays_hurry(Strays *strays, const Root *root, double now);
