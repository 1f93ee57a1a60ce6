/* SPDX-License-Identifier: Apache-2.0 */
/* What `ps` shows of a survey, and in which order. */
#pragma once

#include "orphans.h"
#include "survey.h"

typedef enum PsSort {
    PS_SORT_NONE, /* processes: jobs as trees, then the others; segments: the largest first */
    PS_SORT_PID,
    PS_SORT_RSS,
    PS_SORT_PSS,
    PS_SORT_USS,
    PS_SORT_SHM,
    PS_SORT_FDS,
    PS_SORT_SIZE, /* this and the following sort segments */
    PS_SORT_ALLOCATED,
    PS_SORT_NAME,
    PS_SORT_HOLDERS,
    PS_SORTS,
} PsSort;

/* Names in the order of the enum; PS_SORT_NONE has none. */
const char *ps_sort_name(PsSort sort);
int ps_sort_find(Text name, PsSort *ret); /* -EINVAL */
static inline bool ps_sort_is_of_segments(PsSort sort)
{
    return sort >= PS_SORT_SIZE;
}

typedef struct PsSelection {
    bool all; /* every process, not only training processes and holders */
    int pid; /* only its job (for a launcher: the jobs below it) and the segments held there; 0: everything */
    PsSort sort;
} PsSelection;

typedef struct PsProcess {
    const Process *process;
    bool child; /* shown below its trainer */
    /* U64_UNKNOWN if the process could not be read. Kernel threads and zombies have none, so theirs are known
     * to be 0. */
    uint64_t pss_bytes;
    uint64_t uss_bytes;
    uint64_t shm_bytes;
    uint64_t fds;
} PsProcess;

typedef struct PsSegment {
    const Segment *segment;
    Orphan orphan;
    const char *why; /* one clause */
} PsSegment;

typedef struct PsView {
    const Survey *survey;
    PsSelection selection;
    PsProcess *processes;
    size_t n_processes;
    PsSegment *segments;
    size_t n_segments;
} PsView;

/* -ENOMEM, or -ESRCH when selection.pid is not in the survey. The view lives in arena and points into survey.
 */
int ps_view_make(const Survey *survey, const PsSelection *selection, Arena *arena, PsView *ret);
