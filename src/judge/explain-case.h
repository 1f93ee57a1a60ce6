/* What is being made of a log's facts: shared by the files of the explanation alone. */
#pragma once

#include "explain.h"
#include "log-reader.h"

/* After a failure (r < 0) nothing more is added. */
typedef struct Case {
    const LogFacts *facts;
    const Machine *machine; /* or NULL */
    const Guard *guard;
    Arena *arena;
    Explanation *out;
    Clue clue;                        /* the one that decided; CLUES when it was an exception, or nothing */
    const LoggedException *exception; /* likewise, or NULL */
    int r;
} Case;

static inline const ClueSeen *case_clue(const Case *it, Clue clue)
{
    return &it->facts->clues[clue];
}

static inline bool case_has(const Case *it, Clue clue)
{
    return it->facts->clues[clue].count > 0;
}

/* text NULL: there was no memory for it. What is past the limits of a list is left out. */
void case_evidence(Case *it, const char *text);
void case_matched(Case *it, const char *text);
void case_note(Case *it, const char *text);
void case_fix(Case *it, FixNeeds needs, const char *what, const char *command);

void case_notes(Case *it); /* the beliefs that matter here */
void case_fixes(Case *it); /* what to do, ranked */
