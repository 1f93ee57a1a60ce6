/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "measure.h"
#include "progress.h"
#include "user-command.h"

/* Times as long as a look took there is none: hundreds of processes are looked at less often, with 5% of a
 * core at most. */
enum { PEEK_REST = 20 };

typedef struct Measuring {
    const MeasureWish *wish;
    Run *run;
    Progress progress;
    bool began;   /* the first tensor was seen, or cannot be */
    double first; /* when */
    double next_peek;
    uint64_t trainers;
    uint64_t workers; /* of all trainers together, at the same time */
} Measuring;

static void roles_count(Measuring *measuring)
{
    uint64_t trainers = 0;
    uint64_t workers = 0;
    run_roles(measuring->run, &trainers, &workers);
    /* A worker that was forked this moment looks like a trainer: the look that knows most workers is right.
     */
    bool better = workers > measuring->workers ||
                  (workers == measuring->workers &&
                   (workers > 0 ? trainers < measuring->trainers : trainers > measuring->trainers));
    if (better) {
        measuring->trainers = trainers;
        measuring->workers = workers;
    }
}

static void progress_show(Measuring *measuring, const RunTick *tick)
{
    const GuardFigures *guard = &tick->guard;
    ProgressFigures figures = {
        .seconds = tick->seconds,
        .tensors = guard->segments_created + guard->segments_reused + guard->small_backed,
        .batches = guard->batches,
        .bytes_backed = guard->bytes_backed,
        .bytes_now = guard->bytes_now,
        .budget_bytes = U64_UNKNOWN,
    };
    if (tick->over) {
        progress_erase(&measuring->progress, !guard->line); /* unless the job has taken it away */
        if (guard->unfinished)
            fputc('\n', stderr);
    } else
        progress_draw(&measuring->progress, &figures, tick->pid, tick->wrote);
    run_line(measuring->run, progress_terminal(&measuring->progress), measuring->progress.drawn);
}

static void measuring_tick(void *context, const RunTick *tick)
{
    Measuring *measuring = context;
    progress_show(measuring, tick);
    if (!tick->over && tick->pid > 0) /* else what it left behind is being ended */
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
    double enough = measuring->began ? measuring->first + measuring->wish->seconds
                                     : MAX(measuring->wish->seconds, (double)START_SECONDS);
    if (seconds >= enough)
        run_end(measuring->run);
}

/* The command's output would get between the lines of ours, or into the JSON. -1: it cannot be helped. */
static int stdout_divert(void)
{
    int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (saved >= 0)
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    return saved;
}

static void stdout_restore(int saved)
{
    if (saved < 0)
        return;
    (void)dup2(saved, STDOUT_FILENO);
    fd_close(saved);
}

static int command_measure(const Measuring *measuring, RunResult *ret)
{
    char *settings[] = {NULL};
    char **command = measuring->wish->command;
    ChildStage stage = CHILD_NONE;
    int saved = stdout_divert();
    int r = run_start(measuring->run, command, settings, &stage);
    int code = r < 0 ? start_complain("plan", command[0], stage, -r) : EX_OK;
    if (r >= 0) {
        r = run_finish(measuring->run, ret);
        if (r < 0)
            code = complain(EX_SOFTWARE, "plan: --measure: %s", strerror(-r));
    }
    stdout_restore(saved);
    return code;
}

static int measured_take(const Measuring *measuring, const RunResult *result, uint64_t used_before,
                         Arena *arena, PlanMeasured *ret)
{
    Peaks peaks = run_peaks(measuring->run);
    bool grown =
        peaks.shm_bytes != U64_UNKNOWN && used_before != U64_UNKNOWN && peaks.shm_bytes > used_before;
    uint64_t trainers = MAX(measuring->trainers, (uint64_t)1);
    PlanMeasured measured = {
        /* What went past the guard (NCCL's segments, semaphores) lies in /dev/shm. */
        .peak_bytes =
            (result->guarded ? result->guard.bytes_peak : 0) + (grown ? peaks.shm_bytes - used_before : 0),
        .guarded = result->guarded && result->guard.bytes_peak > 0,
        .seconds = result->seconds,
        .trainers = trainers,
        .workers = (measuring->workers + trainers - 1) / trainers,
    };
    if (run_processes(measuring->run, arena, &measured.processes, &measured.n_processes) < 0)
        return complain(EX_SOFTWARE, "out of memory");
    *ret = measured;
    return EX_OK;
}

static int measuring_run(Measuring *measuring, Arena *arena, PlanMeasured *ret, int *ret_code)
{
    Machine before;
    RunResult result = {0};
    char library[PATH_MAX];
    GuardWish guard = {.budget.kind = WISH_OFF, .wait_seconds = -1};
    RunWatch watch = {1000 / PEEKS_A_SECOND, measuring_pulse, NULL, measuring};
    int code = machine_open(NULL, arena, &before);
    if (code != EX_OK)
        return code;
    int r = run_watch(measuring->run, &watch);
    if (r < 0)
        return complain(EX_SOFTWARE, "plan: cannot watch over a command here: %s", strerror(-r));
    measuring->began = guard_serve(measuring->run, library, &guard, false) < 0;
    if (measuring->began)
        complain(0,
                 "the guard cannot work here: /dev/shm is looked at %d times a second, shorter peaks are "
                 "missed",
                 PEEKS_A_SECOND);
    run_line(measuring->run, progress_terminal(&measuring->progress), false);
    run_on_tick(measuring->run, measuring_tick, measuring);
    code = command_measure(measuring, &result);
    if (code != EX_OK)
        return code;
    if (result.typed)
        run_die();
    if (result.told_to_end) /* somebody wants an end, not an answer */
        return 128 + result.told_to_end;
    *ret_code = result.cut_off ? 0 : result.code;
    return measured_take(measuring, &result, before.shm.used_bytes, arena, ret);
}

int measure_run(const MeasureWish *wish, Arena *arena, PlanMeasured *ret, int *ret_code)
{
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    Measuring measuring = {.wish = wish};
    int r = run_open(&measuring.run);
    if (r < 0)
        return complain(EX_SOFTWARE, "plan: cannot watch over a command here: %s", strerror(-r));
    measuring.progress = progress_open(&terminal, STDERR_FILENO, wish->quiet);
    int code = measuring_run(&measuring, arena, ret, ret_code);
    progress_close(&measuring.progress);
    run_free(measuring.run);
    return code;
}
