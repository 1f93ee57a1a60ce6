/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker.h"
#include "child.h"
#include "clock.h"
#include "crash.h"
#include "environment.h"
#include "free-memory.h"
#include "journal.h"
#include "linker.h"
#include "macro.h"
#include "protocol.h"
#include "run.h"
#include "sentinel.h"
#include "shared-sites.h"
#include "signals.h"
#include "source.h"
#include "stray-work.h"
#include "strays.h"
#include "testimony.h"
#include "where.h"

/*
 * BUDGET_LEAST_BYTES: with less to spare than this, a budget would stop a job that might just fit.
 * WAIT_SECONDS: longer than an ordinary validation or checkpoint, and shorter than a night. FILES_MOST: with
 * a hard limit of a billion, programs that close all descriptors up to the limit would take minutes.
 * DRAIN_TURNS: rounds of the loop to read what ended processes have left in their sockets; a stray that
 * cannot be killed may go on writing.
 */
#define BUDGET_LEAST_BYTES (UINT64_C(64) << 20)
enum { WAIT_SECONDS = 60, KEEPER_SECONDS = 10, DRAIN_TURNS = 1000, FILES_MOST = 1 << 20, FREEZE_PART = 4 };

struct Run {
    int epoll;
    Source signals;
    Source timer;
    Source pulse;
    Source output;
    Source moments;
    MomentRelay *relay;    /* `moments` is its descriptor; NULL: we look at the job ourselves */
    const RunWatch *watch; /* NULL: no one watches closely */
    Inherited inherited;
    Sentinel sentinel; /* of the command that runs */
    FreeMemory free_memory;
    pid_t forked; /* waits at forked_fd to become the command; 0: none does */
    int forked_fd;
    const char *library;
    const char *outer; /* NULL: this run has joined none */
    Broker *broker;    /* NULL: without the guard */
    BudgetBasis budget_basis;
    bool only_witness;
    bool no_pin;
    bool no_lane;
    bool no_freeze;
    bool unwatched;
    Where where;
    SiteWindow *windows; /* the newest that were found, the oldest first */
    size_t n_windows;
    uint64_t windows_found; /* also older ones */
    int shared_sites;
    uint64_t published; /* changes with what is to be published; 0: nothing was */
    void (*found)(void *context, const SiteWindow *window);
    void *found_context;
    Journal *journal;
    void (*tick)(void *context, const RunTick *tick);
    void *tick_context;
    Arena arena;
    Child child;
    pid_t pid;
    Strays strays;
    StrayTimes awaited; /* CPU times when the command ended */
    StrayWork work;
    bool alone; /* no child is left */
    int passed_on;
    int told_to_end;
    bool typed;    /* passed_on came from the terminal */
    double cut;    /* when it was cut off; 0: it was not */
    Keeper keeper; /* of the most memory so far */
    double keeper_next;
    double began;
    double ended;
};

/* --- What happens ------------------------------------------------------------------------------------- */

/* Only what has changed: the page may have a megabyte. */
static void sites_publish(Run *run)
{
    const Where *where = &run->where;
    uint64_t state = ((uint64_t)where->asked << 32 | where->rounds) +
                     (run->windows_found + where->failures) * UINT64_C(0x9e3779b9);
    if (state == run->published)
        return;
    run->published = state;
    SharedSites sites = {
        .asked = run->where.asked, .rounds = run->where.rounds, .windows = run->windows, .n = run->n_windows};
    memcpy(sites.failed, run->where.failed, sizeof sites.failed);
    shared_sites_write(run->shared_sites, &sites);
}

static void status_changed(Run *run, int status)
{
    if (WIFSTOPPED(status)) {
        child_stopped(&run->child, WSTOPSIG(status));
        return;
    }
    child_ended(&run->child, status);
    crash_forget();
    sentinel_watch(run->sentinel.fd, 0, run->inherited.mark);
    run->ended = now_seconds();
    where_stop(&run->where); /* what is left of the job has no one who would end a window */
    sites_publish(run);
    /* A signal that told the command to end was meant for the job: the rest of the job is told, too, now that
     * no trainer needs it any more. A command that has returned 0 may have ignored the signal, as under
     * nohup. */
    int signo = run->cut > 0 ? SIGTERM : status != 0 ? run->passed_on : 0;
    strays_begin(&run->strays, &run->free_memory.root, signo, run->typed, run->ended);
    if (status == 0 && signo == 0)
        (void)stray_times_read(&run->free_memory.root, run->ended, &run->awaited);
}

