/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "downsample.h"
#include "page.h"
#include "show-fleet.h"
#include "show-report.h"

enum {
    COMMAND_COLUMNS = 200,
    VERDICTS_MOST = 200,
    MARKS_MOST = 1000, /* events that are listed one by one; a hostile recording may have any number */
};

/* The output, and scratch memory. */
typedef struct PageData {
    const ReportView *view;
    Buffer *out;
    Downsampling grid;
    uint64_t *placed; /* values on the grid */
    uint64_t *key;    /* as long as the longest series */
    int error;
} PageData;

static void put(PageData *data, const char *bytes, size_t n)
{
    int r = data->error < 0 ? data->error : buffer_append(data->out, bytes, n);
    if (r < 0)
        data->error = r;
}

static void put_text(PageData *data, const char *text)
{
    put(data, text, strlen(text));
}

/* An end tag ends a script element even within quotes, so "<" is written as a JSON escape. It occurs only in
 * strings. */
static int json_bytes(const char *bytes, size_t n, void *context)
{
    PageData *data = context;
    for (size_t i = 0; i < n;) {
        const char *sign = memchr(bytes + i, '<', n - i);
        size_t plain = sign ? (size_t)(sign - bytes) - i : n - i;
        put(data, bytes + i, plain);
        if (sign)
            put_text(data, "\\u003c");
        i += plain + (sign ? 1 : 0);
    }
    return data->error;
}

static void put_json(PageData *data, json_t *value)
{
    if (!value || json_dump_callback(value, json_bytes, data,
                                     JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) < 0)
        data->error = -ENOMEM;
    json_decref(value);
}

static void put_number(PageData *data, int64_t number)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%lld", (long long)number);
    put(data, text, (size_t)n);
}

/* --- Columns of numbers -------------------------------------------------------------------------------- */

/*
 * Numbers as differences from the last known one; [n]: n unknown, [-n]: n more of the same. Most values of a
 * job do not change, and a day of them must fit.
 */
static void put_column(PageData *data, const int64_t *numbers, const bool *known, size_t n)
{
    int64_t before = 0;
    bool first = true;
    put_text(data, "[");
    for (size_t i = 0; i < n;) {
        size_t run = 1;
        bool same = known[i] && numbers[i] == before;
        while (i + run < n && known[i + run] == known[i] &&
               (!known[i] || (same && numbers[i + run] == before)))
            run++;
        put_text(data, first ? "" : ",");
        first = false;
        if (!known[i] || (same && run > 2)) {
            put_text(data, "[");
            put_number(data, known[i] ? -(int64_t)run : (int64_t)run);
            put_text(data, "]");
        } else {
            run = 1;
            put_number(data, numbers[i] - before);
            before = numbers[i];
        }
        i += run;
    }
    put_text(data, "]");
}

/* The values on the grid, in KiB or as they are. */
static void put_placed(PageData *data, Arena *scratch, bool bytes)
{
    size_t n = data->grid.n;
    int64_t *numbers = arena_alloc(scratch, MAX(n, (size_t)1) * sizeof *numbers);
    bool *known = arena_alloc(scratch, MAX(n, (size_t)1) * sizeof *known);
    if (!numbers || !known) {
        data->error = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t value = MIN(data->placed[i], (uint64_t)INT64_MAX);
        known[i] = data->placed[i] != U64_UNKNOWN;
        numbers[i] = (int64_t)(bytes ? value / 1024 + (value % 1024 >= 512) : value);
    }
    put_column(data, numbers, known, n);
}

static void put_times(PageData *data, Arena *scratch)
{
    size_t n = data->grid.n;
    int64_t *numbers = arena_alloc(scratch, MAX(n, (size_t)1) * sizeof *numbers);
    bool *known = arena_alloc(scratch, MAX(n, (size_t)1) * sizeof *known);
    if (!numbers || !known) {
        data->error = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        numbers[i] = (int64_t)llround(MIN(data->grid.seconds[i], 0x1p40) * 1000);
        known[i] = true;
    }
    put_column(data, numbers, known, n);
}

