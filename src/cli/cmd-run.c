/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "attempts.h"
#include "checkpoint.h"
#include "command.h"
#include "outer.h"
#include "preload-library.h"
#include "progress.h"
#include "recorder.h"
#include "report-file.h"
#include "retry.h"
#include "run.h"
#include "show-attempt.h"
#include "show-preflight.h"
#include "show-run.h"
#include "user-command.h"

enum { RETRY_NOT_SAID = -1, RECORD_SECONDS = 1 };

typedef struct RunOptions {
    bool quiet;
    bool no_guard;
    bool check;
    const char *record;
    const char *report;
    SizeWish shm;
    SizeWish budget;
    double wait_seconds;
    int pin;
    int retry;
    OptionList degrade;
    const char *resume;
} RunOptions;

enum { PIN_AUTO, PIN_OFF };
static const char *const pin_choices[] = {"auto", "off", NULL};

static const Option run_options[] = {
    {OPTION_FLAG, 'q', "quiet", offsetof(RunOptions, quiet),
     .help = "print no summary, no lines about attempts\nand no progress line"},
    {OPTION_FLAG, 0, "no-guard", offsetof(RunOptions, no_guard),
     .help = "leave tensors in /dev/shm, without a budget;\nhow processes end is still recorded"},
    {OPTION_TEXT, 0, "record", offsetof(RunOptions, record), "FILE",
     .help = "record memory use once a second, all attempts\nin one FILE; see shmguard report"},
    {OPTION_TEXT, 0, "report", offsetof(RunOptions, report), "FILE",
     .help = "write the result to FILE as JSON, even after\na crash"},
    {OPTION_FLAG, 0, "check", offsetof(RunOptions, check),
     .help = "start nothing; only report what threatens this\njob, with the exit codes of doctor"},
    {OPTION_WISH, 0, "shm", offsetof(RunOptions, shm), "SIZE|auto|off",
     .help = "give the job its own /dev/shm, where permissions\nallow it (default: off)"},
    {OPTION_WISH, 0, "budget", offsetof(RunOptions, budget), "SIZE|auto|off",
     .help = "a limit for shared memory, at which workers\nwait for room (default: auto, three quarters "
             "of\nthe memory that can be spared at the start)"},
    {OPTION_SECONDS, 0, "wait", offsetof(RunOptions, wait_seconds), "SECONDS",
     .help = "how long a worker may wait for room\n(default: 60)"},
    {OPTION_CHOICE, 0, "pin", offsetof(RunOptions, pin), "auto|off", .choices = pin_choices,
     .help = "let the GPU read batches of a loader with\npin_memory=True where the worker wrote "
             "them\n(default: auto, where that is safe)"},
    {OPTION_COUNT, 0, "retry", offsetof(RunOptions, retry), "N",
     .help = "after a failure, try again up to N times"},
    {OPTION_LIST, 0, "degrade", offsetof(RunOptions, degrade), "NAME=V1,V2,...",
     .help = "replace {NAME} in COMMAND with V1, and with the\nnext value when memory, open files or the "
             "like\nran out; repeat the option for more names"},
    {OPTION_TEXT, 0, "resume", offsetof(RunOptions, resume), "ARGS",
     .help = "extra arguments from the second attempt on;\n{latest:GLOB} is the newest complete checkpoint"},
    {OPTION_END},
};

/* One `run`, from its options to its report. */
typedef struct JobRun {
    RunOptions options;
    char **command;
    Knobs knobs;
    Resume resume; /* without words: none */
    PrivateShm shm;
    Run *run;
    char library[PATH_MAX];
    Outer outer;        /* the run that this one has joined; without a socket: none */
    bool guarded;       /* this attempt, by us */
    Recorder *recorder; /* NULL: nothing is recorded */
    struct timespec began;
    Arena arena;
    RunReport report;
    Progress progress;
    bool typed; /* a Ctrl-C between two attempts */
} JobRun;

static void job_free(JobRun *job)
{
    progress_close(&job->progress);
    recorder_close(job->recorder, false);
    run_free(job->run);
    arena_free(&job->arena);
}

static bool degrade_parse(JobRun *job, int *ret_code)
{
    _cleanup_buffer_ Buffer error = {0};
    for (size_t i = 0; i < job->options.degrade.n; i++)
        if (knobs_add(&job->knobs, job->options.degrade.items[i], &job->arena, &error) < 0) {
            *ret_code = complain(EX_USAGE, "run: --degrade: %s", buffer_text(&error));
            return false;
        }
    return true;
}

