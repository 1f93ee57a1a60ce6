/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, why we think so and what to do: the answer to a log alone, and to the end of a job. */
#pragma once

#include "advice.h"
#include "cause.h"
#include "evidence.h"

/* Lives in the arena that the judge was given, and in that of the evidence. */
typedef struct Diagnosis {
    Cause cause;
    const char *detail;   /* a finer name, as "cuda-in-forked-worker"; NULL when the cause says it all */
    const char *frame;    /* where Python was at the fault, "train.py line 3, in f"; or NULL */
    const char *stack;    /* the whole of it, as faulthandler writes it; or NULL */
    const char **matched; /* the matching lines of a log, in their order: escaped, long ones truncated */
    size_t n_matched;
    size_t matched_capacity;
    const char **notes; /* common misconceptions in this case */
    size_t n_notes;
    size_t notes_capacity;
    Fixes fixes; /* ranked, the best first */

    /* What it rests on. */
    const Ended *ended; /* the death of one process, or NULL */
    bool from_log;      /* what the job's processes wrote decided, and nothing that was seen overruled it */
    bool bus_guess;     /* a bus error in a log, which does not say where it struck */
} Diagnosis;
