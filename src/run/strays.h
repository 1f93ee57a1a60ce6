/*
 * Processes that outlive the command. As the job's subreaper we become the parent of each whose own parent
 * has gone, so all of them are, sooner or later, our children, and their numbers stay theirs until we have
 * waited for them.
 *
 * torch_shm_manager is spared until all others have gone: two seconds after the last of its clients it
 * removes the files that they left in /dev/shm, and leaves by itself. Then it goes through the stages, too.
 */
#pragma once

#include <stdbool.h>

#include "root.h"

typedef enum StrayStage {
    STRAYS_NONE,    /* the command runs */
    STRAYS_AWAITED, /* they may leave by themselves */
    STRAYS_ASKED,   /* SIGTERM */
    STRAYS_KILLED,  /* SIGKILL */
    STRAYS_LEFT,    /* cannot be killed: another user's, or stuck in the kernel */
} StrayStage;

/* Children that we were born with (a shell's, that has exec'ed us) are none of the command's. */
enum { STRAYS_OTHERS_MAX = 64 };

typedef struct Strays {
    StrayStage stage;
    unsigned ticks;  /* seconds in this stage */
    unsigned rounds; /* of SIGKILL */
    bool managers;   /* it is the managers' turn */
    unsigned asked;  /* how many had to be asked */
    unsigned left;   /* how many were left */
    int others[STRAYS_OTHERS_MAX];
    size_t n_others;
} Strays;

/* Before the command is started. */
void strays_open(const Root *root, Strays *ret);

/* The command has ended. */
void strays_begin(Strays *strays);

/* Whether there are any, when we have children at all. */
bool strays_any(const Strays *strays, const Root *root);

/* Some have ended: those that were theirs are ours now. */
void strays_reaped(Strays *strays, const Root *root);

/* Once a second: goes on to the next stage when this one has lasted long enough. */
void strays_tick(Strays *strays, const Root *root);

/* Goes on to the next stage now. */
void strays_hurry(Strays *strays, const Root *root);
