/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "check.h"

static const Check table[] = {
#define ROW(id, run, least, worst, meaning) {id, SEVERITY_##least, SEVERITY_##worst, meaning, run},
    CHECKS(ROW)
#undef ROW
};

const Check *check_at(size_t i)
{
    return i < ARRAY_SIZE(table) ? &table[i] : NULL;
}

void check_found(CheckContext *check, Severity severity, const char *title, const char *evidence)
{
    Findings *findings = check->findings;
    if (check->error == 0 && (!title || !evidence))
        check->error = -ENOMEM;
    if (check->error < 0)
        return;
    Finding *finding = ARENA_PUSH(check->arena, findings->items, findings->n, findings->capacity);
    if (!finding) {
        check->error = -ENOMEM;
        return;
    }
    fixes_rank(&check->fixes);
    *finding = (Finding){.id = check->id,
                         .severity = severity,
                         .title = title,
                         .evidence = evidence,
                         .fixes = TAKE(check->fixes, (Fixes){0})};
}

void check_skipped(CheckContext *check, const char *why)
{
    Findings *findings = check->findings;
    const char *line = why ? arena_printf(check->arena, "%s: %s", check->id, why) : NULL;
    const char **slot =
        line ? ARENA_PUSH(check->arena, findings->skipped, findings->n_skipped, findings->skipped_capacity)
             : NULL;
    if (slot)
        *slot = line;
    else
        check->error = -ENOMEM;
}

const char *check_join(CheckContext *check, const char *first, const char *second)
{
    return first && second ? SENTENCE(check, "%s%s%s", first, sentence_gap(text_of(first)), second) : NULL;
}

void check_advice(CheckContext *check, int r)
{
    if (check->error == 0)
        check->error = r;
}

void check_fix(CheckContext *check, FixNeeds needs, const char *what, const char *command)
{
    check_advice(check, what ? fix_add(check->arena, &check->fixes, needs, what, command) : -ENOMEM);
}

const JobNeed *check_job(const CheckContext *check, int trainer)
{
    size_t low = LOWER_BOUND(i, check->n_jobs, check->jobs[i].trainer < trainer);
    return low < check->n_jobs && check->jobs[low].trainer == trainer ? &check->jobs[low] : NULL;
}

bool check_covers(const CheckContext *check, const Process *process)
{
    return process->job != 0 && check_job(check, process->job);
}

const Process *check_next(const CheckContext *check, const Process *process)
{
    size_t i = process ? (size_t)(process - check->survey->processes) + 1 : 0;
    for (; i < check->survey->n_processes; i++)
        if (check_covers(check, &check->survey->processes[i]))
            return &check->survey->processes[i];
    return NULL;
}

uint32_t check_workers(const CheckContext *check)
{
    uint32_t workers = 0;
    for (size_t i = 0; i < check->n_jobs; i++)
        workers += check->jobs[i].workers;
    return workers;
}

unsigned check_python(const CheckContext *check)
{
    unsigned python = 0;
    bool any = false;
    for (const Process *process = check_next(check, NULL); process; process = check_next(check, process)) {
        if (process->role != ROLE_WORKER)
            continue;
        if (any && process->python != python)
            return 0;
        python = process->python;
        any = true;
    }
    return python;
}

const char *check_escape(CheckContext *check, Text text)
{
    _cleanup_buffer_ Buffer escaped = {0};
    if (text_escape(text, &escaped) < 0)
        return NULL;
    return arena_copy(check->arena, buffer_text(&escaped), escaped.size);
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

/* The jobs that pid stands for: its own job, or, if it is a launcher, the jobs below it. */
static int jobs_find(CheckContext *check, int pid)
{
    const Survey *survey = check->survey;
    const Process *asked = pid ? survey_process(survey, pid) : NULL;
    if (pid && !asked)
        return -ESRCH;
    for (size_t i = 0; i < survey->n_processes; i++) {
        const Process *process = &survey->processes[i];
        if (process->role != ROLE_TRAINER)
            continue;
        if (asked && (asked->job ? asked->job != process->pid : !process_is_below(survey, process, pid)))
            continue;
        JobNeed *job = ARENA_PUSH(check->arena, check->jobs, check->n_jobs, check->jobs_capacity);
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

int checks_run(const Survey *survey, const GuardOffer *guard, int pid, Arena *arena, Findings *ret)
{
    Findings findings = {0};
    CheckContext check = {.survey = survey,
                          .machine = &survey->machine,
                          .guard = guard,
                          .pid = pid,
                          .arena = arena,
                          .findings = &findings};
    int r = jobs_find(&check, pid);
    if (r < 0)
        return r;
    if (pid && check.n_jobs == 0) {
        check.id = "pid";
        check_skipped(&check, SENTENCE(&check, DOCTOR_PID_SKIPPED, pid));
    }
    for (size_t i = 0; i < ARRAY_SIZE(table) && check.error == 0; i++) {
        check.id = table[i].id;
        check.fixes = (Fixes){0};
        table[i].run(&check);
    }
    if (check.error < 0)
        return check.error;
    findings_sort(&findings);
    *ret = findings;
    return 0;
}

Health findings_health(const Findings *findings)
{
    Health health = HEALTH_OK;
    for (size_t i = 0; i < findings->n; i++)
        switch (findings->items[i].severity) {
        case SEVERITY_GOOD:
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
        return N_("ok");
    case HEALTH_WARNING:
        return N_("warning");
    case HEALTH_CRITICAL:
        return N_("critical");
    }
    return "critical";
}
