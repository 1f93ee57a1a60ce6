/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "crash.h"
#include "job-place.h"
#include "recorder.h"
#include "sampler.h"

/* How long the end of a job waits for a disk before the recording is given up. */
enum { HANG_SECONDS = 10 };

/* The end of a job is noticed within END_SECONDS. Samples at shorter intervals see it themselves; between two
 * samples at longer intervals, up to AWAITED_MOST processes of the job are waited for. */
#define END_SECONDS 1.0
enum { AWAITED_MOST = 256 };

/* More than that wait only if the disk hangs. */
enum { WINDOWS_MOST = 64 };

struct Recorder {
    /* Used by the opener's thread only. */
    double interval;
    double origin; /* CLOCK_MONOTONIC of second 0 */
    int over_fd;
    int stop_fd; /* readable: the thread has to end */
    Root root;
    pthread_t thread;
    bool runs;
    bool hangs; /* the thread was given up, and everything that it uses with it */
    bool discards;
    bool error_taken;

    /* Used by the recording thread only, while it runs. */
    Recording *recording;
    Sampler *sampler;
    int pid;
    MomentRelay *relay;
    double offset; /* of the sampler's second 0, in seconds of the recording */
    Event attempt;
    bool attempt_due;
    Event *events;
    size_t events_capacity;
    JobPlace place;
    bool place_learned;
    uint64_t open_files;        /* the limit of the trainer; 0 unknown */
    const ProcessMoment *there; /* the processes of the newest sample */
    size_t n_there;

    /* Shared by both threads: under the mutex, or atomic. */
    pthread_mutex_t mutex;
    GuardFigures guard;
    bool guard_fresh;
    SiteWindow *windows; /* that are not in the file yet */
    size_t n_windows;
    RecorderStatus status;
    atomic_bool parked;
};

/* --- The thread --------------------------------------------------------------------------------------- */

static void guard_take(Recorder *recorder, uint64_t *values)
{
    pthread_mutex_lock(&recorder->mutex);
    GuardFigures guard = recorder->guard;
    bool fresh = TAKE(recorder->guard_fresh, false);
    pthread_mutex_unlock(&recorder->mutex);
    if (!fresh)
        return;
    values[JOB_GUARD_BYTES] = guard.bytes_now;
    values[JOB_GUARD_BUDGET] = guard.budget_bytes;
    values[JOB_GUARD_CREATED] = guard.segments_created;
    values[JOB_GUARD_REUSED] = guard.segments_reused;
    values[JOB_GUARD_WAITING] = guard.waiting;
    values[JOB_GUARD_WAITS] = guard.waits;
    values[JOB_GUARD_REFUSED] = guard.refused;
    values[JOB_GUARD_FROZEN] = guard.freeze.bytes;
    values[JOB_GUARD_WAITED_MSEC] = (uint64_t)(guard.queued_seconds * 1000);
}

static void trainer_waits_note(Recorder *recorder)
{
    pthread_mutex_lock(&recorder->mutex);
    for (size_t i = 0; i < recorder->guard.n_trainer_waits; i++)
        sampler_note_wait(recorder->sampler, recorder->guard.trainer_waits[i].pid,
                          recorder->guard.trainer_waits[i].msec);
    pthread_mutex_unlock(&recorder->mutex);
}

/* Those that wait. While another program writes into the file, they wait longer. */
static int sites_write(Recorder *recorder)
{
    int r = 0;
    while (r >= 0) {
        SiteWindow window;
        pthread_mutex_lock(&recorder->mutex);
        bool any = recorder->n_windows > 0;
        if (any)
            window = recorder->windows[0];
        pthread_mutex_unlock(&recorder->mutex);
        if (!any)
            return 0;
        r = recording_add_sites(recorder->recording, &window);
        pthread_mutex_lock(&recorder->mutex);
        if (r >= 0)
            memmove(recorder->windows, recorder->windows + 1, --recorder->n_windows * sizeof window);
        pthread_mutex_unlock(&recorder->mutex);
    }
    return r == -EBUSY ? 0 : r;
}

/* Converts the moment to the recording's time, and adds the start of an attempt to its events. */
static int moment_shift(Recorder *recorder, Moment *moment)
{
    size_t n = moment->n_events + 1;
    if (n > recorder->events_capacity) {
        Event *larger = reallocarray(recorder->events, n * 2, sizeof *larger);
        if (!larger)
            return -ENOMEM;
        recorder->events = larger;
        recorder->events_capacity = n * 2;
    }
    n = 0;
    if (TAKE(recorder->attempt_due, false))
        recorder->events[n++] = recorder->attempt;
    for (size_t i = 0; i < moment->n_events; i++) {
        recorder->events[n] = moment->events[i];
        recorder->events[n++].seconds += recorder->offset;
    }
    moment->events = recorder->events;
    moment->n_events = n;
    moment->seconds += recorder->offset;
    return 0;
}

