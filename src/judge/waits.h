/* SPDX-License-Identifier: Apache-2.0 */
/* Whether workers that waited for memory held a job up, and which budget would have avoided it. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Waits {
    double run_seconds;
    double waited_seconds; /* in which at least one worker waited */
    uint64_t rescues;      /* batches that passed the budget because nothing was released */
} Waits;

/* 0…1 of the run. */
double waits_share(const Waits *waits);

/* False for what a budget is meant to do: short waits that ended because memory was released. */
bool waits_matter(const Waits *waits);

/* The budget that holds so much, rounded up as people write sizes: to an eighth of a power of two. */
uint64_t budget_suggest(uint64_t bytes);