/* "name":[…], if any value is known. */
static void put_series(PageData *data, bool *first, const char *name, const Series *series,
                       const uint64_t *key, size_t metric, bool bytes)
{
    bool any = false;
    for (size_t i = 0; i < series->n && !any; i++)
        any = series->values[metric][i] != U64_UNKNOWN;
    if (!any)
        return;
    _cleanup_arena_ Arena scratch = {0};
    downsample_values(&data->grid, series->seconds, series->n, key ? key : series->values[metric],
                      series->values[metric], data->placed);
    put_text(data, *first ? "\"" : ",\"");
    put_text(data, name);
    put_text(data, "\":");
    put_placed(data, &scratch, bytes);
    *first = false;
}

const JobMetric page_job_metrics[PAGE_JOB_METRICS] = {
    JOB_MEMORY_TOTAL, JOB_MEMORY_AVAILABLE, JOB_GROUP_LIMIT, JOB_GROUP_USED,   JOB_GROUP_FILE,
    JOB_SHM_SIZE,     JOB_SHM_USED,         JOB_GUARD_BYTES, JOB_GUARD_BUDGET,
};

static void put_job(PageData *data)
{
    const Series *job = &data->view->history->series;
    bool first = true;
    put_text(data, "\"job\":{");
    for (size_t i = 0; i < PAGE_JOB_METRICS; i++)
        put_series(data, &first, job_metric_name(page_job_metrics[i]), job, NULL, page_job_metrics[i], true);
    for (size_t metric = JOB_KIND_BYTES; metric < JOB_METRICS; metric++)
        if (data->view->job_peaks[metric] != U64_UNKNOWN && data->view->job_peaks[metric] > 0)
            put_series(data, &first, job_metric_name((JobMetric)metric), job, NULL, metric, true);
    put_text(data, "},");
}

static void put_sums(PageData *data)
{
    const Series *sums = &data->view->sums;
    const uint64_t *rss = sums->values[SUM_RSS];
    bool first = true;
    put_text(data, "\"sums\":{");
    put_series(data, &first, "anon", sums, rss, SUM_ANON, true);
    put_series(data, &first, "file", sums, rss, SUM_FILE, true);
    put_series(data, &first, "shmem", sums, rss, SUM_SHMEM, true);
    put_series(data, &first, "pss", sums, NULL, SUM_PSS, true);
    put_series(data, &first, "fds", sums, NULL, SUM_FDS, false);
    put_series(data, &first, "processes", sums, NULL, SUM_PROCESSES, false);
    put_text(data, "},");
}

/* --- Processes ----------------------------------------------------------------------------------------- */

/* Processes that a verdict is about come first, then trainers, then the largest. */
static int track_rank(const PageData *data, const TrackView *shown)
{
    const Verdicts *verdicts = data->view->verdicts;
    for (size_t i = 0; i < verdicts->n; i++)
        if (verdicts->items[i].pid == shown->track->last.pid && verdict_grows(&verdicts->items[i]))
            return 2;
    return shown->track->last.role == ROLE_TRAINER;
}

typedef struct Ranked {
    const TrackView *shown;
    int rank;
} Ranked;

static int ranked_compare(const void *a, const void *b)
{
    const Ranked *x = a;
    const Ranked *y = b;
    if (x->rank != y->rank)
        return y->rank - x->rank;
    uint64_t x_peak = x->shown->rss_peak == U64_UNKNOWN ? 0 : x->shown->rss_peak;
    uint64_t y_peak = y->shown->rss_peak == U64_UNKNOWN ? 0 : y->shown->rss_peak;
    if (x_peak != y_peak)
        return x_peak < y_peak ? 1 : -1;
    return x->shown < y->shown ? -1 : 1;
}

static int met_compare(const void *a, const void *b)
{
    const TrackView *x = ((const Ranked *)a)->shown;
    const TrackView *y = ((const Ranked *)b)->shown;
    return x < y ? -1 : x > y;
}

json_t *page_command(const char *command)
{
    _cleanup_buffer_ Buffer safe = {0};
    _cleanup_buffer_ Buffer cut = {0};
    if (text_escape(text_of(command), &safe) < 0 ||
        text_shorten((Text){buffer_text(&safe), safe.size}, COMMAND_COLUMNS, "…", &cut) < 0)
        return NULL;
    return json_stringn(buffer_text(&cut), cut.size);
}

