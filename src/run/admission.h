/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the budget: compares requests for room (protocol.h) with what the kernel says about segments and
 * memory.
 *
 * A feeder whose request is refused: PyTorch's queues share tensors in a thread of their own. An error in
 * that thread is printed and the batch is lost, and a trainer that waits for it would wait forever. So a
 * DataLoader worker to which this happens is ended a moment later, and PyTorch tells the trainer that its
 * worker died. If the worker has exited by then, the trainer is told nothing, and the refusal counts as one
 * that no process was told of.
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
    void (*ending)(void *context, int pid);  /* is told which process we end; NULL */
    void *context;
    bool look; /* something changed since the last decision */
    double next;
    double queued_since; /* since when a request waits; 0: none does */
    double queued_seconds;
    double spare_read;
    Spare spare; /* .tight: memory that is let go is given back at once, instead of being kept for the next
                    batch */
    uint64_t in_use; /* when last counted */
    PendingKill kills[PENDING_KILLS_MAX];
    size_t n_kills;
    Refusal refusals[REFUSALS_MAX];
    size_t n_refusals;
} Admission;

void admission_free(Admission *admission);

/* Request `id` of process `pid` for bytes of the segment behind fd, which stays the caller's. 0: an answer
 * will come. Negative errno: it cannot be counted; treat it as granted. */
int admission_ask(Admission *admission, Janitor *janitor, uint64_t id, int pid, int fd,
                  const Message *message);

/* Answers the requests that can be answered: `answer` gets 0 or ENOSPC. `more` are bytes in use that the
 * janitor does not know of. Costs nothing when no request waits and memory is not tight. */
typedef void (*AdmissionAnswer)(void *context, uint64_t id, int error);
void admission_settle(Admission *admission, Janitor *janitor, uint64_t more, AdmissionAnswer answer,
                      void *context);

/* Seconds so far in which at least one request waited. */
double admission_queued(const Admission *admission);

/* How many processes wait to hear that memory was let go. */
uint32_t admission_waiting(const Admission *admission);

/* Milliseconds until admission_settle has something to do, -1: nothing. */
int admission_timeout(const Admission *admission);

/* Once a second. */
void admission_tick(Admission *admission);
