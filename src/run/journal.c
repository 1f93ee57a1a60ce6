/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "journal.h"
#include "memory-context.h"
#include "proc-status.h"
#include "process-log.h"
#include "sampler.h"
#include "testimony.h"

enum {
    LIBRARY_PER_TICK = 4, /* searches for our library through all of a process's mappings */
    FAULTS_PER_TICK = 64, /* examined; some programs use faults on purpose, thousands per second */
};

/* A fault that no handler survived is the cause of the end, if the process ended this soon after it. */
static const double FATAL_SECONDS = 5;

/* How old the last moment from another thread may be before we look ourselves: that thread may hang, on a
 * disk or on a process, or stop when its file can no longer be written. */
static const double GIVEN_SECONDS = 1.5;

struct Journal {
    const Root *root;
    Sampler *sampler;
    MemoryContext memory;
    ProcessLog logged;
    int command;
    double began;
    double given; /* when the last moment was given to us; 0: none was */
    Peaks peaks;
    uint64_t fds_most;
    uint64_t maps_most;
    uint32_t loaders;  /* the most DataLoader workers that were threads of one process */
    PresenceWish wish; /* without a library, processes are not searched for it */
    unsigned faults_left;
    Buffer scratch;
};

static double seconds_so_far(const Journal *journal)
{
    return journal->command > 0 ? now_seconds() - journal->began : 0;
}

/* --- Samples ------------------------------------------------------------------------------------------ */

static LoggedProcess *process_end(Journal *journal, LoggedProcess *logged)
{
    return process_log_end(&journal->logged, logged, seconds_so_far(journal));
}

static void peaks_note(LoggedProcess *logged, uint64_t rss_peak_bytes, uint64_t rss_bytes,
                       uint64_t rss_shmem_bytes)
{
    u64_raise(&logged->rss_peak_bytes, rss_peak_bytes);
    u64_raise(&logged->shm_peak_bytes, rss_shmem_bytes);
    if (rss_shmem_bytes != U64_UNKNOWN && rss_bytes != U64_UNKNOWN)
        u64_raise(&logged->own_peak_bytes, rss_bytes - MIN(rss_shmem_bytes, rss_bytes));
}

/* A figure that was not counted this time keeps its last value. */
static void count_note(uint64_t count, uint64_t *last, uint64_t *most)
{
    if (count != U64_UNKNOWN)
        *last = count;
    u64_raise(most, count);
}

/* A worker that has lost its trainer looks like a trainer, and one that is known only from its testimony does
 * not look like a worker. Both stay workers. */
static void role_note(LoggedProcess *logged, Role role)
{
    if (role != ROLE_OTHER && logged->role != ROLE_WORKER)
        logged->role = role;
}

static void sample_note(Journal *journal, LoggedProcess *logged, const ProcessMoment *moment)
{
    const uint64_t *values = moment->values;
    if (!logged->has_sample)
        logged->last = (Sample){.fds = U64_UNKNOWN, .maps = U64_UNKNOWN};
    logged->has_sample = true;
    logged->last.seconds = seconds_so_far(journal);
    logged->last.rss_bytes = moment->rss_bytes;
    logged->last.rss_shmem_bytes = values[PROCESS_SHMEM];
    logged->last.threads = (uint32_t)values[PROCESS_THREADS];
    count_note(values[PROCESS_FDS], &logged->last.fds, &journal->fds_most);
    count_note(values[PROCESS_MAPS], &logged->last.maps, &journal->maps_most);
    peaks_note(logged, moment->rss_peak_bytes, moment->rss_bytes, values[PROCESS_SHMEM]);
    logged->ppid = moment->ppid;
    memcpy(logged->comm, moment->comm, sizeof logged->comm);
    role_note(logged, moment->role);
    logged->torch = moment->torch;
    logged->uid = moment->uid;
    journal->loaders = MAX(journal->loaders, moment->loaders);
    if (moment->command_hash != 0 && moment->command_hash != logged->command_hash) {
        logged->command_hash = moment->command_hash;
        logged->presence = (Presence){0}; /* another program, which may have lost our library */
    }
}