static uint64_t processes_met(const Moment *moment, bool first)
{
    uint64_t n = first ? moment->n_processes : 0;
    for (size_t i = 0; i < moment->n_events; i++)
        n += moment->events[i].kind == EVENT_BORN;
    return n;
}

static int moment_add(Recorder *recorder, Moment moment)
{
    bool first = moment.seconds <= 0;
    guard_take(recorder, moment.values);
    int r = moment_shift(recorder, &moment);
    if (r >= 0)
        r = recording_add(recorder->recording, &moment);
    if (r < 0)
        return r;
    pthread_mutex_lock(&recorder->mutex);
    recorder->status.samples++;
    recorder->status.processes += processes_met(&moment, first);
    pthread_mutex_unlock(&recorder->mutex);
    return 0;
}

/* Of the first trainer. Scripts raise it before they start the training, or in it. */
static void open_files_learn(Recorder *recorder, const Moment *moment)
{
    size_t i = 0;
    while (i < moment->n_processes && moment->processes[i].role != ROLE_TRAINER)
        i++;
    RLimits limits;
    if (i == moment->n_processes || rlimits_read(&recorder->root, moment->processes[i].pid, &limits) < 0 ||
        limits.open_files_soft > INT64_MAX || limits.open_files_soft == recorder->open_files)
        return;
    recorder->open_files = limits.open_files_soft;
    recording_set_open_files(recorder->recording, recorder->open_files);
}

/* torchrun's id of the job, for instance, is known to its ranks only. */
static void place_learn_from(Recorder *recorder, const Moment *moment)
{
    LauncherNames names;
    size_t i = 0;
    while (i < moment->n_processes && moment->processes[i].rank == RANK_UNKNOWN)
        i++;
    if (recorder->place_learned || i == moment->n_processes ||
        launcher_names_read(&recorder->root, moment->processes[i].pid, &names) < 0)
        return;
    JobPlace trainer = job_place_of(&names);
    recorder->place_learned = true;
    job_place_learn(&recorder->place, &trainer);
    recording_set_place(recorder->recording, &recorder->place);
}

/* -ESRCH: the job has ended. */
static int moment_record(Recorder *recorder)
{
    Moment moment;
    trainer_waits_note(recorder);
    int r = sampler_look(recorder->sampler, &moment);
    if (r < 0)
        return r;
    recorder->there = moment.processes;
    recorder->n_there = moment.n_processes;
    open_files_learn(recorder, &moment);
    place_learn_from(recorder, &moment);
    moment_relay_put(recorder->relay, &moment); /* before the disk, which may hang */
    return moment_add(recorder, moment);
}

/* Opens the processes of the newest sample that still run. False: they cannot be waited for (before Linux
 * 5.3, in some sandboxes, without free descriptors). */
