/* SPDX-License-Identifier: Apache-2.0 */
#include "units.h"
#include "watch-internal.h"
#include "watch-text.h"

enum {
    TOGETHER_SECONDS = 2, /* events that are told as one */
    RECENT_SECONDS = 60,
};

typedef struct TrackColumn {
    const Series *series;
    WatchColumn column;
} TrackColumn;

static uint64_t column_value(const void *context, size_t place)
{
    const TrackColumn *of = context;
    return track_value(of->series, of->column, place);
}

CurrentTrend track_trend(const History *history, const ProcessTrack *track, WatchColumn column, double at)
{
    /* Less than a MiB, or than one, is not worth an arrow. */
    double least = column_is_bytes(column) ? 0x1p20 : 1.0;
    return trend_judge(&track->series, at, trend_window(history), least, column_value,
                       &(TrackColumn){&track->series, column});
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
    /* The full height is at least a twentieth of the figure, so that noise does not look like mountains. */
    double span = MAX(MAX((double)(most - MIN(least, most)), (double)most / 20),
                      column_is_bytes(column) ? 0x1p20 : 8.0);
    for (unsigned i = 0; i < columns; i++) {
        (void)buffer_append_text(
            out, values[i] == U64_UNKNOWN ? " " : terminal_spark(utf8, (double)(values[i] - least) / span));
    }
}

/* --- Forecasts and events ----------------------------------------------------------------------------- */

bool forecast_words(const History *history, double at, Buffer *out)
{
    Supply supply = SUPPLIES;
    double seconds = 0;
    if (!forecast_make(history, at, &supply, &seconds))
        return false;
    switch (supply) {
    case SUPPLY_SHM:
        return buffer_printf(out, WATCH_TEXT_FORECAST_SHM, DURATION_TEXT(seconds)) == 0;
    case SUPPLY_GROUP:
        return buffer_printf(out, WATCH_TEXT_FORECAST_GROUP, DURATION_TEXT(seconds)) == 0;
    case SUPPLY_MEMORY:
        return buffer_printf(out, WATCH_TEXT_FORECAST_MEMORY, DURATION_TEXT(seconds)) == 0;
    case SUPPLIES:
        break;
    }
    return false;
}

/* The lower, the more serious. */
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
    if (n == 1 && event->pid <= 0) {
        (void)buffer_append_text(out, WATCH_TEXT_SUBJECT_JOB);
        return;
    }
    switch (event->role) {
    case ROLE_TRAINER:
        (void)(n > 1 ? buffer_printf(out, WATCH_TEXT_SUBJECT_TRAINERS, n)
                     : buffer_printf(out, WATCH_TEXT_SUBJECT_TRAINER, event->pid));
        break;
    case ROLE_WORKER:
        (void)(n > 1 ? buffer_printf(out, WATCH_TEXT_SUBJECT_WORKERS, n)
                     : buffer_printf(out, WATCH_TEXT_SUBJECT_WORKER, event->pid));
        break;
    case ROLE_MANAGER:
        (void)(n > 1 ? buffer_printf(out, WATCH_TEXT_SUBJECT_MANAGERS, n)
                     : buffer_printf(out, WATCH_TEXT_SUBJECT_MANAGER, event->pid));
        break;
    case ROLE_OTHER:
        (void)(n > 1 ? buffer_printf(out, WATCH_TEXT_SUBJECT_PROCESSES, n)
                     : buffer_printf(out, WATCH_TEXT_SUBJECT_PROCESS, event->pid));
        break;
    }
}

static void append_event(const Event *event, size_t n, Buffer *out)
{
    _cleanup_buffer_ Buffer subject = {0};
    append_subject(event, n, &subject);
    switch (event->kind) {
    case EVENT_BORN:
        (void)buffer_printf(out, WATCH_TEXT_EVENT_BORN, buffer_text(&subject));
        break;
    case EVENT_ENDED:
        (void)buffer_printf(out, WATCH_TEXT_EVENT_ENDED, buffer_text(&subject));
        break;
    case EVENT_OOM_KILL:
        if (event->pid > 0)
            (void)buffer_printf(out, WATCH_TEXT_EVENT_KILL_OF, buffer_text(&subject));
        else
            (void)buffer_append_text(out, WATCH_TEXT_EVENT_KILL);
        break;
    case EVENT_ATTEMPT:
        (void)buffer_append_text(out, WATCH_TEXT_EVENT_ATTEMPT);
        break;
    case EVENT_EPOCH:
        (void)buffer_append_text(out, n > 1 ? WATCH_TEXT_EVENT_EPOCHS : WATCH_TEXT_EVENT_EPOCH);
        break;
    case EVENT_MARK:
    case EVENT_KINDS:
        (void)buffer_append_text(out, WATCH_TEXT_EVENT_MARK);
        break;
    }
}

static void events_words(const Event *event, size_t n, Buffer *out)
{
    _cleanup_buffer_ Buffer what = {0};
    _cleanup_buffer_ Buffer detail = {0};
    append_event(event, n, &what);
    if (n == 1)
        (void)text_escape(text_of(event->text), &detail);
    if (detail.size == 0)
        (void)buffer_append_text(out, buffer_text(&what));
    else if (event->kind == EVENT_EPOCH) /* its text says that it is one */
        (void)buffer_append_text(out, buffer_text(&detail));
    else
        (void)buffer_printf(out, WATCH_TEXT_EVENT_DETAIL, buffer_text(&what), buffer_text(&detail));
}

void event_words(const Event *event, Buffer *out)
{
    events_words(event, 1, out);
}

bool happened_words(const EventList *events, double at, Ink *ret_ink, Buffer *out)
{
    _cleanup_buffer_ Buffer words = {0};
    size_t n = events->n;
    while (n > 0 && events->items[n - 1].seconds > at)
        n--;
    if (n == 0)
        return false;
    /* The most serious event of the last minute, else the newest. */
    size_t best = n - 1;
    for (size_t i = n; i-- > 0 && at - events->items[i].seconds <= RECENT_SECONDS;)
        if (event_rank(&events->items[i]) < event_rank(&events->items[best]))
            best = i;
    const Event *event = &events->items[best];
    size_t alike = 0;
    for (size_t i = best + 1; i-- > 0 && event->seconds - events->items[i].seconds <= TOGETHER_SECONDS;)
        alike += events->items[i].kind == event->kind && events->items[i].role == event->role;
    *ret_ink = event_ink(event);
    events_words(event, alike, &words);
    (void)buffer_printf(out, WATCH_TEXT_AGO, DURATION_TEXT(at - event->seconds), buffer_text(&words));
    return true;
}
