/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives memory back. The job's pools keep segments for the next batch; nobody in the job has a thread that
 * would notice that there is no next batch, so the supervisor looks once a second.
 *
 * Why it may take a segment's pages away
 *
 *   A segment is free when no lock is left on it: nobody has the handed-out description, so no process can
 * reach the contents through a tensor (the invariant, guard.h). The janitor takes the exclusive lock, which
 * the kernel grants only then, and which keeps the producer from handing the segment out meanwhile: a
 * producer hands out by putting the shared lock on a fresh description, and passes the segment over when that
 * fails. Under the lock it punches out all pages. Every mapping stays valid; whoever is given the segment
 * next finds zeros, as in a new one.
 *
 *   A process that has registered the pages with CUDA has a lock too, on another byte, for as long: the GPU
 * would go on reading the pages that were punched out. Nothing would come free by it either, for such pages
 * stay until they are unregistered. The trainer does that by itself (pins.c).
 *
 *   The lock is taken through a description of the janitor's own. Through the one that the producer sent,
 * which the producer has too, the lock would outlive a supervisor that is killed in the middle, and the
 * segment would be lost for good.
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
    uint64_t producer; /* 0: gone, nobody will issue it again */
    int pid;           /* of the producer */
    uint64_t held_bytes;
    uint64_t promised_bytes; /* that its user may touch, or has; 0 once it was seen free */
    unsigned free_looks;     /* in a row */
    unsigned empty_looks;    /* in a row, free and without pages */
    bool due;                /* its pages are to be given back */
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

/* Watches the segment behind fd, which stays the caller's; one that is watched already is only looked up. Its
 * index until the next one is added or looked at. -EINVAL: it is no memfd. -EMFILE: too many. */
ssize_t janitor_add(Janitor *janitor, int fd, uint64_t producer, int pid);

/* Whether the file behind fd is watched, and so counted. */
bool janitor_knows(const Janitor *janitor, int fd);

/* The producer has gone: what it made goes as soon as nobody uses it. */
void janitor_abandon(Janitor *janitor, uint64_t producer);

/* Counts bytes. `more` are bytes that somebody else counted, a part of the peak. */
void janitor_count(Janitor *janitor, uint64_t more);

/* Once a second. Short of memory, whatever is free is due at once, else what was free in three looks in a
 * row. */
void janitor_look(Janitor *janitor, bool short_of_memory);

/* Gives back one segment that is due: a gibibyte takes a fifth of a second, in which nobody else is served.
 */
void janitor_work(Janitor *janitor);

/* --- For the budget: asked of the kernel anew each time, so that no death leaves it wrong --- */

/* Bytes that are in memory, or promised to somebody who has the segment still. */
uint64_t janitor_used(Janitor *janitor);

/* Of these, what somebody uses; and of what was promised, what was not touched yet. Of the last janitor_used,
 * as the next. */
uint64_t janitor_in_use(const Janitor *janitor);
uint64_t janitor_promised(const Janitor *janitor);

void janitor_promise(Janitor *janitor, uint64_t device, uint64_t inode, uint64_t bytes);

/* Gives back what is free at once, until `bytes` are. Whether anything was. */
bool janitor_reclaim(Janitor *janitor, uint64_t bytes);

/* Bytes of segments in use that process pid holds: it has a tensor there. Reads all its mappings. */
uint64_t janitor_kept_by(const Janitor *janitor, const Root *root, int pid);

/* Bytes of memory behind a descriptor, 0 when that cannot be told. */
uint64_t fd_held_bytes(int fd);
