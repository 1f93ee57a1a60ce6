/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "made-job.h"

#define MIB (UINT64_C(1) << 20)

enum { WORKERS_MAX = 64, PIDS_PER_EPOCH = 100, TURN = 7 };

typedef struct Play {
    uint64_t random;
    ProcessMoment processes[1 + WORKERS_MAX];
    Event events[2 * WORKERS_MAX + 2];
    size_t n_events;
} Play;

/* 0…1, the same in every run (xorshift64). */
static double chance(Play *play)
{
    play->random ^= play->random << 13;
    play->random ^= play->random >> 7;
    play->random ^= play->random << 17;
    return (double)(play->random >> 11) / 0x1p53;
}

static uint64_t pages(double bytes)
{
    return (uint64_t)bytes & ~UINT64_C(4095);
}

static int worker_pid(unsigned epoch, unsigned worker)
{
    return MADE_TRAINER + (int)(epoch * PIDS_PER_EPOCH + worker);
}

static void event_add(Play *play, double seconds, EventKind kind, int pid, const char *text)
{
    Event *event = &play->events[play->n_events++];
    *event =
        (Event){.seconds = seconds, .kind = kind, .pid = pid, .role = pid > 0 ? ROLE_WORKER : ROLE_OTHER};
    snprintf(event->text, sizeof event->text, "%s", text);
}

static void epoch_begin(Play *play, double seconds, unsigned epoch, unsigned workers)
{
    char text[32];
    for (unsigned i = 1; i <= workers; i++) {
        event_add(play, seconds, EVENT_ENDED, worker_pid(epoch - 1, i), "exit code 0");
        event_add(play, seconds, EVENT_BORN, worker_pid(epoch, i), "");
    }
    snprintf(text, sizeof text, "epoch %u", epoch);
    event_add(play, seconds, EVENT_MARK, 0, text);
    if (epoch == 4)
        event_add(play, seconds, EVENT_OOM_KILL, worker_pid(epoch - 1, 1), "<b>killed</b>");
}

static void process_fill(Play *play, ProcessMoment *process, unsigned worker, double in_epoch, double in_all)
{
    uint64_t *values = process->values;
    for (size_t i = 0; i < PROCESS_METRICS; i++)
        values[i] = U64_UNKNOWN;
    values[PROCESS_ANON] = pages((worker ? 310e6 + in_epoch * 8e8 : 2.9e9) + chance(play) * 2.5e7);
    values[PROCESS_FILE] = pages(2.1e8 + chance(play) * 1e5);
    values[PROCESS_SHMEM] = pages((worker ? 1 : 4) * (9e6 + 3e6 * floor(chance(play) * 4)));
    values[PROCESS_SWAP] = 0;
    values[PROCESS_FDS] = (uint64_t)(worker ? 40 + chance(play) * 6 : 180 + in_all * 420 + chance(play) * 12);
    values[PROCESS_THREADS] = worker ? 3 : 22;
}

/* What is looked at in turns. */
static void process_look(ProcessMoment *process, unsigned worker)
{
    uint64_t *values = process->values;
    values[PROCESS_PSS] = pages((double)values[PROCESS_ANON] * (worker ? 0.5 : 0.9));
    values[PROCESS_USS] = pages((double)values[PROCESS_ANON] * (worker ? 0.4 : 0.8));
    values[PROCESS_SHM] = 2 * values[PROCESS_SHMEM];
}

static void job_fill(uint64_t *values, const Play *play, unsigned workers)
{
    uint64_t private = 0;
    uint64_t shared = 0;
    for (size_t i = 0; i < JOB_METRICS; i++)
        values[i] = U64_UNKNOWN;
    for (unsigned i = 0; i <= workers; i++) {
        private += play->processes[i].values[PROCESS_ANON] / 2;
        shared += play->processes[i].values[PROCESS_SHMEM] / 2;
    }
    values[JOB_MEMORY_TOTAL] = 65536 * MIB;
    values[JOB_MEMORY_AVAILABLE] = 62000 * MIB - private;
    values[JOB_GROUP_LIMIT] = 49152 * MIB;
    values[JOB_GROUP_USED] = private + 4096 * MIB;
    values[JOB_GROUP_FILE] = 3072 * MIB;
    values[JOB_SHM_SIZE] = 1024 * MIB;
    values[JOB_SHM_USED] = MIN(shared, 1024 * MIB);
    values[JOB_KIND_BYTES + KIND_TORCH] = shared * 3 / 4;
    values[JOB_KIND_BYTES + KIND_NCCL] = 9 * MIB;
}

int made_job_play(const MadeJob *job, int (*take)(void *context, const Moment *moment), void *context)
{
    Play play = {.random = UINT64_C(88172645463325252)};
    double epoch_seconds = job->seconds / MADE_EPOCHS;
    unsigned epoch = 0;
    int r = 0;
    size_t n = (size_t)(job->seconds / job->interval);
    for (size_t look = 0; r >= 0 && look < n; look++) {
        double seconds = (double)look * job->interval;
        play.n_events = 0;
        if ((unsigned)(seconds / epoch_seconds) > epoch)
            epoch_begin(&play, seconds, ++epoch, job->workers);
        for (unsigned i = 0; i <= job->workers; i++) {
            ProcessMoment *process = &play.processes[i];
            int pid = i ? worker_pid(epoch, i) : MADE_TRAINER;
            *process = (ProcessMoment){
                .pid = pid,
                .ppid = i ? MADE_TRAINER : 4000,
                .start_ticks = (uint64_t)pid,
                .started = MADE_BEGAN,
                .role = i ? ROLE_WORKER : ROLE_TRAINER,
                .start = i ? START_FORK : START_UNKNOWN,
                .job = MADE_TRAINER,
                .comm = "python",
                .command = i == 2 ? MADE_HOSTILE : MADE_COMMAND,
            };
            process_fill(&play, process, i, fmod(seconds, epoch_seconds) / epoch_seconds,
                         seconds / job->seconds);
            if ((look + i) % TURN == 0)
                process_look(process, i);
        }
        Moment moment = {.seconds = seconds,
                         .processes = play.processes,
                         .n_processes = job->workers + 1,
                         .events = play.events,
                         .n_events = play.n_events};
        job_fill(moment.values, &play, job->workers);
        r = take(context, &moment);
    }
    return r;
}
