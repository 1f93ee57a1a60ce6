/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series with fewer points that still show every peak and every valley. All series of a history are put on
 * one grid of times, so that they can be stacked and read off together: a stretch of time has at most two
 * points, and a series gives them its least and its most there, in the order in which they came.
 */
#pragma once

#include "history.h"

typedef struct Downsampling {
    double *seconds; /* of the points */
    size_t n;
    double stretch_seconds;               /* that two points stand for; 0: nothing was thinned */
    struct DownsampledStretch *stretches; /* in order of time */
    size_t n_stretches;
} Downsampling;

/* At most points_most (two or more) of the times of a series. ret lives in arena. -ENOMEM. */
int downsample_times(const double *seconds, size_t n, size_t points_most, Arena *arena, Downsampling *ret);

/*
 * Values on the grid; unknown where the series has none. Which samples stand for a stretch is decided by
 * `key`: series that are stacked share one, so that what is shown together was together.
 */
void downsample_values(const Downsampling *grid, const double *seconds, size_t n, const uint64_t *key,
                       const uint64_t *values, uint64_t *ret);
