/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where epochs begin, as far as that is visible from outside: at the user's marks ("epoch 3"), or else where
 * a loader starts new workers. A loader that keeps its workers shows no epochs; a period that is only visible
 * in a figure is an estimate, and is not among these. docs/verdicts.md says how loaders are told apart.
 */
#pragma once

#include "arena.h"
#include "history.h"

typedef struct Epoch {
    double seconds;
    uint64_t number; /* from 1 on, or as in the mark; EPOCH_UNNUMBERED: the first ones were not seen */
    size_t mark;     /* the index of its event; SIZE_MAX: seen from new workers */
} Epoch;

#define EPOCH_UNNUMBERED UINT64_MAX

typedef struct Epochs {
    Epoch *items; /* in order of time */
    size_t n;
    size_t capacity;
} Epochs;

/* Those of one trainer. ret lives in arena. -ENOMEM. */
int epochs_find(const History *history, int trainer, Arena *arena, Epochs *ret);

/*
 * The history's events with all epochs among them, as EVENT_EPOCH: a mark that begins an epoch becomes that
 * epoch, and the epochs of several trainers that keep step are one. ret lives in arena. -ENOMEM.
 */
int epochs_tell(const History *history, Arena *arena, EventList *ret);

/* The number in "epoch 3", "Epoch: [3/90]"; EPOCH_UNNUMBERED if it has none. False: the text is about
 * something else. */
bool epoch_parse(const char *text, uint64_t *ret_number);