static bool awaited_open(const Recorder *recorder, struct pollfd *ret, size_t *ret_n)
{
    size_t n = 0;
    for (size_t i = 0; i < MIN(recorder->n_there, (size_t)AWAITED_MOST); i++) {
        int fd = (int)syscall(SYS_pidfd_open, recorder->there[i].pid, 0);
        if (fd >= 0)
            ret[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
        else if (errno != ESRCH) {
            while (n > 0)
                fd_close(ret[--n].fd);
            return false;
        }
    }
    *ret_n = n;
    return true;
}

static int patience_msec(double until)
{
    return (int)MIN(ceil(MAX(until - now_seconds(), 0.0) * 1000), (double)INT_MAX);
}

/*
 * Waits until the next sample is due, which is earlier when all processes of the newest sample have ended.
 * False: the thread has to end. By the time that a pid is opened, it may belong to another process: the end
 * of the job is then seen when the next sample is due.
 */
static bool time_wait(const Recorder *recorder, double until)
{
    struct pollfd fds[1 + AWAITED_MOST] = {{.fd = recorder->stop_fd, .events = POLLIN}};
    size_t n = 0;
    bool await = recorder->interval > END_SECONDS && awaited_open(recorder, fds + 1, &n);
    double soon = now_seconds() + END_SECONDS / 2; /* not at once: they may leave other processes behind */
    while (!(fds[0].revents & POLLIN) && (!await || n > 0) &&
           (poll(fds, 1 + n, patience_msec(until)) != 0 || now_seconds() < until))
        for (size_t i = n; i > 0; i--)
            if (fds[i].revents) {
                fd_close(fds[i].fd);
                fds[i] = fds[n--];
            }
    for (size_t i = 1; i <= n; i++)
        fd_close(fds[i].fd);
    if (await && n == 0 && !fds[0].revents)
        (void)poll(fds, 1, patience_msec(MIN(soon, until)));
    return !(fds[0].revents & POLLIN);
}

static void over_tell(Recorder *recorder, int error)
{
    uint64_t lost = recording_lost(recorder->recording);
    pthread_mutex_lock(&recorder->mutex);
    recorder->status.lost = lost;
    recorder->status.over = true;
    recorder->status.error = error;
    pthread_mutex_unlock(&recorder->mutex);
    (void)eventfd_write(recorder->over_fd, 1);
}

/*
 * SQLite maps its -shm file. When a copy-on-write file system has no room for a page of that file, or another
 * program truncates it, the thread gets SIGBUS. That must end the recording and not the supervisor of a
 * training. Nothing can be undone in the middle of SQLite, so the thread stays where it is, with everything
 * that it holds, until the program ends. It can fault only in SQLite, where it does not hold the mutex.
 */
static _Thread_local Recorder *recorder_here; /* NULL in other threads, whose faults are not handled here */
static struct sigaction bus_before;           /* handles those */

static void bus_park(int signo)
{
    Recorder *recorder = recorder_here;
    if (!recorder) {
        (void)sigaction(signo, &bus_before, NULL);
        (void)raise(signo); /* delivered when this handler returns */
        return;
    }
    uint64_t one = 1;
    atomic_store(&recorder->parked, true);
    if (write(recorder->over_fd, &one, sizeof one) < 0)
        errno = 0; /* the counter is full: the reader has been woken already */
    for (;;)
        pause();
}

/* A sample that took too long does not make the next one due at once: samples stay on multiples of the
 * interval. */
static void *record(void *context)
{
    Recorder *recorder = context;
    recorder_here = recorder;
    double next = now_seconds();
    bool last = false;
    int r = 0;
    recording_set_pid(recorder->recording, recorder->pid);
    while ((r = moment_record(recorder)) >= 0 && (r = sites_write(recorder)) >= 0 && !last) {
        double now = now_seconds();
        if (now >= next)
            next += recorder->interval * MAX(1.0, ceil((now - next) / recorder->interval));
        last = !time_wait(recorder, next);
    }
    int written = recording_flush(recorder->recording);
    if (written >= 0)
        written = sites_write(recorder);
    over_tell(recorder, r == -ESRCH || r >= 0 ? written : r);
    return NULL;
}

static void *file_close(void *context)
{
    Recorder *recorder = context;
    recorder_here = recorder;
    if (recorder->discards)
        recording_discard(TAKE_PTR(recorder->recording));
    else
        recording_close(TAKE_PTR(recorder->recording));
    return NULL;
}

/* Before the thread starts: during a fault nothing can be looked up. */
static void bus_take(void)
{
    struct sigaction bus = {.sa_handler = bus_park};
    struct sigaction before;
    if (sigaction(SIGBUS, &bus, &before) == 0 && before.sa_handler != bus_park)
        bus_before = before;
}

/* Signals go to the main thread, except those of a crash: a crash signal that is blocked would end the
 * program without running its handler (run/crash.h). */
static int thread_start(Recorder *recorder, void *(*work)(void *))
{
    sigset_t all;
    sigset_t before;
    sigset_t crashes;
    bus_take();
    crash_signals(&crashes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_sigmask(SIG_UNBLOCK, &crashes, NULL);
    int error = pthread_create(&recorder->thread, NULL, work, recorder);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    recorder->runs = error == 0;
    return -error;
}

/* Waits in short steps, because a parked thread never ends. */
static void thread_join(Recorder *recorder)
{
    enum { WAITS_PER_SECOND = 10 };
    for (int i = 0; i < HANG_SECONDS * WAITS_PER_SECOND; i++) {
        double end = now_seconds() + 1.0 / WAITS_PER_SECOND;
        struct timespec until = {.tv_sec = (time_t)end, .tv_nsec = (long)((end - floor(end)) * 1e9)};
        recorder->hangs = pthread_clockjoin_np(recorder->thread, NULL, CLOCK_MONOTONIC, &until) != 0;
        if (!recorder->hangs || atomic_load(&recorder->parked))
            break;
    }
    recorder->runs = false;
}

/* --- The opener's thread ------------------------------------------------------------------------------ */

int recorder_open(const char *path, const char *command, double interval, Recorder **ret)
{
    Recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        return -ENOMEM;
    *recorder = (Recorder){
        .interval = interval,
        .origin = now_seconds(),
        .over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .root = ROOT_NONE,
        .mutex = PTHREAD_MUTEX_INITIALIZER,
    };
    int r = recorder->over_fd < 0 || recorder->stop_fd < 0 ? -EMFILE : 0;
    if (r >= 0)
        r = moment_relay_open(&recorder->relay);
    if (r >= 0)
        r = root_open(NULL, &recorder->root);
    if (r >= 0)
        recorder->place = job_place_here(&recorder->root);
    History head = {.began = clock_seconds(CLOCK_REALTIME),
                    .interval = interval,
                    .command = (char *)command,
                    .place = recorder->place};
    if (r >= 0)
        r = recording_create(path, &head, &recorder->recording);
    if (r < 0) {
        recorder_close(recorder, false);
        return r;
    }
    /* For the user's own marks. Without the variable none can be made, which is no reason to stop. */
    _cleanup_free_ char *whole = realpath(path, NULL);
    if (whole)
        (void)setenv("SHMGUARD_RECORDING", whole, 1);
    *ret = recorder;
    return 0;
}

/* The job was over before the first sample: one without processes says so. */
static int nothing_record(Recorder *recorder)
{
    Moment moment = {.seconds = 0};
    for (size_t i = 0; i < JOB_METRICS; i++)
        moment.values[i] = U64_UNKNOWN;
    recording_set_pid(recorder->recording, recorder->pid);
    int r = moment_add(recorder, moment);
    over_tell(recorder, MIN(r, 0));
    return r;
}

int recorder_begin(Recorder *recorder, int pid, const char *attempt)
{
    if (recorder->hangs || recorder->status.error < 0)
        return recorder->hangs ? -EIO : recorder->status.error;
    SamplerWish wish = {.pid = pid, .interval = recorder->interval};
    recorder->status.over = false;
    recorder->offset = now_seconds() - recorder->origin;
    recorder->attempt_due = attempt;
    recorder->attempt = (Event){.seconds = recorder->offset, .kind = EVENT_ATTEMPT};
    snprintf(recorder->attempt.text, sizeof recorder->attempt.text, "%s", attempt ? attempt : "");
    recorder->pid = pid;
    int r = sampler_open(&recorder->root, &wish, &recorder->sampler);
    if (r == -ESRCH)
        return nothing_record(recorder);
    if (r >= 0)
        r = thread_start(recorder, record);
    if (r < 0)
        over_tell(recorder, r);
    return r;
}

void recorder_guard(Recorder *recorder, const GuardFigures *figures)
{
    pthread_mutex_lock(&recorder->mutex);
    recorder->guard = *figures;
    recorder->guard_fresh = true;
    pthread_mutex_unlock(&recorder->mutex);
}

void recorder_sites(Recorder *recorder, const SiteWindow *window)
{
    pthread_mutex_lock(&recorder->mutex);
    if (!recorder->windows)
        recorder->windows = calloc(WINDOWS_MOST, sizeof *recorder->windows);
    if (recorder->windows && recorder->n_windows < WINDOWS_MOST) {
        SiteWindow *slot = &recorder->windows[recorder->n_windows++];
        *slot = *window;
        slot->seconds -= recorder->origin;
    }
    pthread_mutex_unlock(&recorder->mutex);
}

RecorderStatus recorder_status(Recorder *recorder)
{
    pthread_mutex_lock(&recorder->mutex);
    RecorderStatus status = recorder->status;
    pthread_mutex_unlock(&recorder->mutex);
    if (atomic_load(&recorder->parked)) {
        status.over = true;
        status.error = -EIO;
    }
    return status;
}

MomentRelay *recorder_relay(const Recorder *recorder)
{
    return recorder->relay;
}

int recorder_take_error(Recorder *recorder)
{
    int error = recorder->error_taken ? 0 : recorder_status(recorder).error;
    recorder->error_taken = recorder->error_taken || error < 0;
    return error;
}

int recorder_fd(const Recorder *recorder)
{
    return recorder->over_fd;
}

void recorder_end(Recorder *recorder)
{
    if (recorder->runs && !recorder->hangs) {
        (void)eventfd_write(recorder->stop_fd, 1);
        thread_join(recorder);
    }
    if (!recorder->hangs) {
        sampler_free(TAKE_PTR(recorder->sampler));
        eventfd_t value;
        (void)eventfd_read(recorder->over_fd, &value);
        (void)eventfd_read(recorder->stop_fd, &value);
    }
}

int recorder_save(Recorder *recorder)
{
    /* In a thread as well: a slow disk may take long to write everything. */
    if (!recorder->hangs && recorder->recording) {
        if (thread_start(recorder, file_close) < 0)
            (void)file_close(recorder);
        else
            thread_join(recorder);
    }
    return !recorder->hangs ? 0 : atomic_load(&recorder->parked) ? -EIO : -ETIMEDOUT;
}

void recorder_close(Recorder *recorder, bool discard)
{
    if (!recorder)
        return;
    recorder_end(recorder);
    recorder->discards = discard;
    if (recorder_save(recorder) < 0)
        return; /* the thread may still use everything */
    moment_relay_free(recorder->relay);
    root_close(&recorder->root);
    fd_close(recorder->over_fd);
    fd_close(recorder->stop_fd);
    free(recorder->events);
    free(recorder->windows);
    free(recorder);
}
