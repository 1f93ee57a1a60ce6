/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "other-supervisors.h"
#include "proc-stat.h"
#include "shared-stats.h"

enum { ABOVE_MOST = 64 };

static OtherSupervisor *supervisor_find(OtherSupervisors *supervisors, int pid, uint64_t start_ticks)
{
    for (size_t i = 0; i < supervisors->n; i++)
        if (supervisors->items[i].pid == pid && supervisors->items[i].start_ticks == start_ticks)
            return &supervisors->items[i];
    return NULL;
}

static void supervisor_meet(OtherSupervisors *supervisors, const Root *root, int pid, uint64_t start_ticks)
{
    OtherSupervisor *known = supervisor_find(supervisors, pid, start_ticks);
    if (known) {
        known->there = true;
        return;
    }
    int page = supervisors->n < SUPERVISORS_MOST ? shared_stats_find(root, pid) : -ENOSPC;
    if (page >= 0)
        supervisors->items[supervisors->n++] =
            (OtherSupervisor){.pid = pid, .start_ticks = start_ticks, .page = page, .there = true};
}

static bool is_supervisor(const char *comm)
{
    return strcmp(comm, "shmguard") == 0;
}

void supervisors_find_above(OtherSupervisors *supervisors, const Root *root, int pid)
{
    ProcStat stat;
    for (unsigned i = 0; i < ABOVE_MOST && pid > 1 && proc_stat_read(root, pid, &stat) >= 0; i++) {
        if (is_supervisor(stat.comm))
            supervisor_meet(supervisors, root, pid, stat.start_ticks);
        pid = stat.ppid;
    }
}

/* A supervisor above a job is not among the processes of its samples: it is there as long as it runs. */
static bool supervisor_is_there(const Root *root, const OtherSupervisor *guard)
{
    ProcStat stat;
    return guard->there || (proc_stat_read(root, guard->pid, &stat) >= 0 &&
                            stat.start_ticks == guard->start_ticks && !proc_stat_is_over(&stat));
}

static double guard_share(const GuardFigures *figures)
{
    return figures->budget_bytes == U64_UNKNOWN || figures->budget_bytes == 0
               ? -1
               : (double)figures->bytes_now / (double)figures->budget_bytes;
}

/* Half of an update may be read: a figure never goes back. */
static void total_raise(uint64_t *total, uint64_t *counted, uint64_t figure)
{
    if (figure <= *counted)
        return;
    *total += figure - *counted;
    *counted = figure;
}

static void totals_count(GuardTotals *totals, GuardTotals *counted, const GuardFigures *figures)
{
    total_raise(&totals->segments, &counted->segments, figures->segments_created);
    total_raise(&totals->reused, &counted->reused, figures->segments_reused);
    total_raise(&totals->waits, &counted->waits, figures->waits);
    total_raise(&totals->refused, &counted->refused, figures->refused);
}

static const ProcessMoment *moment_process(const Moment *moment, int pid)
{
    size_t i = LOWER_BOUND(at, moment->n_processes, moment->processes[at].pid < pid);
    return i < moment->n_processes && moment->processes[i].pid == pid ? &moment->processes[i] : NULL;
}

static bool is_below(const Root *root, const Moment *moment, int pid, int above)
{
    for (unsigned i = 0; i < ABOVE_MOST && pid > 1; i++) {
        const ProcessMoment *process = moment_process(moment, pid);
        ProcStat stat;
        if (!process && proc_stat_read(root, pid, &stat) < 0) /* a launcher is not in the moment */
            return false;
        pid = process ? process->ppid : stat.ppid;
        if (pid == above)
            return true;
    }
    return false;
}

static int job_of(const Root *root, const Moment *moment, int supervisor)
{
    for (size_t i = 0; i < moment->n_processes; i++)
        if (moment->processes[i].role == ROLE_TRAINER &&
            is_below(root, moment, moment->processes[i].pid, supervisor))
            return moment->processes[i].pid;
    return 0;
}

unsigned supervisors_fill(OtherSupervisors *supervisors, const Root *root, Moment *moment, int *ret_pid)
{
    for (size_t i = 0; i < supervisors->n; i++)
        supervisors->items[i].there = false;
    for (size_t i = 0; i < moment->n_processes; i++)
        if (is_supervisor(moment->processes[i].comm))
            supervisor_meet(supervisors, root, moment->processes[i].pid, moment->processes[i].start_ticks);

    size_t kept = 0;
    GuardFigures tightest = {0};
    *ret_pid = 0;
    supervisors->n_runs = 0;
    for (size_t i = 0; i < supervisors->n; i++) {
        OtherSupervisor guard = supervisors->items[i];
        GuardFigures figures;
        if (!supervisor_is_there(root, &guard))
            continue;
        supervisors->items[kept++] = guard;
        /* A supervisor that is only a witness has neither a budget nor memory. */
        if (shared_stats_read(root, guard.pid, guard.page, &figures) < 0 ||
            (figures.budget_bytes == U64_UNKNOWN && figures.segments_created == 0))
            continue;
        totals_count(&supervisors->totals, &supervisors->items[kept - 1].counted, &figures);
        supervisors->runs[supervisors->n_runs++] =
            (GuardedRun){guard.pid, job_of(root, moment, guard.pid), figures};
        if (*ret_pid == 0 || guard_share(&figures) > guard_share(&tightest)) {
            tightest = figures;
            *ret_pid = guard.pid;
        }
    }
    supervisors->n = kept;
    if (*ret_pid == 0)
        return 0;
    moment->values[JOB_GUARD_BYTES] = tightest.bytes_now;
    moment->values[JOB_GUARD_BUDGET] = tightest.budget_bytes;
    moment->values[JOB_GUARD_CREATED] = tightest.segments_created;
    moment->values[JOB_GUARD_REUSED] = tightest.segments_reused;
    moment->values[JOB_GUARD_WAITING] = tightest.waiting;
    moment->values[JOB_GUARD_WAITS] = tightest.waits;
    moment->values[JOB_GUARD_REFUSED] = tightest.refused;
    return (unsigned)supervisors->n_runs;
}
