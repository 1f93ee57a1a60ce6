#include <string.h>

#include "look.h"

typedef struct Check {
    const char *id;
    void (*run)(Look *look);
} Check;

/* In the order in which findings of one severity are told: first what kills a training, then what slows it.
 */
static const Check table[] = {
    {"shm-missing", check_shm_missing},
    {"shm-too-small", check_shm_too_small},
    {"shm-nearly-full", check_shm_nearly_full},
    {"shm-inodes-low", check_shm_inodes_low},
    {"memory-low", check_memory_low},
    {"cgroup-near-limit", check_cgroup_near_limit},
    {"oom-recent", check_oom_recent},
    {"open-files-low", check_open_files_low},
    {"max-map-count-low", check_max_map_count_low},
    {"disk-low", check_disk_low},
    {"shm-share-of-memory", check_shm_share_of_memory},
    {"memory-pressure", check_memory_pressure},
    {"swap-low", check_swap_low},
    {"shm-orphans", check_shm_orphans},
    {"remove-ipc", check_remove_ipc},
    {"workers-exceed-cpus", check_workers_exceed_cpus},
    {"threads-exceed-cpus", check_threads_exceed_cpus},
    {"spawn-copies", check_spawn_copies},
    {"fork-copies", check_fork_copies},
    {"workers-use-cuda", check_workers_use_cuda},
    {"fork-after-cuda", check_fork_after_cuda},
    {"shm-huge-pages", check_shm_huge_pages},
    {"shm-need", check_shm_need},
    {"guard-unavailable", check_guard_unavailable},
};

void look_found(Look *look, Severity severity, const char *title, const char *evidence)
{
    Findings *findings = look->findings;
    if (look->error == 0 && (!title || !evidence))
        look->error = -ENOMEM;
    if (look->error < 0)
        return;
    Finding *finding = ARENA_PUSH(look->arena, findings->items, findings->n, findings->capacity);
    if (!finding) {
        look->error = -ENOMEM;
        return;
    }
    fixes_rank(&look->fixes);
    *finding = (Finding){.id = look->id,
                         .severity = severity,
                         .title = title,
                         .evidence = evidence,
                         .fixes = TAKE(look->fixes, (Fixes){0})};
}

void look_skipped(Look *look, const char *why)
{
    Findings *findings = look->findings;
    const char *line = why ? arena_printf(look->arena, "%s: %s", look->id, why) : NULL;
    const char **slot =
        line ? ARENA_PUSH(look->arena, findings->skipped, findings->n_skipped, findings->skipped_capacity)
             : NULL;
    if (slot)
        *slot = line;
    else
        look->error = -ENOMEM;
}

void look_advice(Look *look, int r)
{
    if (look->error == 0)
        look->error = r;
}

void look_fix(Look *look, FixNeeds needs, const char *what, const char *command)
{
    look_advice(look, what ? fix_add(look->arena, &look->fixes, needs, what, command) : -ENOMEM);
}

const JobNeed *look_job(const Look *look, int trainer)
{
    size_t low = LOWER_BOUND(i, look->n_jobs, look->jobs[i].trainer < trainer);
    return low < look->n_jobs && look->jobs[low].trainer == trainer ? &look->jobs[low] : NULL;
}

bool look_covers(const Look *look, const Process *process)
{
    return process->job != 0 && look_job(look, process->job);
}

const Process *look_next(const Look *look, const Process *process)
{
    size_t i = process ? (size_t)(process - look->survey->processes) + 1 : 0;
    for (; i < look->survey->n_processes; i++)
        if (look_covers(look, &look->survey->processes[i]))
            return &look->survey->processes[i];
    return NULL;
}

uint32_t look_workers(const Look *look)
{
    uint32_t workers = 0;
    for (size_t i = 0; i < look->n_jobs; i++)
        workers += look->jobs[i].workers;
    return workers;
}

const char *look_escape(Look *look, Text text)
{
    _cleanup_buffer_ Buffer escaped = {0};
    if (text_escape(text, &escaped) < 0)
        return NULL;
    return arena_copy(look->arena, buffer_text(&escaped), escaped.size);
}

double share_of(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (double)part / (double)whole;
}

bool used_severity(double used, double warning, double critical, Severity *ret)
{
    if (used < warning)
        return false;
    *ret = used < critical ? SEVERITY_WARNING : SEVERITY_CRITICAL;
    return true;
}

bool free_severity(double left, double warning, double critical, Severity *ret)
{
    if (left >= warning)
        return false;
    *ret = left >= critical ? SEVERITY_WARNING : SEVERITY_CRITICAL;
    return true;
}

/* The jobs that pid stands for: its own, or those below it when it is a launcher. */
static int jobs_find(Look *look, int pid)
{
    const Survey *survey = look->survey;
    const Process *asked = pid ? survey_process(survey, pid) : NULL;
    if (pid && !asked)
        return -ESRCH;
    for (size_t i = 0; i < survey->n_processes; i++) {
        const Process *process = &survey->processes[i];
        if (process->role != ROLE_TRAINER)
            continue;
        if (asked && (asked->job ? asked->job != process->pid : !process_is_below(survey, process, pid)))
            continue;
        JobNeed *job = ARENA_PUSH(look->arena, look->jobs, look->n_jobs, look->jobs_capacity);
        if (!job)
            return -ENOMEM;
        job_need(survey, process->pid, job);
    }
    return 0;
}

static void findings_sort(Findings *findings)
{
    for (size_t i = 1; i < findings->n; i++) {
        Finding finding = findings->items[i];
        size_t j = i;
        for (; j > 0 && findings->items[j - 1].severity < finding.severity; j--)
            findings->items[j] = findings->items[j - 1];
        findings->items[j] = finding;
    }
}

int checks_run(const Survey *survey, const Guard *guard, int pid, Arena *arena, Findings *ret)
{
    Findings findings = {0};
    Look look = {.survey = survey,
                 .machine = &survey->machine,
                 .guard = guard,
                 .pid = pid,
                 .arena = arena,
                 .findings = &findings};
    int r = jobs_find(&look, pid);
    if (r < 0)
        return r;
    if (pid && look.n_jobs == 0) {
        look.id = "pid";
        look_skipped(&look,
                     arena_printf(arena,
                                  "process %d belongs to no training that can be seen; only the machine "
                                  "was judged",
                                  pid));
    }
    for (size_t i = 0; i < ARRAY_SIZE(table) && look.error == 0; i++) {
        look.id = table[i].id;
        look.fixes = (Fixes){0};
        table[i].run(&look);
    }
    if (look.error < 0)
        return look.error;
    findings_sort(&findings);
    *ret = findings;
    return 0;
}

Health findings_health(const Findings *findings)
{
    Health health = HEALTH_OK;
    for (size_t i = 0; i < findings->n; i++)
        switch (findings->items[i].severity) {
        case SEVERITY_INFO:
            break;
        case SEVERITY_WARNING:
            health = MAX(health, HEALTH_WARNING);
            break;
        case SEVERITY_CRITICAL:
            health = HEALTH_CRITICAL;
            break;
        }
    return health;
}

const char *health_name(Health health)
{
    switch (health) {
    case HEALTH_OK:
        return "ok";
    case HEALTH_WARNING:
        return "warning";
    case HEALTH_CRITICAL:
        return "critical";
    }
    return "critical";
}

const char *severity_name(Severity severity)
{
    switch (severity) {
    case SEVERITY_INFO:
        return "info";
    case SEVERITY_WARNING:
        return "warning";
    case SEVERITY_CRITICAL:
        return "critical";
    }
    return "critical";
}
