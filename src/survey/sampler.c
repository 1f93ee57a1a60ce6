/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"
#include "clock.h"
#include "event-text.h"
#include "fds.h"
#include "internal.h"
#include "job-place.h"
#include "job-processes.h"
#include "maps.h"
#include "pressure.h"
#include "proc-path.h"
#include "proc-schedstat.h"
#include "proc-status.h"
#include "sampler.h"
#include "smaps.h"
#include "units.h"
#include "vmstat.h"

/*
 * Costly reads have a purse of CPU time. Each look adds an allowance, the measured cost of each read is
 * subtracted, and nothing costly is read while the purse is empty: a process that costs ten allowances is
 * read every tenth look, whatever makes it so expensive here.
 *
 * At one look per second, or fewer, the allowance is 3 ms per look. A user who asks for ten looks per second
 * wants to see more: the allowance grows with the square root of the rate, up to a tenth of a core.
 */
#define ALLOWANCE_SECONDS 0.003
#define SHARE_MOST        0.1
#define FIRST_SECONDS     0.05 /* so that the first moments have these figures, too */

/* The part for segments and their holders; the rest is for PSS and USS. */
#define SEGMENTS_PART 0.25

/* Between two counts of mappings, of one process after the other: every second look, at one per second. */
#define MAPS_SECONDS 1.5

enum {
    FDS_PER_LOOK = 4, /* processes whose descriptors are counted, where the kernel does not say how many */
    SEARCHES_PER_LOOK = 4 /* for PyTorch through all of a process's libraries */
};

/* Names, handlers and libraries change most in the first seconds of a process. */
static const double YOUNG_SECONDS = 3;

typedef struct SampledProcess {
    Actor actor;
    uint64_t inode; /* as JobProcess has it */
    double started; /* since 1970 */
    double met;     /* seconds of the sampler, like all that follow */
    double search_next;
    double turn_at; /* of the last costly read; negative: none yet */
    bool born_due;  /* reported one look later, when its role is better known */
    bool kernel;    /* a thread of the kernel */
    bool shown;     /* was in a moment */
    bool holds;     /* segments */
    bool has_now;   /* figures of this look */
    bool waits;     /* in the kernel: its locks may be held */
    bool named;     /* rank and attempt are what its launcher says */
    int rank;
    int attempt;
    uint64_t loader_wait_msec;
    uint32_t uid;
    uint64_t rss_bytes;
    uint64_t rss_peak_bytes;
    uint64_t values[PROCESS_METRICS];
} SampledProcess;

struct Sampler {
    const Root *root;
    SamplerWish wish;
    JobProcesses job;
    double origin; /* CLOCK_MONOTONIC; 0 before the first look */
    double now;    /* seconds since then */
    double last;   /* the look before */
    double booted; /* seconds since 1970 */
    double ticks_per_second;
    SampledProcess *watched; /* in rising order of pid */
    size_t n;
    size_t capacity;
    SampledProcess *before; /* the same of the look before */
    size_t n_before;
    size_t before_capacity;
    int search_turn; /* the pid that was searched for PyTorch last */
    int maps_turn;   /* the pid whose mappings were counted last */
    int fds_turn;    /* the pid whose descriptors were counted last */
    double maps_next;
    bool roles_stale;
    Stage stage;
    Buffer scratch;
    double processes_purse; /* seconds of CPU time */
    double segments_purse;
    Survey segments;
    double segments_at; /* negative: none yet, or they were taken */
    Arena mounts_arena;
    Mounts mounts;
    uint64_t oom_kills; /* of the last look; U64_UNKNOWN */
    bool over;
    ProcessMoment *moments;
    size_t moments_capacity;
    Event *events;
    size_t n_events;
    size_t events_capacity;
};

