/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which way figures go at the moment, what is used up first if that continues, and how full is too full. For
 * a person who watches; what a whole recording means is judged by verdicts.h. Pure.
 */
#pragma once

#include "history.h"

/* The last index whose time is not later than `at`. False: `at` is before the first. */
bool series_place(const Series *series, double at, size_t *ret);

/* --- Trends --------------------------------------------------------------------------------------------- */

/* How far back trends and forecasts look, in seconds. */
double trend_window(const History *history);

typedef enum Direction {
    DIRECTION_UNKNOWN,
    DIRECTION_FLAT,
    DIRECTION_UP,
    DIRECTION_DOWN,
} Direction;

typedef struct CurrentTrend {
    Direction direction;
    double rate; /* per second; 0 unless up or down */
} CurrentTrend;

/* A figure at an index of the series; U64_UNKNOWN. */
typedef uint64_t (*TrendValue)(const void *context, size_t place);

/* Of a figure whose changes below `least` within the window do not matter, nor those below a hundredth of
 * it. */
CurrentTrend trend_judge(const Series *series, double at, double window, double least, TrendValue value,
                         const void *context);

/* --- Forecasts ------------------------------------------------------------------------------------------ */

typedef enum Supply {
    SUPPLY_SHM,
    SUPPLY_GROUP, /* memory of the control group */
    SUPPLY_MEMORY,
    SUPPLIES,
} Supply;

/* In how many seconds it is used up, if the last minutes continue. INFINITY: not within an hour; NAN: too
 * little is known, or it has no limit. */
double forecast_of(const History *history, double at, Supply supply);

/* What is used up first, if the last minutes continue, and in how many seconds. False: nothing within an
 * hour.
 */
bool forecast_make(const History *history, double at, Supply *ret, double *ret_seconds);

/* --- Alerts --------------------------------------------------------------------------------------------- */

typedef enum Alert {
    ALERT_UNKNOWN, /* there is no limit */
    ALERT_FINE,
    ALERT_WARNING,
    ALERT_CRITICAL,
    ALERTS,
} Alert;

/* share: 0…1 of the limit; negative: there is no limit. */
Alert alert_of_share(double share);

/* A budget is there to be used up: a full one is fine as long as no worker waits for room in it, and the
 * training is harmed when a worker is refused. */
Alert alert_of_budget(uint64_t waiting, uint64_t refused);
