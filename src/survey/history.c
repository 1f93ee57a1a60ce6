/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "history.h"

enum { FIRST_CAPACITY = 16, FIRST_BUCKETS = 64 };

static const char *const process_metric_names[PROCESS_METRICS] = {
    [PROCESS_ANON] = "anon",
    [PROCESS_FILE] = "file",
    [PROCESS_SHMEM] = "shmem",
    [PROCESS_SWAP] = "swap",
    [PROCESS_PSS] = "pss",
    [PROCESS_USS] = "uss",
    [PROCESS_SHM] = "shm",
    [PROCESS_SEGMENTS] = "segments",
    [PROCESS_MAPS] = "maps",
    [PROCESS_FDS] = "fds",
    [PROCESS_THREADS] = "threads",
    [PROCESS_MINOR_FAULTS] = "minor_faults",
    [PROCESS_MAJOR_FAULTS] = "major_faults",
    [PROCESS_CPU_MSEC] = "cpu_msec",
    [PROCESS_CPU_WAIT_MSEC] = "cpu_wait_msec",
    [PROCESS_LOADER_WAIT_MSEC] = "loader_wait_msec",
};

static const char *const job_metric_names[JOB_METRICS] = {
    [JOB_MEMORY_TOTAL] = "memory_total",
    [JOB_MEMORY_AVAILABLE] = "memory_available",
    [JOB_SWAP_FREE] = "swap_free",
    [JOB_GROUP_LIMIT] = "group_limit",
    [JOB_GROUP_USED] = "group_used",
    [JOB_GROUP_FILE] = "group_file",
    [JOB_OOM_KILLS] = "oom_kills",
    [JOB_SHM_SIZE] = "shm_size",
    [JOB_SHM_USED] = "shm_used",
    [JOB_GUARD_BYTES] = "guard_bytes",
    [JOB_GUARD_BUDGET] = "guard_budget",
    [JOB_GUARD_CREATED] = "guard_created",
    [JOB_GUARD_REUSED] = "guard_reused",
    [JOB_GUARD_WAITING] = "guard_waiting",
    [JOB_GUARD_WAITS] = "guard_waits",
    [JOB_GUARD_REFUSED] = "guard_refused",
    [JOB_GUARD_FROZEN] = "guard_frozen",
    [JOB_GUARD_WAITED_MSEC] = "guard_waited_msec",
    [JOB_DISK_WAIT_MSEC] = "disk_wait_msec",
    [JOB_KIND_BYTES + KIND_OTHER] = "segments_other",
    [JOB_KIND_BYTES + KIND_TORCH] = "segments_torch",
    [JOB_KIND_BYTES + KIND_NCCL] = "segments_nccl",
    [JOB_KIND_BYTES + KIND_PYTHON] = "segments_python",
    [JOB_KIND_BYTES + KIND_GLOO] = "segments_gloo",
    [JOB_KIND_BYTES + KIND_DALI] = "segments_dali",
    [JOB_KIND_BYTES + KIND_RAY] = "segments_ray",
    [JOB_KIND_BYTES + KIND_MPI] = "segments_mpi",
    [JOB_KIND_BYTES + KIND_SEMAPHORE] = "segments_semaphore",
    [JOB_KIND_BYTES + KIND_SHMGUARD] = "segments_shmguard",
};

static const char *const event_kind_names[EVENT_KINDS] = {
    [EVENT_BORN] = "born",       [EVENT_ENDED] = "ended", [EVENT_OOM_KILL] = "oom-kill",
    [EVENT_ATTEMPT] = "attempt", [EVENT_MARK] = "mark",   [EVENT_EPOCH] = "epoch",
};

const char *process_metric_name(ProcessMetric metric)
{
    return process_metric_names[metric];
}

const char *job_metric_name(JobMetric metric)
{
    return job_metric_names[metric];
}

const char *event_kind_name(EventKind kind)
{
    return event_kind_names[kind];
}

/* --- Series ------------------------------------------------------------------------------------------- */

static int doubles_grow(double **items, size_t capacity)
{
    double *larger = reallocarray(*items, capacity, sizeof **items);
    if (!larger)
        return -ENOMEM;
    *items = larger;
    return 0;
}

static int numbers_grow(uint64_t **items, size_t capacity)
{
    uint64_t *larger = reallocarray(*items, capacity, sizeof **items);
    if (!larger)
        return -ENOMEM;
    *items = larger;
    return 0;
}

/* After -ENOMEM some arrays are longer than `capacity` says, which is harmless. */
static int series_grow(Series *series, size_t n_metrics)
{
    size_t capacity = MAX(series->capacity * 2, (size_t)FIRST_CAPACITY);
    if (!series->values) {
        series->values = calloc(n_metrics, sizeof *series->values);
        if (!series->values)
            return -ENOMEM;
        series->n_metrics = n_metrics;
    }
    int r = doubles_grow(&series->seconds, capacity);
    for (size_t i = 0; r >= 0 && i < n_metrics; i++)
        r = numbers_grow(&series->values[i], capacity);
    if (r >= 0)
        series->capacity = capacity;
    return r;
}