static double cpu_seconds(void)
{
    return clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

static bool is_machine(const Sampler *sampler)
{
    return sampler->wish.pid == SAMPLER_MACHINE;
}

static void values_forget(uint64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = U64_UNKNOWN;
}

/* --- Events ------------------------------------------------------------------------------------------- */

static void event_add(Sampler *sampler, double seconds, EventKind kind, const Actor *actor, const char *text)
{
    if (sampler->n_events == sampler->events_capacity) {
        size_t wanted = MAX(sampler->events_capacity * 2, (size_t)16);
        Event *larger = reallocarray(sampler->events, wanted, sizeof *larger);
        if (!larger)
            return;
        sampler->events = larger;
        sampler->events_capacity = wanted;
    }
    Event *event = &sampler->events[sampler->n_events++];
    *event = (Event){
        .seconds = seconds,
        .kind = kind,
        .pid = actor ? actor->pid : 0,
        .role = actor ? actor->role : ROLE_OTHER,
    };
    snprintf(event->text, sizeof event->text, "%s", text);
}

static void born_tell(Sampler *sampler, SampledProcess *watched)
{
    /* On a machine it may have existed long before it began to train; but events are reported in order of
     * time. */
    if (watched->born_due)
        event_add(sampler, MAX(watched->met, sampler->last), EVENT_BORN, &watched->actor, "");
    watched->born_due = false;
}

/* status as from waitpid; 0: unknown. */
static void end_tell(Sampler *sampler, SampledProcess *watched, int status)
{
    char text[64] = "";
    if (WIFSIGNALED(status))
        signal_format(WTERMSIG(status), text);
    else if (status != 0)
        snprintf(text, sizeof text, EVENT_EXIT_CODE, WEXITSTATUS(status));
    if (watched->shown) {
        born_tell(sampler, watched);
        event_add(sampler, sampler->now, EVENT_ENDED, &watched->actor, text);
    }
    actor_free(&watched->actor);
}

static int events_order(const void *a, const void *b)
{
    const Event *left = a;
    const Event *right = b;
    return (left->seconds > right->seconds) - (left->seconds < right->seconds);
}

/* --- Who is there ------------------------------------------------------------------------------------- */

static SampledProcess *watched_find(const Sampler *sampler, int pid)
{
    size_t low = LOWER_BOUND(i, sampler->n, sampler->watched[i].actor.pid < pid);
    return low < sampler->n && sampler->watched[low].actor.pid == pid ? &sampler->watched[low] : NULL;
}

static int watched_keep(Sampler *sampler, const SampledProcess *watched)
{
    if (sampler->n == sampler->capacity) {
        size_t wanted = MAX(sampler->capacity * 2, (size_t)64);
        SampledProcess *larger = reallocarray(sampler->watched, wanted, sizeof *larger);
        if (!larger)
            return -ENOMEM;
        sampler->watched = larger;
        sampler->capacity = wanted;
    }
    sampler->watched[sampler->n++] = *watched;
    return 0;
}

static int process_meet(Sampler *sampler, const JobProcess *process)
{
    ProcStat stat;
    if (proc_stat_read(sampler->root, process->pid, &stat) < 0 || proc_stat_is_over(&stat))
        return 0;
    SampledProcess watched = {
        .actor = {.pid = stat.pid, .ppid = stat.ppid, .start_ticks = stat.start_ticks},
        .inode = process->inode,
        .started = sampler->booted + (double)stat.start_ticks / sampler->ticks_per_second,
        .met = sampler->now,
        .turn_at = -1,
        .born_due = sampler->now > 0,
        .rank = RANK_UNKNOWN,
        .loader_wait_msec = U64_UNKNOWN,
    };
    memcpy(watched.actor.comm, stat.comm, sizeof watched.actor.comm);
    sampler->roles_stale = true;
    return watched_keep(sampler, &watched);
}

/* Whether it is still the same process; *ret_status: how it ended, where that is visible. */
static bool process_is_there(const Sampler *sampler, const SampledProcess *watched, int *ret_status)
{
    ProcStat stat;
    *ret_status = 0;
    int r = proc_stat_read(sampler->root, watched->actor.pid, &stat);
    if (r < 0)
        return r != -ENOENT && r != -ESRCH;
    if (stat.start_ticks != watched->actor.start_ticks)
        return false;
    if (!proc_stat_is_over(&stat))
        return true;
    *ret_status = stat.ended;
    return false;
}

/* A process that the list lacks may have got another parent just then. */
static int missing_keep(Sampler *sampler, SampledProcess *watched)
{
    int status = 0;
    if (process_is_there(sampler, watched, &status))
        return watched_keep(sampler, watched);
    end_tell(sampler, watched, status);
    return 0;
}

static int same_keep(Sampler *sampler, SampledProcess *watched, const JobProcess *process)
{
    int status = 0;
    if (watched->inode == process->inode || process_is_there(sampler, watched, &status)) {
        watched->inode = process->inode;
        return watched_keep(sampler, watched);
    }
    end_tell(sampler, watched, status);
    return process_meet(sampler, process);
}

static void lists_swap(Sampler *sampler)
{
    SampledProcess *watched = sampler->before;
    size_t capacity = sampler->before_capacity;
    sampler->before = sampler->watched;
    sampler->n_before = sampler->n;
    sampler->before_capacity = sampler->capacity;
    sampler->watched = watched;
    sampler->n = 0;
    sampler->capacity = capacity;
}

/* Both lists are in rising order of pid. Without memory, processes that are not kept are met again later. */
static int processes_look(Sampler *sampler)
{
    int r = job_processes_look(&sampler->job);
    if (r < 0)
        return r;
    lists_swap(sampler);
    size_t i = 0;
    size_t j = 0;
    while (i < sampler->job.n || j < sampler->n_before) {
        int listed = i < sampler->job.n ? sampler->job.items[i].pid : INT_MAX;
        int before = j < sampler->n_before ? sampler->before[j].actor.pid : INT_MAX;
        int kept = 0;
        if (listed < before)
            kept = process_meet(sampler, &sampler->job.items[i++]);
        else if (before < listed)
            kept = missing_keep(sampler, &sampler->before[j++]);
        else
            kept = same_keep(sampler, &sampler->before[j++], &sampler->job.items[i++]);
        r = MIN(r, kept);
    }
    sampler->n_before = 0;
    return r;
}

/* --- Nearly free, in every look ----------------------------------------------------------------------- */

static bool is_young(const Sampler *sampler, const SampledProcess *watched)
{
    return sampler->now - watched->met < YOUNG_SECONDS;
}

static bool is_listed(const Sampler *sampler, const SampledProcess *watched)
{
    return !is_machine(sampler) || watched->actor.role != ROLE_OTHER || watched->holds;
}

static void stat_take(const Sampler *sampler, const ProcStat *stat, SampledProcess *watched)
{
    double msec = (double)(stat->user_ticks + stat->system_ticks) * 1000 / sampler->ticks_per_second;
    watched->waits = stat->state == 'D';
    watched->values[PROCESS_MINOR_FAULTS] = stat->minor_faults;
    watched->values[PROCESS_MAJOR_FAULTS] = stat->major_faults;
    watched->values[PROCESS_CPU_MSEC] = (uint64_t)msec;
    watched->values[PROCESS_THREADS] = stat->threads;
    watched->values[PROCESS_LOADER_WAIT_MSEC] = watched->loader_wait_msec;
}

/* False: an exiting process has no memory for some time before it is gone, and zeros would look as if it had
 * freed its memory. */
static bool status_take(Sampler *sampler, const ProcStatus *status, SampledProcess *watched)
{
    /* Before Linux 6.8 an exiting process looks like a kernel thread, except for its parent. */
    watched->kernel = status->kernel_thread && watched->actor.ppid <= 2;
    if (status->rss_bytes == 0)
        return false;
    sampler->roles_stale |= actor_note_name(&watched->actor, status->comm, status->ppid);
    sampler->roles_stale |= actor_note_signals(&watched->actor, status->signals_caught);
    sampler->roles_stale |= actor_note_threads(&watched->actor, sampler->root, status->threads);
    watched->values[PROCESS_ANON] = status->rss_anon_bytes;
    watched->values[PROCESS_FILE] = status->rss_file_bytes;
    watched->values[PROCESS_SHMEM] = status->rss_shmem_bytes;
    watched->values[PROCESS_SWAP] = status->swap_bytes;
    watched->uid = status->euid;
    watched->rss_bytes = status->rss_bytes;
    watched->rss_peak_bytes = status->rss_peak_bytes;
    return true;
}

static bool trains(const SampledProcess *watched)
{
    return watched->actor.role == ROLE_TRAINER || watched->actor.role == ROLE_WORKER;
}

/* False: it has ended. */
static bool figures_read(Sampler *sampler, SampledProcess *watched)
{
    ProcStat stat;
    ProcStatus status;
    const Root *root = sampler->root;
    int pid = watched->actor.pid;
    watched->has_now = false;
    values_forget(watched->values, PROCESS_METRICS);
    int r = proc_stat_read(root, pid, &stat);
    bool gone = r == -ENOENT || r == -ESRCH;
    if (gone || (r >= 0 && (stat.start_ticks != watched->actor.start_ticks || proc_stat_is_over(&stat)))) {
        end_tell(sampler, watched, !gone && stat.start_ticks == watched->actor.start_ticks ? stat.ended : 0);
        return false;
    }
    if (r < 0 || proc_status_read(root, pid, &status) < 0)
        return true; /* the next look will know */
    stat_take(sampler, &stat, watched);
    watched->has_now = status_take(sampler, &status, watched);
    ProcSchedstat sched;
    if (watched->has_now && !sampler->wish.light && trains(watched) &&
        proc_schedstat_read(root, pid, &sched) >= 0)
        watched->values[PROCESS_CPU_WAIT_MSEC] = sched.waited_nsec / 1000000;
    uint64_t fds = 0;
    if (watched->has_now && fds_count_quick(root, pid, &fds) == 0)
        watched->values[PROCESS_FDS] = fds;
    return true;
}

static void search_later(const Sampler *sampler, SampledProcess *watched)
{
    /* On a machine most processes never load PyTorch, and the older one is, the less likely it still will. */
    double age = is_machine(sampler) ? sampler->now - watched->met : 0;
    watched->search_next = sampler->now + MAX(1.0, age / 2);
}

/* A machine has hundreds of processes that do not train: only as many of them are read as are searched. */
static void figures_look(Sampler *sampler)
{
    size_t n = 0;
    unsigned searches = SEARCHES_PER_LOOK;
    for (size_t i = 0; i < sampler->n; i++) {
        SampledProcess *watched = &sampler->watched[i];
        bool wanted = is_listed(sampler, watched) || watched->shown || is_young(sampler, watched);
        bool searched = !wanted && !watched->kernel && searches > 0 && sampler->now >= watched->search_next;
        searches -= searched;
        watched->has_now = false;
        if (!watched->kernel && (wanted || searched) && !figures_read(sampler, watched))
            continue;
        if (searched &&
            (!watched->has_now || watched->waits)) /* otherwise it would stay first in line forever */
            search_later(sampler, watched);
        if (n != i)
            sampler->watched[n] = *watched;
        n++;
    }
    sampler->n = n;
}

/* --- Roles -------------------------------------------------------------------------------------------- */

/* Whether its command, libraries and page tables may be read, for which the kernel takes its locks. */
static bool can_be_asked(const SampledProcess *watched)
{
    return watched->has_now && !watched->waits;
}

static void torch_search(Sampler *sampler, SampledProcess *watched)
{
    search_later(sampler, watched);
    sampler->roles_stale |= actor_search_torch(&watched->actor, sampler->root, &sampler->scratch);
}

/* A parent that has a new child may have loaded PyTorch just before. */
static void torch_inherit(Sampler *sampler, SampledProcess *watched)
{
    SampledProcess *parent = watched_find(sampler, watched->actor.ppid);
    if (!parent)
        return;
    bool new = watched->met >= sampler->now && sampler->now > 0;
    if (new && !parent->actor.torch && can_be_asked(parent))
        torch_search(sampler, parent);
    sampler->roles_stale |=
        actor_inherit_torch(&watched->actor, &parent->actor, sampler->root, &sampler->scratch);
}

/* In turns, beginning after the last process that was searched. */
static void searches_look(Sampler *sampler)
{
    bool first = sampler->now <= 0;
    unsigned searches = first ? UINT32_MAX : SEARCHES_PER_LOOK;
    size_t from = LOWER_BOUND(i, sampler->n, sampler->watched[i].actor.pid <= sampler->search_turn);
    for (size_t i = 0; i < sampler->n && searches > 0; i++) {
        SampledProcess *watched = &sampler->watched[(from + i) % sampler->n];
        if (!can_be_asked(watched) || watched->actor.torch || watched->actor.role == ROLE_MANAGER ||
            sampler->now < watched->search_next)
            continue;
        searches--;
        sampler->search_turn = watched->actor.pid;
        torch_search(sampler, watched);
    }
}

static void roles_assign(Sampler *sampler)
{
    if (actors_assign(sampler->watched, sampler->n, sizeof *sampler->watched, &sampler->stage) >= 0)
        sampler->roles_stale = false;
}

static void roles_look(Sampler *sampler)
{
    for (size_t i = 0; i < sampler->n; i++) {
        SampledProcess *watched = &sampler->watched[i];
        if (!can_be_asked(watched))
            continue;
        sampler->roles_stale |= actor_learn(&watched->actor, sampler->root, &sampler->scratch);
        if (is_young(sampler, watched) && watched->actor.role != ROLE_MANAGER)
            torch_inherit(sampler, watched);
    }
    searches_look(sampler);
    if (sampler->roles_stale)
        roles_assign(sampler);
}

/* A process keeps the environment that it was started with. */
static void names_look(Sampler *sampler)
{
    for (size_t i = 0; i < sampler->n; i++) {
        SampledProcess *watched = &sampler->watched[i];
        LauncherNames names;
        if (watched->named || watched->actor.role != ROLE_TRAINER || !can_be_asked(watched))
            continue;
        watched->named = true;
        if (launcher_names_read(sampler->root, watched->actor.pid, &names) < 0)
            continue;
        JobPlace place = job_place_of(&names);
        watched->rank = place.rank;
        watched->attempt = place.attempt;
    }
}

/* --- What is looked at in turns ----------------------------------------------------------------------- */

static double allowance_seconds(const Sampler *sampler)
{
    double interval = MIN(sampler->wish.interval, 1.0);
    return MIN(ALLOWANCE_SECONDS / sqrt(interval), interval * SHARE_MOST);
}

/* Unused allowance is not saved up for long. */
static void purse_fill(double *purse, double allowance)
{
    *purse = MIN(*purse + allowance, MAX(*purse, allowance * 10));
}

/* The process that has waited longest, and had no turn in this look. */
static SampledProcess *turn_next(const Sampler *sampler)
{
    SampledProcess *next = NULL;
    for (size_t i = 0; i < sampler->n; i++) {
        SampledProcess *watched = &sampler->watched[i];
        if (can_be_asked(watched) && is_listed(sampler, watched) && watched->turn_at < sampler->now &&
            (!next || watched->turn_at < next->turn_at))
            next = watched;
    }
    return next;
}

static void maps_take(const Sampler *sampler, SampledProcess *watched)
{
    (void)maps_count(sampler->root, watched->actor.pid, &watched->values[PROCESS_MAPS]);
}

static void fds_take(const Sampler *sampler, SampledProcess *watched)
{
    if (watched->values[PROCESS_FDS] == U64_UNKNOWN)
        (void)fds_count(sampler->root, watched->actor.pid, &watched->values[PROCESS_FDS]);
}

/* The process after the one whose turn it was last, in the order of pids. */
static SampledProcess *turn_after(const Sampler *sampler, int *turn)
{
    size_t from = LOWER_BOUND(i, sampler->n, sampler->watched[i].actor.pid <= *turn);
    for (size_t i = 0; i < sampler->n; i++) {
        SampledProcess *watched = &sampler->watched[(from + i) % sampler->n];
        if (can_be_asked(watched) && is_listed(sampler, watched)) {
            *turn = watched->actor.pid;
            return watched;
        }
    }
    return NULL;
}

/* Without a purse: a process near the limit of mappings or descriptors costs the most to count, and its count
 * is the one that matters. */
static void counts_look(Sampler *sampler)
{
    SampledProcess *watched =
        sampler->now >= sampler->maps_next ? turn_after(sampler, &sampler->maps_turn) : NULL;
    if (watched) {
        maps_take(sampler, watched);
        sampler->maps_next = sampler->now + MAPS_SECONDS;
    }
    for (unsigned i = 0; i < FDS_PER_LOOK && (watched = turn_after(sampler, &sampler->fds_turn)); i++)
        fds_take(sampler, watched);
}

static void turn_take(const Sampler *sampler, SampledProcess *watched)
{
    Smaps sizes;
    watched->turn_at = sampler->now;
    if (smaps_rollup_read(sampler->root, watched->actor.pid, &sizes) >= 0) {
        watched->values[PROCESS_PSS] = sizes.pss_bytes;
        watched->values[PROCESS_USS] = sizes.private_bytes;
    }
}

static void turns_look(Sampler *sampler)
{
    purse_fill(&sampler->processes_purse, allowance_seconds(sampler) * (1 - SEGMENTS_PART));
    while (sampler->processes_purse > 0) {
        SampledProcess *watched = turn_next(sampler);
        if (!watched)
            return;
        double before = cpu_seconds();
        turn_take(sampler, watched);
        sampler->processes_purse -= cpu_seconds() - before;
    }
}

/* A survey of the processes that are watched. */
static int segments_survey(const Sampler *sampler, Survey *survey)
{
    Mounts mounts = {0};
    if (mounts_read(sampler->root, 0, &survey->arena, &mounts) == -ENOMEM)
        return -ENOMEM;
    shmfs_read(sampler->root, &mounts, &survey->machine.shm);
    for (size_t i = 0; i < sampler->n; i++) {
        const SampledProcess *watched = &sampler->watched[i];
        const Actor *actor = &watched->actor;
        if (watched->kernel || watched->waits)
            continue;
        Process *process =
            ARENA_PUSH(&survey->arena, survey->processes, survey->n_processes, survey->processes_capacity);
        char *command = arena_copy(&survey->arena, actor->command ? actor->command : "",
                                   actor->command ? strlen(actor->command) : 0);
        if (!process || !command)
            return -ENOMEM;
        *process = (Process){
            .pid = actor->pid,
            .ppid = actor->ppid,
            .role = actor->role,
            .start = actor->start,
            .job = actor->job,
            .command = text_of(command),
            .started = watched->started,
            .pss_bytes = U64_UNKNOWN,
            .uss_bytes = U64_UNKNOWN,
            .open_files_soft = U64_UNKNOWN,
            .open_files_hard = U64_UNKNOWN,
            .maps = U64_UNKNOWN,
            .torch = actor->torch,
            .has_memory = true,
            .readable = true,
        };
        memcpy(process->comm, actor->comm, sizeof process->comm);
    }
    return segments_scan(sampler->root, &mounts, survey);
}

static void segments_count(Sampler *sampler, uint64_t *job_values)
{
    const Survey *survey = &sampler->segments;
    for (size_t i = 0; i < SEGMENT_KINDS; i++)
        job_values[JOB_KIND_BYTES + i] = 0;
    for (size_t i = 0; i < survey->n_segments; i++) {
        const Segment *segment = &survey->segments[i];
        if (is_machine(sampler) || segment->n_holders > 0)
            job_values[JOB_KIND_BYTES + segment->kind] += segment->allocated_bytes;
    }
    for (size_t i = 0; i < survey->n_processes; i++) {
        const Process *process = &survey->processes[i];
        SampledProcess *watched = watched_find(sampler, process->pid);
        watched->holds = process->segments > 0;
        if (!watched->has_now || !process->readable)
            continue;
        watched->values[PROCESS_SHM] = process->shm_bytes;
        watched->values[PROCESS_SEGMENTS] = process->segments;
        if (watched->values[PROCESS_FDS] == U64_UNKNOWN)
            watched->values[PROCESS_FDS] = process->fds;
    }
}

static void segments_look(Sampler *sampler, uint64_t *job_values)
{
    purse_fill(&sampler->segments_purse, allowance_seconds(sampler) * SEGMENTS_PART);
    if (sampler->segments_purse <= 0)
        return;
    double before = cpu_seconds();
    Survey survey = {0};
    if (segments_survey(sampler, &survey) >= 0) {
        survey_free(&sampler->segments);
        sampler->segments = survey;
        sampler->segments_at = sampler->now;
        segments_count(sampler, job_values);
    } else
        survey_free(&survey);
    sampler->segments_purse -= cpu_seconds() - before;
}

/* --- The job as a whole ------------------------------------------------------------------------------- */

/* The process whose control group and /dev/shm are the job's; 0: our own, -1: none is left. */
static int eyes_of(const Sampler *sampler)
{
    if (is_machine(sampler))
        return 0;
    if (watched_find(sampler, sampler->wish.pid))
        return sampler->wish.pid;
    return sampler->n > 0 ? sampler->watched[0].actor.pid : -1;
}

/* Reports which process was killed, if the kernel log can be read. */
static void oom_tell(Sampler *sampler, uint64_t kills, bool in_group)
{
    _cleanup_arena_ Arena arena = {0};
    OomKills log = {0};
    Actor victim = {0};
    char text[sizeof((Event *)NULL)->text] = "";
    (void)kmsg_read(sampler->root, &arena, &log);
    if (log.n > 0) {
        const OomKill *kill = &log.items[log.n - 1];
        const SampledProcess *watched = watched_find(sampler, kill->pid);
        victim = watched ? watched->actor : (Actor){.pid = 0};
        snprintf(text, sizeof text, EVENT_OOM_VICTIM, kill->comm, kill->pid);
    }
    if (text[0] == '\0')
        snprintf(text, sizeof text, in_group ? EVENT_OOM_IN_GROUP : EVENT_OOM_ON_MACHINE,
                 (unsigned long long)kills);
    event_add(sampler, sampler->now, EVENT_OOM_KILL, &victim, text);
}

static void oom_look(Sampler *sampler, uint64_t kills, bool in_group)
{
    if (kills != U64_UNKNOWN && sampler->oom_kills != U64_UNKNOWN && kills > sampler->oom_kills)
        oom_tell(sampler, kills - sampler->oom_kills, in_group);
    if (kills != U64_UNKNOWN)
        sampler->oom_kills = kills;
}

static void shm_look(const Sampler *sampler, int eyes, uint64_t *values)
{
    FsStat fs;
    const char *path = eyes == 0 ? SHM_PATH : PROC_PATH(eyes, "root/" SHM_PATH);
    if (root_statfs(sampler->root, path, &fs) < 0 || fs.size_bytes == 0)
        return;
    values[JOB_SHM_SIZE] = fs.size_bytes;
    values[JOB_SHM_USED] = fs.size_bytes - MIN(fs.free_bytes, fs.size_bytes);
}

static void job_look(Sampler *sampler, uint64_t *values)
{
    MemInfo memory;
    Cgroup group;
    Pressure disk;
    int eyes = eyes_of(sampler);
    if (meminfo_read(sampler->root, &memory) >= 0) {
        values[JOB_MEMORY_TOTAL] = memory.total_bytes;
        values[JOB_MEMORY_AVAILABLE] = memory.available_bytes;
        values[JOB_SWAP_FREE] = memory.swap_free_bytes;
    }
    if (pressure_read(sampler->root, "io", &disk) >= 0)
        values[JOB_DISK_WAIT_MSEC] = disk.some_usec / 1000;
    bool in_group = eyes >= 0 && cgroup_read(sampler->root, eyes, &sampler->mounts, &group) >= 0 &&
                    group.memory_limit_bytes != U64_UNKNOWN;
    if (in_group) {
        values[JOB_GROUP_LIMIT] = group.memory_limit_bytes;
        values[JOB_GROUP_USED] = group.memory_used_bytes;
        values[JOB_GROUP_FILE] =
            group.memory_used_bytes == U64_UNKNOWN ? U64_UNKNOWN : group.memory_reclaimable_bytes;
        values[JOB_OOM_KILLS] = group.oom_kills;
    } else
        (void)vmstat_read_oom_kills(sampler->root, &values[JOB_OOM_KILLS]);
    if (eyes >= 0)
        shm_look(sampler, eyes, values);
    oom_look(sampler, values[JOB_OOM_KILLS], in_group);
}

/* --- A look ------------------------------------------------------------------------------------------- */

static ProcessMoment moment_of(const SampledProcess *watched)
{
    const Actor *actor = &watched->actor;
    ProcessMoment moment = {
        .pid = actor->pid,
        .ppid = actor->ppid,
        .start_ticks = actor->start_ticks,
        .started = watched->started,
        .role = actor->role,
        .start = actor->start,
        .job = actor->job,
        .rank = watched->rank,
        .attempt = watched->attempt,
        .command = actor->command ? actor->command : "",
        .uid = watched->uid,
        .torch = actor->torch,
        .loaders = actor->signs.loaders,
        .command_hash = actor->command_hash,
        .rss_bytes = watched->rss_bytes,
        .rss_peak_bytes = watched->rss_peak_bytes,
    };
    memcpy(moment.comm, actor->comm, sizeof moment.comm);
    memcpy(moment.values, watched->values, sizeof moment.values);
    return moment;
}

static int moments_fill(Sampler *sampler, Moment *moment)
{
    if (sampler->moments_capacity < sampler->n) {
        ProcessMoment *larger = reallocarray(sampler->moments, sampler->capacity, sizeof *larger);
        if (!larger)
            return -ENOMEM;
        sampler->moments = larger;
        sampler->moments_capacity = sampler->capacity;
    }
    size_t n = 0;
    for (size_t i = 0; i < sampler->n; i++) {
        SampledProcess *watched = &sampler->watched[i];
        if (!watched->has_now || !is_listed(sampler, watched))
            continue;
        watched->shown = true;
        if (sampler->now > watched->met)
            born_tell(sampler, watched);
        sampler->moments[n++] = moment_of(watched);
    }
    moment->processes = sampler->moments;
    moment->n_processes = n;
    moment->n_unlisted = sampler->job.all - sampler->job.n;
    return 0;
}

int sampler_look(Sampler *sampler, Moment *ret)
{
    if (sampler->over)
        return -ESRCH;
    double now = now_seconds();
    if (sampler->origin == 0)
        sampler->origin = now;
    sampler->last = sampler->now;
    sampler->now = now - sampler->origin;
    sampler->n_events = 0;
    Moment moment = {.seconds = sampler->now};
    values_forget(moment.values, JOB_METRICS);

    int r = processes_look(sampler);
    if (r < 0)
        return r;
    figures_look(sampler);
    roles_look(sampler);
    counts_look(sampler);
    if (!sampler->wish.light) {
        names_look(sampler);
        turns_look(sampler);
        job_look(sampler, moment.values);
        segments_look(sampler, moment.values);
    }
    r = moments_fill(sampler, &moment);
    if (r < 0)
        return r;
    if (sampler->n_events > 1)
        qsort(sampler->events, sampler->n_events, sizeof *sampler->events, events_order);
    sampler->over = sampler->wish.pid > 0 && sampler->n == 0;
    moment.events = sampler->events;
    moment.n_events = sampler->n_events;
    *ret = moment;
    return 0;
}

int sampler_look_at(Sampler *sampler, int pid, ProcessMoment *ret)
{
    Moment all;
    SampledProcess *watched = watched_find(sampler, pid);
    if (!watched && sampler_look(sampler, &all) >= 0)
        watched = watched_find(sampler, pid);
    if (!watched || !figures_read(sampler, watched) || !watched->has_now)
        return -ESRCH;
    if (!watched->waits) {
        watched->actor.looks = 0;
        (void)actor_learn(&watched->actor, sampler->root, &sampler->scratch);
        torch_inherit(sampler, watched);
        torch_search(sampler, watched);
        maps_take(sampler, watched);
        fds_take(sampler, watched);
        roles_assign(sampler);
    }
    *ret = moment_of(watched);
    return 0;
}

void sampler_note_wait(Sampler *sampler, int pid, uint64_t msec)
{
    SampledProcess *watched = watched_find(sampler, pid);
    if (watched)
        watched->loader_wait_msec = msec;
}

bool sampler_covers(const Sampler *sampler, int pid)
{
    return job_processes_has(&sampler->job, pid);
}

bool sampler_take_segments(Sampler *sampler, Survey *ret, double *ret_seconds)
{
    if (sampler->segments_at < 0)
        return false;
    *ret = TAKE(sampler->segments, (Survey){0});
    *ret_seconds = TAKE(sampler->segments_at, -1);
    return true;
}

int sampler_open(const Root *root, const SamplerWish *wish, Sampler **ret)
{
    Sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return -ENOMEM;
    *sampler = (Sampler){
        .root = root,
        .wish = *wish,
        .booted = root_realtime(root) - root_boottime(root),
        .ticks_per_second = (double)sysconf(_SC_CLK_TCK),
        .processes_purse = FIRST_SECONDS * (1 - SEGMENTS_PART),
        .segments_purse = FIRST_SECONDS * SEGMENTS_PART,
        .segments_at = -1,
        .oom_kills = U64_UNKNOWN,
    };
    int r = wish->pid == SAMPLER_CHILDREN ? job_processes_open(root, getpid(), &sampler->job)
                                          : job_processes_attach(root, wish->pid, &sampler->job);
    if (r >= 0 && !wish->light && mounts_read(root, 0, &sampler->mounts_arena, &sampler->mounts) == -ENOMEM)
        r = -ENOMEM;
    if (r < 0) {
        sampler_free(sampler);
        return r;
    }
    *ret = sampler;
    return 0;
}

void sampler_free(Sampler *sampler)
{
    if (!sampler)
        return;
    for (size_t i = 0; i < sampler->n; i++)
        actor_free(&sampler->watched[i].actor);
    job_processes_close(&sampler->job);
    survey_free(&sampler->segments);
    arena_free(&sampler->mounts_arena);
    buffer_free(&sampler->scratch);
    free(sampler->stage.processes);
    free(sampler->watched);
    free(sampler->before);
    free(sampler->moments);
    free(sampler->events);
    free(sampler);
}
