/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a traceback or log to its cause. Fed piece by piece, so that a log of any size takes little memory;
 * binary junk does no harm. Pure: reads nothing itself.
 */
#pragma once

#include "advice.h"
#include "cause.h"
#include "text.h"

typedef struct Explanation {
    Cause cause;
    bool bus_guess;       /* the cause is read from a bus error alone, which does not tell where it struck */
    const char *detail;   /* a finer name, as "cuda-in-forked-worker"; NULL when the cause says it all */
    const char **matched; /* the lines that told, as they stood (escaped, long ones cut), in their order */
    size_t n_matched;
    size_t matched_capacity;
    const char **notes; /* beliefs that people hold in this case and that are wrong */
    size_t n_notes;
    size_t notes_capacity;
    Fixes fixes;
} Explanation;

typedef struct Explainer Explainer;

Explainer *explainer_new(void); /* NULL: no memory */
void explainer_free(Explainer *explainer);
void explainer_reset(Explainer *explainer); /* for another log, at less cost than a new one */
int explainer_feed(Explainer *explainer, const char *bytes, size_t n); /* -ENOMEM */

/* machine may be NULL: fixes are then for any environment. ret lives in arena. */
int explainer_finish(Explainer *explainer, const Machine *machine, const GuardOffer *guard, Arena *arena,
                     Explanation *ret);
