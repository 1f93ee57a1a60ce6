/* SPDX-License-Identifier: Apache-2.0 */
#include "show-nodes.h"

static json_t *json_group(const NodeGroup *group)
{
    const NodeRoom *room = group->room;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:s, s:o}", "nodes", json_size(group->nodes),
        "example", json_raw(text_of(room->name)), "cpus", json_size(room->cpus), "memory",
        json_size(room->memory_bytes), "shm", json_size(room->shm_bytes), "gpus", json_size(room->gpus),
        "open_files", json_size(room->open_files), "jobs", json_size(group->fit.jobs), "limit",
        node_limit_name(group->fit.limit), "guarded_jobs", json_size(group->fit.guarded_jobs),
        "guarded_limit", node_limit_name(group->fit.guarded_limit), "change", json_prose(group->change));
}

static json_t *json_fit(const NodeRoom *room, const NodeFit *fit)
{
    return json_pack("{s:o, s:o, s:o, s:s, s:o}", "name", json_raw(text_of(room->name)), "nodes",
                     json_size(room->count), "jobs", json_size(fit->jobs), "limit",
                     node_limit_name(fit->limit), "guarded_jobs", json_size(fit->guarded_jobs));
}

void json_nodes(JsonWriter *writer, const NodesPlan *nodes, uint64_t wanted_jobs)
{
    const NodeJobNeed *need = &nodes->need;
    json_writer_field(
        writer, "nodes",
        json_pack("{s:o, s:o, s:o, s:o, s:b, s:{s:o, s:o, s:o, s:o, s:o, s:o, s:o}}", "nodes",
                  json_size(nodes->nodes), "used", json_size(nodes->nodes_used), "jobs",
                  json_size(nodes->jobs), "guarded_jobs", json_size(nodes->guarded_jobs), "fits",
                  (int)(nodes->jobs >= wanted_jobs), "per_job", "shm", json_size(need->shm_bytes), "memory",
                  json_size(need->memory_bytes), "guarded_memory", json_size(need->guard_bytes), "cpus",
                  json_size(need->cpus), "gpus", json_size(need->gpus), "open_files",
                  need->open_files > 0 ? json_size(need->open_files) : json_null(), "process_memory",
                  need->process_bytes > 0 ? json_size(need->process_bytes) : json_null()));
    json_writer_list(writer, "node_groups");
    for (size_t i = 0; i < nodes->n_groups; i++)
        json_writer_item(writer, json_group(&nodes->groups[i]));
    json_writer_list_end(writer);
    json_writer_list(writer, "node_list");
    for (size_t i = 0; i < nodes->list->n; i++)
        json_writer_item(writer, json_fit(&nodes->list->items[i], &nodes->fits[i]));
    json_writer_list_end(writer);
}
