#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "fds.h"
#include "job-processes.h"
#include "journal.h"
#include "maps.h"
#include "proc-status.h"
#include "roles.h"
#include "seen.h"
#include "surroundings.h"
#include "testimony.h"

enum {
    MAPS_EVERY = 2,       /* ticks: to count 1,700 mappings costs as much as a look at all the rest */
    TORCH_PER_TICK = 4,   /* searches for PyTorch through all of a process's libraries */
    OURS_PER_TICK = 4,    /* the same for our own */
    COUNTS_PER_TICK = 4,  /* processes whose descriptors are counted one by one, on kernels before 6.2 */
    FAULTS_PER_TICK = 64, /* looked at: some programs live by faults, and have thousands a second */
};

/* A fault that nobody survived is what ended the process, if it ended this soon. */
static const double FATAL_SECONDS = 5;

struct Journal {
    const Root *root;
    JobProcesses job;
    Surroundings surroundings;
    SeenTable seen;
    int command;
    double began;
    Peaks peaks;
    uint64_t fds_most;
    uint64_t maps_most;
    unsigned ticks;
    int maps_turn; /* the pid whose maps were counted last */
    int torch_turn;
    int count_turn;
    PresenceWish wish; /* without a library: nobody asks */
    unsigned faults_left;
    bool roles_stale;
    Buffer scratch;
    Stage stage;
};

static double seconds_so_far(const Journal *journal)
{
    return journal->command > 0 ? now_seconds() - journal->began : 0;
}

/* --- Roles -------------------------------------------------------------------------------------------- */

/* One question, for one that was forked. */
static void torch_inherit(Journal *journal, Seen *seen)
{
    const Seen *parent = seen_live(&journal->seen, seen->actor.ppid);
    journal->roles_stale |=
        actor_inherit_torch(&seen->actor, parent ? &parent->actor : NULL, journal->root, &journal->scratch);
}

/* Another command is another program, which may have lost our library. */
static void command_learn(Journal *journal, Seen *seen)
{
    if (!actor_learn(&seen->actor, journal->root, &journal->scratch))
        return;
    journal->roles_stale = true;
    seen->presence = (Presence){0};
}

static void torch_search(Journal *journal, Seen *seen)
{
    journal->roles_stale |= actor_search_torch(&seen->actor, journal->root, &journal->scratch);
}

static void roles_assign(Journal *journal)
{
    const SeenTable *seen = &journal->seen;
    if (actors_assign(seen->live, seen->n_live, sizeof *seen->live, &journal->stage) >= 0)
        journal->roles_stale = false;
}

/* --- Samples ------------------------------------------------------------------------------------------ */

static void fds_note(Journal *journal, Seen *seen, uint64_t fds)
{
    seen->last.fds = fds;
    u64_raise(&journal->fds_most, fds);
}

static void maps_look(Journal *journal, Seen *seen)
{
    uint64_t maps = 0;
    if (maps_count(journal->root, seen->actor.pid, &maps) < 0)
        return;
    seen->last.maps = maps;
    u64_raise(&journal->maps_most, maps);
}

static Seen *process_end(Journal *journal, Seen *seen)
{
    return seen_end(&journal->seen, seen, seconds_so_far(journal));
}

static void peaks_note(Seen *seen, const ProcStatus *status)
{
    u64_raise(&seen->rss_peak_bytes, status->rss_peak_bytes);
    u64_raise(&seen->shm_peak_bytes, status->rss_shmem_bytes);
    if (status->rss_shmem_bytes != U64_UNKNOWN && status->rss_bytes != U64_UNKNOWN)
        u64_raise(&seen->own_peak_bytes, status->rss_bytes - MIN(status->rss_shmem_bytes, status->rss_bytes));
}

/* False: there is nothing to take a sample of any more. */
static bool sample_take(Journal *journal, Seen *seen)
{
    ProcStatus status;
    int r = proc_status_read(journal->root, seen->actor.pid, &status);
    /* On its way out it has no memory any more, some time before it is over: the last sample is the one
     * before. */
    if (r < 0 || status.rss_bytes == 0)
        return false;
    journal->roles_stale |= actor_note_name(&seen->actor, status.comm, status.ppid);
    if (!seen->has_sample)
        seen->last = (Sample){.fds = U64_UNKNOWN, .maps = U64_UNKNOWN};
    seen->has_sample = true;
    seen->last.seconds = seconds_so_far(journal);
    seen->last.rss_bytes = status.rss_bytes;
    seen->last.rss_shmem_bytes = status.rss_shmem_bytes;
    seen->last.threads = status.threads;
    seen->uid = status.euid;
    peaks_note(seen, &status);
    journal->roles_stale |= actor_note_signals(&seen->actor, status.signals_caught);
    uint64_t fds = 0;
    r = fds_count_quick(journal->root, seen->actor.pid, &fds);
    seen->fds_to_count = r == -EOPNOTSUPP;
    if (r == 0)
        fds_note(journal, seen, fds);
    return true;
}

