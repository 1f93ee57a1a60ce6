/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "units.h"
#include "verdicts.h"
#include "watch-internal.h"

enum {
    WINDOW_LOOKS = 120, /* two minutes at a look a second */
    POINTS_LEAST = 8,
    POINTS_MOST = 128,
    SOON_SECONDS = 3600,
    TOGETHER_SECONDS = 2, /* events that are told as one */
    RECENT_SECONDS = 60,
};

double trend_window(const History *history)
{
    return WINDOW_LOOKS * history->interval;
}

/* --- Slopes ------------------------------------------------------------------------------------------- */

typedef struct Points {
    double seconds[POINTS_MOST];
    uint64_t values[POINTS_MOST];
    size_t n;
} Points;

typedef uint64_t (*ValueAt)(const void *context, size_t place);

/* What is known in the window, evenly thinned; the newest is always among it. */
static Points points_take(const Series *series, double at, double window, ValueAt value, const void *context)
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

/* False: there is too little to tell. */
static bool points_slope(const Points *points, double window, double *ret)
{
    if (points->n < POINTS_LEAST || points->seconds[points->n - 1] - points->seconds[0] < window / 12)
        return false;
    *ret = trend_slope(points->seconds, points->values, points->n);
    return true;
}

typedef struct TrackColumn {
    const Series *series;
    WatchColumn column;
} TrackColumn;

static uint64_t column_value(const void *context, size_t place)
{
    const TrackColumn *of = context;
    return track_value(of->series, of->column, place);
}

WatchTrend track_trend(const History *history, const ProcessTrack *track, WatchColumn column, double at)
{
    double window = trend_window(history);
    TrackColumn of = {&track->series, column};
    Points points = points_take(&track->series, at, window, column_value, &of);
    double slope = 0;
    if (!points_slope(&points, window, &slope))
        return (WatchTrend){DIRECTION_UNKNOWN, 0};
    /* What nobody would act on is flat: less than a hundredth of the figure in the time looked at, or less
     * than a MiB (of numbers: one). */
    double least = MAX((double)points.values[points.n - 1] / 100, column_is_bytes(column) ? 0x1p20 : 1.0);
    if (fabs(slope) * window < least)
        return (WatchTrend){DIRECTION_FLAT, 0};
    return (WatchTrend){slope > 0 ? DIRECTION_UP : DIRECTION_DOWN, slope};
}

/* --- Sparklines --------------------------------------------------------------------------------------- */

enum { SPARK_MOST = 64 };

void track_sparkline(const History *history, const ProcessTrack *track, WatchColumn column, double at,
                     unsigned columns, bool utf8, Buffer *out)
{
    double window = trend_window(history);
    const Series *series = &track->series;
    uint64_t values[SPARK_MOST];
    columns = MIN(columns, (unsigned)SPARK_MOST);
    uint64_t least = U64_UNKNOWN;
    uint64_t most = 0;
    size_t end = 0;
    bool there = series_place(series, at, &end);
    size_t place = 0;
    uint64_t last = U64_UNKNOWN;
    if (there && !series_place(series, at - window, &place))
        place = 0;
    for (unsigned i = 0; i < columns; i++) {
        double until = at - window * (columns - 1 - i) / columns;
        for (; there && place <= end && series->seconds[place] <= until; place++) {
            uint64_t value = track_value(series, column, place);
            if (value != U64_UNKNOWN)
                last = value;
        }
        values[i] = last;
        if (last != U64_UNKNOWN) {
            least = MIN(least, last);
            most = MAX(most, last);
        }
    }
    /* Noise is not blown up to mountains: the full height is at least a twentieth of the figure. */
    double span = MAX(MAX((double)(most - MIN(least, most)), (double)most / 20),
                      column_is_bytes(column) ? 0x1p20 : 8.0);
    for (unsigned i = 0; i < columns; i++) {
        (void)buffer_append_text(
            out, values[i] == U64_UNKNOWN ? " " : terminal_spark(utf8, (double)(values[i] - least) / span));
    }
}

/* --- Forecasts ---------------------------------------------------------------------------------------- */

typedef struct Supply {
    const char *words; /* "/dev/shm full" */
    JobMetric used;    /* that rises towards `limit`, less `droppable` */
    JobMetric limit;
    JobMetric droppable; /* JOB_METRICS: none */
    const Series *series;
} Supply;

static uint64_t supply_left(const void *context, size_t place)
{
    const Supply *supply = context;
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
    const Supply *supply = context;
    return supply->series->values[supply->used][place];
}

/* Seconds until it is used up; INFINITY. */
static double supply_lasts(const Supply *supply, double at, double window)
{
    ValueAt value = supply->limit == supply->used ? memory_left : supply_left;
    Points points = points_take(supply->series, at, window, value, supply);
    double slope = 0;
    if (!points_slope(&points, window, &slope) || slope >= 0)
        return INFINITY;
    return (double)points.values[points.n - 1] / -slope;
}

