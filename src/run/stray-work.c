/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "macro.h"
#include "roles.h"
#include "stray-work.h"

/* Of one core. */
static const double AT_WORK_SHARE = 0.05;

enum { ANCESTORS_MAX = 64 };

typedef struct ProcTime {
    int pid;
    int ppid;
    uint64_t start_ticks;
    uint64_t ticks; /* used so far; in the later list, since the earlier one, with all below it */
    bool manager;
} ProcTime;

static int time_order(const void *a, const void *b)
{
    int left = ((const ProcTime *)a)->pid;
    int right = ((const ProcTime *)b)->pid;
    return (left > right) - (left < right);
}

static ProcTime *time_find(const StrayTimes *times, int pid)
{
    ProcTime key = {.pid = pid};
    return times->n == 0 ? NULL : bsearch(&key, times->items, times->n, sizeof key, time_order);
}

void stray_times_free(StrayTimes *times)
{
    free(times->items);
    *times = (StrayTimes){0};
}

static int time_add(StrayTimes *times, size_t *capacity, const ProcStat *stat)
{
    if (times->n == *capacity) {
        size_t wanted = MAX(*capacity * 2, (size_t)256);
        ProcTime *larger = reallocarray(times->items, wanted, sizeof *larger);
        if (!larger)
            return -ENOMEM;
        times->items = larger;
        *capacity = wanted;
    }
    times->items[times->n++] = (ProcTime){stat->pid, stat->ppid, stat->start_ticks,
                                          stat->user_ticks + stat->system_ticks, stray_is_manager(stat)};
    return 0;
}

int stray_times_read(const Root *root, double now, StrayTimes *ret)
{
    StrayTimes times = {.at = now};
    size_t capacity = 0;
    DIR *proc = root_list(root, "proc");
    if (!proc)
        return -errno;
    int r = 0;
    for (struct dirent *entry; r >= 0 && (entry = readdir(proc));) {
        int pid = 0;
        ProcStat stat;
        if (text_pid(text_of(entry->d_name), &pid) == 0 && proc_stat_read(root, pid, &stat) == 0 &&
            stat.state != 'Z')
            r = time_add(&times, &capacity, &stat);
    }
    closedir(proc);
    if (r < 0) {
        stray_times_free(&times);
        return r;
    }
    if (times.n > 0)
        qsort(times.items, times.n, sizeof *times.items, time_order);
    *ret = times;
    return 0;
}

/* The stray that a process is, or that it is below; NULL: it does not belong to the job. */
static ProcTime *stray_above(const Strays *strays, const StrayTimes *times, ProcTime *process)
{
    for (int depth = 0; process && depth < ANCESTORS_MAX; depth++) {
        if (process->ppid == getpid())
            return strays_has(strays, process->pid) && !process->manager ? process : NULL;
        process = time_find(times, process->ppid);
    }
    return NULL;
}

static void times_subtract(const StrayTimes *before, StrayTimes *times)
{
    for (size_t i = 0; i < times->n; i++) {
        ProcTime *now = &times->items[i];
        const ProcTime *then = time_find(before, now->pid);
        if (then && then->start_ticks == now->start_ticks)
            now->ticks -= MIN(then->ticks, now->ticks);
    }
}

static void times_sum(const Strays *strays, StrayTimes *times)
{
    for (size_t i = 0; i < times->n; i++) {
        ProcTime *process = &times->items[i];
        ProcTime *stray = stray_above(strays, times, process);
        if (stray && stray != process)
            stray->ticks += process->ticks;
    }
}

int stray_work_read(const Strays *strays, const Root *root, const StrayTimes *before, double now,
                    bool (*is_idle)(const void *context, int pid), const void *context, StrayWork *ret)
{
    StrayTimes times = {0};
    StrayWork work = {0};
    double per_second = (double)sysconf(_SC_CLK_TCK);
    int r = stray_times_read(root, now, &times);
    if (r < 0)
        return r;
    times_subtract(before, &times);
    times_sum(strays, &times);
    for (size_t i = 0; i < times.n; i++) {
        ProcTime *process = &times.items[i];
        double used = (double)process->ticks / per_second;
        if (stray_above(strays, &times, process) != process || is_idle(context, process->pid) ||
            used < AT_WORK_SHARE * (now - before->at))
            continue;
        work.n++;
        if (used < work.cpu_seconds)
            continue;
        work.pid = process->pid;
        work.cpu_seconds = used;
    }
    stray_times_free(&times);
    _cleanup_buffer_ Buffer command = {0};
    if (work.n > 0 && command_read(root, work.pid, "?", &command) >= 0)
        memcpy(work.command, buffer_text(&command), MIN(command.size, sizeof work.command - 1));
    *ret = work;
    return 0;
}
