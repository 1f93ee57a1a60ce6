/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "page.h"
#include "show-report.h"

/* A process is described again in its first samples: its role and its command may be known late. */
enum { DESCRIBED_SAMPLES = 8, VERDICTS_MOST = 200 };

static json_t *json_kib(uint64_t bytes)
{
    if (bytes == U64_UNKNOWN)
        return json_null();
    uint64_t kib = bytes / 1024 + (bytes % 1024 >= 512);
    return json_integer((json_int_t)kib);
}

static json_t *json_count(uint64_t n)
{
    return n == U64_UNKNOWN ? json_null() : json_integer((json_int_t)n);
}

/* True: it was added. The value is stolen. */
static bool add(json_t *object, const char *name, json_t *value)
{
    return value && json_object_set_new(object, name, value) == 0;
}

/* --- The job -------------------------------------------------------------------------------------------- */

static bool add_job_metric(json_t *job, const Moment *moment, JobMetric metric)
{
    uint64_t value = moment->values[metric];
    return value == U64_UNKNOWN || add(job, job_metric_name(metric), json_kib(value));
}

static json_t *json_job(const Moment *moment)
{
    json_t *job = json_object();
    bool good = job != NULL;
    for (size_t i = 0; good && i < PAGE_JOB_METRICS; i++)
        good = add_job_metric(job, moment, page_job_metrics[i]);
    for (JobMetric metric = JOB_KIND_BYTES; good && metric < JOB_METRICS; metric++)
        good = moment->values[metric] == 0 || add_job_metric(job, moment, metric);
    return good ? job : (json_decref(job), NULL);
}

static uint64_t last_known(const Series *series, size_t metric)
{
    for (size_t i = series->n; i-- > 0;)
        if (series->values[metric][i] != U64_UNKNOWN)
            return series->values[metric][i];
    return U64_UNKNOWN;
}

/* As report_view_make: what was not sampled now counts with its last known value. */
static json_t *json_sums(const History *history)
{
    static const ProcessMetric metrics[] = {PROCESS_ANON, PROCESS_FILE, PROCESS_SHMEM, PROCESS_PSS,
                                            PROCESS_FDS};
    uint64_t sums[ARRAY_SIZE(metrics)];
    for (size_t metric = 0; metric < ARRAY_SIZE(metrics); metric++) {
        sums[metric] = U64_UNKNOWN;
        for (size_t i = 0; i < history->n_live; i++) {
            uint64_t value = last_known(&history->tracks[history->live[i]].series, metrics[metric]);
            if (value != U64_UNKNOWN)
                sums[metric] = sums[metric] == U64_UNKNOWN ? value : sums[metric] + value;
        }
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I}", "anon", json_kib(sums[0]), "file", json_kib(sums[1]),
                     "shmem", json_kib(sums[2]), "pss", json_kib(sums[3]), "fds", json_count(sums[4]),
                     "processes", (json_int_t)history->n_live);
}

/* --- Processes ------------------------------------------------------------------------------------------ */

static json_t *json_values(const ProcessTrack *track)
{
    static const ProcessMetric metrics[] = {PROCESS_ANON, PROCESS_FILE, PROCESS_SHMEM, PROCESS_PSS,
                                            PROCESS_USS,  PROCESS_SHM,  PROCESS_FDS};
    const Series *series = &track->series;
    json_t *values = json_object();
    bool good = values != NULL;
    for (size_t i = 0; good && series->n > 0 && i < ARRAY_SIZE(metrics); i++) {
        uint64_t value = series->values[metrics[i]][series->n - 1];
        if (value != U64_UNKNOWN)
            good = add(values, process_metric_name(metrics[i]),
                       metrics[i] == PROCESS_FDS ? json_count(value) : json_kib(value));
    }
    return good ? values : (json_decref(values), NULL);
}

static json_t *json_live_process(const ProcessTrack *track)
{
    const ProcessMoment *last = &track->last;
    json_t *process = json_pack("{s:i, s:f, s:s, s:o}", "pid", last->pid, "first", track->first_seconds,
                                "role", role_name(last->role), "series", json_values(track));
    bool good = process != NULL;
    if (good && track->series.n <= DESCRIBED_SAMPLES)
        good = add(process, "ppid", json_integer(last->ppid)) &&
               add(process, "command", page_command(last->command));
    return good ? process : (json_decref(process), NULL);
}

static json_t *json_live_processes(const History *history)
{
    json_t *list = json_array();
    bool good = list != NULL;
    for (size_t i = 0; good && i < history->n_live; i++) {
        json_t *process = json_live_process(&history->tracks[history->live[i]]);
        good = process && json_array_append_new(list, process) == 0;
    }
    return good ? list : (json_decref(list), NULL);
}

/* --- What happened -------------------------------------------------------------------------------------- */

static json_t *json_live_events(const Moment *moment)
{
    json_t *list = json_array();
    bool good = list != NULL;
    for (size_t i = 0; good && i < moment->n_events; i++) {
        json_t *event = json_event(&moment->events[i]);
        good = event && add(event, "count", json_integer(1)) && json_array_append_new(list, event) == 0;
    }
    return good ? list : (json_decref(list), NULL);
}

static json_t *json_live_verdicts(const ReportView *view)
{
    json_t *list = json_array();
    bool good = list != NULL;
    for (size_t i = 0; good && i < MIN(view->verdicts->n, (size_t)VERDICTS_MOST); i++) {
        json_t *verdict = json_verdict(view, &view->verdicts->items[i]);
        good = verdict && json_array_append_new(list, verdict) == 0;
    }
    return good ? list : (json_decref(list), NULL);
}

static int bytes_take(const char *bytes, size_t n, void *context)
{
    return buffer_append(context, bytes, n);
}

int page_live_sample(const History *history, const Moment *moment, const ReportView *judged, Buffer *out)
{
    json_t *sample = json_pack("{s:f, s:o, s:o, s:o, s:o}", "seconds", moment->seconds, "job",
                               json_job(moment), "sums", json_sums(history), "processes",
                               json_live_processes(history), "events", json_live_events(moment));
    bool good = sample && (!judged || add(sample, "verdicts", json_live_verdicts(judged)));
    int r = good ? json_dump_callback(sample, bytes_take, out, JSON_COMPACT | JSON_REAL_PRECISION(9)) : -1;
    json_decref(sample);
    return r < 0 ? -ENOMEM : 0;
}
