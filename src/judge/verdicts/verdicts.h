/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory does over time: does it leak, in what way, and how long until none is left? Pure;
 * docs/verdicts.md explains the arithmetic and its limits. All that is known about a verdict besides how it
 * is reached is one row of verdict-table.c.
 */
#pragma once

#include "advice.h"
#include "history.h"
#include "severity.h"

typedef enum VerdictId {
    VERDICT_STEADY,
    VERDICT_LEAK,          /* private memory grows without end */
    VERDICT_COPY_ON_WRITE, /* private memory grows towards what was shared at fork */
    VERDICT_SAWTOOTH,      /* grows in an epoch, falls at its end */
    VERDICT_BACKLOG,       /* shared memory is created faster than it is released, or kept by the trainer */
    VERDICT_FD_LEAK,
    VERDICT_PAGE_CACHE, /* file-backed growth that the kernel can drop */
    VERDICT_TOO_SHORT,  /* not enough samples to say */
    VERDICT_IDS,
} VerdictId;

typedef struct Verdict {
    VerdictId id;
    int pid;                 /* of the process it is about; 0: the whole job */
    Role role;               /* of pid */
    const char *metric;      /* "private", "shared", "descriptors", … */
    double rate;             /* bytes per second, or a number per second */
    double confidence;       /* 0…1 */
    const char *evidence;    /* in words, with figures */
    double exhausts_in;      /* seconds from the end of the history; INFINITY: never, or unknown */
    double would_exhaust_in; /* the same for growth that may not continue: it was observed for too short a
                                time; 0: there is none, or unknown */
    bool of_tensors;         /* descriptors: those of shared tensors that are kept */
    Fixes fixes;             /* what to do about it, the best first; may be empty */
} Verdict;

typedef struct Verdicts {
    Verdict *items; /* the one that matters most first: overall is items[0].id. Never empty */
    size_t n;
    size_t capacity;
} Verdicts;

/* ret lives in arena. -ENOMEM. */
int verdicts_judge(const History *history, Arena *arena, Verdicts *ret);

const char *verdict_name(VerdictId id);

Severity verdict_severity(VerdictId id);

/* For people: a heading, and one or two sentences. */
const char *verdict_title(VerdictId id);
const char *verdict_meaning(VerdictId id);

/* The direction of a figure, for an arrow beside it: a robust slope per second; 0 when it cannot be told from
 * noise. Unknown values are skipped. */
double trend_slope(const double *seconds, const uint64_t *values, size_t n);