static bool resume_take(JobRun *job, int *ret_code)
{
    _cleanup_buffer_ Buffer error = {0};
    if (job->options.resume && resume_parse(job->options.resume, &job->arena, &job->resume, &error) < 0) {
        *ret_code = complain(EX_USAGE, "run: --resume: %s", buffer_text(&error));
        return false;
    }
    return true;
}

static bool guard_is_there(const RunOptions *options, int *ret_code)
{
    const char *idle = options->budget.kind != WISH_AUTO ? "budget"
                       : options->wait_seconds >= 0      ? "wait"
                       : options->pin != PIN_AUTO        ? "pin"
                                                         : NULL;
    if (!options->no_guard || !idle)
        return true;
    *ret_code = complain(EX_USAGE, "run: --%s needs the guard; remove --%s or --no-guard", idle, idle);
    return false;
}

static bool retry_is_said(const RunOptions *options, int *ret_code)
{
    const char *idle = options->degrade.n > 0 ? "degrade" : options->resume ? "resume" : NULL;
    if (!idle || options->retry != RETRY_NOT_SAID)
        return true;
    *ret_code = complain(EX_USAGE, "run: --%s needs --retry N, the number of further attempts", idle);
    return false;
}

static bool job_parse(const Command *command, int argc, char **argv, JobRun *job, int *ret_code)
{
    if (!command_take(command, argc, argv, &job->options, &job->command, ret_code))
        return false;
    return guard_is_there(&job->options, ret_code) && retry_is_said(&job->options, ret_code) &&
           degrade_parse(job, ret_code) && resume_take(job, ret_code);
}

static int report_open(const char *path, ReportFile *ret)
{
    int r = report_file_open(path, ret);
    if (r >= 0)
        return EX_OK;
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    return complain(r == -EACCES || r == -EPERM || r == -EROFS ? EX_NOPERM : EX_DATAERR,
                    "run: --report %s: %s; the command was not started", buffer_text(&safe), strerror(-r));
}

static void guard_start(JobRun *job, bool first)
{
    const RunOptions *options = &job->options;
    GuardWish wish = {options->no_guard, options->budget, options->wait_seconds, options->pin == PIN_OFF,
                      job->outer.socket};
    bool own = !options->no_guard && !job->outer.socket;
    int r = guard_serve(job->run, job->library, &wish, first && own);
    job->guarded = r >= 0 && own;
    run_line(job->run, progress_terminal(&job->progress), false);
}

static int report_fill(FILE *out, const void *context)
{
    return json_run(out, true, context);
}

static void report_write(const ReportFile *file, const RunReport *report)
{
    int r = report_file_write(file, report_fill, report);
    if (r < 0)
        complain(0, "the report could not be written: %s", strerror(-r));
}

/* Decides about the job's /dev/shm and says what threatens the job. False: leave with *ret_code. */
static bool look_ahead(const RunOptions *options, PrivateShm *shm, int *ret_code)
{
    const SizeWish *wish = &options->shm;
    _cleanup_arena_ Arena arena = {0};
    Root root;
    Machine machine;
    int r = root_open(NULL, &root);
    if (r < 0)
        return true; /* without /proc there is nothing to see, and nothing to promise */
    r = machine_read(&root, 0, MACHINE_NAMESPACES, &arena, &machine);
    if (r >= 0) {
        ShmHints hints;
        private_shm_look(&root, &hints);
        private_shm_decide(wish, &machine, &hints, shm);
        if (shm->answer == SHM_PRIVATE)
            (void)private_shm_try(shm, &machine, &hints);
    }
    root_close(&root);
    if (r < 0)
        return true;
    if (shm->answer == SHM_REFUSED && shm->must) {
        *ret_code = complain(EX_UNAVAILABLE, "run: --shm: %s; the command was not started", shm->why);
        return false;
    }
    if (shm->answer == SHM_REFUSED)
        complain(0, "the job has no /dev/shm of its own: %s", shm->why);

    GuardOffer guard = guard_offer_find(&machine);
    PreflightPlan plan = {
        .guarded = guard.ready && !options->no_guard,
        .shm_tried = wish->kind != WISH_OFF,
        .private_shm_bytes = shm->answer == SHM_PRIVATE ? shm->bytes : 0,
        .budget_bytes = options->budget.kind == WISH_SIZE ? options->budget.bytes : U64_UNKNOWN,
    };
    Preflight preflight = {0};
    (void)preflight_judge(&machine, &guard, &plan, &arena, &preflight);
    Terminal terminal = terminal_of(options->check ? stdout : stderr, COLOR_AUTO);
    if (options->check && preflight.n == 0)
        show_preflight_fine(&terminal, &machine, &plan);
    else if (options->check || !options->quiet)
        show_preflight(&terminal, &preflight);
    *ret_code = (int)preflight_health(&preflight);
    return !options->check;
}