static void tick_tell(Run *run, const Crawl *crawl, bool over)
{
    if (!run->tick)
        return;
    RunTick now = {.seconds = now_seconds() - run->began,
                   .pid = run->child.pid,
                   .crawl = crawl,
                   .wrote = true,
                   .over = over};
    if (run->broker) {
        now.guard = broker_figures(run->broker);
        uint64_t msec = (uint64_t)(now_seconds() * 1000);
        now.wrote = now.guard.wrote_msec != 0 &&
                    (now.guard.unfinished || now.guard.adrift || msec - now.guard.wrote_msec < 1000);
    }
    run->tick(run->tick_context, &now);
}

static uint64_t kept_by(void *context, int pid)
{
    return broker_kept_by(context, pid);
}

/* Looking for the process that keeps the memory is done rarely: it reads all mappings of all processes. */
static Keeper crawl_look(Run *run)
{
    run->keeper_next = now_seconds() + KEEPER_SECONDS;
    Keeper keeper = journal_keeper(run->journal, kept_by, run->broker);
    if (keeper.bytes > run->keeper.bytes)
        run->keeper = keeper;
    return keeper;
}

static void crawl_tick(Run *run)
{
    Crawl crawl = {.seconds = broker_crawled(run->broker)};
    bool due = broker_crawl_is_due(run->broker);
    if (due || (crawl.seconds >= KEEPER_SECONDS && now_seconds() >= run->keeper_next))
        crawl.keeper = crawl_look(run);
    tick_tell(run, due ? &crawl : NULL, false);
}

static void reap(Run *run)
{
    int status = 0;
    pid_t pid;
    bool ended = false;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid == run->sentinel.pid) {
            if (!WIFSTOPPED(status)) /* another process has killed it */
                run->sentinel.pid = 0;
            continue;
        }
        ended |= !WIFSTOPPED(status);
        journal_reaped(run->journal, pid, status, pid != run->pid && strays_are_told(&run->strays));
        if (pid == run->child.pid)
            status_changed(run, status);
    }
    if (ended)
        strays_reaped(&run->strays, &run->free_memory.root, now_seconds());
    run->alone = run->child.status_is && (pid < 0 || !strays_any(&run->strays, &run->free_memory.root));
}

static void pass_on(Run *run, const struct signalfd_siginfo *signal)
{
    int signo = (int)signal->ssi_signo;
    bool ends = signal_ends(signo);
    if (ends)
        run->told_to_end = signo;
    if (run->strays.stage != STRAYS_NONE) {
        if (ends)
            strays_hurry(&run->strays, &run->free_memory.root, now_seconds());
        return;
    }
    bool typed = signal->ssi_code == SI_KERNEL;
    if (ends) {
        run->passed_on = signo;
        run->typed = typed;
    }
    /* The terminal signals a whole group, so the whole group of the command gets it, too. A signal that a
     * process sent to us alone goes to the command alone, as it would without us: a trainer that saves a
     * checkpoint on SIGTERM or SIGUSR1 needs its workers alive, and dies if they do. */
    child_signal(&run->child, signo, typed);
}

static void signals_ready(Source *source)
{
    Run *run = SOURCE_OWNER(source, Run, signals);
    struct signalfd_siginfo signal;
    while (read(source->fd, &signal, sizeof signal) == sizeof signal)
        if (signal.ssi_signo == SIGCHLD)
            reap(run);
        else if (signal.ssi_signo == SIGCONT)
            child_continue(&run->child);
        else
            pass_on(run, &signal);
}