/* NULL if the process has ended; its record, if it was ever seen, is among the ended. */
static LoggedProcess *process_meet(Journal *journal, int pid)
{
    ProcStat stat;
    LoggedProcess *logged = process_log_live(&journal->logged, pid);
    int r = proc_stat_read(journal->root, pid, &stat);
    bool gone = r == -ENOENT || r == -ESRCH;
    if (r < 0 && !gone)
        return logged;
    if (logged && (gone || stat.start_ticks != logged->start_ticks)) {
        (void)process_end(journal, logged);
        logged = NULL;
    }
    if (gone)
        return NULL;
    if (proc_stat_is_over(&stat)) {
        if (!logged)
            return NULL; /* its parent, or we ourselves, will report its end */
        logged->has_status = stat.ended != 0;
        logged->status = stat.ended;
        (void)process_end(journal, logged);
        return NULL;
    }
    if (!logged)
        logged = process_log_add(&journal->logged, pid, stat.start_ticks);
    if (!logged)
        return NULL;
    logged->is_command = pid == journal->command;
    logged->ppid = stat.ppid;
    memcpy(logged->comm, stat.comm, sizeof logged->comm);
    return logged;
}

static const ProcessMoment *moment_find(const Moment *moment, int pid)
{
    size_t low = LOWER_BOUND(i, moment->n_processes, moment->processes[i].pid < pid);
    return low < moment->n_processes && moment->processes[low].pid == pid ? &moment->processes[low] : NULL;
}

/* A process that the moment lacks may have ended, may be exiting, or may be newer than the moment; a process
 * that is new in it may have ended since. /proc tells. */
static void samples_note(Journal *journal, const Moment *moment)
{
    for (size_t i = journal->logged.n_live; i-- > 0;)
        if (!moment_find(moment, journal->logged.live[i].pid))
            (void)process_meet(journal, journal->logged.live[i].pid);
    for (size_t i = 0; i < moment->n_processes; i++) {
        const ProcessMoment *process = &moment->processes[i];
        LoggedProcess *logged = process_log_live(&journal->logged, process->pid);
        if (!logged || logged->start_ticks != process->start_ticks)
            logged = process_meet(journal, process->pid);
        if (logged && logged->start_ticks == process->start_ticks)
            sample_note(journal, logged, process);
    }
}

/* --- Our library -------------------------------------------------------------------------------------- */

static bool is_expected(const LoggedProcess *logged)
{
    return logged->has_sample && !logged->presence.known &&
           (logged->torch || logged->role == ROLE_TRAINER || logged->role == ROLE_WORKER ||
            text_starts(text_of(logged->comm), "python"));
}

/* Processes of other users trust only root's supervisor, and root's processes trust no other. */
static bool is_served(const LoggedProcess *logged)
{
    return geteuid() == 0 || logged->uid == geteuid();
}

static bool presence_take(Journal *journal, LoggedProcess *logged)
{
    const LoggedProcess *parent = process_log_live(&journal->logged, logged->ppid);
    return parent && parent->presence.known &&
           presence_inherit(journal->root, logged->pid, &parent->presence, &journal->wish, &journal->scratch,
                            &logged->presence);
}

static void presences_look(Journal *journal)
{
    unsigned searches = journal->wish.library ? LIBRARY_PER_TICK : 0;
    for (size_t i = 0; i < journal->logged.n_live && searches > 0; i++) {
        LoggedProcess *logged = &journal->logged.live[i];
        if (!is_expected(logged) || presence_take(journal, logged))
            continue;
        searches--;
        presence_search(journal->root, logged->pid, logged->uid, seconds_so_far(journal), &journal->wish,
                        &journal->scratch, &logged->presence);
        Absence why = logged->presence.why;
        if (logged->presence.known && !is_served(logged) &&
            (why == ABSENCE_NONE || why == ABSENCE_UNREADABLE_PROCESS))
            logged->presence.why = ABSENCE_USER;
    }
}

void journal_expect(Journal *journal, const char *library, const char *socket)
{
    journal->wish = (PresenceWish){library, socket};
}

/* --- Once a second ------------------------------------------------------------------------------------ */

static void peaks_raise(Journal *journal, size_t n_unlisted)
{
    uint64_t rss = 0;
    uint64_t shared = 0;
    uint64_t fds = 0;
    bool has_fds = false;
    for (size_t i = 0; i < journal->logged.n_live; i++) {
        const LoggedProcess *logged = &journal->logged.live[i];
        if (!logged->has_sample)
            continue;
        rss += logged->last.rss_bytes == U64_UNKNOWN ? 0 : logged->last.rss_bytes;
        shared += logged->last.rss_shmem_bytes == U64_UNKNOWN ? 0 : logged->last.rss_shmem_bytes;
        has_fds |= logged->last.fds != U64_UNKNOWN;
        fds += logged->last.fds == U64_UNKNOWN ? 0 : logged->last.fds;
    }
    if (journal->logged.n_live > 0) {
        u64_raise(&journal->peaks.rss_bytes, rss);
        u64_raise(&journal->peaks.own_bytes, rss - MIN(rss, shared));
    }
    if (has_fds)
        u64_raise(&journal->peaks.fds, fds);
    u64_raise(&journal->peaks.processes, journal->logged.n_live + n_unlisted);
}

