/* SPDX-License-Identifier: Apache-2.0 */
#include "show-doctor.h"
#include "show-fixes.h"
#include "show-machine.h"

static json_t *json_environment(const Machine *machine, const GuardOffer *guard)
{
    const Sandbox *sandbox = &machine->sandbox;
    static const char *const owners[] = {
        [SHM_OWNER_UNKNOWN] = NULL, [SHM_OF_POD] = "pod", [SHM_OF_JOB] = "job"};
    return json_pack("{s:s, s:b, s:b, s:b, s:b, s:s?}", "kind", environment_name(sandbox->kind), "slurm",
                     (int)sandbox->slurm, "can_remount", (int)sandbox->can_remount, "user_namespaces",
                     (int)(sandbox->user_namespaces == YES), "guard_ready", (int)guard->ready, "shm_owner",
                     owners[machine->shm.owner]);
}

static json_t *json_memory(const Machine *machine)
{
    const MemInfo *memory = &machine->memory;
    const Cgroup *cgroup = &machine->cgroup;
    bool grouped = cgroup->version != 0;
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "total", json_size(memory->total_bytes), "available",
                     json_size(memory->available_bytes), "cgroup_limit",
                     json_size(grouped ? cgroup->memory_limit_bytes : U64_UNKNOWN), "cgroup_used",
                     json_size(grouped ? cgroup->memory_used_bytes : U64_UNKNOWN), "swap_free",
                     json_size(memory->swap_free_bytes));
}

static json_t *json_limits(const Machine *machine)
{
    return json_pack("{s:o, s:o, s:o}", "open_files_soft", json_size(machine->limits.open_files_soft),
                     "open_files_hard", json_size(machine->limits.open_files_hard), "max_map_count",
                     json_size(machine->max_map_count));
}

static json_t *json_finding(const Finding *finding)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "id", finding->id, "severity",
                     severity_name(finding->severity), "title", json_prose(finding->title), "evidence",
                     json_prose(finding->evidence), "fixes", json_fixes(&finding->fixes));
}

int json_doctor(FILE *out, bool indented, const Machine *machine, const GuardOffer *guard,
                const Findings *findings)
{
    JsonWriter writer;
    json_writer_open(&writer, out, indented);
    json_writer_field(&writer, "schema", json_string("shmguard.doctor/1"));
    json_writer_field(&writer, "verdict", json_string(health_name(findings_health(findings))));
    json_writer_field(&writer, "environment", json_environment(machine, guard));
    json_writer_field(&writer, "shm", json_shm(&machine->shm));
    json_writer_field(&writer, "memory", json_memory(machine));
    json_writer_field(&writer, "limits", json_limits(machine));
    json_writer_list(&writer, "findings");
    for (size_t i = 0; i < findings->n; i++)
        json_writer_item(&writer, json_finding(&findings->items[i]));
    json_writer_list_end(&writer);
    json_writer_field(&writer, "skipped", json_proses(findings->skipped, findings->n_skipped));
    return json_writer_close(&writer);
}
