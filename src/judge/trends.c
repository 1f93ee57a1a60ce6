/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "trends.h"
#include "verdicts.h"

enum {
    WINDOW_SAMPLES = 120, /* two minutes at one sample per second */
    POINTS_LEAST = 8,
    POINTS_MOST = 128,
    SOON_SECONDS = 3600,
};

bool series_place(const Series *series, double at, size_t *ret)
{
    size_t low = LOWER_BOUND(i, series->n, series->seconds[i] <= at);
    if (low == 0)
        return false;
    *ret = low - 1;
    return true;
}

/* --- Trends --------------------------------------------------------------------------------------------- */

double trend_window(const History *history)
{
    return WINDOW_SAMPLES * history->interval;
}

typedef struct Points {
    double seconds[POINTS_MOST];
    uint64_t values[POINTS_MOST];
    size_t n;
} Points;

/* What is known in the window, evenly thinned; the newest point is always kept. */
static Points points_take(const Series *series, double at, double window, TrendValue value,
                          const void *context)
{
    Points points = {0};
    size_t end = 0;
    if (!series_place(series, at, &end))
        return points;
    size_t known = 0;
    size_t begin = end + 1;
    while (begin > 0 && at - series->seconds[begin - 1] <= window) {
        begin--;
        known += value(context, begin) != U64_UNKNOWN;
    }
    size_t stride = MAX((known + POINTS_MOST - 1) / POINTS_MOST, (size_t)1);
    size_t left = known;
    for (size_t i = begin; i <= end; i++) {
        uint64_t v = value(context, i);
        if (v == U64_UNKNOWN)
            continue;
        left--;
        if (left % stride != 0)
            continue;
        points.seconds[points.n] = series->seconds[i];
        points.values[points.n++] = v;
    }
    return points;
}

/* False: too little is known. */
static bool points_slope(const Points *points, double window, double *ret)
{
    if (points->n < POINTS_LEAST || points->seconds[points->n - 1] - points->seconds[0] < window / 12)
        return false;
    *ret = trend_slope(points->seconds, points->values, points->n);
    return true;
}

CurrentTrend trend_judge(const Series *series, double at, double window, double least, TrendValue value,
                         const void *context)
{
    Points points = points_take(series, at, window, value, context);
    double slope = 0;
    if (!points_slope(&points, window, &slope))
        return (CurrentTrend){DIRECTION_UNKNOWN, 0};
    if (fabs(slope) * window < MAX((double)points.values[points.n - 1] / 100, least))
        return (CurrentTrend){DIRECTION_FLAT, 0};
    return (CurrentTrend){slope > 0 ? DIRECTION_UP : DIRECTION_DOWN, slope};
}

/* --- Forecasts ------------------------------------------------------------------------------------------ */

typedef struct SupplyFigures {
    JobMetric used; /* rises towards `limit`, less `droppable` */
    JobMetric limit;
    JobMetric droppable; /* JOB_METRICS: none */
    const Series *series;
} SupplyFigures;

static uint64_t supply_left(const void *context, size_t place)
{
    const SupplyFigures *supply = context;
    uint64_t *const *values = supply->series->values;
    uint64_t used = values[supply->used][place];
    uint64_t limit = values[supply->limit][place];
    uint64_t droppable = supply->droppable == JOB_METRICS ? 0 : values[supply->droppable][place];
    if (used == U64_UNKNOWN || limit == U64_UNKNOWN || limit == 0)
        return U64_UNKNOWN;
    used -= droppable == U64_UNKNOWN ? 0 : MIN(droppable, used);
    return limit > used ? limit - used : 0;
}

static uint64_t memory_left(const void *context, size_t place)
{
    const SupplyFigures *supply = context;
    return supply->series->values[JOB_MEMORY_AVAILABLE][place];
}

double forecast_of(const History *history, double at, Supply supply)
{
    const Series *series = &history->series;
    const SupplyFigures supplies[SUPPLIES] = {
        [SUPPLY_SHM] = {JOB_SHM_USED, JOB_SHM_SIZE, JOB_METRICS, series},
        [SUPPLY_GROUP] = {JOB_GROUP_USED, JOB_GROUP_LIMIT, JOB_GROUP_FILE, series},
        [SUPPLY_MEMORY] = {.series = series},
    };
    double window = trend_window(history);
    Points points = points_take(series, at, window, supply == SUPPLY_MEMORY ? memory_left : supply_left,
                                &supplies[supply]);
    double slope = 0;
    if (!points_slope(&points, window, &slope))
        return NAN;
    double seconds = slope < 0 ? (double)points.values[points.n - 1] / -slope : INFINITY;
    return seconds < SOON_SECONDS ? seconds : INFINITY;
}

bool forecast_make(const History *history, double at, Supply *ret, double *ret_seconds)
{
    double soonest = INFINITY;
    for (Supply supply = 0; supply < SUPPLIES; supply++) {
        double seconds = forecast_of(history, at, supply);
        if (seconds < soonest) { /* not of NAN */
            soonest = seconds;
            *ret = supply;
        }
    }
    *ret_seconds = soonest;
    return isfinite(soonest);
}

/* --- Alerts --------------------------------------------------------------------------------------------- */

Alert alert_of_share(double share)
{
    return share < 0      ? ALERT_UNKNOWN
           : share >= 0.9 ? ALERT_CRITICAL
           : share >= 0.8 ? ALERT_WARNING
                          : ALERT_FINE;
}

Alert alert_of_budget(uint64_t waiting, uint64_t refused)
{
    return refused > 0 ? ALERT_CRITICAL : waiting > 0 ? ALERT_WARNING : ALERT_FINE;
}