static void moment_note(Journal *journal, const Moment *moment)
{
    samples_note(journal, moment);
    presences_look(journal);
    peaks_raise(journal, moment->n_unlisted);
}

void journal_take(Journal *journal, const Moment *moment)
{
    if (journal->command == 0)
        return;
    journal->given = now_seconds();
    moment_note(journal, moment);
}

void journal_tick(Journal *journal)
{
    Moment moment;
    journal->faults_left = FAULTS_PER_TICK;
    if (journal->command == 0)
        return;
    memory_context_look(&journal->memory,
                        process_log_live(&journal->logged, journal->command) ? journal->command : 0);
    bool is_given = journal->given > 0 && now_seconds() - journal->given < GIVEN_SECONDS;
    if (!is_given && sampler_look(journal->sampler, &moment) >= 0)
        moment_note(journal, &moment);
}

void journal_peek(Journal *journal)
{
    ProcStatus status;
    if (journal->command == 0)
        return;
    for (size_t i = 0; i < journal->logged.n_live; i++) {
        LoggedProcess *logged = &journal->logged.live[i];
        /* Whether it still is the same process is seen at the next tick: numbers are not used again within a
         * second. */
        if (proc_status_read(journal->root, logged->pid, &status) >= 0 && status.rss_bytes > 0)
            peaks_note(logged, status.rss_peak_bytes, status.rss_bytes, status.rss_shmem_bytes);
    }
    if (process_log_live(&journal->logged, journal->command))
        memory_context_look_shm(&journal->memory, journal->command);
}

void journal_begin(Journal *journal, int pid)
{
    journal->command = pid;
    journal->began = now_seconds();
    (void)process_meet(journal, pid); /* so that it is known even when it ends at once */
    journal_tick(journal);
}

/* --- What is told ------------------------------------------------------------------------------------- */

/* A process that ended before it was seen. NULL: not kept. */
static LoggedProcess *unseen_end(Journal *journal, int pid, int ppid)
{
    LoggedProcess *logged = process_log_add(&journal->logged, pid, 0);
    if (!logged)
        return NULL;
    logged->ppid = ppid;
    logged->is_command = pid == journal->command;
    return process_end(journal, logged);
}

/* The process that sent a testimony. It may be dead by the time its last words arrive. */
static LoggedProcess *speaker_find(Journal *journal, int pid)
{
    bool was_known = process_log_live(&journal->logged, pid);
    LoggedProcess *logged = NULL;
    if (was_known || sampler_covers(journal->sampler, pid))
        logged = process_meet(journal, pid);
    if (logged)
        return logged;
    ProcStat stat;
    bool exists = proc_stat_read(journal->root, pid, &stat) == 0 && !proc_stat_is_over(&stat);
    if (exists) /* it does not belong to the job */
        return NULL;
    logged = process_log_ended(&journal->logged, pid);
    return logged ? logged : unseen_end(journal, pid, 0);
}

static void fault_testify(Journal *journal, LoggedProcess *logged, const Testimony *testimony, int maps)
{
    bool look = journal->faults_left > 0;
    journal->faults_left -= look;
    fault_read(journal->root, logged->pid, testimony, look, maps, &journal->scratch, &logged->fault);
    logged->has_fault = true;
    memory_context_note_shm(&journal->memory, logged->fault.shm_size_bytes, logged->fault.shm_free_bytes);
    logged->faulted = seconds_so_far(journal);
    free(TAKE_PTR(logged->path));
    free(TAKE_PTR(logged->stack)); /* of an earlier fault */
    const char *path = TAKE_PTR(logged->fault.path);
    if (path)
        (void)process_log_quote(&journal->logged, logged, &logged->path, path, strlen(path));
    if (!look || logged != process_log_live(&journal->logged, logged->pid))
        return;

    ProcessMoment now;
    if (sampler_look_at(journal->sampler, logged->pid, &now) >= 0)
        sample_note(journal, logged, &now);
}

/* Its handlers say that it is a worker, perhaps before we have looked at it. The command itself is never one.
 */
