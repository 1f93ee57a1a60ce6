/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deaths by signal in the words of other programs: shells, launchers, MPI, schedulers, Python itself. What
 * they name is the same everywhere, a signal by its number, name or word, or an exit status that stands for
 * one; only the words before it differ. So there are two tables, and a new program is a row in one of them.
 */
#pragma once

#include "clues.h"
#include "text.h"

typedef struct LoggedDeath {
    size_t wording; /* which program's words, less than DEATH_WORDINGS */
    size_t signal;  /* which signal, less than DEATH_SIGNALS */
    Clue clue;
    int pid; /* as a shell or Ray names it; 0: it does not */
} LoggedDeath;

enum { DEATH_SIGNALS = 9, DEATH_WORDINGS = 40, DEATH_NEEDLES = 77 };

/* The i-th literal that a line with a death contains, or NULL after the last one. There are at most
 * DEATH_NEEDLES. */
const char *logged_death_needle(size_t i);

bool logged_death_read(Text line, LoggedDeath *ret); /* false: the line does not report a death */

bool logged_death_tells(Clue clue); /* the clue of a death by some signal */