static void where_found(void *context, const SiteWindow *window)
{
    Run *run = context;
    if (!run->windows)
        run->windows = calloc(WHERE_WINDOWS_MOST, sizeof *run->windows);
    if (!run->windows)
        return;
    if (run->n_windows == WHERE_WINDOWS_MOST)
        memmove(run->windows, run->windows + 1, --run->n_windows * sizeof *run->windows);
    run->windows[run->n_windows++] = *window;
    run->windows_found++;
    if (run->found)
        run->found(run->found_context, window);
}

static void timer_ready(Source *source)
{
    Run *run = SOURCE_OWNER(source, Run, timer);
    uint64_t expired = 0;
    if (read(source->fd, &expired, sizeof expired) != sizeof expired)
        return;
    if (run->broker)
        broker_tick(run->broker, broker_holds_memory(run->broker) && free_memory_is_short(&run->free_memory));
    if (run->broker && !run->child.status_is) {
        where_tick(&run->where, now_seconds());
        sites_publish(run);
    }
    if (!run->unwatched)
        journal_tick(run->journal);
    if (run->cut > 0 && now_seconds() - run->cut > END_SECONDS)
        child_signal(&run->child, SIGKILL, true);
    if (run->broker)
        crawl_tick(run);
    else
        tick_tell(run, NULL, false);
}

static void pulse_ready(Source *source)
{
    Run *run = SOURCE_OWNER(source, Run, pulse);
    uint64_t expired = 0;
    if (read(source->fd, &expired, sizeof expired) != sizeof expired || run->child.status_is)
        return;
    run->watch->pulse(run->watch->context, now_seconds() - run->began,
                      run->broker ? broker_bytes_served(run->broker) : 0);
}

static void moments_ready(Source *source)
{
    Run *run = SOURCE_OWNER(source, Run, moments);
    Moment moment;
    if (moment_relay_take(run->relay, &moment) && run->journal)
        journal_take(run->journal, &moment);
}

/* One piece per turn: a command that writes endlessly must not block the other sources. */
static void output_ready(Source *source)
{
    Run *run = SOURCE_OWNER(source, Run, output);
    char piece[1 << 14];
    ssize_t n = read(source->fd, piece, sizeof piece);
    if (n > 0)
        run->watch->output(run->watch->context, now_seconds() - run->began, (Text){piece, (size_t)n});
}

/* One round of the loop. Returns the number of events, or negative errno. */
static int turn(Run *run, int timeout)
{
    struct epoll_event events[64];
    int n = epoll_wait(run->epoll, events, ARRAY_SIZE(events), timeout);
    if (n < 0 && errno != EINTR)
        return -errno;
    for (int i = 0; i < n; i++) {
        Source *source = events[i].data.ptr;
        source->ready(source);
    }
    if (run->broker)
        broker_settle(run->broker);
    return MAX(n, 0);
}

/* It has lost its trainer. */
static bool is_orphaned_worker(const void *context, int pid)
{
    const Run *run = context;
    return journal_role(run->journal, pid) == ROLE_WORKER;
}

static void strays_step(Run *run)
{
    double now = now_seconds();
    if (run->awaited.n > 0 && strays_are_due(&run->strays, now)) {
        (void)stray_work_read(&run->strays, &run->free_memory.root, &run->awaited, now, is_orphaned_worker,
                              run, &run->work);
        stray_times_free(&run->awaited);
    }
    strays_advance(&run->strays, &run->free_memory.root, now);
}

static int timeout_msec(const Run *run)
{
    int broker = run->broker ? broker_timeout(run->broker) : -1;
    int strays = strays_timeout(&run->strays, now_seconds());
    return broker < 0 || strays < 0 ? MAX(broker, strays) : MIN(broker, strays);
}

