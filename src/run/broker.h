/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of protocol.h: it accepts the job's processes, keeps the meaning of names, and
 * watches segments. It never waits for a client: one that does not read its answers, sends nonsense or is
 * killed at any point is dropped, and the others do not notice.
 */
#pragma once

#include <stdbool.h>

#include "figures.h"
#include "free-memory.h"
#include "protocol.h"
#include "root.h"

typedef struct Broker Broker;

/* To whom a connecting process belongs. */
typedef enum Peer {
    PEER_STRANGER, /* sent away */
    PEER_GONE,     /* it belonged to the job and has ended: it may have left a testimony, and gets nothing */
    PEER_JOB,
} Peer;

/* What the broker needs from its surroundings. */
typedef struct BrokerOwner {
    const Root *root;
    uint64_t budget_bytes; /* U64_UNKNOWN: no ceiling */
    bool budget_is_wished; /* the user asked for it; otherwise it is our guess */
    double wait_seconds;
    bool no_lane;                            /* the user wants none */
    bool no_freeze;                          /* the same, of frozen datasets */
    uint64_t freeze_bytes;                   /* that may be frozen in all processes together; 0: not known */
    Spare (*spare_now)(const void *context); /* memory that exists; NULL: no process has to ask for any */
    /* maps: a descriptor that came with it, as the sender says of its /proc/PID/maps; negative: none. NULL */
    bool (*testify)(void *context, int pid, const Testimony *testimony, size_t size, int maps);
    Peer (*peer)(void *context, int pid, uint32_t uid); /* of another user. NULL: a stranger */
    void (*where)(void *context);                       /* the line that leaks is wanted; NULL */
    void (*ending)(void *context, int pid);             /* we are about to end this process; NULL */
    void *context;
} BrokerOwner;

/*
 * Listens, watched by epoll. `names_path` is where shm_open makes its files, normally "/dev/shm". A memfd
 * that cannot be made is -ENOSYS, -EPERM or -EACCES.
 */
int broker_open(int epoll, const char *names_path, const BrokerOwner *owner, Broker **ret);
void broker_free(Broker *broker);

/* From now on shm_open makes its files there: the job has a /dev/shm of its own. */
void broker_names_at(Broker *broker, const char *names_path);

/* For the job's environment. */
const char *broker_socket(const Broker *broker);

/* After each round of events: sends the answers that need all queues to be read, and does what is due in the
 * background. */
void broker_settle(Broker *broker);

/* Milliseconds until broker_settle must be called even without events; -1: no limit. */
int broker_timeout(const Broker *broker);

/* Once a second. */
void broker_tick(Broker *broker, bool short_of_memory);

/* Whether a shortage of memory would matter at all. */
bool broker_holds_memory(const Broker *broker);

/* The terminal (st_rdev; 0: none) on which a progress line is drawn, or may be drawn. The job removes the
 * line before it writes there, and reports what it has written. */
void broker_line(Broker *broker, uint64_t terminal, bool drawn);

/* The page that all processes of the job map. */
Counters *broker_counters(const Broker *broker);

/* As budget_crawled, budget_crawl_is_due and janitor_kept_by. */
double broker_crawled(const Broker *broker);
bool broker_crawl_is_due(Broker *broker);
uint64_t broker_kept_by(const Broker *broker, int pid);

/* Counts once more. */
GuardFigures broker_figures(Broker *broker);

/* The bytes of all tensors so far, including small ones. Costs nothing, unlike the figures. */
uint64_t broker_bytes_served(const Broker *broker);
