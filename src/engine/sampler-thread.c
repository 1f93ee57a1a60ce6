/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "other-supervisors.h"
#include "proc-statm.h"
#include "rlimits.h"
#include "sampler-thread.h"

/* How long sampler_thread_close waits for a sample. */
#define PATIENCE_SECONDS 0.25

struct SamplerThread {
    /* Used by the thread whose turn it is. */
    Root root;
    Sampler *sampler;
    OtherSupervisors supervisors;
    JobFacts *facts;
    size_t n_facts;
    size_t facts_capacity;
    SampleResult sample;
    int result;

    /* Used by the opener's thread only. */
    pthread_t thread;
    bool runs;
    double asked_at; /* negative: the answer was taken */
    int fd;

    /* Shared by both threads, under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t turn;
    bool asked;
    bool answered;
    bool stop;
    bool ended;
};

/* --- The thread --------------------------------------------------------------------------------------- */

/* Of a process that just appeared. Without memory its facts are read in a later sample. */
static void facts_add(SamplerThread *thread, int pid, uint64_t start_ticks)
{
    RLimits limits = {.open_files_soft = U64_UNKNOWN};
    JobFacts facts = {.pid = pid, .start_ticks = start_ticks, .there = true};
    if (thread->n_facts == thread->facts_capacity) {
        size_t wanted = MAX(thread->facts_capacity * 2, (size_t)16);
        JobFacts *larger = reallocarray(thread->facts, wanted, sizeof *larger);
        if (!larger)
            return;
        thread->facts = larger;
        thread->facts_capacity = wanted;
    }
    (void)launcher_names_read(&thread->root, pid, &facts.names);
    (void)rlimits_read(&thread->root, pid, &limits);
    facts.open_files_soft = limits.open_files_soft;
    thread->facts[thread->n_facts++] = facts;
}

static void facts_meet(SamplerThread *thread, int pid, uint64_t start_ticks)
{
    for (size_t i = 0; i < thread->n_facts; i++)
        if (thread->facts[i].pid == pid && thread->facts[i].start_ticks == start_ticks) {
            thread->facts[i].there = true;
            return;
        }
    facts_add(thread, pid, start_ticks);
}

static void facts_fill(SamplerThread *thread, const Moment *moment)
{
    size_t kept = 0;
    for (size_t i = 0; i < thread->n_facts; i++)
        thread->facts[i].there = false;
    for (size_t i = 0; i < moment->n_processes; i++)
        if (moment->processes[i].role == ROLE_TRAINER)
            facts_meet(thread, moment->processes[i].pid, moment->processes[i].start_ticks);
    for (size_t i = 0; i < thread->supervisors.n; i++)
        facts_meet(thread, thread->supervisors.items[i].pid, thread->supervisors.items[i].start_ticks);
    for (size_t i = 0; i < thread->n_facts; i++)
        if (thread->facts[i].there)
            thread->facts[kept++] = thread->facts[i];
    thread->n_facts = kept;
}

static int sample(SamplerThread *thread)
{
    SampleResult result = {.own_bytes = U64_UNKNOWN};
    ProcStatm statm;
    int r = sampler_look(thread->sampler, &result.moment);
    if (r < 0)
        return r;
    result.guards = supervisors_fill(&thread->supervisors, &thread->root, &result.moment, &result.guard_pid);
    facts_fill(thread, &result.moment);
    result.runs = thread->supervisors.runs;
    result.totals = &thread->supervisors.totals;
    result.facts = thread->facts;
    result.n_facts = thread->n_facts;
    result.surveyed = sampler_take_segments(thread->sampler, &result.survey, &result.survey_seconds);
    if (proc_statm_read(&thread->root, getpid(), &statm) >= 0)
        result.own_bytes = statm.resident_bytes;
    thread->sample = result;
    return 0;
}

static void *samples_take(void *context)
{
    SamplerThread *thread = context;
    pthread_mutex_lock(&thread->mutex);
    for (;;) {
        while (!thread->asked && !thread->stop)
            pthread_cond_wait(&thread->turn, &thread->mutex);
        if (thread->stop)
            break;
        thread->asked = false;
        pthread_mutex_unlock(&thread->mutex);
        thread->result = sample(thread);
        pthread_mutex_lock(&thread->mutex);
        thread->answered = true;
        pthread_cond_signal(&thread->turn);
        (void)eventfd_write(thread->fd, 1);
    }
    thread->ended = true;
    pthread_cond_signal(&thread->turn);
    pthread_mutex_unlock(&thread->mutex);
    return NULL;
}

/* Signals go to the main thread. */
static int thread_start(SamplerThread *thread)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread->thread, NULL, samples_take, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    thread->runs = error == 0;
    return -error;
}

