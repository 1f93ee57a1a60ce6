/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <unistd.h>

#include "clock.h"
#include "measure.h"
#include "user-command.h"

/*
 * PEEK_REST: after a peek at all processes, so many times its duration pass before the next one. Hundreds of
 * processes are sampled less often, and peeking takes at most 5% of a core.
 * START_SECONDS: how long the first shared tensor may take, with libraries to load and an index to read.
 */
enum { PEEK_REST = 20, START_SECONDS = 120 };

static void roles_count(Measuring *measuring)
{
    uint64_t trainers = 0;
    uint64_t workers = 0;
    run_roles(measuring->run, &trainers, &workers);
    /* A worker that was forked just now looks like a trainer: the sample with the most workers is right. */
    bool better = workers > measuring->workers ||
                  (workers == measuring->workers &&
                   (workers > 0 ? trainers < measuring->trainers : trainers > measuring->trainers));
    if (better) {
        measuring->trainers = trainers;
        measuring->workers = workers;
    }
}

static void measuring_tick(void *context, const RunTick *tick)
{
    Measuring *measuring = context;
    if (measuring->tick)
        measuring->tick(measuring->context, tick);
    if (!tick->over && tick->pid > 0) /* otherwise only the processes that it left behind are still there */
        roles_count(measuring);
}

static void measuring_pulse(void *context, double seconds, uint64_t bytes)
{
    Measuring *measuring = context;
    if (seconds >= measuring->next_peek) {
        double began = now_seconds();
        run_peek(measuring->run);
        measuring->next_peek = seconds + (now_seconds() - began) * PEEK_REST;
    }
    if (!measuring->began && bytes > 0) {
        measuring->began = true;
        measuring->first = seconds;
    }
    double enough = measuring->began ? measuring->first + measuring->seconds
                                     : MAX(measuring->seconds, (double)START_SECONDS);
    if (seconds >= enough)
        run_end(measuring->run);
}

int measuring_open(double seconds, Measuring *ret)
{
    /* Without the lane: small tensors take shared memory, as in a plain run. */
    GuardWish guard = {.budget.kind = WISH_OFF, .wait_seconds = -1, .no_lane = true};
    *ret = (Measuring){.seconds = seconds, .standard_output = -EBADF};
    ret->watch = (RunWatch){1000 / PEEKS_PER_SECOND, measuring_pulse, NULL, ret};
    int r = run_open(&ret->run);
    if (r >= 0)
        r = run_watch(ret->run, &ret->watch);
    if (r < 0)
        return r;
    ret->guarded = guard_serve(ret->run, ret->library, &guard) >= 0;
    ret->began = !ret->guarded;
    run_on_tick(ret->run, measuring_tick, ret);
    return 0;
}

void measuring_close(Measuring *measuring)
{
    run_free(measuring->run);
}

void measuring_on_tick(Measuring *measuring, void (*tick)(void *context, const RunTick *tick), void *context)
{
    measuring->tick = tick;
    measuring->context = context;
}

/* The command's output would get between the lines of ours, or into the JSON. Without a free descriptor it
 * does. */
static void output_divert(Measuring *measuring)
{
    measuring->standard_output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (measuring->standard_output >= 0)
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
}

static void output_restore(Measuring *measuring)
{
    if (measuring->standard_output >= 0)
        (void)dup2(measuring->standard_output, STDOUT_FILENO);
    fd_close(TAKE_FD(measuring->standard_output));
}

int measuring_start(Measuring *measuring, char *const *command, ChildStage *ret_stage)
{
    char *settings[] = {NULL};
    output_divert(measuring);
    int r = run_start(measuring->run, command, settings, ret_stage);
    if (r < 0)
        output_restore(measuring);
    return r;
}

int measuring_finish(Measuring *measuring, uint64_t shm_used_bytes, Arena *arena, PlanMeasured *ret,
                     RunResult *ret_result)
{
    RunResult result;
    int r = run_finish(measuring->run, &result);
    output_restore(measuring);
    if (r < 0)
        return r;
    Peaks peaks = run_peaks(measuring->run);
    bool grown =
        peaks.shm_bytes != U64_UNKNOWN && shm_used_bytes != U64_UNKNOWN && peaks.shm_bytes > shm_used_bytes;
    uint64_t trainers = MAX(measuring->trainers, (uint64_t)1);
    PlanMeasured measured = {
        .code = result.cut_off ? 0 : result.code,
        /* What bypasses the guard (NCCL's segments, semaphores) is in /dev/shm. */
        .peak_bytes =
            (result.guarded ? result.guard.bytes_peak : 0) + (grown ? peaks.shm_bytes - shm_used_bytes : 0),
        .guarded = result.guarded && result.guard.bytes_peak > 0,
        .seconds = result.seconds,
        .trainers = trainers,
        .workers = (measuring->workers + trainers - 1) / trainers,
    };
    measured.need_bytes = measured.peak_bytes;
    r = run_processes(measuring->run, arena, &measured.processes, &measured.n_processes);
    if (r < 0)
        return r;
    *ret = measured;
    *ret_result = result;
    return 0;
}
