/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory does over time: is it a leak, of what kind, and how long until there is none left? Pure; the
 * arithmetic and its limits are in docs/verdicts.md.
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
    VERDICT_BACKLOG,       /* shared memory is made faster than it is let go, or kept by the trainer */
    VERDICT_FD_LEAK,
    VERDICT_PAGE_CACHE, /* file-backed growth that the kernel can drop */
    VERDICT_TOO_SHORT,  /* not enough samples to say */
    VERDICT_IDS,
} VerdictId;

typedef struct Verdict {
    VerdictId id;
    int pid;              /* whom it is about; 0: the job */
    Role role;            /* of pid */
    const char *metric;   /* "private", "shared", "descriptors", … */
    double rate;          /* bytes, or a number, a second */
    double confidence;    /* 0…1 */
    const char *evidence; /* in words, with figures */
    double exhausts_in;   /* seconds from the end of the history; INFINITY: never, or unknown */
    Fixes fixes;          /* what to do about it, the best first; may be empty */
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

/* Which way a figure goes, for an arrow beside it: a robust slope, a second; 0 when it is not told from
 * noise. Values that are unknown are skipped. */
double trend_slope(const double *seconds, const uint64_t *values, size_t n);
