/* SPDX-License-Identifier: Apache-2.0 */
/* What the guard did for a job, and what the job used: for people and for scripts. */
#pragma once

#include "evidence.h"

/* A process that holds shared memory of the job's. */
typedef struct Keeper {
    int pid; /* 0: not known */
    Role role;
    char comm[COMM_MAX];
    uint64_t bytes;
} Keeper;

/* Of DataLoader batches, by the guard's part in Python. */
typedef struct LaneFigures {
    uint64_t batches;
    uint64_t by_value_bytes;    /* of small tensors */
    uint64_t in_segments_bytes; /* of tensors and arrays in segments of their own */
    uint64_t declined;          /* batches that were left to PyTorch */
    const char *why;            /* an id, if no batch took it; NULL: some did, or there is no guard */
} LaneFigures;

/* Of datasets that were made immortal before workers were forked. */
typedef struct FreezeFigures {
    uint64_t objects;
    uint64_t bytes; /* computed from types and lengths */
    double seconds;
    uint64_t
        left_bytes;  /* of datasets that were dropped or replaced later: they stay until their process ends */
    const char *why; /* an id, if nothing was frozen, or nothing more; NULL: there was no reason */
} FreezeFigures;

/* How long the main thread of a trainer has waited for its loaders. */
typedef struct TrainerWait {
    int pid;
    uint64_t msec;
} TrainerWait;

enum { TRAINER_WAITS = 64 };

/* A process that is freezing now. */
typedef struct FreezingNow {
    double seconds; /* since it began; 0: none is */
    uint64_t objects;
} FreezingNow;

typedef struct GuardFigures {
    uint64_t segments_created;
    uint64_t segments_reused;
    uint64_t bytes_backed; /* asked for by tensors and served from segments, new and recycled */
    uint64_t small_backed; /* tensors in memfds of their own */
    uint64_t pinned_bytes; /* of tensors that the GPU could read where their worker wrote them */
    uint64_t batches;      /* that DataLoader workers have sent; 0: none, or it cannot be known */
    LaneFigures lane;
    FreezeFigures freeze;
    FreezingNow freezing;
    uint64_t fallbacks; /* tensors that went through /dev/shm without the guard */
    uint64_t names_made;
    uint64_t names_served; /* times that a name was opened */
    uint64_t turned_away;  /* connections of other users' processes that do not belong to the job */
    uint64_t bytes_peak; /* in memory at one time; counted once a second, and when something comes or goes */
    uint64_t bytes_now;
    uint64_t budget_bytes; /* UINT64_MAX: no ceiling */
    uint64_t waiting;      /* requests for memory that wait now */
    uint64_t waits;        /* requests that had to wait */
    double waited_seconds; /* of all that waited together */
    double queued_seconds; /* in which at least one request waited */
    uint64_t rescues;      /* batches that exceeded the limit because nothing was let go */
    uint64_t wanted_bytes; /* the most that was in use and requested at one time while a request waited */
    bool wanted_exists;    /* that much memory was there */
    uint64_t refused;
    uint64_t refused_bytes; /* of the last one */
    int refused_pid;
    bool refused_for_want;  /* there was not enough memory */
    double refused_seconds; /* CLOCK_MONOTONIC, when the last one was */
    bool served_after;      /* shared tensors were made after the last one */
    Refusal refusals[REFUSALS_MAX];
    size_t n_refusals;
    TrainerWait trainer_waits[TRAINER_WAITS]; /* of trainers that have the lane */
    size_t n_trainer_waits;
    uint64_t wrote_msec; /* CLOCK_MONOTONIC, when the job last wrote to the terminal; 0: not seen */
    bool unfinished;     /* that did not lead to an empty line */
    bool adrift;         /* the job moves the cursor in ways that are not followed */
    bool line;           /* broker_line stands */
} GuardFigures;

/* Whether the guard had anything to do. */
static inline bool guard_has_served(const GuardFigures *guard)
{
    return guard->segments_created + guard->segments_reused + guard->small_backed + guard->names_made +
               guard->fallbacks + guard->refused + guard->bytes_peak + guard->lane.by_value_bytes +
               guard->freeze.objects >
           0;
}

typedef struct Peaks {
    uint64_t shm_bytes; /* of the job's /dev/shm, all users of the mount together; U64_UNKNOWN */
    uint64_t rss_bytes; /* of all processes together, pages that they share counted in each; U64_UNKNOWN */
    uint64_t fds;       /* of all processes together; U64_UNKNOWN */
    uint64_t processes;
    uint64_t own_bytes; /* rss_bytes without shared memory: the heap and files; U64_UNKNOWN */
} Peaks;

/* Of one process, while it was looked at. */
typedef struct ProcessPeak {
    int pid;
    Role role;
    char comm[COMM_MAX];
    uint64_t rss_bytes; /* the kernel's high-water mark, so no peak before the last sample is missed;
                           U64_UNKNOWN */
    uint64_t shm_bytes; /* of it, shared memory; the most in any sample; U64_UNKNOWN */
    uint64_t own_bytes; /* the rest; the most in any sample; U64_UNKNOWN */
} ProcessPeak;

#define PEAKS_UNKNOWN ((Peaks){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX})
