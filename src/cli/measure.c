#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "guard.h"
#include "measure.h"
#include "progress.h"
#include "run.h"

/* After it was told to end. */
enum { GRACE_SECONDS = 10 };

/* Workers are there from the first batches on; the seldom looks are for those that come later. */
enum { LOOKS_DENSE_SECONDS = 10, LOOKS_EVERY_SECONDS = 5 };

typedef struct Measuring {
    const MeasureWish *wish;
    Run *run;
    Progress progress;
    Root root;
    bool told;
    double next_look;
    uint64_t trainers;
    uint64_t workers; /* of all trainers together, at the same time */
} Measuring;

static void roles_count(Measuring *measuring, pid_t pid)
{
    _cleanup_survey_ Survey survey = {0};
    if (survey_take(&measuring->root, 0, 0, &survey) < 0) {
        survey = (Survey){0};
        return;
    }
    uint64_t trainers = 0;
    uint64_t workers = 0;
    for (size_t i = 0; i < survey.n_processes; i++) {
        const Process *process = &survey.processes[i];
        if (process->pid != pid && !process_is_below(&survey, process, pid))
            continue;
        trainers += process->role == ROLE_TRAINER;
        workers += process->role == ROLE_WORKER;
    }
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

static void time_keep(Measuring *measuring, const RunTick *tick)
{
    if (tick->seconds >= measuring->wish->seconds + GRACE_SECONDS)
        (void)kill(tick->pid, SIGKILL);
    else if (tick->seconds >= measuring->wish->seconds && !measuring->told) {
        measuring->told = true;
        (void)kill(tick->pid, SIGTERM);
    }
}

static void progress_show(Measuring *measuring, const RunTick *tick)
{
    const GuardFigures *guard = &tick->guard;
    ProgressFigures figures = {
        .seconds = tick->seconds,
        .tensors = guard->segments_created + guard->segments_reused + guard->small_backed,
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
    if (tick->over || tick->pid <= 0) /* it has ended, and what it left behind is being ended */
        return;
    if (tick->seconds >= measuring->next_look) {
        roles_count(measuring, tick->pid);
        measuring->next_look = tick->seconds < LOOKS_DENSE_SECONDS ? 0 : tick->seconds + LOOKS_EVERY_SECONDS;
    }
    time_keep(measuring, tick);
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

static int start_complain(const char *command, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(command), &safe);
    return complain(EX_DATAERR, "plan: --measure: %s: %s", buffer_text(&safe),
                    error == ENOENT ? "command not found" : strerror(error));
}

static int command_measure(Measuring *measuring, Run *run, bool guarded, RunResult *ret)
{
    char *settings[] = {NULL};
    ChildStage stage = CHILD_NONE;
    int saved = stdout_divert();
    int r = run_start(run, measuring->wish->command, settings, &stage);
    int code = r < 0 ? start_complain(measuring->wish->command[0], -r) : EX_OK;
    if (r >= 0) {
        r = run_finish(run, ret);
        if (r < 0)
            code = complain(EX_SOFTWARE, "plan: --measure: %s", strerror(-r));
        ret->guarded = ret->guarded && guarded;
    }
    stdout_restore(saved);
    return code;
}

int measure_run(const MeasureWish *wish, PlanMeasured *ret, int *ret_code)
{
    _cleanup_arena_ Arena arena = {0};
    Machine before;
    int code = look_machine(NULL, &arena, &before);
    if (code != EX_OK)
        return code;
    Run *run = NULL;
    int r = run_open(&run);
    if (r < 0)
        return complain(EX_SOFTWARE, "plan: cannot watch over a command here: %s", strerror(-r));
    char library[PATH_MAX];
    GuardWish guard = {.budget.kind = WISH_OFF, .wait_seconds = -1};
    bool guarded = guard_library(library) && run_guard(run, library, &guard) >= 0;
    if (!guarded)
        complain(0,
                 "the guard cannot work here: /dev/shm is looked at once a second, short peaks are missed");

    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    Measuring measuring = {.wish = wish,
                           .run = run,
                           .progress = progress_open(&terminal, STDERR_FILENO, wish->quiet),
                           .root = ROOT_NONE};
    RunResult result = {0};
    r = root_open(NULL, &measuring.root);
    code = r < 0 ? complain(EX_UNAVAILABLE, "there is no /proc to read") : EX_OK;
    if (code == EX_OK) {
        run_line(run, progress_terminal(&measuring.progress), false);
        run_on_tick(run, measuring_tick, &measuring);
        code = command_measure(&measuring, run, guarded, &result);
    }
    Peaks peaks = run_peaks(run);
    uint64_t used = before.shm.used_bytes;
    bool grown = peaks.shm_bytes != U64_UNKNOWN && used != U64_UNKNOWN && peaks.shm_bytes > used;
    run_free(run);
    progress_close(&measuring.progress);
    root_close(&measuring.root);
    if (code != EX_OK)
        return code;
    if (result.typed)
        run_die();
    if (result.told_to_end) /* somebody wants an end, not an answer */
        return 128 + result.told_to_end;
    uint64_t trainers = MAX(measuring.trainers, (uint64_t)1);
    *ret = (PlanMeasured){
        /* What went past the guard (NCCL's segments, semaphores) lies in /dev/shm. */
        .peak_bytes = (result.guarded ? result.guard.bytes_peak : 0) + (grown ? peaks.shm_bytes - used : 0),
        .guarded = result.guarded && result.guard.bytes_peak > 0,
        .seconds = result.seconds,
        .trainers = trainers,
        .workers = (measuring.workers + trainers - 1) / trainers,
    };
    *ret_code = measuring.told ? 0 : result.code;
    return EX_OK;
}