/* Says that we are within another run, whose guard serves the command. */
static void outer_say(const JobRun *job)
{
    const RunOptions *options = &job->options;
    const struct {
        bool said;
        const char *name;
    } idle[] = {{options->no_guard, "--no-guard"},
                {options->budget.kind != WISH_AUTO, "--budget"},
                {options->wait_seconds >= 0, "--wait"},
                {options->pin != PIN_AUTO, "--pin"}};
    _cleanup_buffer_ Buffer names = {0};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
        if (idle[i].said)
            (void)buffer_printf(&names, "%s%s", n++ > 0 ? ", " : "", idle[i].name);
    if (n == 0)
        complain(0, "joined the outer shmguard run (pid %d); its budget and options apply", job->outer.pid);
    else if (n == 1)
        complain(
            0, "joined the outer shmguard run (pid %d); its budget and options apply; %s has no effect here",
            job->outer.pid, buffer_text(&names));
    else
        complain(0,
                 "joined the outer shmguard run (pid %d); its budget and options apply; these have no effect "
                 "here: %s",
                 job->outer.pid, buffer_text(&names));
}

/* --- Attempts ----------------------------------------------------------------------------------------- */

static int attempt_values(JobRun *job, unsigned level, RunAttempt *attempt)
{
    size_t n = job->knobs.n;
    AttemptValue *values = arena_alloc(&job->arena, MAX(n, (size_t)1) * sizeof *values);
    if (!values)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        values[i] = (AttemptValue){job->knobs.items[i].name, knob_value(&job->knobs.items[i], level)};
    attempt->values = values;
    attempt->n_values = n;
    return 0;
}

/* A peak that is known beats one that is not. */
static void peak_raise(uint64_t *most, uint64_t value)
{
    if (value != U64_UNKNOWN && (*most == U64_UNKNOWN || value > *most))
        *most = value;
}

/* Shared memory is what the guard backs; without it, what lies in /dev/shm. */
static void peaks_take(JobRun *job, const RunResult *result)
{
    Peaks peaks = run_peaks(job->run);
    Peaks *most = &job->report.peaks;
    peak_raise(&most->shm_bytes, result->guarded ? result->guard.bytes_peak : peaks.shm_bytes);
    peak_raise(&most->rss_bytes, peaks.rss_bytes);
    peak_raise(&most->fds, peaks.fds);
    peak_raise(&most->processes, peaks.processes);
}

/* "2: batch=16, workers=2" */
static void record_begin(JobRun *job, const RunAttempt *attempt)
{
    _cleanup_buffer_ Buffer text = {0};
    (void)buffer_printf(&text, "%zu", job->report.n_attempts);
    for (size_t i = 0; i < attempt->n_values; i++)
        (void)buffer_printf(&text, "%s%s=%s", i == 0 ? ": " : ", ", attempt->values[i].name,
                            attempt->values[i].value);
    if (job->recorder)
        (void)recorder_begin(job->recorder, run_pid(job->run), buffer_text(&text));
}

static void record_finish(JobRun *job)
{
    if (!job->recorder)
        return;
    bool nothing = recorder_status(job->recorder).moments == 0; /* no attempt could be started */
    if (!nothing && !job->options.quiet)
        recorder_say(job->recorder);
    recorder_close(TAKE_PTR(job->recorder), nothing);
}

static int attempt_run(JobRun *job, char *const *settings, RunAttempt *attempt)
{
    ChildStage stage = CHILD_NONE;
    int error = -run_start(job->run, attempt->command, settings, &stage);
    if (error > 0)
        attempt->result.code = start_complain("run", attempt->command[0], stage, error);
    else {
        record_begin(job, attempt);
        int r = run_finish(job->run, &attempt->result);
        if (job->recorder)
            recorder_end(job->recorder);
        if (r < 0)
            return r;
        peaks_take(job, &attempt->result);
    }
    return end_judge(job->run, &attempt->result, attempt->command[0], MAX(error, 0), &job->arena,
                     &attempt->evidence, &attempt->judged);
}

/* The job is served by this same thread: a reader of ours that has stopped, or has gone, must not stop it. */
static void crawl_say(JobRun *job, const RunTick *tick)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (job->options.quiet || poll(&ready, 1, 0) <= 0)
        return;
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    progress_erase(&job->progress, !tick->guard.line);
    if (tick->guard.unfinished)
        fputc('\n', stderr);
    show_crawl(&terminal, tick);
    signal(SIGPIPE, before);
}

