/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <time.h>

#include "show-explain.h"
#include "show-fixes.h"
#include "show-fleet.h"
#include "show-report.h"
#include "show-sites.h"

/* ISO 8601, UTC; null for times that no calendar has. */
static json_t *json_time(double seconds)
{
    char text[32];
    struct tm tm;
    time_t whole = (time_t)seconds;
    if (!(seconds > 0 && seconds < 0x1p40) || !gmtime_r(&whole, &tm) ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        return json_null();
    return json_string(text);
}

static json_t *json_pid(int pid)
{
    return pid > 0 ? json_integer(pid) : json_null();
}

/* JSON has no infinity and no "not a number". */
static json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_verdict(const ReportView *view, const Verdict *verdict)
{
    _cleanup_buffer_ Buffer rate = {0};
    bool of_job = verdict->pid <= 0;
    double confidence = isfinite(verdict->confidence) ? verdict->confidence : 0;
    if (isfinite(verdict->rate) && verdict_rate_words(verdict, &rate) < 0)
        return NULL;
    return json_pack(
        "{s:s, s:s, s:s, s:b, s:{s:o, s:s}, s:o, s:o, s:s, s:f, s:s, s:o, s:o, s:o, s:o, s:o}", "id",
        verdict_name(verdict->id), "severity", severity_name(verdict_severity(verdict->id)), "title",
        verdict_title(verdict->id), "grows", (int)verdict_grows(verdict), "subject", "pid",
        json_pid(of_job ? view->history->pid : verdict->pid), "role",
        of_job ? "job" : role_name(verdict->role), "metric", json_prose(verdict->metric), "rate",
        json_number(verdict->rate), "rate_words", buffer_text(&rate), "confidence", confidence,
        "confidence_words", confidence_words(confidence), "evidence", json_prose(verdict->evidence),
        "exhausts_in", json_number(verdict->exhausts_in), "would_exhaust_in",
        json_number(verdict->would_exhaust_in > 0 ? verdict->would_exhaust_in : INFINITY), "meaning",
        json_prose(verdict_meaning(verdict->id)), "fixes", json_fixes(&verdict->fixes));
}

json_t *json_recording(const ReportView *view)
{
    const History *history = view->history;
    return json_pack("{s:o, s:o, s:o, s:o, s:f, s:o, s:I, s:I}", "file", json_raw(text_of(view->path)),
                     "command", json_raw(text_of(history->command)), "pid", json_pid(history->pid), "began",
                     json_time(history->began), "seconds", view->seconds, "interval",
                     json_number(history->interval), "samples", (json_int_t)history->series.n, "processes",
                     (json_int_t)history->n_tracks);
}

json_t *json_event(const Event *event)
{
    return json_pack("{s:f, s:s, s:o, s:s, s:o}", "seconds", event->seconds, "kind",
                     event_kind_name(event->kind), "pid", json_pid(event->pid), "role",
                     event->pid > 0 ? role_name(event->role) : "job", "text", json_raw(text_of(event->text)));
}

/* PSS is summed from samples of different times, so it stands in an object of its own, `estimated`, where it
 * cannot be mistaken for a measured figure. */
json_t *json_report_peaks(const ReportView *view)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:o}}", "shm", json_size(view->job_peaks[JOB_SHM_USED]),
        "rss", json_size(view->sum_peaks[SUM_RSS]), "fds", json_size(view->sum_peaks[SUM_FDS]), "processes",
        json_size(view->sum_peaks[SUM_PROCESSES]), "cgroup_used", json_size(view->job_peaks[JOB_GROUP_USED]),
        "memory_available_least", json_size(view->memory_least), "oom_kills", json_size(view->oom_kills),
        "estimated", "pss", json_size(view->sum_peaks[SUM_PSS]));
}

static json_t *json_track(const TrackView *shown)
{
    const ProcessTrack *track = shown->track;
    const ProcessMoment *process = &track->last;
    json_t *peaks = json_pack("{s:o}", "rss", json_size(shown->rss_peak));
    for (ProcessMetric metric = 0; peaks && metric < PROCESS_METRICS; metric++)
        if (json_object_set_new(peaks, process_metric_name(metric), json_size(shown->peaks[metric])) < 0) {
            json_decref(peaks);
            peaks = NULL;
        }
    return json_pack("{s:i, s:i, s:s, s:o, s:f, s:o, s:o}", "pid", process->pid, "ppid", process->ppid,
                     "role", role_name(process->role), "command", json_raw(text_of(process->command)),
                     "first", track->first_seconds, "ended", json_number(track->ended_seconds), "peaks",
                     peaks);
}

int json_report(FILE *out, bool indented, const FleetView *fleet)
{
    const ReportView *view = fleet->sources[0].report;
    if (fleet->n_sources > 1)
        return json_merged(out, indented, fleet);
    const History *history = view->history;
    JsonWriter writer;
    json_writer_open(&writer, out, indented);
    json_writer_field(&writer, "schema", json_string("shmguard.report/1"));
    json_writer_field(&writer, "overall", json_string(verdict_name(view->verdicts->items[0].id)));
    json_writer_list(&writer, "verdicts");
    for (size_t i = 0; i < view->verdicts->n; i++)
        json_writer_item(&writer, json_verdict(view, &view->verdicts->items[i]));
    json_writer_list_end(&writer);
    json_sites(&writer, &view->sites);
    json_writer_field(&writer, "recording", json_recording(view));
    json_writer_field(&writer, "shm",
                      json_pack("{s:o, s:o}", "size", json_size(view->job_peaks[JOB_SHM_SIZE]), "used_peak",
                                json_size(view->job_peaks[JOB_SHM_USED])));
    json_writer_field(&writer, "peaks", json_report_peaks(view));
    json_writer_list(&writer, "processes");
    for (size_t i = 0; i < history->n_tracks; i++)
        json_writer_item(&writer, json_track(&view->tracks[i]));
    json_writer_list_end(&writer);
    json_fleet(&writer, fleet);
    json_writer_list(&writer, "events");
    for (size_t i = 0; i < view->events.n; i++)
        json_writer_item(&writer, json_event(&view->events.items[i]));
    json_writer_list_end(&writer);
    return json_writer_close(&writer);
}
