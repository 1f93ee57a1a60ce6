/* SPDX-License-Identifier: Apache-2.0 */
/* What is being made of a log's facts: shared by the files of the explanation alone. */
#pragma once

#include "explain.h"
#include "log-reader.h"

/* After a failure (r < 0) nothing more is added. */
typedef struct ExplainContext {
    const LogFacts *facts;
    const Machine *machine; /* or NULL */
    const GuardOffer *guard;
    Arena *arena;
    Explanation *out;
    Clue clue;                        /* the one that decided; CLUES when it was an exception, or nothing */
    const LoggedException *exception; /* likewise, or NULL */
    int r;
} ExplainContext;

static inline const ClueSeen *explain_clue(const ExplainContext *context, Clue clue)
{
    return &context->facts->clues[clue];
}

static inline bool explain_has(const ExplainContext *context, Clue clue)
{
    return context->facts->clues[clue].count > 0;
}

/* text NULL: there was no memory for it. What is past the limits of a list is left out. */
void explain_evidence(ExplainContext *context, const char *text);
void explain_matched(ExplainContext *context, const char *text);
void explain_note(ExplainContext *context, const char *text);
void explain_fix(ExplainContext *context, FixNeeds needs, const char *what, const char *command);

void explain_notes(ExplainContext *context); /* the beliefs that matter here */
void explain_fixes(ExplainContext *context); /* what to do, ranked */