static void progress_tick(void *context, const RunTick *tick)
{
    JobRun *job = context;
    const GuardFigures *guard = &tick->guard;
    ProgressFigures figures = {
        .seconds = tick->seconds,
        .tensors = guard->segments_created + guard->segments_reused + guard->small_backed,
        .batches = guard->batches,
        .bytes_backed = guard->bytes_backed,
        .bytes_now = guard->bytes_now,
        .budget_bytes = guard->budget_bytes,
        .waiting = (uint32_t)guard->waiting,
    };
    if (job->recorder && job->guarded)
        recorder_guard(job->recorder, guard);
    if (job->recorder && recorder_status(job->recorder).error < 0) {
        progress_erase(&job->progress, !guard->line);
        (void)recorder_say_stopped(job->recorder);
    }
    if (tick->crawl)
        crawl_say(job, tick);
    if (tick->over) {
        progress_erase(&job->progress, !guard->line); /* unless the job has taken it away */
        if (guard->unfinished)                        /* a bar, on which our words would follow */
            fputc('\n', stderr);
    } else
        progress_draw(&job->progress, &figures, tick->pid, tick->wrote);
    run_line(job->run, progress_terminal(&job->progress), job->progress.drawn);
}

/* found: one for each {latest:GLOB}; NULL: without the arguments of --resume. */
static int attempt_make(JobRun *job, unsigned level, bool resumes, const char *const *found)
{
    RunReport *report = &job->report;
    RunAttempt *attempt =
        ARENA_PUSH(&job->arena, report->attempts, report->n_attempts, report->attempts_capacity);
    char **command = NULL;
    char **settings = NULL;
    if (!attempt)
        return -ENOMEM;
    int r = attempt_command(job->command, &job->knobs, level, resumes ? &job->resume : NULL, found,
                            &job->arena, &command);
    if (r >= 0)
        r = attempt_settings(&job->knobs, level, (unsigned)report->n_attempts, &job->arena, &settings);
    if (r >= 0)
        r = attempt_values(job, level, attempt);
    if (r < 0)
        return r;
    attempt->command = command;
    guard_start(job, report->n_attempts == 1);
    return attempt_run(job, settings, attempt);
}

/* Looks for the checkpoints of --resume. *ret_paths has one for each {latest:GLOB}, and is NULL when one has
 * none: then it goes from the beginning. */
static int checkpoints_look(JobRun *job, NextAttempt *next, const char *const **ret_paths)
{
    size_t n = job->resume.n_globs;
    Checkpoints *found = arena_alloc(&job->arena, (n + 1) * sizeof *found);
    const char **paths = arena_alloc(&job->arena, (n + 1) * sizeof *paths);
    if (!found || !paths)
        return -ENOMEM;
    next->found = found;
    next->globs = job->resume.globs;
    next->n_found = n;
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        int r = checkpoints_find(job->resume.globs[i], &job->arena, &found[i]);
        if (r < 0)
            return r;
        const Checkpoint *whole = checkpoints_whole(&found[i]);
        all = all && whole;
        paths[i] = whole ? whole->path : NULL;
    }
    *ret_paths = all ? paths : NULL;
    return 0;
}

/* Whoever read our messages may have gone, and the next attempt must come all the same. The command starts
 * with the disposition that we were started with. */
static void say(const JobRun *job, const NextAttempt *next, const char *why_not)
{
    if (job->options.quiet)
        return;
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    if (next)
        show_attempt(&terminal, next);
    else
        show_no_attempt(&terminal, why_not);
    signal(SIGPIPE, before);
}

/* Whether there is another attempt after the last one. When the user had asked for some, it is said why not.
 */
static bool attempt_follows(const JobRun *job, Retry *ret)
{
    const RunAttempt *last = report_last(&job->report);
    Retry retry = retry_judge(&(RetryCase){
        .cause = last->judged.cause.id,
        .detail = last->judged.detail,
        .code = last->result.code,
        .signal = last->result.signal,
        .told_to_end = last->result.told_to_end != 0,
        .started = last->result.pid > 0,
        .can_degrade = job->knobs.n > 0,
        .can_resume = job->resume.n_words > 0,
    });
    if (retry == RETRY_DONE || job->options.retry <= 0)
        return false;
    const char *why_not = retry_words(retry);
    if (!why_not && job->report.n_attempts > (size_t)job->options.retry)
        why_not = "that was the last attempt";
    if (why_not)
        say(job, NULL, why_not);
    *ret = retry;
    return !why_not;
}