static void worker_note(const Journal *journal, LoggedProcess *logged)
{
    if (logged->pid != journal->command && logged->role != ROLE_MANAGER)
        logged->role = ROLE_WORKER;
}

static void status_note(LoggedProcess *logged, int status, bool by_us)
{
    logged->has_status = true;
    logged->status = status;
    logged->by_us |= by_us;
}

/* The end of a process may be reported by its parent, by our own wait, and by its zombie. */
static void end_note(Journal *journal, int pid, int ppid, int status, bool by_us)
{
    LoggedProcess *logged = process_log_live(&journal->logged, pid);
    if (logged) {
        status_note(logged, status, by_us);
        (void)process_end(journal, logged);
        return;
    }
    logged = process_log_ended(&journal->logged, pid);
    /* A number is used again only after all others were, so an end with the same status is the same end. */
    bool again = logged && logged->has_status && logged->status != status;
    if (!logged || again)
        logged = unseen_end(journal, pid, ppid);
    if (logged)
        status_note(logged, status, by_us);
}

/* Numbers from a nested pid namespace would name other processes here. */
static bool is_in_our_namespace(const Journal *journal, int pid)
{
    ProcStatus status;
    return proc_status_read(journal->root, pid, &status) < 0 || status.pid_namespaces <= 1;
}

static bool child_testify(Journal *journal, int parent, const Testimony *testimony)
{
    ProcStat stat;
    int pid = testimony->pid;
    if (pid == parent || pid == getpid() || !is_in_our_namespace(journal, parent))
        return false;
    LoggedProcess *logged = process_log_live(&journal->logged, pid);
    bool exists = proc_stat_read(journal->root, pid, &stat) == 0 && !proc_stat_is_over(&stat);
    if (exists && (!logged || stat.start_ticks == logged->start_ticks))
        return false; /* it lives */
    end_note(journal, pid, parent, testimony->status, false);
    return true;
}

bool journal_testify(Journal *journal, int pid, const Testimony *testimony, size_t size, int maps)
{
    if (pid <= 0 || journal->command == 0 || !testimony_is_sane(testimony, size))
        return false;
    LoggedProcess *logged = speaker_find(journal, pid);
    if (!logged)
        return false;
    switch (testimony->type) {
    case MESSAGE_FAULT:
        fault_testify(journal, logged, testimony, maps);
        if (testimony->worker == 1)
            worker_note(journal, logged);
        return true;
    case MESSAGE_STACK:
        return logged->has_fault &&
               process_log_quote(&journal->logged, logged, &logged->stack, testimony->text, testimony->n);
    case MESSAGE_SAID:
        if (testimony->worker == 1)
            worker_note(journal, logged);
        if (testimony->n == 0 ||
            !process_log_quote(&journal->logged, logged, &logged->said, testimony->text, testimony->n))
            return testimony->n == 0;
        logged->said_size = testimony->n;
        return true;
    default:
        return child_testify(journal, pid, testimony);
    }
}

/* While we walk up, a parent may end, and its child become ours. */
static bool is_below_us(const Journal *journal, int pid)
{
    enum { TRIES = 3 };
    for (int i = 0; i < TRIES; i++)
        if (sampler_covers(journal->sampler, pid))
            return true;
    return false;
}

/* Only our library connects. */
static void presence_note(Journal *journal, int pid)
{
    LoggedProcess *logged = process_meet(journal, pid);
    if (logged && (!logged->presence.known || logged->presence.why == ABSENCE_UNREADABLE_PROCESS))
        logged->presence = (Presence){.known = true, .loaded = true};
}

Peer journal_peer(Journal *journal, int pid, uint32_t uid)
{
    ProcStatus status;
    int r = proc_status_read(journal->root, pid, &status);
    if (r == -ENOENT || r == -ESRCH)
        return process_log_live(&journal->logged, pid) || process_log_ended(&journal->logged, pid)
                   ? PEER_GONE
                   : PEER_STRANGER;
    if (r < 0 || status.euid != uid || !is_below_us(journal, pid))
        return PEER_STRANGER;
    presence_note(journal, pid);
    return PEER_JOB;
}

void journal_ending(Journal *journal, int pid)
{
    LoggedProcess *logged = speaker_find(journal, pid);
    if (logged)
        logged->by_us = true;
}

void journal_reaped(Journal *journal, int pid, int status, bool by_us)
{
    if (WIFEXITED(status) || WIFSIGNALED(status))
        end_note(journal, pid, 0, status, by_us);
}

