/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives memory back. The job's pools keep segments for the next batch; no process of the job has a thread
 * that would notice that there is no next batch, so the supervisor checks once a second.
 *
 * Why it may free a segment's pages
 *
 * A segment is free when no lock is left on it: no process has the handed-out description, so none can reach
 * the contents through a tensor (the invariant, guard.h). The janitor takes the exclusive lock, which the
 * kernel grants only then, and which keeps the producer from handing the segment out meanwhile: a producer
 * hands out a segment by putting the shared lock on a fresh description, and skips the segment if that fails.
 * Under the lock the janitor punches out all pages. Every mapping stays valid; the next user of the segment
 * finds zeros, as in a new one.
 *
 * A process that has registered the pages with CUDA holds a lock, too, on another byte, for as long as they
 * are registered: the GPU would continue to read the punched-out pages. Punching would not free such pages
 * either; they stay until they are unregistered. The trainer does that itself (pins.c).
 *
 * Why it may hand a segment to another producer
 *
 * Workers are new in every epoch. What those of the last one have left is warm: its pages exist, and the
 * trainer has it mapped. So a free segment without a producer is kept as long as one with a producer, and a
 * process that needs a segment asks for it. Whether there is a producer, only the kernel knows: a connection
 * can be closed by a process that lives. The janitor gets the lock of the producer (LOCK_POOLED) for a
 * description only if no pool has it, and that description is the pool's own of the next producer.
 * The numbers of its issues are new, because PyTorch may still remember the last producer's (identity.c): so
 * only a segment that was watched from its beginning is handed on.
 *
 * The janitor takes the lock through a description of its own. Through the description that the producer
 * sent, which the producer has, too, the lock would outlive a supervisor that is killed at that moment, and
 * the segment would be lost for good.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "budget.h"
#include "root.h"

typedef struct WatchedSegment {
    int fd; /* our own description of the segment */
    uint64_t device;
    uint64_t inode;
    uint64_t producer;  /* 0: it has gone */
    unsigned producers; /* so far; 0: not known, so it is not handed on */
    int pid;            /* of the producer */
    uint64_t held_bytes;
    uint64_t promised_bytes; /* that its user may touch, or has touched; 0 once it was seen free */
    unsigned free_looks;     /* in a row */
    unsigned empty_looks;    /* in a row, free and without pages */
    bool due;                /* its pages must be given back */
    bool in_use;             /* of the last janitor_used */
} WatchedSegment;

/* {.most = N} is an empty one. */
typedef struct Janitor {
    WatchedSegment *items;
    size_t n;
    size_t capacity;
    size_t most;    /* segments to watch: each costs a descriptor */
    bool busy;      /* something is due */
    uint64_t bytes; /* in segments, when last counted */
    uint64_t bytes_peak;
} Janitor;

void janitor_free(Janitor *janitor);

/* Watches the segment behind fd, which stays the caller's; one that is already watched is only looked up.
 * Returns its index, valid until the next one is added or examined. -EINVAL: it is not a memfd. -EMFILE: too
 * many. */
ssize_t janitor_add(Janitor *janitor, int fd, uint64_t producer, int pid);

/* Whether the file behind fd is watched, and so counted. */
bool janitor_knows(const Janitor *janitor, int fd);

/* The producer has gone: its segments can be handed on, or are freed when no process uses them. */
void janitor_abandon(Janitor *janitor, uint64_t producer);

/* How many segments may be handed on, as far as is known without asking the kernel. */
uint32_t janitor_adoptable(const Janitor *janitor);

/* Hands a free segment of this user, of about so many bytes, to another producer: its own description of it,
 * with the lock, and the number of its next issue. -ENOENT: there is none. */
int janitor_hand_on(Janitor *janitor, uint64_t bytes, uid_t uid, uint64_t producer, int pid,
                    uint64_t *ret_issue);

/* Counts bytes. `more` are bytes counted elsewhere that are part of the peak. */
void janitor_count(Janitor *janitor, uint64_t more);

/* Once a second. If memory is short, everything free is due at once; otherwise, what was free in three
 * consecutive looks. */
void janitor_look(Janitor *janitor, bool short_of_memory);

/* Gives back one segment that is due: a gibibyte takes a fifth of a second, during which no other request is
 * served. */
void janitor_work(Janitor *janitor);

/* --- For the budget: the kernel is asked each time, so that no death leaves it wrong --- */

/* Bytes that are in memory, or promised to a process that still has the segment. */
uint64_t janitor_used(Janitor *janitor);

/* Of these, the bytes in use; and of the promised bytes, those not touched yet. As of the last janitor_used.
 */
uint64_t janitor_in_use(const Janitor *janitor);
uint64_t janitor_promised(const Janitor *janitor);

void janitor_promise(Janitor *janitor, uint64_t device, uint64_t inode, uint64_t bytes);

/* Gives back free segments at once, until `bytes` are freed. Whether any were. */
bool janitor_reclaim(Janitor *janitor, uint64_t bytes);

/* Bytes of segments in use that process pid holds: it has a tensor there. Reads all its mappings. */
uint64_t janitor_kept_by(const Janitor *janitor, const Root *root, int pid);

/* Bytes of memory behind a descriptor; 0 if that is unknown. */
uint64_t fd_held_bytes(int fd);