static int attempts_make(JobRun *job)
{
    unsigned level = 0;
    bool resumes = false;
    const char *const *found = NULL;
    for (;;) {
        Retry retry = RETRY_DONE;
        int r = attempt_make(job, level, resumes, found);
        if (r < 0 || !attempt_follows(job, &retry))
            return r;
        unsigned failed = (unsigned)job->report.n_attempts;
        NextAttempt next = {.attempt = failed + 1,
                            .of = (unsigned)job->options.retry + 1,
                            .pause_seconds = attempt_pause_seconds(failed),
                            .cause = report_last(&job->report)->judged.cause.id,
                            .knobs = &job->knobs,
                            .level_before = level,
                            .run_began = job->began};
        level += retry == RETRY_LESS;
        next.level = level;
        r = checkpoints_look(job, &next, &found);
        if (r < 0)
            return r;
        resumes = job->resume.n_words > 0 && found;
        say(job, &next, NULL);
        if (!run_pause(job->run, next.pause_seconds, &job->typed)) {
            say(job, NULL, retry_words(RETRY_ASKED));
            return 0;
        }
    }
}

static int run_run(const Command *command, int argc, char **argv)
{
    _cleanup_(job_free) JobRun job = {
        .options = {.retry = RETRY_NOT_SAID, .shm.kind = WISH_OFF, .wait_seconds = -1},
        .report = {.peaks = PEAKS_UNKNOWN},
        .progress = PROGRESS_NONE,
    };
    int code = EX_OK;
    if (!job_parse(command, argc, argv, &job, &code))
        return code;
    if (!look_ahead(&job.options, &job.shm, &code))
        return code;
    _cleanup_report_file_ ReportFile file = REPORT_FILE_NONE;
    if (job.options.report && (code = report_open(job.options.report, &file)) != EX_OK)
        return code;

    _cleanup_buffer_ Buffer words = {0};
    (void)command_join(job.command, &words);
    int r = job.options.record
                ? recorder_open(job.options.record, buffer_text(&words), RECORD_SECONDS, &job.recorder)
                : 0;
    if (r < 0)
        return recorder_complain("run: --record", job.options.record, r);

    job.report.path = job.options.report;
    clock_gettime(CLOCK_REALTIME, &job.began);
    r = run_open(&job.run);
    if (r < 0)
        return complain(EX_SOFTWARE, "run: cannot supervise a command here: %s", strerror(-r));
    if (job.shm.answer == SHM_PRIVATE)
        run_private_shm(job.run, &job.shm);
    if (job.recorder) /* where that fails, the supervisor looks for itself */
        (void)run_relay(job.run, recorder_relay(job.recorder));
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    if (outer_find(&job.outer) && !job.options.quiet)
        outer_say(&job);
    job.progress = progress_open(&terminal, STDOUT_FILENO,
                                 job.options.quiet || job.options.no_guard || job.outer.socket);
    run_on_tick(job.run, progress_tick, &job);
    r = attempts_make(&job);
    if (r < 0)
        return complain(EX_SOFTWARE, "run: %s", strerror(-r));

    signal(
        SIGPIPE,
        SIG_IGN); /* whoever read our messages may have gone; the exit code is the command's all the same */
    if (job.options.report)
        report_write(&file, &job.report);
    const RunResult *result = &report_last(&job.report)->result;
    if (!job.options.quiet)
        show_run(&terminal, &job.report);
    else if (result->work.n > 0) /* or nobody would know why we exit with 1 */
        show_stray_work(&terminal, &result->work);
    record_finish(&job);
    if (job.typed || result->typed)
        run_die();
    return report_exit_code(&job.report);
}

const Command command_run = {
    .name = "run",
    .summary = "run a training so that a small /dev/shm cannot kill it, and faster",
    .operands = "-- COMMAND [ARGUMENT]...",
    .operands_most = INT_MAX,
    .about = "Runs COMMAND with its shared tensors in recycled memory outside /dev/shm, so\n"
             "that the size of /dev/shm no longer matters. Workers wait before memory runs\n"
             "out. The training needs no changes. Signals reach the command, and no process,\n"
             "file or memory is left behind. The exit code is the command's (128 + signal\n"
             "when a signal ended it), or 1 when that is 0 although batches were lost. A\n"
             "summary goes to standard error; after a failure it says what died, what shows\n"
             "that, and what to do.",
    .options = run_options,
    .run = run_run,
};
