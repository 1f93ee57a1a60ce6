/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "show-fleet.h"
#include "show-report.h"

static json_t *json_place(int number)
{
    return number == RANK_UNKNOWN ? json_null() : json_integer(number);
}

static json_t *json_name(const char *name)
{
    return name[0] == '\0' ? json_null() : json_raw(text_of(name));
}

/* JSON has no "not a number". */
static json_t *json_figure(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_job_place(const JobPlace *place)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "job", json_name(place->job), "node",
                     json_name(place->node), "node_number", json_place(place->node_number), "rank",
                     json_place(place->rank), "ranks", json_place(place->ranks > 0 ? place->ranks : -1),
                     "attempt", json_place(place->attempt > 0 ? place->attempt : -1));
}

static json_t *json_seconds(double share, const RankView *rank)
{
    return json_figure(share * rank->seconds);
}

json_t *json_rank(const FleetView *fleet, const RankView *rank)
{
    const SourceView *source = &fleet->sources[rank->source];
    const NodeView *node = &fleet->nodes[source->node];
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o, s:b, "
        "s:s?, s:o, s:o, s:s, s:f}",
        "rank", json_place(rank->rank), "node", json_name(node->name), "node_number",
        json_place(node->number), "job", json_name(source->report->history->place.job), "attempt",
        json_place(rank->attempt > 0 ? rank->attempt : -1), "pid", json_place(rank->pid > 0 ? rank->pid : -1),
        "file", json_raw(text_of(source->report->path)), "seconds", rank->seconds, "marks",
        json_size(rank->marks), "step_seconds", json_figure(rank->step_seconds), "behind_seconds",
        json_figure(rank->behind), "waits", "loader", json_seconds(rank->loader_share, rank), "room",
        json_seconds(rank->room_share, rank), "cpu", json_seconds(rank->cpu_share, rank), "disk",
        json_seconds(rank->disk_share, rank), "work_share", json_figure(rank->work_share), "rss_peak",
        json_size(rank->rss_peak), "straggler", (int)rank->late, "why",
        rank->late ? late_why_name(rank->why) : NULL, "evidence", json_prose(rank->reason), "advice",
        json_prose(rank->advice), "clock", clock_basis_name(source->clock), "clock_offset", source->offset);
}

json_t *json_node(const NodeView *node)
{
    const uint64_t *peaks = node->peaks;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:{s:o, s:o}, s:{s:o, s:o}, s:{s:o, s:o}, s:{s:o, s:o, s:o, s:o, s:o}, s:o}",
        "node", json_name(node->name), "node_number", json_place(node->number), "ranks",
        json_size(node->n_ranks), "recordings", json_size(node->n_recordings), "shm", "size",
        json_size(peaks[JOB_SHM_SIZE]), "used_peak", json_size(peaks[JOB_SHM_USED]), "memory", "total",
        json_size(peaks[JOB_MEMORY_TOTAL]), "available_least", json_size(node->memory_least), "cgroup",
        "limit", json_size(peaks[JOB_GROUP_LIMIT]), "used_peak", json_size(peaks[JOB_GROUP_USED]), "guard",
        "budget", json_size(peaks[JOB_GUARD_BUDGET]), "bytes_peak", json_size(peaks[JOB_GUARD_BYTES]),
        "waits", json_size(peaks[JOB_GUARD_WAITS]), "waited_seconds", json_figure(node->room_seconds),
        "refused", json_size(peaks[JOB_GUARD_REFUSED]), "oom_kills", json_size(node->oom_kills));
}

json_t *json_clock(const FleetView *fleet)
{
    size_t aligned = 0;
    for (size_t i = 0; i < fleet->n_sources; i++)
        aligned += fleet->sources[i].clock == CLOCK_MARKS;
    const char *basis = fleet->n_sources < 2 || aligned < 2 ? "wall-clock"
                        : aligned < fleet->n_sources        ? "mixed"
                                                            : "marks";
    return json_pack("{s:s, s:o}", "basis", basis, "note", json_prose(fleet->clock));
}

static json_t *json_source(const FleetView *fleet, size_t i)
{
    const SourceView *source = &fleet->sources[i];
    const ReportView *report = source->report;
    json_t *recording = json_recording(report);
    json_t *more = json_pack(
        "{s:o, s:s, s:s, s:f, s:o, s:o, s:o}", "place", json_job_place(&report->history->place), "overall",
        verdict_name(report->verdicts->items[0].id), "clock", clock_basis_name(source->clock), "clock_offset",
        source->offset, "clock_spread", json_figure(source->spread), "marks", json_size(source->marks),
        "peaks", json_report_peaks(report));
    bool good = recording && more && json_object_update(recording, more) == 0;
    json_decref(more);
    return good ? recording : (json_decref(recording), NULL);
}

static void fleet_verdicts(JsonWriter *writer, const FleetView *fleet)
{
    json_writer_list(writer, "verdicts");
    for (size_t i = 0; i < fleet->n_sources; i++) {
        const ReportView *report = fleet->sources[i].report;
        const NodeView *node = &fleet->nodes[fleet->sources[i].node];
        for (size_t k = 0; k < report->verdicts->n; k++) {
            json_t *verdict = json_verdict(report, &report->verdicts->items[k]);
            if (verdict && (json_object_set_new(verdict, "file", json_raw(text_of(report->path))) < 0 ||
                            json_object_set_new(verdict, "node", json_name(node->name)) < 0)) {
                json_decref(verdict);
                verdict = NULL;
            }
            json_writer_item(writer, verdict);
        }
    }
    json_writer_list_end(writer);
}

void json_fleet(JsonWriter *writer, const FleetView *fleet)
{
    json_writer_field(writer, "job", json_name(fleet->job));
    json_writer_field(writer, "jobs", json_size(fleet->n_jobs));
    json_writer_field(writer, "clock", json_clock(fleet));
    json_writer_list(writer, "nodes");
    for (size_t i = 0; i < fleet->n_nodes; i++)
        json_writer_item(writer, json_node(&fleet->nodes[i]));
    json_writer_list_end(writer);
    json_writer_list(writer, "ranks");
    for (size_t i = 0; i < fleet->n_ranks; i++)
        json_writer_item(writer, json_rank(fleet, &fleet->ranks[i]));
    json_writer_list_end(writer);
}

int json_merged(FILE *out, bool indented, const FleetView *fleet)
{
    JsonWriter writer;
    json_writer_open(&writer, out, indented);
    json_writer_field(&writer, "schema", json_string("shmguard.report/1"));
    json_writer_field(&writer, "overall", json_string(verdict_name(fleet->overall)));
    fleet_verdicts(&writer, fleet);
    json_fleet(&writer, fleet);
    json_writer_list(&writer, "recordings");
    for (size_t i = 0; i < fleet->n_sources; i++)
        json_writer_item(&writer, json_source(fleet, i));
    json_writer_list_end(&writer);
    return json_writer_close(&writer);
}