int run_finish(Run *run, RunResult *ret)
{
    while (!(run->child.status_is && (run->alone || run->strays.stage == STRAYS_LEFT))) {
        int r = turn(run, timeout_msec(run));
        if (r < 0)
            return r;
        strays_step(run);
    }
    /* The last words of ended processes may still be in their sockets. */
    for (int i = 0; i < DRAIN_TURNS && turn(run, 0) > 0;)
        i++;
    tick_tell(run, NULL, true);

    int status = run->child.status;
    bool typed = run->child.had_terminal || (run->passed_on == SIGINT && run->typed);
    *ret = (RunResult){
        .pid = run->pid,
        .code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
        .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
        .passed_on = run->passed_on,
        .told_to_end = run->told_to_end,
        .typed = typed && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT,
        .cut_off = run->cut > 0,
        .strays = run->strays.asked - MIN(run->strays.asked, run->strays.left),
        .left = run->strays.left,
        .work = run->work,
        .seconds = run->ended - run->began,
        .guarded = run->broker && !run->only_witness && !run->outer,
        .joined = run->outer != NULL,
        .budget_basis = run->budget_basis,
        .keeper = run->keeper,
    };
    if (ret->guarded)
        ret->guard = broker_figures(run->broker);
    broker_free(TAKE_PTR(run->broker));
    sentinel_end(&run->sentinel);
    return 0;
}

/* Handles pending signals when there is no command. True: one of them tells us to end. */
static bool signals_take(Run *run, bool *ret_typed)
{
    struct signalfd_siginfo signal;
    while (read(run->signals.fd, &signal, sizeof signal) == sizeof signal)
        if (signal_ends((int)signal.ssi_signo)) {
            *ret_typed = signal.ssi_signo == SIGINT && signal.ssi_code == SI_KERNEL;
            return true;
        } else if (signal.ssi_signo == SIGTSTP)
            child_stopped(&run->child, SIGTSTP);
        else if (signal.ssi_signo == SIGCHLD)
            reap(run);
    return false;
}

bool run_pause(Run *run, unsigned seconds, bool *ret_typed)
{
    double until = now_seconds() + seconds;
    for (;;) {
        if (signals_take(run, ret_typed))
            return false;
        double left = until - now_seconds();
        if (left <= 0)
            return true;
        struct pollfd ready = {.fd = run->signals.fd, .events = POLLIN};
        (void)poll(&ready, 1, (int)ceil(left * 1000));
    }
}

/* --- Beginning and end -------------------------------------------------------------------------------- */

static int signals_open(Run *run)
{
    sigset_t taken;
    signals_taken(&taken);
    run->signals.fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (run->signals.fd < 0)
        return -errno;

    /* Our parent may have left SIGCHLD ignored; the kernel would then reap our children itself. */
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &standard, &run->inherited.chld);
    sigaddset(&taken, SIGTTOU); /* so that we may move the terminal from the background */
    sigprocmask(SIG_BLOCK, &taken, &run->inherited.mask);
    return source_watch(&run->signals, run->epoll);
}

static int timer_start(Source *timer, int epoll, unsigned msec)
{
    struct timespec time = {.tv_sec = msec / 1000, .tv_nsec = (long)(msec % 1000) * 1000000};
    struct itimerspec every = {.it_interval = time, .it_value = time};
    timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer->fd < 0 || timerfd_settime(timer->fd, 0, &every, NULL) < 0)
        return -errno;
    return source_watch(timer, epoll);
}

/* Names and segments are descriptors here, and tensors are in the command: for both, the soft limit is only a
 * default of the shell. */
static void files_raise(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = MAX(files.rlim_cur, MIN(files.rlim_max, (rlim_t)FILES_MOST));
    setrlimit(RLIMIT_NOFILE, &files);
}