/* NULL for one that is no more: it is among the ended then, when it was ever seen. */
static Seen *process_meet(Journal *journal, int pid)
{
    ProcStat stat;
    Seen *seen = seen_live(&journal->seen, pid);
    int r = proc_stat_read(journal->root, pid, &stat);
    bool gone = r == -ENOENT || r == -ESRCH;
    if (r < 0 && !gone)
        return seen;
    if (seen && (gone || stat.start_ticks != seen->actor.start_ticks)) {
        (void)process_end(journal, seen);
        seen = NULL;
    }
    if (gone)
        return NULL;
    if (proc_stat_is_over(&stat)) {
        if (!seen)
            return NULL; /* whoever waits for it tells of it */
        seen->has_status = stat.ended != 0;
        seen->status = stat.ended;
        (void)process_end(journal, seen);
        return NULL;
    }
    if (!seen)
        seen = seen_add(&journal->seen, pid, stat.start_ticks);
    if (!seen)
        return NULL;
    seen->is_command = pid == journal->command;
    journal->roles_stale |= actor_note_name(&seen->actor, stat.comm, stat.ppid);
    return seen;
}

static void processes_look(Journal *journal)
{
    /* One that the list lacks may have been handed to another parent just then. */
    for (size_t i = journal->seen.n_live; i-- > 0;) {
        int pid = journal->seen.live[i].actor.pid;
        if (!job_processes_lists(&journal->job, pid))
            (void)process_meet(journal, pid);
    }
    for (size_t i = 0; i < journal->job.n; i++) {
        const JobProcess *process = &journal->job.items[i];
        Seen *seen = seen_live(&journal->seen, process->pid);
        if (seen && seen->inode == process->inode && sample_take(journal, seen))
            continue;
        seen = process_meet(journal, process->pid);
        if (!seen)
            continue;
        seen->inode = process->inode;
        (void)sample_take(journal, seen);
    }
}

/* --- What is looked at in turns ----------------------------------------------------------------------- */

/* The next pid after *turn, from the first on again. NULL when nobody lives. */
static Seen *turn_next(const Journal *journal, int *turn)
{
    const SeenTable *seen = &journal->seen;
    if (seen->n_live == 0)
        return NULL;
    Seen *next = &seen->live[0];
    for (size_t i = 0; i < seen->n_live; i++)
        if (seen->live[i].actor.pid > *turn) {
            next = &seen->live[i];
            break;
        }
    *turn = next->actor.pid;
    return next;
}

static void young_look(Journal *journal)
{
    for (size_t i = 0; i < journal->seen.n_live; i++) {
        Seen *seen = &journal->seen.live[i];
        if (seen->actor.looks >= YOUNG_LOOKS)
            continue;
        command_learn(journal, seen);
        torch_inherit(journal, seen);
    }
}

static void turns_look(Journal *journal)
{
    size_t n = journal->seen.n_live;
    Seen *seen = journal->ticks++ % MAPS_EVERY == 0 ? turn_next(journal, &journal->maps_turn) : NULL;
    if (seen)
        maps_look(journal, seen);

    unsigned searches = TORCH_PER_TICK;
    for (size_t i = 0; i < n && searches > 0; i++) {
        seen = turn_next(journal, &journal->torch_turn);
        if (seen->actor.torch || seen->actor.role == ROLE_MANAGER)
            continue;
        searches--;
        torch_search(journal, seen);
    }

    unsigned counts = COUNTS_PER_TICK;
    for (size_t i = 0; i < n && counts > 0; i++) {
        uint64_t fds = 0;
        seen = turn_next(journal, &journal->count_turn);
        if (!seen->fds_to_count)
            continue;
        counts--;
        if (fds_count(journal->root, seen->actor.pid, &fds) == 0)
            fds_note(journal, seen, fds);
    }
}

/* --- Our library -------------------------------------------------------------------------------------- */

