/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory the job's tensors may take, and which process gets the next piece. Pure: it is told how
 * much is in use, how much the machine still has, and what time it is.
 *
 * A process asks before it touches new pages: for a new segment, or for one whose pages were given back. Use
 * is never counted here: the caller asks the kernel about every segment (janitor.h), so a process that is
 * killed at any point leaves nothing to correct.
 *
 * Which request is next. Loaders take their workers' batches in turn, and start the workers in that order. So
 * of the waiting processes, the one that has begun the fewest batches is needed first, and of several such
 * processes the one that was started first. A process that waits in the middle of a batch of several tensors
 * therefore comes before all that have not begun theirs: half-made batches are finished first.
 *
 * Why no process waits forever. Memory comes back when the trainer lets go of a batch, but the trainer may be
 * waiting for the very worker that waits here, or may keep its batches. So when nothing was let go for a
 * while, the next request may exceed the limit, with all tensors of its batch, provided that the memory
 * really exists. That time follows the pace at which batches are let go, and doubles with each consecutive
 * rescue up to RESCUE_MOST: a trainer that pauses does not make the limit meaningless, and one that waits for
 * the last of many workers does not wait for minutes.
 *
 * A crawl. A trainer that keeps its batches lets go of none, so each further batch is a rescue, one every few
 * seconds. Only the speed is wrong, and the user would not know why. So when a request waits and
 * CRAWL_SECONDS have passed with nothing but rescues, it is due to be reported; then again after 30 s, 90 s
 * and so on.
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
    uint64_t held_bytes; /* of these, what the segment has already: they are among the used bytes */
    uint64_t batch;      /* which batch of the process it belongs to */
    double asked;        /* seconds, as all times here */
    Asker asker;
    bool waited; /* there was no room for it at first */
} Request;

typedef struct Budget {
    uint64_t limit_bytes; /* UINT64_MAX: no ceiling, only the memory that exists */
    bool wished; /* the user chose the limit: a request larger than all of it is refused. A limit of our own
                    is a guess, and such a request is let through like any other */
    double wait_seconds; /* after this a waiting request is let through, or refused when there is no memory */
    Request *requests;   /* waiting, in order of arrival */
    size_t n;
    size_t capacity;
    double progress;       /* when something was last let go, or a rescue made */
    double pace;           /* mean time between two releases; 0 unknown */
    double released;       /* when something was last let go; 0 never */
    unsigned rescues;      /* in a row */
    uint64_t rescues_all;  /* of the whole run, a batch of several tensors counted once */
    uint64_t wanted_bytes; /* the most that was in use and requested at one time while a request waited */
    bool wanted_exists;    /* that much memory was there */
    double busy;           /* when a request last waited */
    double crawl_since;    /* nothing but rescues since then; 0: no crawl */
    unsigned crawl_told;   /* how often it was reported */
    double crawl_told_last;
    Request rescued; /* last, until something is let go; pid 0: none */
    uint64_t waits;  /* requests that had to wait */
    double waited_seconds;
    uint64_t refused;
    Request refused_last;
    bool refused_for_want; /* the last refusal: memory was not there */
    double refused_when;   /* the last refusal */
} Budget;

/* {.limit_bytes, .wait_seconds} is a budget without requests. */
void budget_free(Budget *budget);

/* -ENOMEM; the request is treated as granted then. */
int budget_ask(Budget *budget, const Request *request);

/* The process that asked has gone. */
void budget_withdraw(Budget *budget, uint64_t id);

/* Something was let go. */
void budget_released(Budget *budget, double now);

/* How long it has crawled; 0: it does not. */
double budget_crawled(const Budget *budget, double now);

/* Whether to report that now; it counts as reported then. */
bool budget_crawl_is_due(Budget *budget, double now);

typedef struct Facts {
    uint64_t used_bytes;  /* by the job's tensors, including what was granted and is not touched yet */
    uint64_t spare_bytes; /* memory that exists beyond that */
    uint64_t most_bytes;  /* the same, including memory that is better left alone: for requests that are let
                             through */
    double now;
} Facts;

typedef enum Decision {
    DECISION_NONE, /* all wait */
    DECISION_GRANTED,
    DECISION_REFUSED,
} Decision;

/* One decision at a time: the caller counts again, and asks again. The request has left the queue. */
Decision budget_decide(Budget *budget, const Facts *facts, Request *ret);