static int series_add(Series *series, size_t n_metrics, double seconds, const uint64_t *values)
{
    if (series->n == series->capacity) {
        int r = series_grow(series, n_metrics);
        if (r < 0)
            return r;
    }
    series->seconds[series->n] = seconds;
    for (size_t i = 0; i < n_metrics; i++)
        series->values[i][series->n] = values[i];
    series->n++;
    return 0;
}

static void series_forget(Series *series, double before_seconds)
{
    size_t old = 0;
    while (old < series->n && series->seconds[old] < before_seconds)
        old++;
    if (old == 0 || old < series->n / 4)
        return;
    size_t kept = series->n - old;
    memmove(series->seconds, series->seconds + old, kept * sizeof *series->seconds);
    for (size_t i = 0; i < series->n_metrics; i++)
        memmove(series->values[i], series->values[i] + old, kept * sizeof *series->values[i]);
    series->n = kept;
}

static void series_free(Series *series)
{
    for (size_t i = 0; i < series->n_metrics; i++)
        free(series->values[i]);
    free(series->values);
    free(series->seconds);
    *series = (Series){0};
}

/* --- Tracks ------------------------------------------------------------------------------------------- */

/* Pids are assigned one after another: their low bits spread them evenly. */
static size_t *bucket_of(const History *history, int pid)
{
    return &history->buckets[(size_t)(unsigned)pid & (history->n_buckets - 1)];
}

static void buckets_fill(History *history)
{
    memset(history->buckets, 0, history->n_buckets * sizeof *history->buckets);
    for (size_t i = 0; i < history->n_tracks; i++) {
        size_t *bucket = bucket_of(history, history->tracks[i].last.pid);
        history->tracks[i].older = *bucket;
        *bucket = i + 1;
    }
}

static int buckets_grow(History *history)
{
    size_t wanted = MAX(history->n_buckets * 2, (size_t)FIRST_BUCKETS);
    size_t *larger = reallocarray(history->buckets, wanted, sizeof *larger);
    if (!larger)
        return -ENOMEM;
    history->buckets = larger;
    history->n_buckets = wanted;
    buckets_fill(history);
    return 0;
}

static int live_add(History *history, size_t track)
{
    if (history->n_live == history->live_capacity) {
        size_t wanted = MAX(history->live_capacity * 2, (size_t)FIRST_CAPACITY);
        size_t *larger = reallocarray(history->live, wanted, sizeof *larger);
        if (!larger)
            return -ENOMEM;
        history->live = larger;
        history->live_capacity = wanted;
    }
    history->live[history->n_live++] = track;
    return 0;
}

static ProcessTrack *track_find(const History *history, int pid, uint64_t start_ticks)
{
    size_t next = history->n_buckets == 0 ? 0 : *bucket_of(history, pid);
    for (; next != 0; next = history->tracks[next - 1].older) {
        ProcessTrack *track = &history->tracks[next - 1];
        if (track->last.pid == pid && track->last.start_ticks == start_ticks)
            return track;
    }
    return NULL;
}

const ProcessTrack *history_track(const History *history, int pid)
{
    size_t next = history->n_buckets == 0 ? 0 : *bucket_of(history, pid);
    while (next != 0 && history->tracks[next - 1].last.pid != pid)
        next = history->tracks[next - 1].older;
    return next == 0 ? NULL : &history->tracks[next - 1];
}

static ProcessTrack *track_add(History *history, const ProcessMoment *process, double seconds)
{
    if (history->n_tracks == history->tracks_capacity) {
        size_t wanted = MAX(history->tracks_capacity * 2, (size_t)FIRST_CAPACITY);
        ProcessTrack *larger = reallocarray(history->tracks, wanted, sizeof *larger);
        if (!larger)
            return NULL;
        history->tracks = larger;
        history->tracks_capacity = wanted;
    }
    if (history->n_tracks >= history->n_buckets && buckets_grow(history) < 0)
        return NULL;
    if (live_add(history, history->n_tracks) < 0)
        return NULL;
    ProcessTrack *track = &history->tracks[history->n_tracks++];
    size_t *bucket = bucket_of(history, process->pid);
    *track = (ProcessTrack){
        .last = {.pid = process->pid, .start_ticks = process->start_ticks},
        .first_seconds = seconds,
        .ended_seconds = INFINITY,
        .older = *bucket,
    };
    *bucket = history->n_tracks;
    return track;
}

static void track_free(ProcessTrack *track)
{
    series_free(&track->series);
    free((char *)track->last.command);
}

