/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thins series so that every peak and every valley still shows. All series of a history are put on one grid
 * of times, so that they can be stacked and read together: a stretch of time has at most two points, which
 * are the minimum and the maximum of a series there, in their order.
 */
#pragma once

#include "history.h"

typedef struct Downsampling {
    double *seconds; /* of the points */
    size_t n;
    double stretch_seconds;               /* of time that two points stand for; 0: nothing was thinned */
    struct DownsampledStretch *stretches; /* in order of time */
    size_t n_stretches;
} Downsampling;

/* At most points_most (two or more) of the times of a series. ret lives in arena. -ENOMEM. */
int downsample_times(const double *seconds, size_t n, size_t points_most, Arena *arena, Downsampling *ret);

/*
 * Puts values on the grid; unknown where the series has none. `key` decides which samples stand for a
 * stretch: stacked series share one key, so that values drawn together are of the same time.
 */
void downsample_values(const Downsampling *grid, const double *seconds, size_t n, const uint64_t *key,
                       const uint64_t *values, uint64_t *ret);