static bool is_expected(const Seen *seen)
{
    const Actor *actor = &seen->actor;
    return seen->has_sample && !seen->presence.known &&
           (actor->torch || actor->role == ROLE_TRAINER || actor->role == ROLE_WORKER ||
            text_starts(text_of(actor->comm), "python"));
}

/* Only root's supervisor is believed by processes of other users, and root believes nobody else's. */
static bool is_served(const Seen *seen)
{
    return geteuid() == 0 || seen->uid == geteuid();
}

static bool presence_take(Journal *journal, Seen *seen)
{
    const Seen *parent = seen_live(&journal->seen, seen->actor.ppid);
    return parent && parent->presence.known &&
           presence_inherit(journal->root, seen->actor.pid, &parent->presence, &journal->wish,
                            &journal->scratch, &seen->presence);
}

static void presences_look(Journal *journal)
{
    unsigned searches = journal->wish.library ? OURS_PER_TICK : 0;
    for (size_t i = 0; i < journal->seen.n_live && searches > 0; i++) {
        Seen *seen = &journal->seen.live[i];
        if (!is_expected(seen) || presence_take(journal, seen))
            continue;
        searches--;
        presence_search(journal->root, seen->actor.pid, seen->uid, seconds_so_far(journal), &journal->wish,
                        &journal->scratch, &seen->presence);
        Absence why = seen->presence.why;
        if (seen->presence.known && !is_served(seen) &&
            (why == ABSENCE_NONE || why == ABSENCE_UNREADABLE_PROCESS))
            seen->presence.why = ABSENCE_USER;
    }
}

void journal_expect(Journal *journal, const char *library, const char *socket)
{
    journal->wish = (PresenceWish){library, socket};
}

/* --- Once a second ------------------------------------------------------------------------------------ */

static void peaks_raise(Journal *journal)
{
    uint64_t rss = 0;
    uint64_t shared = 0;
    uint64_t fds = 0;
    bool has_fds = false;
    for (size_t i = 0; i < journal->seen.n_live; i++) {
        const Seen *seen = &journal->seen.live[i];
        if (!seen->has_sample)
            continue;
        rss += seen->last.rss_bytes == U64_UNKNOWN ? 0 : seen->last.rss_bytes;
        shared += seen->last.rss_shmem_bytes == U64_UNKNOWN ? 0 : seen->last.rss_shmem_bytes;
        has_fds |= seen->last.fds != U64_UNKNOWN;
        fds += seen->last.fds == U64_UNKNOWN ? 0 : seen->last.fds;
    }
    size_t missed = journal->job.all - journal->job.n;
    if (journal->seen.n_live > 0) {
        u64_raise(&journal->peaks.rss_bytes, rss);
        u64_raise(&journal->peaks.own_bytes, rss - MIN(rss, shared));
    }
    if (has_fds)
        u64_raise(&journal->peaks.fds, fds);
    u64_raise(&journal->peaks.processes, journal->seen.n_live + missed);
}

void journal_tick(Journal *journal)
{
    journal->faults_left = FAULTS_PER_TICK;
    if (journal->command == 0)
        return;
    surroundings_look(&journal->surroundings,
                      seen_live(&journal->seen, journal->command) ? journal->command : 0);
    if (job_processes_look(&journal->job) < 0)
        return;
    processes_look(journal);
    young_look(journal);
    turns_look(journal);
    if (journal->roles_stale)
        roles_assign(journal);
    presences_look(journal);
    peaks_raise(journal);
}

void journal_peek(Journal *journal)
{
    ProcStatus status;
    if (journal->command == 0)
        return;
    for (size_t i = 0; i < journal->seen.n_live; i++) {
        Seen *seen = &journal->seen.live[i];
        /* Whether it is the same process still is seen at the next tick: numbers do not come round again
         * within a second. */
        if (proc_status_read(journal->root, seen->actor.pid, &status) >= 0 && status.rss_bytes > 0)
            peaks_note(seen, &status);
    }
    if (seen_live(&journal->seen, journal->command))
        surroundings_look_shm(&journal->surroundings, journal->command);
}

void journal_begin(Journal *journal, int pid)
{
    journal->command = pid;
    journal->began = now_seconds();
    (void)process_meet(journal, pid); /* so that it is known even when it ends at once */
    journal_tick(journal);
}

/* --- What is told ------------------------------------------------------------------------------------- */