/* The command is copied only if it has changed. */
static int track_take(ProcessTrack *track, const ProcessMoment *process)
{
    const char *command = track->last.command;
    if (!command || (process->command && strcmp(command, process->command) != 0)) {
        char *copy = strdup(process->command ? process->command : "");
        if (!copy)
            return -ENOMEM;
        free((char *)command);
        command = copy;
    }
    track->last = *process;
    track->last.command = command;
    return 0;
}

static int process_add(History *history, const ProcessMoment *process, double seconds)
{
    ProcessTrack *track = track_find(history, process->pid, process->start_ticks);
    if (!track) {
        track = track_add(history, process, seconds);
        if (!track)
            return -ENOMEM;
    } else if (!isinf(track->ended_seconds)) {
        /* A look had missed it: it is alive. */
        int r = live_add(history, (size_t)(track - history->tracks));
        if (r < 0)
            return r;
        track->ended_seconds = INFINITY;
    }
    int r = track_take(track, process);
    return r < 0 ? r : series_add(&track->series, PROCESS_METRICS, seconds, process->values);
}

static bool track_is_at(const ProcessTrack *track, double seconds)
{
    return track->series.n > 0 && track->series.seconds[track->series.n - 1] >= seconds;
}

static void missing_end(History *history, double seconds)
{
    size_t n = 0;
    for (size_t i = 0; i < history->n_live; i++) {
        ProcessTrack *track = &history->tracks[history->live[i]];
        if (track_is_at(track, seconds))
            history->live[n++] = history->live[i];
        else
            track->ended_seconds = seconds;
    }
    history->n_live = n;
}

/* --- History ------------------------------------------------------------------------------------------ */

int history_init(History *history, const char *command, int pid, double began, double interval)
{
    char *copy = strdup(command);
    if (!copy)
        return -ENOMEM;
    *history = (History){
        .began = began, .interval = interval, .command = copy, .pid = pid, .place = JOB_PLACE_UNKNOWN};
    return 0;
}

void history_free(History *history)
{
    for (size_t i = 0; i < history->n_tracks; i++)
        track_free(&history->tracks[i]);
    series_free(&history->series);
    free(history->tracks);
    free(history->events);
    free(history->windows);
    free(history->buckets);
    free(history->live);
    free(history->command);
    *history = (History){0};
}

static int events_add(History *history, const Event *events, size_t n)
{
    if (n > history->events_capacity - history->n_events) {
        size_t wanted = MAX(history->events_capacity * 2, history->n_events + n);
        Event *larger = reallocarray(history->events, wanted, sizeof *larger);
        if (!larger)
            return -ENOMEM;
        history->events = larger;
        history->events_capacity = wanted;
    }
    if (n > 0)
        memcpy(history->events + history->n_events, events, n * sizeof *events);
    history->n_events += n;
    return 0;
}

int history_add(History *history, const Moment *moment)
{
    int r = series_add(&history->series, JOB_METRICS, moment->seconds, moment->values);
    for (size_t i = 0; r >= 0 && i < moment->n_processes; i++)
        r = process_add(history, &moment->processes[i], moment->seconds);
    if (r < 0)
        return r;
    missing_end(history, moment->seconds);
    return events_add(history, moment->events, moment->n_events);
}

int history_add_event(History *history, const Event *event)
{
    return events_add(history, event, 1);
}

int history_add_site_window(History *history, const SiteWindow *window)
{
    if (history->n_windows == history->windows_capacity) {
        size_t wanted = MAX(history->windows_capacity * 2, (size_t)FIRST_CAPACITY);
        SiteWindow *larger = reallocarray(history->windows, wanted, sizeof *larger);
        if (!larger)
            return -ENOMEM;
        history->windows = larger;
        history->windows_capacity = wanted;
    }
    history->windows[history->n_windows++] = *window;
    return 0;
}

static void events_forget(History *history, double before_seconds)
{
    size_t old = 0;
    while (old < history->n_events && history->events[old].seconds < before_seconds)
        old++;
    if (old > 0)
        memmove(history->events, history->events + old, (history->n_events - old) * sizeof *history->events);
    history->n_events -= old;
}

void history_forget(History *history, double before_seconds)
{
    series_forget(&history->series, before_seconds);
    events_forget(history, before_seconds);
    size_t n = 0;
    size_t n_live = 0;
    for (size_t i = 0; i < history->n_tracks; i++) {
        ProcessTrack *track = &history->tracks[i];
        if (track->ended_seconds < before_seconds) {
            track_free(track);
            continue;
        }
        series_forget(&track->series, before_seconds);
        if (isinf(track->ended_seconds))
            history->live[n_live++] = n; /* as many as before: live tracks are never dropped */
        if (n != i)
            history->tracks[n] = *track;
        n++;
    }
    history->n_live = n_live;
    if (n == history->n_tracks)
        return;
    history->n_tracks = n;
    buckets_fill(history);
}