bool forecast_words(const History *history, double at, Buffer *out)
{
    const Series *series = &history->series;
    const Supply supplies[] = {
        {"/dev/shm full", JOB_SHM_USED, JOB_SHM_SIZE, JOB_METRICS, series},
        {"cgroup full", JOB_GROUP_USED, JOB_GROUP_LIMIT, JOB_GROUP_FILE, series},
        {"RAM gone", JOB_MEMORY_AVAILABLE, JOB_MEMORY_AVAILABLE, JOB_METRICS, series},
    };
    const Supply *first = NULL;
    double soonest = SOON_SECONDS;
    for (size_t i = 0; i < ARRAY_SIZE(supplies); i++) {
        double seconds = supply_lasts(&supplies[i], at, trend_window(history));
        if (seconds < soonest) {
            soonest = seconds;
            first = &supplies[i];
        }
    }
    if (!first)
        return false;
    (void)buffer_printf(out, "%s in about %s (estimate)", first->words, DURATION_TEXT(soonest));
    return true;
}

/* --- Events ------------------------------------------------------------------------------------------- */

/* The lower the graver. */
static int event_rank(const Event *event)
{
    switch (event->kind) {
    case EVENT_OOM_KILL:
        return 0;
    case EVENT_ENDED:
        return 1;
    case EVENT_ATTEMPT:
    case EVENT_EPOCH:
    case EVENT_MARK:
        return 2;
    case EVENT_BORN:
    case EVENT_KINDS:
        break;
    }
    return 3;
}

Ink event_ink(const Event *event)
{
    return event->kind == EVENT_OOM_KILL                             ? INK_BAD
           : event->kind == EVENT_ENDED && event->role != ROLE_OTHER ? INK_WARNING
                                                                     : INK_PLAIN;
}

/* "8 workers", "worker 4711", "job" */
static void append_subject(const Event *event, size_t n, Buffer *out)
{
    const char *what = event->role == ROLE_OTHER ? "process" : role_name(event->role);
    if (n > 1)
        (void)buffer_printf(out, "%zu %s%s", n, what, event->role == ROLE_OTHER ? "es" : "s");
    else if (event->pid > 0)
        (void)buffer_printf(out, "%s %d", what, event->pid);
    else
        (void)buffer_append_text(out, "job");
}

static void events_words(const Event *event, size_t n, Buffer *out)
{
    switch (event->kind) {
    case EVENT_BORN:
        append_subject(event, n, out);
        (void)buffer_append_text(out, " started");
        break;
    case EVENT_ENDED:
        append_subject(event, n, out);
        (void)buffer_append_text(out, " ended");
        break;
    case EVENT_OOM_KILL:
        (void)buffer_append_text(out, "OOM kill");
        if (event->pid > 0) {
            (void)buffer_append_text(out, " of ");
            append_subject(event, n, out);
        }
        break;
    case EVENT_ATTEMPT:
        (void)buffer_append_text(out, "attempt");
        break;
    case EVENT_EPOCH:
        if (event->text[0] == '\0' || n > 1)
            (void)buffer_append_text(out, n > 1 ? "epochs" : "epoch");
        else
            (void)text_escape(text_of(event->text), out); /* it has the word */
        return;
    case EVENT_MARK:
    case EVENT_KINDS:
        (void)buffer_append_text(out, "mark");
        break;
    }
    if (event->text[0] != '\0' && n == 1) {
        (void)buffer_append_text(out, ": ");
        (void)text_escape(text_of(event->text), out);
    }
}

void event_words(const Event *event, Buffer *out)
{
    events_words(event, 1, out);
}

bool happened_words(const EventList *events, double at, Ink *ret_ink, Buffer *out)
{
    size_t n = events->n;
    while (n > 0 && events->items[n - 1].seconds > at)
        n--;
    if (n == 0)
        return false;
    /* The gravest of the last minute, else the newest. */
    size_t best = n - 1;
    for (size_t i = n; i-- > 0 && at - events->items[i].seconds <= RECENT_SECONDS;)
        if (event_rank(&events->items[i]) < event_rank(&events->items[best]))
            best = i;
    const Event *event = &events->items[best];
    size_t alike = 0;
    for (size_t i = best + 1; i-- > 0 && event->seconds - events->items[i].seconds <= TOGETHER_SECONDS;)
        alike += events->items[i].kind == event->kind && events->items[i].role == event->role;
    *ret_ink = event_ink(event);
    (void)buffer_printf(out, "%s ago: ", DURATION_TEXT(at - event->seconds));
    events_words(event, alike, out);
    return true;
}