static void put_process(PageData *data, const TrackView *shown)
{
    static const struct {
        ProcessMetric metric;
        bool stacked;
        bool bytes;
    } columns[] = {
        {PROCESS_ANON, true, true},  {PROCESS_FILE, true, true}, {PROCESS_SHMEM, true, true},
        {PROCESS_PSS, false, true},  {PROCESS_USS, false, true}, {PROCESS_SHM, false, true},
        {PROCESS_FDS, false, false},
    };
    const ProcessTrack *track = shown->track;
    bool first = true;
    put_text(data, "{\"about\":");
    put_json(data,
             json_pack("{s:i, s:i, s:s, s:o, s:f, s:o, s:{s:o, s:o, s:o, s:o, s:o}}", "pid", track->last.pid,
                       "ppid", track->last.ppid, "role", role_name(track->last.role), "command",
                       page_command(track->last.command), "first", track->first_seconds, "ended",
                       isfinite(track->ended_seconds) ? json_real(track->ended_seconds) : json_null(),
                       "peaks", "rss", json_size(shown->rss_peak), "pss",
                       json_size(shown->peaks[PROCESS_PSS]), "uss", json_size(shown->peaks[PROCESS_USS]),
                       "shm", json_size(shown->peaks[PROCESS_SHM]), "fds",
                       json_size(shown->peaks[PROCESS_FDS])));
    put_text(data, ",\"series\":{");
    for (size_t i = 0; i < track->series.n; i++)
        data->key[i] = track_rss(track, i);
    for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
        put_series(data, &first, process_metric_name(columns[i].metric), &track->series,
                   columns[i].stacked ? data->key : NULL, columns[i].metric, columns[i].bytes);
    put_text(data, "}}");
}

static void put_processes(PageData *data, Arena *arena)
{
    size_t n = data->view->history->n_tracks;
    Ranked *ranked = arena_alloc(arena, MAX(n, (size_t)1) * sizeof *ranked);
    if (!ranked) {
        data->error = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < n; i++)
        ranked[i] = (Ranked){&data->view->tracks[i], track_rank(data, &data->view->tracks[i])};
    qsort(ranked, n, sizeof *ranked, ranked_compare);
    size_t shown = MIN(n, (size_t)PAGE_PROCESSES_MOST);
    qsort(ranked, shown, sizeof *ranked, met_compare);
    put_text(data, "\"processes\":[");
    for (size_t i = 0; i < shown; i++) {
        put_text(data, i > 0 ? "," : "");
        put_process(data, ranked[i].shown);
    }
    put_text(data, "],\"unshown\":");
    put_number(data, (int64_t)(n - shown));
    put_text(data, ",");
}

/* --- The rest ------------------------------------------------------------------------------------------ */

static void put_event(PageData *data, bool *first, const Event *event, size_t count)
{
    json_t *value = json_event(event);
    if (!value || json_object_set_new(value, "count", json_integer((json_int_t)count)) < 0)
        data->error = -ENOMEM;
    put_text(data, *first ? "" : ",");
    put_json(data, value);
    *first = false;
}

/* These are frequent: those between two points of the grid become one event with a count. */
static bool is_counted(EventKind kind)
{
    return kind == EVENT_BORN || kind == EVENT_ENDED || kind == EVENT_EPOCH;
}

static void put_events(PageData *data)
{
    const EventList *events = &data->view->events;
    size_t open[EVENT_KINDS] = {0}; /* the event that counts those of its kind */
    size_t counts[EVENT_KINDS] = {0};
    size_t marks = 0;
    size_t point = 0;
    bool first = true;
    put_text(data, "\"events\":[");
    for (size_t i = 0; i <= events->n; i++) {
        const Event *event = i < events->n ? &events->items[i] : NULL;
        size_t before = point;
        while (event && point + 1 < data->grid.n && data->grid.seconds[point + 1] <= event->seconds)
            point++;
        for (EventKind kind = 0; (!event || point != before) && kind < EVENT_KINDS; kind++) {
            if (counts[kind] > 0)
                put_event(data, &first, &events->items[open[kind]], counts[kind]);
            counts[kind] = 0;
        }
        if (!event)
            break;
        if (!is_counted(event->kind)) {
            if (marks++ < MARKS_MOST)
                put_event(data, &first, event, 1);
        } else if (counts[event->kind]++ == 0) {
            open[event->kind] = i;
        }
    }
    put_text(data, "],");
}