/* --- The end ------------------------------------------------------------------------------------------ */

Peaks journal_peaks(const Journal *journal)
{
    Peaks peaks = journal->peaks;
    peaks.shm_bytes = journal->memory.shm_used_most_bytes;
    return peaks;
}

static bool peak_write(const LoggedProcess *logged, Arena *arena, ProcessPeak **list, size_t *n,
                       size_t *capacity)
{
    if (logged->rss_peak_bytes == U64_UNKNOWN && logged->own_peak_bytes == U64_UNKNOWN)
        return true; /* it ended before it was ever sampled */
    ProcessPeak *peak = ARENA_PUSH(arena, *list, *n, *capacity);
    if (!peak)
        return false;
    *peak = (ProcessPeak){
        .pid = logged->pid,
        .role = logged->role,
        .rss_bytes = logged->rss_peak_bytes,
        .shm_bytes = logged->shm_peak_bytes,
        .own_bytes = logged->own_peak_bytes,
    };
    memcpy(peak->comm, logged->comm, sizeof peak->comm);
    return true;
}

int journal_processes(const Journal *journal, Arena *arena, ProcessPeak **ret, size_t *ret_n)
{
    ProcessPeak *list = NULL;
    size_t n = 0;
    size_t capacity = 0;
    bool whole = true;
    for (size_t i = 0; whole && i < journal->logged.n_ended; i++)
        whole = peak_write(&journal->logged.ended[i], arena, &list, &n, &capacity);
    for (size_t i = 0; whole && i < journal->logged.n_live; i++)
        whole = peak_write(&journal->logged.live[i], arena, &list, &n, &capacity);
    if (!whole)
        return -ENOMEM;
    *ret = list;
    *ret_n = n;
    return 0;
}

Role journal_role(const Journal *journal, int pid)
{
    const LoggedProcess *logged = process_log_live(&journal->logged, pid);
    return logged ? logged->role : ROLE_OTHER;
}

Keeper journal_keeper(const Journal *journal, uint64_t (*bytes)(void *context, int pid), void *context)
{
    Keeper most = {0};
    for (size_t i = 0; i < journal->logged.n_live; i++) {
        const LoggedProcess *logged = &journal->logged.live[i];
        uint64_t kept = bytes(context, logged->pid);
        if (kept <= most.bytes)
            continue;
        most = (Keeper){.pid = logged->pid, .role = logged->role, .bytes = kept};
        memcpy(most.comm, logged->comm, sizeof most.comm);
    }
    return most;
}

void journal_roles(const Journal *journal, uint64_t *ret_trainers, uint64_t *ret_workers)
{
    *ret_trainers = *ret_workers = 0;
    for (size_t i = 0; i < journal->logged.n_live; i++) {
        *ret_trainers += journal->logged.live[i].role == ROLE_TRAINER;
        *ret_workers += journal->logged.live[i].role == ROLE_WORKER;
    }
}

static bool text_keep(Arena *arena, const char *text, const char **ret)
{
    *ret = text ? arena_copy(arena, text, strlen(text)) : NULL;
    return !text || *ret;
}

static bool ended_write(const LoggedProcess *logged, Arena *arena, Evidence *evidence)
{
    Ended *ended = ARENA_PUSH(arena, evidence->ended, evidence->n_ended, evidence->ended_capacity);
    if (!ended)
        return false;
    bool by_signal = logged->has_status && WIFSIGNALED(logged->status);
    bool fatal = logged->has_fault && logged->ended - logged->faulted < FATAL_SECONDS;
    *ended = (Ended){
        .pid = logged->pid,
        .ppid = logged->ppid,
        .role = logged->role,
        .seconds = fatal ? logged->faulted : logged->ended,
        .has_status = logged->has_status,
        .signal = by_signal ? WTERMSIG(logged->status) : 0,
        .code = logged->has_status && !by_signal ? WEXITSTATUS(logged->status) : 0,
        .by_us = logged->by_us,
        .has_fault = logged->has_fault,
        .fault = logged->fault,
        .said.size = logged->said_size,
        .has_sample = logged->has_sample,
        .last = logged->last,
    };
    memcpy(ended->comm, logged->comm, sizeof ended->comm);
    if (logged->said && !(ended->said.data = arena_copy(arena, logged->said, logged->said_size)))
        return false;
    return text_keep(arena, logged->path, &ended->fault.path) &&
           text_keep(arena, logged->stack, &ended->fault.stack);
}