/* One that has gone before it was seen. NULL: not kept. */
static Seen *unseen_end(Journal *journal, int pid, int ppid)
{
    Seen *seen = seen_add(&journal->seen, pid, 0);
    if (!seen)
        return NULL;
    seen->actor.ppid = ppid;
    seen->is_command = pid == journal->command;
    return process_end(journal, seen);
}

/* The process that speaks. Of its last words it may be dead by the time that they are heard. */
static Seen *speaker_find(Journal *journal, int pid)
{
    bool was_known = seen_live(&journal->seen, pid);
    Seen *seen = NULL;
    if (was_known || job_processes_has(&journal->job, pid))
        seen = process_meet(journal, pid);
    if (seen)
        return seen;
    ProcStat stat;
    bool exists = proc_stat_read(journal->root, pid, &stat) == 0 && !proc_stat_is_over(&stat);
    if (exists) /* none of the job's */
        return NULL;
    seen = seen_ended(&journal->seen, pid);
    return seen ? seen : unseen_end(journal, pid, 0);
}

static void fault_testify(Journal *journal, Seen *seen, const Testimony *testimony, int maps)
{
    bool look = journal->faults_left > 0;
    journal->faults_left -= look;
    fault_read(journal->root, seen->actor.pid, testimony, look, maps, &journal->scratch, &seen->fault);
    seen->has_fault = true;
    surroundings_note_shm(&journal->surroundings, seen->fault.shm_size_bytes, seen->fault.shm_free_bytes);
    seen->faulted = seconds_so_far(journal);
    free(TAKE_PTR(seen->path));
    free(TAKE_PTR(seen->stack)); /* was an earlier fault's */
    const char *path = TAKE_PTR(seen->fault.path);
    if (path)
        (void)seen_quote(&journal->seen, seen, &seen->path, path, strlen(path));
    if (!look || seen != seen_live(&journal->seen, seen->actor.pid))
        return;

    (void)sample_take(journal, seen);
    maps_look(journal, seen);
    uint64_t fds = 0;
    if (seen->fds_to_count && fds_count(journal->root, seen->actor.pid, &fds) == 0)
        fds_note(journal, seen, fds);
    seen->actor.looks = 0; /* whatever it is now */
    command_learn(journal, seen);
    torch_inherit(journal, seen);
    torch_search(journal, seen);
    roles_assign(journal);
}

/* Its handlers say so, perhaps before we had a look at it; only the command itself is nobody's worker. */
static void worker_note(const Journal *journal, Seen *seen)
{
    if (seen->actor.pid == journal->command || seen->actor.role == ROLE_WORKER ||
        seen->actor.role == ROLE_MANAGER)
        return;
    seen->actor.role = ROLE_WORKER;
}

static void status_note(Seen *seen, int status, bool by_us)
{
    seen->has_status = true;
    seen->status = status;
    seen->by_us |= by_us;
}

/* The end of a process may be told by its parent, by us who waited for it, and by the zombie that it was. */
static void end_note(Journal *journal, int pid, int ppid, int status, bool by_us)
{
    Seen *seen = seen_live(&journal->seen, pid);
    if (seen) {
        status_note(seen, status, by_us);
        (void)process_end(journal, seen);
        return;
    }
    seen = seen_ended(&journal->seen, pid);
    /* A number is used again only after all others were: an end like the last one is the same. */
    bool again = seen && seen->has_status && seen->status != status;
    if (!seen || again)
        seen = unseen_end(journal, pid, ppid);
    if (seen)
        status_note(seen, status, by_us);
}

/* Numbers from a namespace below ours would be others' here. */
static bool is_in_our_namespace(const Journal *journal, int pid)
{
    ProcStatus status;
    return proc_status_read(journal->root, pid, &status) < 0 || status.pid_namespaces <= 1;
}

static bool child_testify(Journal *journal, int parent, const Testimony *testimony)
{
    ProcStat stat;
    int pid = testimony->pid;
    if (pid == parent || pid == journal->job.self || !is_in_our_namespace(journal, parent))
        return false;
    Seen *seen = seen_live(&journal->seen, pid);
    bool exists = proc_stat_read(journal->root, pid, &stat) == 0 && !proc_stat_is_over(&stat);
    if (exists && (!seen || stat.start_ticks == seen->actor.start_ticks))
        return false; /* it lives */
    end_note(journal, pid, parent, testimony->status, false);
    return true;
}

