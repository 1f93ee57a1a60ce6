/* SPDX-License-Identifier: Apache-2.0 */
#include "show-machine.h"
#include "show-ps.h"

static json_t *json_process(const PsProcess *shown)
{
    const Process *process = shown->process;
    bool has_start = process->role == ROLE_WORKER && process->start != START_UNKNOWN;
    return json_pack("{s:i, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:s?, s:I}", "pid",
                     process->pid, "ppid", process->ppid, "role", role_name(process->role), "command",
                     json_raw(process->command), "rss", json_size(process->rss_bytes), "pss",
                     json_size(shown->pss_bytes), "uss", json_size(shown->uss_bytes), "rss_shmem",
                     json_size(process->rss_shmem_bytes), "shm", json_size(shown->shm_bytes), "fds",
                     json_size(shown->fds), "threads", (int)process->threads, "loader_threads",
                     (int)process->signs.loaders, "job",
                     json_size(process->job ? (uint64_t)process->job : U64_UNKNOWN), "start_method",
                     has_start ? start_method_name(process->start) : NULL, "uid", (json_int_t)process->uid);
}

static json_t *json_holders(const Segment *segment)
{
    json_t *list = json_array();
    for (size_t i = 0; i < segment->n_holders; i++)
        if (json_array_append_new(list, json_integer(segment->holders[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *json_segment(const PsSegment *shown)
{
    const Segment *segment = shown->segment;
    char device[32];
    snprintf(device, sizeof device, "%u:%u", segment->device.major, segment->device.minor);
    /* Both come from one stat call. */
    uint64_t uid = segment->allocated_estimated ? U64_UNKNOWN : segment->uid;
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:s, s:b, s:s, s:s, s:s?, s:o, s:s, s:o, s:o}", "name",
                     json_raw(segment->name), "inode", json_size(segment->inode), "device", device, "size",
                     json_size(segment->size_bytes), "allocated", json_size(segment->allocated_bytes),
                     "allocated_source", segment->allocated_estimated ? "estimated" : "measured", "deleted",
                     (int)segment->deleted, "backing", segment->backing == BACKING_MEMFD ? "memfd" : "shm",
                     "kind", segment_kind_name(segment->kind), "origin", segment->origin, "holders",
                     json_holders(segment), "orphan", orphan_name(shown->orphan), "orphan_why",
                     json_prose(shown->why), "uid", json_size(uid));
}

int json_ps(FILE *out, bool indented, const PsView *view)
{
    const Survey *survey = view->survey;
    JsonWriter writer;
    json_writer_open(&writer, out, indented);
    json_writer_field(&writer, "schema", json_string("shmguard.ps/1"));
    json_writer_field(&writer, "shm", json_shm(&survey->machine.shm));
    json_writer_list(&writer, "processes");
    for (size_t i = 0; i < view->n_processes; i++)
        json_writer_item(&writer, json_process(&view->processes[i]));
    json_writer_list_end(&writer);
    json_writer_list(&writer, "segments");
    for (size_t i = 0; i < view->n_segments; i++)
        json_writer_item(&writer, json_segment(&view->segments[i]));
    json_writer_list_end(&writer);
    json_writer_field(&writer, "attributed", json_size(survey->attributed_bytes));
    json_writer_field(&writer, "unattributed", json_size(survey->unattributed_bytes));
    json_writer_field(&writer, "memfd", json_size(survey->memfd_bytes));
    json_writer_field(&writer, "unreadable_processes", json_integer((json_int_t)survey->n_unreadable));
    return json_writer_close(&writer);
}
