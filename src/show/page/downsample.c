/* SPDX-License-Identifier: Apache-2.0 */
#include "downsample.h"

typedef struct DownsampledStretch {
    double from;   /* the next one begins where it ends */
    size_t point;  /* index of its first point */
    size_t points; /* 1 or 2 */
    size_t n;      /* samples that it stands for */
} DownsampledStretch;

int downsample_times(const double *seconds, size_t n, size_t points_most, Arena *arena, Downsampling *ret)
{
    size_t most = MAX(points_most, (size_t)2);
    double span = n > 0 ? seconds[n - 1] - seconds[0] : 0;
    bool thin = n > most && span > 0;
    size_t stretches = most / 2;
    Downsampling grid = {.stretch_seconds = thin ? span / (double)stretches : 0};
    grid.seconds = arena_alloc(arena, MAX(MIN(n, most), (size_t)1) * sizeof *grid.seconds);
    grid.stretches = arena_alloc(arena, MAX(thin ? stretches : n, (size_t)1) * sizeof *grid.stretches);
    if (!grid.seconds || !grid.stretches)
        return -ENOMEM;
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        if (thin) {
            /* Computed from its number, not by adding up: the last stretch includes the end. */
            size_t number = (size_t)((seconds[i] - seconds[0]) / grid.stretch_seconds);
            number = MIN(number, stretches - 1);
            double until = seconds[0] + grid.stretch_seconds * (double)(number + 1);
            while (end < n && (seconds[end] < until || number == stretches - 1))
                end++;
        }
        DownsampledStretch *stretch = &grid.stretches[grid.n_stretches++];
        *stretch = (DownsampledStretch){seconds[i], grid.n, end - i > 1 ? 2 : 1, end - i};
        grid.seconds[grid.n++] = seconds[i];
        if (stretch->points == 2)
            grid.seconds[grid.n++] = seconds[end - 1];
        i = end;
    }
    *ret = grid;
    return 0;
}

/* The samples with the minimum and the maximum in [begin, end), the earlier one first. False: none is known.
 */
static bool extremes_find(const uint64_t *key, size_t begin, size_t end, size_t *ret_early, size_t *ret_late)
{
    size_t least = end;
    size_t most = end;
    for (size_t i = begin; i < end; i++) {
        if (key[i] == U64_UNKNOWN)
            continue;
        least = least == end || key[i] < key[least] ? i : least;
        most = most == end || key[i] >= key[most] ? i : most;
    }
    if (least == end)
        return false;
    *ret_early = MIN(least, most);
    *ret_late = MAX(least, most);
    return true;
}

void downsample_values(const Downsampling *grid, const double *seconds, size_t n, const uint64_t *key,
                       const uint64_t *values, uint64_t *ret)
{
    size_t begin = 0;
    for (size_t i = 0; i < grid->n_stretches; i++) {
        const DownsampledStretch *stretch = &grid->stretches[i];
        bool is_last = i + 1 == grid->n_stretches;
        size_t end = begin;
        while (end < n && (is_last || seconds[end] < grid->stretches[i + 1].from))
            end++;
        uint64_t *points = &ret[stretch->point];
        for (size_t point = 0; point < stretch->points; point++)
            points[point] = U64_UNKNOWN;
        size_t early = 0;
        size_t late = 0;
        if (stretch->n == 2) { /* each is its own point */
            for (size_t sample = begin; sample < end; sample++)
                points[seconds[sample] >= grid->seconds[stretch->point + 1]] = values[sample];
        } else if (extremes_find(key, begin, end, &early, &late)) {
            points[0] = values[early];
            points[stretch->points - 1] = values[late];
        }
        begin = end;
    }
}
