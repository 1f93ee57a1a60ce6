/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several recordings of one job say together: its nodes, its ranks, how far their clocks are apart, and
 * which rank's loader is late, and why. docs/nodes.md derives it. Pure.
 *
 * Words
 *
 * rank: a trainer with a number from its launcher. A recording in which no trainer has one is one rank.
 *
 * share: of the time for which a rank's trainer was recorded. A rank is late if its share of waiting for
 * batches is far above that of the other ranks: in a job that synchronizes at every step all ranks are
 * equally slow, and only the one that waits for its own loader is the cause.
 *
 * common mark: a mark or an epoch with the same text in the recordings of several ranks.
 */
#pragma once

#include "report-view.h"

/* What the workers of a late rank wait for. */
typedef enum LateWhy {
    LATE_ROOM, /* in memory: the guard let them wait */
    LATE_CPU,
    LATE_DISK,
    LATE_WORK, /* for nothing: they compute */
    LATE_UNKNOWN,
    LATE_WHYS,
} LateWhy;

/* How long two clocks are told apart. */
typedef enum ClockBasis {
    CLOCK_MARKS, /* the common marks are at the same time */
    CLOCK_WALL,  /* there are none: the clocks are believed */
} ClockBasis;

typedef struct RankView {
    size_t source; /* its recording */
    int rank;      /* RANK_UNKNOWN */
    int attempt;   /* the newest, from 1 on; 0 unknown. The figures are of that one */
    int pid;       /* of its trainer; 0: none was seen */
    double seconds;
    size_t marks;        /* common ones */
    double step_seconds; /* from one common mark to the next; NAN */
    double behind;       /* seconds that it took longer than the others for the same marks; NAN */
    double loader_share; /* 0…1; NAN unknown, like all shares. Without the guard's lane it is not known */
    double room_share;   /* of its recording: at least one worker of the run waited for room */
    double cpu_share;    /* of its workers, or the trainer without any */
    double disk_share;   /* of its node: at least one task waited for a disk */
    double work_share;   /* the CPU time of its workers' */
    uint64_t rss_peak;   /* of the trainer and its workers, each at its peak */
    bool late;
    LateWhy why;        /* if it is late */
    const char *reason; /* in words, with figures; NULL if it is not late */
    const char *advice;
} RankView;

typedef struct NodeView {
    const char *name; /* "" unknown */
    int number;       /* RANK_UNKNOWN */
    size_t n_ranks;
    size_t n_recordings;
    uint64_t peaks[JOB_METRICS];
    uint64_t memory_least;
    uint64_t oom_kills;
    double room_seconds; /* NAN */
} NodeView;

typedef struct SourceView {
    const ReportView *report;
    size_t node;
    ClockBasis clock;
    double offset; /* what its clock is ahead of the first recording's; 0 by the wall clock */
    double spread; /* how far single marks lie from that; NAN */
    size_t marks;
} SourceView;

typedef struct FleetView {
    const SourceView *sources; /* in the order given */
    size_t n_sources;
    const RankView *ranks; /* in order of rank */
    size_t n_ranks;
    size_t n_late;
    const NodeView *nodes; /* in the order in which they are first met */
    size_t n_nodes;
    const char *job;   /* "" unknown */
    size_t n_jobs;     /* different ids of jobs */
    size_t reference;  /* the source whose clock is used */
    VerdictId overall; /* as in a report, of all of them */
    const char *clock; /* a sentence; NULL for a single recording */
} FleetView;

/* ret lives in arena and points to its sources, of which there is at least one. -ENOMEM. */
int fleet_view_make(const ReportView *reports, size_t n, Arena *arena, FleetView *ret);

const char *late_why_name(LateWhy why);
const char *clock_basis_name(ClockBasis basis);
