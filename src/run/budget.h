/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory the job's tensors may take, and who gets the next piece of it. Pure: it is told what is
 * used, what the machine still has and what time it is.
 *
 * A process asks before it touches pages that were not there: for a new segment, or for one whose pages were
 * given back. What is used is never counted here: the caller asks the kernel about every segment (janitor.h),
 * so a process that is killed at any point leaves nothing to put right.
 *
 * Who is next. Loaders take their workers' batches in turn, and start the workers in that order: so of those
 * that wait, the one whose process has begun the fewest batches is needed soonest, and of several such ones
 * the one that was started first. One that waits in the middle of a batch of several tensors is thereby
 * before all that have not begun theirs: what is half made is finished first.
 *
 * Why nobody waits for ever. Memory comes back when the trainer lets go of a batch, and the trainer may be
 * waiting for just the worker that waits here, or may keep its batches. So when nothing was let go for a
 * while, whoever is next passes the ceiling, provided the memory really exists, with all tensors of that
 * batch. How long that is follows the pace at which batches are let go, and doubles with each rescue in a row
 * up to RESCUE_MOST, so that a trainer that pauses does not take the ceiling for a suggestion, and one that
 * waits for the last of many workers does not wait for minutes.
 *
 * A crawl. A trainer that keeps its batches lets go of none: each further one is a rescue, one every few
 * seconds. Nothing is wrong with that but its speed, of which nobody would know why. So when somebody waits
 * and CRAWL_SECONDS have passed with nothing but rescues, it is due to be told; then after 30, 90 and so on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

typedef struct Request {
    uint64_t id; /* the caller's, not 0 */
    int pid;
    uint64_t device; /* of the segment */
    uint64_t inode;
    uint64_t bytes;
    uint64_t batch; /* which of the process's it is a part of */
    double asked;   /* seconds, as all times here */
    Asker asker;
    bool waited; /* there was no room for it at first */
} Request;

typedef struct Budget {
    uint64_t limit_bytes; /* UINT64_MAX: no ceiling, only the memory that exists */
    bool wished;          /* the ceiling is the user's: what is larger than all of it is refused. One of our
                             own is a guess, and such a request is let through like any other */
    double wait_seconds;  /* then whoever waits is let through, or refused when there is no memory */
    Request *requests;    /* that wait, in the order in which they came */
    size_t n;
    size_t capacity;
    double progress;       /* when something was last let go, or a rescue made */
    double pace;           /* mean time between two releases; 0 unknown */
    double released;       /* when something was last let go; 0 never */
    unsigned rescues;      /* in a row */
    uint64_t rescues_all;  /* of the whole run, a batch of several tensors counted once */
    uint64_t wanted_bytes; /* most that was used and asked for at one time while somebody waited */
    bool wanted_exists;    /* that much memory was there */
    double busy;           /* when somebody last waited */
    double crawl_since;    /* nothing but rescues since then; 0: not so */
    unsigned crawl_told;   /* times */
    double crawl_told_last;
    Request rescued; /* last, until something is let go; pid 0: none */
    uint64_t waits;  /* requests that had to wait */
    double waited_seconds;
    uint64_t refused;
    Request refused_last;
    bool refused_for_want; /* the last refusal: memory was not there */
    double refused_when;   /* the last refusal */
} Budget;

/* {.limit_bytes, .wait_seconds} is one that nobody has asked. */
void budget_free(Budget *budget);

/* -ENOMEM; the request is then as good as granted. */
int budget_ask(Budget *budget, const Request *request);

/* Whoever asked has gone. */
void budget_withdraw(Budget *budget, uint64_t id);

/* Something was let go. */
void budget_released(Budget *budget, double now);

/* How long it has crawled; 0: it does not. */
double budget_crawled(const Budget *budget, double now);

/* Whether that is to be told now; it is then taken as told. */
bool budget_crawl_is_due(Budget *budget, double now);

typedef struct Facts {
    uint64_t used_bytes;  /* by the job's tensors, what was granted and is not touched yet included */
    uint64_t spare_bytes; /* memory that exists beyond that */
    uint64_t most_bytes;  /* the same, with what is better left alone: for whoever is let through */
    double now;
} Facts;

typedef enum Decision {
    DECISION_NONE, /* all wait */
    DECISION_GRANTED,
    DECISION_REFUSED,
} Decision;

/* One decision at a time; the caller counts again, and asks again. The request has left the queue. */
Decision budget_decide(Budget *budget, const Facts *facts, Request *ret);
