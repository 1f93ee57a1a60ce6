/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each further attempt at a command. */
#pragma once

#include "attempts.h"
#include "cause.h"
#include "checkpoint.h"
#include "terminal.h"

typedef struct NextAttempt {
    unsigned attempt; /* this one, from 1 on */
    unsigned of;      /* the most that are allowed */
    unsigned pause_seconds;
    CauseId cause; /* why it is needed */
    const Knobs *knobs;
    unsigned level_before;
    unsigned level;
    const Checkpoints *found; /* one for each {latest:GLOB} of --resume */
    char *const *globs;
    size_t n_found;
    struct timespec run_began;
} NextAttempt;

void show_attempt(const Terminal *terminal, const NextAttempt *next);

/* No attempt follows; `why` is the reason, as in "not tried again: it was asked to stop". */
void show_no_attempt(const Terminal *terminal, const char *why);