/* --- The opener's thread ------------------------------------------------------------------------------ */

int sampler_thread_open(int pid, double interval, SamplerThread **ret)
{
    SamplerThread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return -ENOMEM;
    *thread = (SamplerThread){
        .root = ROOT_NONE,
        .asked_at = -1,
        .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .mutex = PTHREAD_MUTEX_INITIALIZER,
    };
    pthread_condattr_t clock; /* a wait with a limit must not depend on the date */
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->turn, &clock);
    pthread_condattr_destroy(&clock);
    int r = thread->fd < 0 ? -errno : root_open(NULL, &thread->root) < 0 ? -ENOENT : 0;
    if (r >= 0)
        r = sampler_open(&thread->root, &(SamplerWish){pid, interval}, &thread->sampler);
    if (r >= 0) {
        supervisors_find_above(&thread->supervisors, &thread->root, pid);
        r = thread_start(thread);
    }
    if (r < 0) {
        sampler_thread_close(thread);
        return r;
    }
    *ret = thread;
    return 0;
}

/* False: it is in the middle of a sample. */
static bool thread_end(SamplerThread *thread)
{
    double end = now_seconds() + PATIENCE_SECONDS;
    struct timespec until = {.tv_sec = (time_t)end, .tv_nsec = (long)((end - floor(end)) * 1e9)};
    pthread_mutex_lock(&thread->mutex);
    thread->stop = true;
    pthread_cond_signal(&thread->turn);
    while (!thread->ended && pthread_cond_timedwait(&thread->turn, &thread->mutex, &until) == 0)
        continue;
    bool ended = thread->ended;
    pthread_mutex_unlock(&thread->mutex);
    return ended && pthread_join(thread->thread, NULL) == 0;
}

void sampler_thread_close(SamplerThread *thread)
{
    if (!thread || (thread->runs && !thread_end(thread)))
        return;
    if (thread->answered && thread->result >= 0)
        survey_free(&thread->sample.survey); /* it was not taken */
    sampler_free(thread->sampler);
    free(thread->facts);
    root_close(&thread->root);
    fd_close(thread->fd);
    free(thread);
}

void sampler_thread_ask(SamplerThread *thread)
{
    thread->asked_at = now_seconds();
    pthread_mutex_lock(&thread->mutex);
    thread->asked = true;
    pthread_cond_signal(&thread->turn);
    pthread_mutex_unlock(&thread->mutex);
}

double sampler_thread_asked(const SamplerThread *thread)
{
    return thread->asked_at;
}

int sampler_thread_fd(const SamplerThread *thread)
{
    return thread->fd;
}

int sampler_thread_take(SamplerThread *thread, SampleResult *ret)
{
    eventfd_t value;
    pthread_mutex_lock(&thread->mutex);
    while (!thread->answered)
        pthread_cond_wait(&thread->turn, &thread->mutex);
    thread->answered = false;
    (void)eventfd_read(thread->fd, &value);
    pthread_mutex_unlock(&thread->mutex);
    thread->asked_at = -1;
    if (thread->result < 0)
        return thread->result;
    *ret = thread->sample;
    return 0;
}
