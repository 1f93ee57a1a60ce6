/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moments that wait because another program is writing into the file: copies, in order of time. They take no
 * more than a few MiB: when there are too many, every second one is dropped, as old ones are in the file, and
 * its events are kept with the next one.
 */
#pragma once

#include "history.h"

typedef struct PendingMoments {
    Moment **items; /* each with all that it points to in one block */
    size_t *sizes;
    size_t n;
    size_t capacity;
    size_t bytes;
    uint64_t lost; /* moments that were dropped */
} PendingMoments;

void pending_moments_free(PendingMoments *pending);

/* Without memory it is lost. */
void pending_moments_add(PendingMoments *pending, const Moment *moment);

/* All of them have been written. */
void pending_moments_clear(PendingMoments *pending);
