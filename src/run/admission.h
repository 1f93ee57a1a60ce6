/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget at work: requests for room (protocol.h) against what the kernel says of segments and of memory.
 *
 * A feeder that is refused. PyTorch's queues share tensors in a thread of their own; what fails there is
 * printed and lost, and a trainer that waits for the lost batch would wait for ever. So a DataLoader worker
 * to which this happens is ended a moment later, and the trainer is told by PyTorch that its worker died. A
 * worker that has exited by then leaves the trainer without a word: its refusal stays one that nobody was
 * told of.
 */
#pragma once

#include "budget.h"
#include "evidence.h"
#include "free-memory.h"
#include "janitor.h"
#include "protocol.h"
#include "root.h"

enum { PENDING_KILLS_MAX = 32 };

typedef struct PendingKill {
    int pid;
    int pidfd;
    double due;
} PendingKill;

typedef struct Admission {
    Budget budget;
    const Root *root;
    Spare (*spare_now)(const void *context); /* memory that exists */
    void (*ending)(void *context, int pid);  /* is told whom we end; NULL */
    void *context;
    bool look; /* something changed since the last decision */
    double next;
    double queued_since; /* somebody waits; 0: nobody */
    double queued_seconds;
    double spare_read;
    Spare spare;     /* .tight: what is let go is given back at once, and not kept for the next batch */
    uint64_t in_use; /* when last counted */
    PendingKill kills[PENDING_KILLS_MAX];
    size_t n_kills;
    Refusal refusals[REFUSALS_MAX];
    size_t n_refusals;
} Admission;

void admission_free(Admission *admission);

/* Request `id` of process `pid` for bytes of the segment behind fd, which stays the caller's. 0: an answer
 * will come. Negative errno: it cannot be counted, and is as good as granted. */
int admission_ask(Admission *admission, Janitor *janitor, uint64_t id, int pid, int fd,
                  const Message *message);

/* Answers whoever can be answered: `answer` gets 0 or ENOSPC. `more` are bytes in use that the janitor does
 * not know of. Costs nothing when nobody waits and memory is not tight. */
typedef void (*AdmissionAnswer)(void *context, uint64_t id, int error);
void admission_settle(Admission *admission, Janitor *janitor, uint64_t more, AdmissionAnswer answer,
                      void *context);

/* Seconds so far in which somebody waited. */
double admission_queued(const Admission *admission);

/* How many wait to hear that something was let go. */
uint32_t admission_waiting(const Admission *admission);

/* Milliseconds until admission_settle has something to do, -1: nothing. */
int admission_timeout(const Admission *admission);

/* Once a second. */
void admission_tick(Admission *admission);