static int run_set_up(Run *run)
{
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (run->epoll < 0)
        return -errno;
    int r = free_memory_open(NULL, &run->free_memory);
    if (r >= 0)
        r = signals_open(run);
    if (r >= 0)
        r = timer_start(&run->timer, run->epoll, 1000);
    if (r < 0)
        return r;
    files_raise();
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int run_open(Run **ret)
{
    Run *run = calloc(1, sizeof *run);
    if (!run)
        return -ENOMEM;
    *run = (Run){
        .epoll = -EBADF,
        .signals = {.fd = -EBADF, .ready = signals_ready},
        .timer = {.fd = -EBADF, .ready = timer_ready},
        .pulse = {.fd = -EBADF, .ready = pulse_ready},
        .output = {.fd = -EBADF, .ready = output_ready},
        .moments = {.fd = -EBADF, .ready = moments_ready},
        .shared_sites = -EBADF,
        .inherited.output = -EBADF,
        .inherited.sentinel = -EBADF,
        .sentinel = SENTINEL_NONE,
        .free_memory.root = ROOT_NONE,
    };
    int r = run_set_up(run);
    if (r < 0) {
        run_free(run);
        return r;
    }
    *ret = run;
    return 0;
}

void run_free(Run *run)
{
    if (!run)
        return;
    crash_forget();
    sentinel_end(&run->sentinel);
    broker_free(run->broker);
    fd_close(run->shared_sites);
    free(run->windows);
    journal_free(run->journal);
    fd_close(run->signals.fd);
    fd_close(run->timer.fd);
    fd_close(run->pulse.fd);
    fd_close(run->output.fd);
    fd_close(run->inherited.output);
    fd_close(run->epoll);
    free_memory_close(&run->free_memory);
    stray_times_free(&run->awaited);
    arena_free(&run->arena);
    free(run);
}

void run_die(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigaction(SIGINT, &standard, NULL);
    sigprocmask(SIG_UNBLOCK, &interrupt, NULL);
    raise(SIGINT);
    _exit(128 + SIGINT);
}

static Spare spare_now(const void *context)
{
    const Run *run = context;
    return free_memory_spare(&run->free_memory);
}

static bool testify(void *context, int pid, const Testimony *testimony, size_t size, int maps)
{
    Run *run = context;
    if (testimony->type == MESSAGE_SITES)
        return testimony_is_sane(testimony, size) &&
               where_take(&run->where, pid, (Text){testimony->text, testimony->n}, now_seconds()) >= 0;
    return journal_testify(run->journal, pid, testimony, size, maps);
}

static void where_ask_now(void *context)
{
    Run *run = context;
    where_ask(&run->where, false, now_seconds());
    sites_publish(run); /* whoever asks reads the page next, and must not take an older answer for his */
}

static Peer peer_of_job(void *context, int pid, uint32_t uid)
{
    const Run *run = context;
    return run->journal ? journal_peer(run->journal, pid, uid) : PEER_STRANGER;
}

static void ending_note(void *context, int pid)
{
    Run *run = context;
    journal_ending(run->journal, pid);
}

/* The size that a wish means here and now; U64_UNKNOWN: no limit. */
static uint64_t budget_bytes(const Run *run, const SizeWish *wish, BudgetBasis *ret_basis)
{
    *ret_basis = wish->kind == WISH_SIZE ? BUDGET_OF_USER : BUDGET_OF_NOTHING;
    if (wish->kind != WISH_AUTO)
        return wish->kind == WISH_SIZE ? wish->bytes : U64_UNKNOWN;
    Spare spare = free_memory_spare(&run->free_memory);
    uint64_t allotted = free_memory_allotted(&run->free_memory);
    uint64_t bytes = MIN(spare.bytes, allotted);
    if (bytes == U64_UNKNOWN)
        return U64_UNKNOWN;
    *ret_basis = allotted < spare.bytes ? BUDGET_OF_SLURM
                 : spare.of_group       ? BUDGET_OF_GROUP
                                        : BUDGET_OF_MACHINE;
    return MAX(bytes / 4 * 3, BUDGET_LEAST_BYTES);
}

/* By the environment that the command inherits. */
static bool is_switched_off(const char *variable)
{
    const char *wish = getenv(variable);
    return wish && strcmp(wish, "off") == 0;
}

int run_guard(Run *run, const char *library, const GuardWish *wish)
{
    if (!library_can_be_preloaded(library))
        return -ENAMETOOLONG;
    run->library = library;
    run->outer = wish->outer;
    run->only_witness = wish->outer ? getenv(PROTOCOL_ONLY_WITNESS) != NULL : wish->only_witness;
    run->no_pin = !wish->outer && wish->no_pin;
    run->no_lane = !wish->outer && wish->no_lane;
    run->no_freeze = !wish->outer && wish->no_freeze;
    BrokerOwner owner = {
        .root = &run->free_memory.root,
        .budget_bytes = budget_bytes(run, &wish->budget, &run->budget_basis),
        .budget_is_wished = wish->budget.kind == WISH_SIZE,
        .no_lane = run->no_lane || is_switched_off(PROTOCOL_LANE),
        .no_freeze = run->no_freeze || is_switched_off(PROTOCOL_FREEZE),
        .freeze_bytes = free_memory_total(&run->free_memory) / FREEZE_PART,
        .wait_seconds = wish->wait_seconds < 0 ? WAIT_SECONDS : wish->wait_seconds,
        .spare_now = wish->budget.kind == WISH_OFF || run->only_witness || run->outer ? NULL : spare_now,
        .testify = testify,
        .peer = peer_of_job,
        .ending = ending_note,
        .where = run->outer ? NULL : where_ask_now,
        .context = run,
    };
    int r = broker_open(run->epoll, "/dev/shm", &owner, &run->broker);
    if (r < 0)
        return r;
    if (run->shared_sites < 0 && !run->outer)
        run->shared_sites = shared_sites_make();
    run->where = (Where){.counters = broker_counters(run->broker), .found = where_found, .context = run};
    if (wish->where)
        where_ask(&run->where, true, now_seconds());
    return 0;
}

void run_private_shm(Run *run, const PrivateShm *shm)
{
    run->inherited.shm = shm;
}

void run_unwatched(Run *run)
{
    run->unwatched = true;
}

int run_relay(Run *run, MomentRelay *relay)
{
    run->relay = relay;
    run->moments.fd = moment_relay_fd(relay);
    return source_watch(&run->moments, run->epoll);
}

static GuardSettings guard_settings(const Run *run)
{
    const char *ours = run->broker ? broker_socket(run->broker) : NULL;
    return (GuardSettings){
        .library = run->library,
        .socket = run->outer ? run->outer : ours,
        .inner = run->outer ? ours : NULL,
        .only_witness = run->only_witness,
        .no_pin = run->no_pin,
        .no_lane = run->no_lane,
        .no_freeze = run->no_freeze,
    };
}

bool run_forked_waits(const Run *run)
{
    return run->forked > 0;
}

void run_forked(Run *run, pid_t pid, int fd)
{
    run->forked = pid;
    run->forked_fd = fd;
}

int run_start(Run *run, char *const *command, char *const *settings, ChildStage *ret_stage)
{
    char **environment = NULL;
    *ret_stage = CHILD_NONE;
    arena_free(&run->arena);
    int r = environment_set(environ, settings, &run->arena, &environment);
    GuardSettings guard = guard_settings(run);
    guard.no_library = program_linker(program_search(command[0])) == LINKER_FAILS;
    if (r >= 0 && run->broker)
        r = environment_make(environment, &guard, &run->arena, &environment);
    if (r < 0)
        return r;
    r = sentinel_start(&run->sentinel);
    if (r < 0)
        return r;
    run->inherited.sentinel = run->sentinel.fd;
    run->inherited.mark = run->broker ? broker_socket(run->broker) : NULL;
    journal_free(TAKE_PTR(run->journal));
    if (run->relay) { /* a moment of the attempt before tells nothing about this one */
        Moment stale;
        (void)moment_relay_take(run->relay, &stale);
    }
    r = journal_open(&run->free_memory.root, &run->journal);
    if (r < 0) {
        sentinel_end(&run->sentinel);
        return r;
    }
    if (run->broker)
        journal_expect(run->journal, guard.library, guard.socket);
    run->pid = 0;
    run->child = (Child){.terminal = -EBADF};
    run->alone = false;
    run->passed_on = run->told_to_end = 0;
    run->typed = false;
    run->cut = 0;
    run->keeper = (Keeper){0};
    run->keeper_next = 0;
    strays_open(&run->free_memory.root, &run->strays);
    stray_times_free(&run->awaited);
    run->work = (StrayWork){0};
    run->began = now_seconds();
    if (run->forked > 0)
        child_release(TAKE(run->forked, 0), run->forked_fd, environment, &run->inherited, &run->child);
    else
        r = child_start(command, environment, &run->inherited, &run->child, ret_stage);
    if (r < 0) {
        sentinel_end(&run->sentinel);
        return r;
    }
    if (!run->watch) /* a command that is measured is of no use without us */
        crash_prepare(run->child.pid, run->sentinel.fd, run->broker ? &run->where.counters->where : NULL);
    if (run->broker && run->inherited.shm) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/root/dev/shm", (int)run->child.pid);
        broker_names_at(run->broker, path);
    }
    run->pid = run->child.pid;
    journal_begin(run->journal, run->pid);
    return 0;
}