bool journal_testify(Journal *journal, int pid, const Testimony *testimony, size_t size, int maps)
{
    if (pid <= 0 || journal->command == 0 || !testimony_is_sane(testimony, size))
        return false;
    Seen *seen = speaker_find(journal, pid);
    if (!seen)
        return false;
    switch (testimony->type) {
    case MESSAGE_FAULT:
        fault_testify(journal, seen, testimony, maps);
        if (testimony->worker == 1)
            worker_note(journal, seen);
        return true;
    case MESSAGE_STACK:
        return seen->has_fault &&
               seen_quote(&journal->seen, seen, &seen->stack, testimony->text, testimony->n);
    case MESSAGE_SAID:
        if (testimony->worker == 1)
            worker_note(journal, seen);
        if (testimony->n == 0 ||
            !seen_quote(&journal->seen, seen, &seen->said, testimony->text, testimony->n))
            return testimony->n == 0;
        seen->said_size = testimony->n;
        return true;
    default:
        return child_testify(journal, pid, testimony);
    }
}

/* On the way up a parent may end, and hand its child to us, between two looks. */
static bool is_below_us(const Journal *journal, int pid)
{
    enum { TRIES = 3 };
    for (int i = 0; i < TRIES; i++)
        if (job_processes_has(&journal->job, pid))
            return true;
    return false;
}

/* Our library connects, and nobody else does. */
static void presence_note(Journal *journal, int pid)
{
    Seen *seen = process_meet(journal, pid);
    if (seen && (!seen->presence.known || seen->presence.why == ABSENCE_UNREADABLE_PROCESS))
        seen->presence = (Presence){.known = true, .loaded = true};
}

Peer journal_peer(Journal *journal, int pid, uint32_t uid)
{
    ProcStatus status;
    int r = proc_status_read(journal->root, pid, &status);
    if (r == -ENOENT || r == -ESRCH)
        return seen_live(&journal->seen, pid) || seen_ended(&journal->seen, pid) ? PEER_GONE : PEER_STRANGER;
    if (r < 0 || status.euid != uid || !is_below_us(journal, pid))
        return PEER_STRANGER;
    presence_note(journal, pid);
    return PEER_JOB;
}

void journal_ending(Journal *journal, int pid)
{
    Seen *seen = speaker_find(journal, pid);
    if (seen)
        seen->by_us = true;
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
    peaks.shm_bytes = journal->surroundings.shm_used_most_bytes;
    return peaks;
}

static bool peak_write(const Seen *seen, Arena *arena, ProcessPeak **list, size_t *n, size_t *capacity)
{
    if (seen->rss_peak_bytes == U64_UNKNOWN && seen->own_peak_bytes == U64_UNKNOWN)
        return true; /* it had gone before anybody looked */
    ProcessPeak *peak = ARENA_PUSH(arena, *list, *n, *capacity);
    if (!peak)
        return false;
    *peak = (ProcessPeak){
        .pid = seen->actor.pid,
        .role = seen->actor.role,
        .rss_bytes = seen->rss_peak_bytes,
        .shm_bytes = seen->shm_peak_bytes,
        .own_bytes = seen->own_peak_bytes,
    };
    memcpy(peak->comm, seen->actor.comm, sizeof peak->comm);
    return true;
}

int journal_processes(const Journal *journal, Arena *arena, ProcessPeak **ret, size_t *ret_n)
{
    ProcessPeak *list = NULL;
    size_t n = 0;
    size_t capacity = 0;
    bool whole = true;
    for (size_t i = 0; whole && i < journal->seen.n_ended; i++)
        whole = peak_write(&journal->seen.ended[i], arena, &list, &n, &capacity);
    for (size_t i = 0; whole && i < journal->seen.n_live; i++)
        whole = peak_write(&journal->seen.live[i], arena, &list, &n, &capacity);
    if (!whole)
        return -ENOMEM;
    *ret = list;
    *ret_n = n;
    return 0;
}

Role journal_role(const Journal *journal, int pid)
{
    const Seen *seen = seen_live(&journal->seen, pid);
    return seen ? seen->actor.role : ROLE_OTHER;
}

Keeper journal_keeper(const Journal *journal, uint64_t (*bytes)(void *context, int pid), void *context)
{
    Keeper most = {0};
    for (size_t i = 0; i < journal->seen.n_live; i++) {
        const Actor *actor = &journal->seen.live[i].actor;
        uint64_t kept = bytes(context, actor->pid);
        if (kept <= most.bytes)
            continue;
        most = (Keeper){.pid = actor->pid, .role = actor->role, .bytes = kept};
        memcpy(most.comm, actor->comm, sizeof most.comm);
    }
    return most;
}

