/* SPDX-License-Identifier: Apache-2.0 */
#include "show-plan.h"

static json_t *json_largest(const Plan *plan)
{
    return !plan->has_largest ? json_null()
                              : json_pack("{s:o, s:o}", "batch",
                                          plan->largest_batch ? json_size(plan->largest_batch) : json_null(),
                                          "workers", json_size(plan->largest_workers));
}

static json_t *json_flags(const ShmFlags *flags)
{
    return !flags ? json_null()
                  : json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "docker", flags->engine, "podman",
                              flags->engine, "compose", flags->compose, "kubernetes", flags->kubernetes,
                              "remount", flags->remount, "fstab", flags->fstab);
}

static json_t *json_loader(const PlanLoader *loader, const LoaderNeed *need)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "batch",
                     loader->batch ? json_size(loader->batch) : json_null(), "workers",
                     json_size(loader->workers), "prefetch", json_size(loader->prefetch), "held",
                     json_size(loader->held), "payload_bytes", json_size(need->payload_bytes), "batch_bytes",
                     json_size(need->batch_bytes), "segments", json_size(need->segments), "in_flight",
                     json_size(need->in_flight), "semaphore_bytes", json_size(need->semaphore_bytes), "bytes",
                     json_size(need->bytes));
}

static json_t *json_step(const PlanStep *step)
{
    return json_pack("{s:s, s:f, s:o, s:o}", "name", step->name, "share", step->share, "batch",
                     step->batch ? json_size(step->batch) : json_null(), "workers",
                     step->workers ? json_size(step->workers) : json_null());
}

static json_t *json_row(const PlanRow *row)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "per_gpu", json_size(row->per_gpu), "processes",
                     json_size(row->processes), "base", json_size(row->base_bytes), "recommended",
                     json_size(row->recommended_bytes));
}

static json_t *json_process(const ProcessPeak *peak)
{
    return json_pack("{s:i, s:s, s:o, s:o, s:o, s:o}", "pid", peak->pid, "role", role_name(peak->role),
                     "command", json_raw(text_of(peak->comm)), "rss_peak", json_size(peak->rss_bytes),
                     "shm_peak", json_size(peak->shm_bytes), "own_peak", json_size(peak->own_bytes));
}

static json_t *json_measured(const PlanMeasured *measured)
{
    return !measured ? json_null()
                     : json_pack("{s:o, s:b, s:b, s:f, s:o, s:o, s:o, s:b}", "peak",
                                 json_size(measured->peak_bytes), "guarded", (int)measured->guarded, "now",
                                 (int)measured->now, "seconds", measured->seconds, "trainers",
                                 json_size(measured->trainers), "workers", json_size(measured->workers),
                                 "batch", measured->batch ? json_size(measured->batch) : json_null(),
                                 "scaled", (int)measured->scaled);
}

int json_plan(FILE *out, bool indented, const PlanView *view)
{
    const PlanQuestion *question = view->question;
    const Plan *plan = view->plan;
    JsonWriter writer;
    json_writer_open(&writer, out, indented);
    json_writer_field(&writer, "schema", json_string("shmguard.plan/1"));
    json_writer_field(&writer, "batch_bytes", json_size(plan->batch_bytes));
    json_writer_field(&writer, "in_flight", json_size(plan->in_flight));
    json_writer_field(&writer, "per_trainer", json_size(plan->per_trainer_bytes));
    json_writer_field(&writer, "trainers", json_size(plan->trainers));
    json_writer_field(&writer, "base", json_size(plan->base_bytes));
    json_writer_field(&writer, "bound", json_size(plan->bound_bytes));
    json_writer_field(&writer, "recommended", json_size(plan->recommended_bytes));
    json_writer_field(&writer, "available", json_size(question->shm_bytes));
    json_writer_field(&writer, "fits",
                      json_boolean(view->nodes ? view->nodes->jobs >= question->jobs : plan->fits));
    json_writer_field(&writer, "source", json_string(view->measured ? "measured" : "arithmetic"));
    json_writer_field(&writer, "basis", json_string(plan_basis_name(question->basis)));
    json_writer_field(&writer, "margin", json_real(question->margin));
    json_writer_field(&writer, "with_margin", json_size(plan->tight_bytes));
    json_writer_field(&writer, "handover", json_size(plan->handover_bytes));
    json_writer_field(&writer, "collectives",
                      json_pack("{s:s, s:o, s:s}", "kind", plan_collectives_names[question->collectives],
                                "bytes", json_size(plan->collective_bytes), "source", "estimated"));
    json_writer_field(&writer, "memory",
                      json_pack("{s:o, s:o, s:o}", "total", json_size(question->memory_bytes), "available",
                                json_size(question->memory_room_bytes), "share",
                                plan->memory_share > 0 ? json_real(plan->memory_share) : json_null()));
    json_writer_field(
        &writer, "guard",
        json_pack("{s:b, s:o}", "ready", (int)view->guard->ready, "memory", json_size(plan->guard_bytes)));
    json_writer_field(&writer, "largest_fit", json_largest(plan));
    json_writer_field(&writer, "largest_trainers", json_size(plan->largest_trainers));
    json_writer_field(&writer, "flags", json_flags(view->flags));
    json_writer_field(&writer, "measured", json_measured(view->measured));
    json_writer_list(&writer, "processes");
    for (size_t i = 0; view->measured && i < view->measured->n_processes; i++)
        json_writer_item(&writer, json_process(&view->measured->processes[i]));
    json_writer_list_end(&writer);
    json_writer_list(&writer, "loaders");
    for (size_t i = 0; i < plan->n_loaders; i++)
        json_writer_item(&writer, json_loader(&question->loaders[i], &plan->loaders[i]));
    json_writer_list_end(&writer);
    json_writer_list(&writer, "ladder");
    for (size_t i = 0; i < plan->n_ladder; i++)
        json_writer_item(&writer, json_step(&plan->ladder[i]));
    json_writer_list_end(&writer);
    if (question->table) {
        json_writer_list(&writer, "table");
        for (size_t i = 0; i < plan->n_table; i++)
            json_writer_item(&writer, json_row(&plan->table[i]));
        json_writer_list_end(&writer);
    }
    if (view->nodes)
        json_nodes(&writer, view->nodes, question->jobs);
    json_writer_field(&writer, "notes", json_proses(plan->notes, plan->n_notes));
    return json_writer_close(&writer);
}