static void put_verdicts(PageData *data)
{
    const Verdicts *verdicts = data->view->verdicts;
    put_text(data, "\"verdicts\":[");
    for (size_t i = 0; i < MIN(verdicts->n, (size_t)VERDICTS_MOST); i++) {
        put_text(data, i > 0 ? "," : "");
        put_json(data, json_verdict(data->view, &verdicts->items[i]));
    }
    put_text(data, "],");
}

/* Null if the line that leaks was not looked for. */
static void put_sites(PageData *data)
{
    const SiteView *sites = &data->view->sites;
    put_text(data, "\"sites\":");
    if (!sites->sought) {
        put_text(data, "null,");
        return;
    }
    put_text(data, "{\"lines\":[");
    for (size_t i = 0; i < sites->n; i++) {
        put_text(data, i > 0 ? "," : "");
        put_json(data, json_prose(sites->items[i].words));
    }
    put_text(data, "],\"notes\":[");
    for (size_t i = 0; i < sites->n_notes; i++) {
        put_text(data, i > 0 ? "," : "");
        put_json(data, json_prose(sites->notes[i]));
    }
    put_text(data, "]},");
}

int page_fleet(const FleetView *fleet, const size_t *shown, size_t n_shown, Buffer *out)
{
    PageData data = {.out = out};
    put_text(&data, "{\"job\":");
    put_json(&data, fleet->job[0] == '\0' ? json_null() : json_raw(text_of(fleet->job)));
    put_text(&data, ",\"clock\":");
    put_json(&data, json_clock(fleet));
    put_text(&data, ",\"unshown\":");
    put_number(&data, (int64_t)(fleet->n_sources - n_shown));
    put_text(&data, ",\"nodes\":[");
    for (size_t i = 0; i < fleet->n_nodes; i++) {
        put_text(&data, i > 0 ? "," : "");
        put_json(&data, json_node(&fleet->nodes[i]));
    }
    put_text(&data, "],\"ranks\":[");
    for (size_t i = 0; i < fleet->n_ranks; i++) {
        const RankView *rank = &fleet->ranks[i];
        size_t place = 0;
        while (place < n_shown && shown[place] != rank->source)
            place++;
        json_t *value = json_rank(fleet, rank);
        if (!value ||
            json_object_set_new(value, "recording",
                                place < n_shown ? json_integer((json_int_t)place) : json_null()) < 0)
            data.error = -ENOMEM;
        put_text(&data, i > 0 ? "," : "");
        put_json(&data, value);
    }
    put_text(&data, "]}");
    return data.error;
}

int page_data(const ReportView *view, size_t points_most, Buffer *out)
{
    const Series *job = &view->history->series;
    _cleanup_arena_ Arena arena = {0};
    PageData data = {.view = view, .out = out};
    size_t longest = job->n;
    for (size_t i = 0; i < view->history->n_tracks; i++)
        longest = MAX(longest, view->history->tracks[i].series.n);
    data.placed = arena_alloc(&arena, MAX(job->n, (size_t)1) * sizeof *data.placed);
    data.key = arena_alloc(&arena, MAX(longest, (size_t)1) * sizeof *data.key);
    if (!data.placed || !data.key ||
        downsample_times(job->seconds, job->n, points_most, &arena, &data.grid) < 0)
        return -ENOMEM;
    put_text(&data, "{\"schema\":\"shmguard.page/1\",\"version\":\"" SHMGUARD_VERSION "\",\"recording\":");
    put_json(&data, json_recording(view));
    put_text(&data, ",");
    put_verdicts(&data);
    put_sites(&data);
    put_text(&data, "\"peaks\":");
    put_json(&data, json_report_peaks(view));
    put_text(&data, ",\"stretch\":");
    put_json(&data, json_real(data.grid.stretch_seconds));
    put_text(&data, ",\"times\":");
    put_times(&data, &arena);
    put_text(&data, ",");
    put_job(&data);
    put_sums(&data);
    put_events(&data);
    put_processes(&data, &arena);
    put_text(&data, "\"began\":");
    put_number(&data, (int64_t)llround(MIN(MAX(view->history->began, 0.0), 0x1p40) * 1000));
    put_text(&data, "}");
    return data.error;
}