void journal_roles(const Journal *journal, uint64_t *ret_trainers, uint64_t *ret_workers)
{
    *ret_trainers = *ret_workers = 0;
    for (size_t i = 0; i < journal->seen.n_live; i++) {
        *ret_trainers += journal->seen.live[i].actor.role == ROLE_TRAINER;
        *ret_workers += journal->seen.live[i].actor.role == ROLE_WORKER;
    }
}

static bool text_keep(Arena *arena, const char *text, const char **ret)
{
    *ret = text ? arena_copy(arena, text, strlen(text)) : NULL;
    return !text || *ret;
}

static bool ended_write(const Seen *seen, Arena *arena, Evidence *evidence)
{
    Ended *ended = ARENA_PUSH(arena, evidence->ended, evidence->n_ended, evidence->ended_capacity);
    if (!ended)
        return false;
    bool by_signal = seen->has_status && WIFSIGNALED(seen->status);
    bool fatal = seen->has_fault && seen->ended - seen->faulted < FATAL_SECONDS;
    *ended = (Ended){
        .pid = seen->actor.pid,
        .ppid = seen->actor.ppid,
        .role = seen->actor.role,
        .seconds = fatal ? seen->faulted : seen->ended,
        .has_status = seen->has_status,
        .signal = by_signal ? WTERMSIG(seen->status) : 0,
        .code = seen->has_status && !by_signal ? WEXITSTATUS(seen->status) : 0,
        .by_us = seen->by_us,
        .has_fault = seen->has_fault,
        .fault = seen->fault,
        .said.size = seen->said_size,
        .has_sample = seen->has_sample,
        .last = seen->last,
    };
    memcpy(ended->comm, seen->actor.comm, sizeof ended->comm);
    if (seen->said && !(ended->said.data = arena_copy(arena, seen->said, seen->said_size)))
        return false;
    return text_keep(arena, seen->path, &ended->fault.path) &&
           text_keep(arena, seen->stack, &ended->fault.stack);
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

static bool presence_write(const Seen *seen, Arena *arena, Coverage *coverage)
{
    if (!seen->presence.known)
        return true;
    if (seen->presence.why == ABSENCE_NONE) {
        coverage->guarded++;
        return true;
    }
    Unguarded *unguarded =
        ARENA_PUSH(arena, coverage->unguarded, coverage->n_unguarded, coverage->unguarded_capacity);
    if (!unguarded)
        return false;
    *unguarded = (Unguarded){
        .pid = seen->actor.pid, .uid = seen->uid, .role = seen->actor.role, .why = seen->presence.why};
    memcpy(unguarded->comm, seen->actor.comm, sizeof unguarded->comm);
    return true;
}

static bool coverage_write(const SeenTable *seen, Arena *arena, Coverage *coverage)
{
    bool whole = true;
    for (size_t i = 0; whole && i < seen->n_ended; i++)
        whole = presence_write(&seen->ended[i], arena, coverage);
    for (size_t i = 0; whole && i < seen->n_live; i++)
        whole = presence_write(&seen->live[i], arena, coverage);
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
    int r = surroundings_finish(&journal->surroundings, arena, &evidence);
    if (r < 0)
        return r;
    evidence.fds_most = journal->fds_most;
    evidence.maps_most = journal->maps_most;

    for (size_t i = journal->seen.n_live; i-- > 0;) /* who has gone meanwhile, and nobody told */
        (void)process_meet(journal, journal->seen.live[i].actor.pid);
    bool whole = coverage_write(&journal->seen, arena, &evidence.coverage);
    for (size_t i = 0; whole && i < journal->seen.n_ended; i++)
        whole = ended_write(&journal->seen.ended[i], arena, &evidence);
    for (size_t i = 0; whole && i < journal->seen.n_live; i++) {
        Seen *seen = &journal->seen.live[i];
        seen->ended = seen->faulted;
        if (seen->has_fault)
            whole = ended_write(seen, arena, &evidence);
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
    int r = job_processes_open(root, getpid(), &journal->job);
    if (r < 0) {
        free(journal);
        return r;
    }
    surroundings_open(root, &journal->surroundings);
    *ret = journal;
    return 0;
}

void journal_free(Journal *journal)
{
    if (!journal)
        return;
    job_processes_close(&journal->job);
    surroundings_close(&journal->surroundings);
    seen_free(&journal->seen);
    buffer_free(&journal->scratch);
    free(journal->stage.processes);
    free(journal);
}
