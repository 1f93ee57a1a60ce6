/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for the line that leaks, from the supervisor's side (docs/where.md): which stage comes next, in
 * which process, and for how long. It changes the word in the page of counters (protocol.h) and takes what
 * the processes say. Time is an argument, so that a test can provide its own clock.
 *
 * A round begins with a census of all processes. If nothing grows, longer windows follow, up to a minute, and
 * after that a short look every few minutes. If something grows, the process that grows fastest is asked for
 * the line; then, if the trainer grows as well, the trainer.
 *
 * Nothing stays behind: without a supervisor no word changes any more, so its end, of whatever kind, must
 * take the job with it or end the search (where_stop; run/crash.h).
 */
#pragma once

#include "protocol.h"
#include "sites.h"

enum { WHERE_WINDOWS_MOST = 256, WHERE_TARGETS_MOST = 2 };

typedef struct Where {
    /* To be filled in. */
    Counters *counters;
    void (*found)(void *context, const SiteWindow *window); /* each window, as it comes; NULL */
    void *context;
    bool without_native; /* the processes have no guard, which would have to look at other memory */

    /* Read by others. */
    uint32_t asked;    /* times that the search was asked for */
    uint32_t rounds;   /* that have ended */
    char failed[200];  /* what a process said last about why it could not look; "" */
    uint32_t failures; /* how often one said so */

    /* The rest is private. */
    bool again; /* after a round comes another one */
    uint32_t number;
    WhereStage stage; /* WHERE_OFF: between two rounds */
    WherePhase phase;
    double phase_until;
    double next;                     /* when the next round begins; 0: none is wanted */
    double half;                     /* seconds of half a window */
    int targets[WHERE_TARGETS_MOST]; /* pids; 0: any one worker */
    size_t n_targets;
    size_t target;
    double worker_rate; /* of the processes that grow in this census, bytes per second */
    double trainer_rate;
    int worker_pid;
    int trainer_pid;
    bool worker_lasted;
    SiteWindow last; /* of this target's stage; duration 0: none came */
    bool refused;    /* a process could not look in this stage */
    bool heard;      /* a process has answered in this census */
    int unheard;     /* censuses without an answer */
    int told;        /* messages in this stage */
    bool found_any;  /* in this round */
} Where;

/* again: as long as the job runs. Otherwise until something was found, or nothing grew in a long window. */
void where_ask(Where *where, bool again, double now);

/* A process says something; `seconds` is the end of its window for those who are told. -EBADMSG. */
int where_take(Where *where, int pid, Text text, double now);

/* Once a second, and more often if wanted. */
void where_tick(Where *where, double now);

/* Ends the search in all processes. */
void where_stop(Where *where);
