/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "watch-internal.h"

/* How many samples back a figure is still worth showing: costly ones are sampled more often than that. */
enum { STEPS_BACK = 600 };

uint64_t series_known(const Series *series, size_t metric, double at)
{
    size_t place = 0;
    if (!series_place(series, at, &place))
        return U64_UNKNOWN;
    for (size_t i = 0; i <= place && i < STEPS_BACK; i++)
        if (series->values[metric][place - i] != U64_UNKNOWN)
            return series->values[metric][place - i];
    return U64_UNKNOWN;
}

static uint64_t cpu_share(const Series *series, size_t place)
{
    if (place == 0)
        return U64_UNKNOWN;
    const uint64_t *msec = series->values[PROCESS_CPU_MSEC];
    double seconds = series->seconds[place] - series->seconds[place - 1];
    if (msec[place] == U64_UNKNOWN || msec[place - 1] == U64_UNKNOWN || msec[place] < msec[place - 1] ||
        seconds <= 0)
        return U64_UNKNOWN;
    return (uint64_t)((double)(msec[place] - msec[place - 1]) / seconds);
}

uint64_t track_value(const Series *series, WatchColumn column, size_t place)
{
    static const ProcessMetric metrics[WATCH_COLUMNS] = {
        [WATCH_USS] = PROCESS_USS,  [WATCH_PSS] = PROCESS_PSS, [WATCH_SHARED] = PROCESS_SHMEM,
        [WATCH_HELD] = PROCESS_SHM, [WATCH_FDS] = PROCESS_FDS, [WATCH_THREADS] = PROCESS_THREADS,
    };
    if (column == WATCH_CPU)
        return cpu_share(series, place);
    if (column != WATCH_RSS)
        return series->values[metrics[column]][place];
    uint64_t sum = 0;
    for (ProcessMetric metric = PROCESS_ANON; metric <= PROCESS_SHMEM; metric++) {
        if (series->values[metric][place] == U64_UNKNOWN)
            return U64_UNKNOWN;
        sum += series->values[metric][place];
    }
    return sum;
}

uint64_t track_figure(const ProcessTrack *track, WatchColumn column, double at)
{
    size_t place = 0;
    uint64_t value = U64_UNKNOWN;
    if (!column_is_figure(column) || !series_place(&track->series, at, &place))
        return U64_UNKNOWN;
    for (size_t i = 0; value == U64_UNKNOWN && i <= place && i < STEPS_BACK; i++)
        value = track_value(&track->series, column, place - i);
    return value;
}

bool column_is_figure(WatchColumn column)
{
    return column >= WATCH_USS && column <= WATCH_CPU;
}

bool column_is_bytes(WatchColumn column)
{
    return column >= WATCH_USS && column <= WATCH_HELD;
}

char *figure_text(uint64_t value, bool bytes, char buf[static FIGURE_MAX])
{
    static const char units[] = " KMGTPE";
    double number = (double)value;
    unsigned power = 0;
    /* 999.5 would print as 1000, which is one column too many. */
    double most = bytes ? 999.5 : 99999.5;
    while (number >= most && power + 1 < sizeof units - 1) {
        number /= bytes ? 1024 : 1000;
        power++;
        most = 999.5;
    }
    if (power == 0)
        snprintf(buf, FIGURE_MAX, "%.0f", number);
    else
        snprintf(buf, FIGURE_MAX, number < 9.95 ? "%.1f%c" : "%.0f%c", number, units[power]);
    return buf;
}
