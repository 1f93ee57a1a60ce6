/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "epochs.h"
#include "report-view.h"
#include "units.h"
#include "verdicts-text.h"

static uint64_t sum_known(uint64_t a, uint64_t b)
{
    return a == U64_UNKNOWN || b == U64_UNKNOWN || a + b < a ? U64_UNKNOWN : a + b;
}

uint64_t track_rss(const ProcessTrack *track, size_t i)
{
    uint64_t *const *values = track->series.values;
    return sum_known(sum_known(values[PROCESS_ANON][i], values[PROCESS_FILE][i]), values[PROCESS_SHMEM][i]);
}

static void peak_find(const Series *series, size_t metric, uint64_t *ret)
{
    *ret = U64_UNKNOWN;
    for (size_t i = 0; i < series->n; i++)
        u64_raise(ret, series->values[metric][i]);
}

static void track_peaks(const ProcessTrack *track, TrackView *ret)
{
    *ret = (TrackView){.track = track, .rss_peak = U64_UNKNOWN};
    for (size_t metric = 0; metric < PROCESS_METRICS; metric++)
        peak_find(&track->series, metric, &ret->peaks[metric]);
    for (size_t i = 0; i < track->series.n; i++)
        u64_raise(&ret->rss_peak, track_rss(track, i));
}

/* --- Sums over processes ------------------------------------------------------------------------------- */

static int sums_alloc(size_t n, Arena *arena, Series *ret)
{
    *ret = (Series){.n = n, .capacity = n, .n_metrics = SUM_METRICS};
    ret->values = arena_alloc(arena, SUM_METRICS * sizeof *ret->values);
    if (!ret->values)
        return -ENOMEM;
    for (size_t metric = 0; metric < SUM_METRICS; metric++) {
        ret->values[metric] = arena_alloc(arena, MAX(n, (size_t)1) * sizeof **ret->values);
        if (!ret->values[metric])
            return -ENOMEM;
        for (size_t i = 0; metric != SUM_PROCESSES && i < n; i++)
            ret->values[metric][i] = U64_UNKNOWN;
    }
    return 0;
}

static void value_add(uint64_t *sum, uint64_t value)
{
    if (value != U64_UNKNOWN)
        *sum = *sum == U64_UNKNOWN ? value : *sum + value;
}

/* The first sample at that time or later. */
static size_t time_find(const Series *series, double seconds)
{
    return LOWER_BOUND(i, series->n, series->seconds[i] < seconds);
}

/* The process counts at every time of the job from its first sample to its last, with its last known values.
 */
static void track_add(const ProcessTrack *track, const Series *job, Series *sums)
{
    static const struct {
        SumMetric sum;
        ProcessMetric metric;
    } parts[] = {
        {SUM_ANON, PROCESS_ANON}, {SUM_FILE, PROCESS_FILE}, {SUM_SHMEM, PROCESS_SHMEM},
        {SUM_PSS, PROCESS_PSS},   {SUM_FDS, PROCESS_FDS},
    };
    const Series *own = &track->series;
    uint64_t known[PROCESS_METRICS];
    memset(known, 0xFF, sizeof known); /* U64_UNKNOWN */
    if (own->n == 0)
        return;
    size_t next = 0;
    size_t i = time_find(
        job, own->seconds[0]); /* start there: thousands of processes may live for a minute each, of a day */
    for (; i < job->n && job->seconds[i] <= own->seconds[own->n - 1]; i++) {
        for (; next < own->n && own->seconds[next] <= job->seconds[i]; next++)
            for (size_t part = 0; part < ARRAY_SIZE(parts); part++)
                if (own->values[parts[part].metric][next] != U64_UNKNOWN)
                    known[parts[part].metric] = own->values[parts[part].metric][next];
        for (size_t part = 0; part < ARRAY_SIZE(parts); part++)
            value_add(&sums->values[parts[part].sum][i], known[parts[part].metric]);
        sums->values[SUM_PROCESSES][i]++;
    }
}

static void rss_sum(Series *sums)
{
    for (size_t i = 0; i < sums->n; i++)
        sums->values[SUM_RSS][i] = sum_known(sum_known(sums->values[SUM_ANON][i], sums->values[SUM_FILE][i]),
                                             sums->values[SUM_SHMEM][i]);
}

/* How much a counter that counts since boot has increased. */
static uint64_t counter_gain(const Series *series, size_t metric)
{
    uint64_t first = U64_UNKNOWN;
    uint64_t last = U64_UNKNOWN;
    for (size_t i = 0; i < series->n; i++) {
        uint64_t value = series->values[metric][i];
        if (value == U64_UNKNOWN)
            continue;
        if (first == U64_UNKNOWN)
            first = value;
        last = value;
    }
    return first == U64_UNKNOWN ? U64_UNKNOWN : last > first ? last - first : 0;
}

int report_view_make(const char *path, const History *history, const Verdicts *verdicts, Arena *arena,
                     ReportView *ret)
{
    const Series *job = &history->series;
    ReportView view = {.path = path, .history = history, .verdicts = verdicts, .memory_least = U64_UNKNOWN};
    TrackView *tracks = arena_alloc(arena, MAX(history->n_tracks, (size_t)1) * sizeof *tracks);
    if (!tracks || sums_alloc(job->n, arena, &view.sums) < 0)
        return -ENOMEM;
    int r = epochs_tell(history, arena, &view.events);
    if (r < 0)
        return r;
    r = site_view_make((SiteWindows){history->windows, history->n_windows}, verdicts, arena, &view.sites);
    if (r < 0)
        return r;
    view.sums.seconds = job->seconds;
    view.seconds = job->n > 0 ? job->seconds[job->n - 1] - job->seconds[0] : 0;
    for (size_t i = 0; i < history->n_tracks; i++) {
        track_peaks(&history->tracks[i], &tracks[i]);
        track_add(&history->tracks[i], job, &view.sums);
    }
    rss_sum(&view.sums);
    for (size_t metric = 0; metric < SUM_METRICS; metric++)
        peak_find(&view.sums, metric, &view.sum_peaks[metric]);
    for (size_t metric = 0; metric < JOB_METRICS; metric++)
        peak_find(job, metric, &view.job_peaks[metric]);
    for (size_t i = 0; i < job->n; i++)
        view.memory_least = MIN(view.memory_least, job->values[JOB_MEMORY_AVAILABLE][i]);
    view.oom_kills = counter_gain(job, JOB_OOM_KILLS);
    view.tracks = tracks;
    *ret = view;
    return 0;
}

bool verdict_grows(const Verdict *verdict)
{
    return verdict_severity(verdict->id) != SEVERITY_GOOD && verdict->id != VERDICT_TOO_SHORT &&
           isfinite(verdict->rate) && verdict->rate != 0;
}

int verdict_rate_words(const Verdict *verdict, Buffer *out)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"min", 60}, {"h", 3600}};
    bool counted = strcmp(verdict->metric, "descriptors") == 0;
    double worth = counted ? 1 : 0x1p20; /* smaller rates read better in a longer unit of time */
    size_t unit = 0;
    while (unit + 1 < ARRAY_SIZE(units) && fabs(verdict->rate) * units[unit].seconds < worth)
        unit++;
    double rate = fabs(verdict->rate) * units[unit].seconds;
    const char *sign = verdict->rate < 0 ? "-" : "";
    if (counted)
        return buffer_printf(out, VERDICT_RATE_DESCRIPTORS, sign, rate, units[unit].name);
    return buffer_printf(out, "%s%s/%s", sign, SIZE_TEXT((uint64_t)MIN(rate, 0x1p62)), units[unit].name);
}
