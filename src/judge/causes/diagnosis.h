/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, why we think so and what to do, for a log alone and for the end of a job. */
#pragma once

#include "advice.h"
#include "cause.h"
#include "evidence.h"

/* Its strings live in the arena that the judge was given, and in that of the evidence. */
typedef struct Diagnosis {
    Cause cause;
    const char *detail;   /* a finer name such as "cuda-in-forked-worker", or NULL */
    const char *frame;    /* where Python was at the fault, "train.py line 3, in f"; or NULL */
    const char *stack;    /* the Python stack as faulthandler writes it, or NULL */
    const char **matched; /* the matching lines of a log, in their order: escaped, long ones truncated */
    size_t n_matched;
    size_t matched_capacity;
    const char **notes; /* common misconceptions in this case */
    size_t n_notes;
    size_t notes_capacity;
    Fixes fixes; /* ranked, the best first */

    /* What it is based on. */
    const Ended *ended; /* the death of one process, or NULL */
    bool from_log;      /* decided by what the job's processes wrote, which no observed fact overruled */
    bool bus_guess;     /* decided by a bus error in a log, which does not show its address */
} Diagnosis;