static bool is_training(Role role)
{
    return role == ROLE_TRAINER || role == ROLE_WORKER;
}

static int unguarded_order(const void *a, const void *b)
{
    const Unguarded *left = a;
    const Unguarded *right = b;
    int roles = is_training(right->role) - is_training(left->role);
    return roles != 0 ? roles : (left->pid > right->pid) - (left->pid < right->pid);
}

static bool presence_write(const LoggedProcess *logged, Arena *arena, Coverage *coverage)
{
    if (!logged->presence.known)
        return true;
    if (logged->presence.why == ABSENCE_NONE) {
        coverage->guarded++;
        return true;
    }
    Unguarded *unguarded =
        ARENA_PUSH(arena, coverage->unguarded, coverage->n_unguarded, coverage->unguarded_capacity);
    if (!unguarded)
        return false;
    *unguarded = (Unguarded){
        .pid = logged->pid, .uid = logged->uid, .role = logged->role, .why = logged->presence.why};
    memcpy(unguarded->comm, logged->comm, sizeof unguarded->comm);
    return true;
}

static bool coverage_write(const ProcessLog *logged, Arena *arena, Coverage *coverage)
{
    bool whole = true;
    for (size_t i = 0; whole && i < logged->n_ended; i++)
        whole = presence_write(&logged->ended[i], arena, coverage);
    for (size_t i = 0; whole && i < logged->n_live; i++)
        whole = presence_write(&logged->live[i], arena, coverage);
    if (coverage->n_unguarded > 0)
        qsort(coverage->unguarded, coverage->n_unguarded, sizeof *coverage->unguarded, unguarded_order);
    coverage->n_unguarded = MIN(coverage->n_unguarded, (size_t)UNGUARDED_MAX);
    return whole;
}

static int ended_order(const void *a, const void *b)
{
    const Ended *left = a;
    const Ended *right = b;
    return (left->seconds > right->seconds) - (left->seconds < right->seconds);
}

int journal_finish(Journal *journal, Arena *arena, Evidence *ret)
{
    Evidence evidence = EVIDENCE_NONE;
    evidence.pid = journal->command;
    int r = memory_context_finish(&journal->memory, arena, &evidence);
    if (r < 0)
        return r;
    evidence.fds_most = journal->fds_most;
    evidence.maps_most = journal->maps_most;

    for (size_t i = journal->logged.n_live; i-- > 0;) /* those that have ended unnoticed */
        (void)process_meet(journal, journal->logged.live[i].pid);
    bool whole = coverage_write(&journal->logged, arena, &evidence.coverage);
    evidence.coverage.loaders = journal->loaders;
    for (size_t i = 0; whole && i < journal->logged.n_ended; i++)
        whole = ended_write(&journal->logged.ended[i], arena, &evidence);
    for (size_t i = 0; whole && i < journal->logged.n_live; i++) {
        LoggedProcess *logged = &journal->logged.live[i];
        logged->ended = logged->faulted;
        if (logged->has_fault)
            whole = ended_write(logged, arena, &evidence);
    }
    if (!whole)
        return -ENOMEM;
    if (evidence.n_ended > 0)
        qsort(evidence.ended, evidence.n_ended, sizeof *evidence.ended, ended_order);
    *ret = evidence;
    return 0;
}

int journal_open(const Root *root, Journal **ret)
{
    Journal *journal = calloc(1, sizeof *journal);
    if (!journal)
        return -ENOMEM;
    *journal = (Journal){
        .root = root,
        .peaks = {.shm_bytes = U64_UNKNOWN,
                  .rss_bytes = U64_UNKNOWN,
                  .own_bytes = U64_UNKNOWN,
                  .fds = U64_UNKNOWN},
        .fds_most = U64_UNKNOWN,
        .maps_most = U64_UNKNOWN,
        .faults_left = FAULTS_PER_TICK,
    };
    SamplerWish wish = {.pid = SAMPLER_CHILDREN, .interval = 1, .light = true};
    int r = sampler_open(root, &wish, &journal->sampler);
    if (r < 0) {
        free(journal);
        return r;
    }
    memory_context_open(root, &journal->memory);
    *ret = journal;
    return 0;
}

void journal_free(Journal *journal)
{
    if (!journal)
        return;
    sampler_free(journal->sampler);
    memory_context_close(&journal->memory);
    process_log_free(&journal->logged);
    buffer_free(&journal->scratch);
    free(journal);
}