void run_on_site(Run *run, void (*found)(void *context, const SiteWindow *window), void *context)
{
    run->found = found;
    run->found_context = context;
}

SiteWindows run_sites(const Run *run)
{
    return (SiteWindows){run->windows, run->n_windows};
}

pid_t run_pid(const Run *run)
{
    return run->pid;
}

void run_line(Run *run, uint64_t terminal, bool drawn)
{
    if (run->broker)
        broker_line(run->broker, terminal, drawn);
}

void run_on_tick(Run *run, void (*tick)(void *context, const RunTick *tick), void *context)
{
    run->tick = tick;
    run->tick_context = context;
}

/* We keep the writing end, for the next command, and because a pipe without writers would wake us all the
 * time. */
static int output_open(Run *run)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return -errno;
    run->output.fd = pipes[0];
    run->inherited.output = pipes[1];
    if (fcntl(pipes[0], F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return source_watch(&run->output, run->epoll);
}

int run_watch(Run *run, const RunWatch *watch)
{
    int r = timer_start(&run->pulse, run->epoll, watch->msec);
    if (r >= 0 && watch->output)
        r = output_open(run);
    if (r >= 0)
        run->watch = watch;
    return r;
}

void run_end(Run *run)
{
    if (run->cut > 0 || run->child.status_is)
        return;
    run->cut = now_seconds();
    journal_tick(run->journal); /* a last sample: the command may have lived between two ticks */
    child_signal(&run->child, SIGTERM, false);
    child_signal(&run->child, SIGCONT, true); /* a stopped process takes no other signal */
}

int run_evidence(Run *run, const RunResult *result, Arena *arena, Evidence *ret)
{
    Evidence evidence = EVIDENCE_NONE;
    int r = run->journal && result->pid > 0 ? journal_finish(run->journal, arena, &evidence) : 0;
    if (r < 0)
        return r;
    evidence.pid = result->pid;
    evidence.code = result->code;
    evidence.signal = result->signal;
    evidence.passed_on = result->passed_on;
    evidence.seconds = result->seconds;
    evidence.guarded = result->guarded || (result->joined && !run->only_witness);
    if (result->guarded) {
        evidence.shared = guard_has_served(&result->guard);
        evidence.turned_away = result->guard.turned_away;
        evidence.budget_bytes = result->guard.budget_bytes;
        evidence.budget_basis = result->budget_basis;
        evidence.refused = result->guard.refused;
        evidence.refused_bytes = result->guard.refused_bytes;
        evidence.refused_pid = result->guard.refused_pid;
        evidence.refused_for_want = result->guard.refused_for_want;
        evidence.refused_seconds = result->guard.refused_seconds - run->began;
        evidence.served_after = result->guard.served_after;
        memcpy(evidence.refusals, result->guard.refusals, sizeof evidence.refusals);
        evidence.n_refusals = result->guard.n_refusals;
    }
    *ret = evidence;
    return 0;
}

Peaks run_peaks(const Run *run)
{
    return run->journal ? journal_peaks(run->journal) : PEAKS_UNKNOWN;
}

void run_peek(Run *run)
{
    if (run->journal)
        journal_peek(run->journal);
}

int run_processes(const Run *run, Arena *arena, ProcessPeak **ret, size_t *ret_n)
{
    if (run->journal)
        return journal_processes(run->journal, arena, ret, ret_n);
    *ret_n = 0;
    return 0;
}

void run_roles(const Run *run, uint64_t *ret_trainers, uint64_t *ret_workers)
{
    *ret_trainers = *ret_workers = 0;
    if (run->journal)
        journal_roles(run->journal, ret_trainers, ret_workers);
}
