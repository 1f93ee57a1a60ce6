/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli-text.h"
#include "command.h"
#include "crash.h"
#include "forked-command.h"
#include "job-place.h"
#include "outer.h"
#include "preload-library.h"
#include "progress.h"
#include "report-file.h"
#include "retry.h"
#include "show-attempt.h"
#include "show-preflight.h"
#include "show-run.h"
#include "show-sites.h"
#include "user-command.h"

enum {
    RETRY_NOT_GIVEN = -1,
    FD_NOT_GIVEN = -1,
    CAUSE_LINE_MAX = 400,
    RECORD_SECONDS = 1,
    FREEZING_SECONDS = 1
};

typedef struct RunOptions {
    bool quiet;
    bool verbose;
    bool no_guard;
    bool check;
    const char *record;
    const char *report;
    SizeWish shm;
    SizeWish budget;
    double wait_seconds;
    int pin;
    int lane;
    int freeze;
    bool where;
    int retry;
    OptionList degrade;
    const char *resume;
    int forked;
    int cause_fd;
} RunOptions;

enum { CHOICE_AUTO, CHOICE_OFF };
static const char *const auto_or_off[] = {"auto", "off", NULL};

static const Option run_options[] = {
    {OPTION_FLAG, 'q', "quiet", offsetof(RunOptions, quiet),
     .help = N_("print no summary, no lines about attempts and no progress line")},
    {OPTION_FLAG, 'v', "verbose", offsetof(RunOptions, verbose),
     .help = N_("print in the summary how segments, batches and names were served, in figures")},
    {OPTION_FLAG, 0, "no-guard", offsetof(RunOptions, no_guard),
     .help = N_("leave tensors in /dev/shm, without a budget; how processes end is still recorded")},
    {OPTION_TEXT, 0, "record", offsetof(RunOptions, record), "FILE",
     .help = N_("record memory use once a second, all attempts in one FILE; see shmguard report")},
    {OPTION_TEXT, 0, "report", offsetof(RunOptions, report), "FILE",
     .help = N_("write the result to FILE as JSON, even after a crash")},
    {OPTION_FLAG, 0, "check", offsetof(RunOptions, check),
     .help = N_("start nothing; only report what threatens this job, with the exit codes of doctor")},
    {OPTION_WISH, 0, "shm", offsetof(RunOptions, shm), "SIZE|auto|off",
     .help = N_("give the job its own /dev/shm, where permissions allow it (default: off)")},
    {OPTION_WISH, 0, "budget", offsetof(RunOptions, budget), "SIZE|auto|off",
     .help = N_("a limit for shared memory, at which workers wait for room (default: auto, three quarters of "
                "the memory that can be spared at the start)")},
    {OPTION_SECONDS, 0, "wait", offsetof(RunOptions, wait_seconds), "SECONDS",
     .help = N_("how long a worker may wait for room (default: 60)")},
    {OPTION_CHOICE, 0, "pin", offsetof(RunOptions, pin), "auto|off", .choices = auto_or_off,
     .help = N_("let the GPU read batches of a loader with pin_memory=True where the worker wrote them "
                "(default: auto, where that is safe)")},
    {OPTION_CHOICE, 0, "lane", offsetof(RunOptions, lane), "auto|off", .choices = auto_or_off,
     .help = N_("send a DataLoader's batches in one message and one packet, and not tensor by tensor "
                "(default: auto, where Python and PyTorch are known)")},
    {OPTION_CHOICE, 0, "freeze", offsetof(RunOptions, freeze), "auto|off", .choices = auto_or_off,
     .help = N_("make a dataset's Python objects immortal before workers are forked, so that workers do not "
                "copy them (default: auto, where Python has immortal objects: 3.12 to 3.14)")},
    {OPTION_FLAG, 0, "where", offsetof(RunOptions, where),
     .help =
         N_("find the line that leaks: look at a running job now and then, and closer where memory grows")},
    {OPTION_COUNT, 0, "retry", offsetof(RunOptions, retry), "N",
     .help = N_("after a failure, try again up to N times")},
    {OPTION_LIST, 0, "degrade", offsetof(RunOptions, degrade), "NAME=V1,V2,...",
     .help = N_("replace {NAME} in COMMAND with V1, and with the next value when memory, open files or the "
                "like ran out; repeat the option for more names")},
    {OPTION_TEXT, 0, "resume", offsetof(RunOptions, resume), "ARGS",
     .help =
         N_("extra arguments from the second attempt on; {latest:GLOB} is the newest complete checkpoint")},
    {OPTION_COUNT, 0, "forked", offsetof(RunOptions, forked), "FD",
     .help = N_("for launchers: COMMAND is already a child of this process and waits at the socket FD")},
    {OPTION_COUNT, 0, "cause-fd", offsetof(RunOptions, cause_fd), "FD",
     .help = N_("for launchers: write the cause of the end to FD, one line")},
    {OPTION_END},
};

/* One `run`, from its options to its report. */
typedef struct RunCommand {
    RunOptions options;
    char **words; /* of the user's command */
    PrivateShm shm;
    Outer outer;  /* the run that this one has joined; without a socket: none */
    bool guarded; /* this attempt, by us */
    Progress progress;
    JobRun job;
    bool typed;   /* Ctrl-C was pressed between two attempts */
    pid_t forked; /* the command, which waits; 0: it is yet to be started */
} RunCommand;

static void run_command_free(RunCommand *run)
{
    progress_close(&run->progress);
    recorder_close(run->job.recorder, false);
    run_free(run->job.run);
    job_run_free(&run->job);
}

static bool degrade_parse(RunCommand *run, int *ret_code)
{
    _cleanup_buffer_ Buffer error = {0};
    for (size_t i = 0; i < run->options.degrade.n; i++)
        if (knobs_add(&run->job.knobs, run->options.degrade.items[i], &run->job.arena, &error) < 0) {
            *ret_code = complain(EX_USAGE, CLI_RUN_DEGRADE, buffer_text(&error));
            return false;
        }
    return true;
}

static bool resume_take(RunCommand *run, int *ret_code)
{
    _cleanup_buffer_ Buffer error = {0};
    JobRun *job = &run->job;
    if (run->options.resume && resume_parse(run->options.resume, &job->arena, &job->resume, &error) < 0) {
        *ret_code = complain(EX_USAGE, CLI_RUN_RESUME, buffer_text(&error));
        return false;
    }
    return true;
}

static bool guard_options_check(const RunOptions *options, int *ret_code)
{
    const char *idle = options->budget.kind != WISH_AUTO ? "budget"
                       : options->wait_seconds >= 0      ? "wait"
                       : options->pin != CHOICE_AUTO     ? "pin"
                       : options->lane != CHOICE_AUTO    ? "lane"
                       : options->freeze != CHOICE_AUTO  ? "freeze"
                                                         : NULL;
    if (!options->no_guard || !idle)
        return true;
    *ret_code = complain(EX_USAGE, CLI_RUN_NEEDS_GUARD, idle, idle);
    return false;
}

static bool retry_options_check(const RunOptions *options, int *ret_code)
{
    const char *idle = options->degrade.n > 0 ? "degrade" : options->resume ? "resume" : NULL;
    if (!idle || options->retry != RETRY_NOT_GIVEN)
        return true;
    *ret_code = complain(EX_USAGE, CLI_RUN_NEEDS_RETRY, idle);
    return false;
}

static bool forked_options_check(const RunOptions *options, int *ret_code)
{
    const char *idle = options->retry != RETRY_NOT_GIVEN ? "retry"
                       : options->shm.kind != WISH_OFF   ? "shm"
                                                         : NULL;
    if (options->forked == FD_NOT_GIVEN || !idle)
        return true;
    *ret_code = complain(EX_USAGE, CLI_RUN_FORKED, idle);
    return false;
}

static bool run_parse(const Command *command, int argc, char **argv, RunCommand *run, int *ret_code)
{
    return command_take(command, argc, argv, &run->options, &run->words, ret_code) &&
           guard_options_check(&run->options, ret_code) && retry_options_check(&run->options, ret_code) &&
           forked_options_check(&run->options, ret_code) && degrade_parse(run, ret_code) &&
           resume_take(run, ret_code);
}

static int report_open(const char *path, ReportFile *ret)
{
    int r = report_file_open(path, ret);
    if (r >= 0)
        return EX_OK;
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    return complain(r == -EACCES || r == -EPERM || r == -EROFS ? EX_NOPERM : EX_DATAERR, CLI_RUN_REPORT,
                    buffer_text(&safe), error_text(-r));
}

static int report_fill(FILE *out, const void *context)
{
    return json_run(out, true, context);
}

static void report_write(const ReportFile *file, const RunReport *report)
{
    int r = report_file_write(file, report_fill, report);
    if (r < 0)
        complain(0, CLI_RUN_REPORT_LOST, error_text(-r));
}

/* Decides whether the job gets a private /dev/shm, and says what threatens the job. False: exit with
 * *ret_code. */
static bool look_ahead(const RunOptions *options, PrivateShm *shm, int *ret_code)
{
    const SizeWish *wish = &options->shm;
    _cleanup_arena_ Arena arena = {0};
    Root root;
    Machine machine;
    int r = root_open(NULL, &root);
    if (r < 0)
        return true; /* without /proc nothing can be checked */
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
        *ret_code = complain(EX_UNAVAILABLE, CLI_RUN_NO_SHM, shm->why);
        return false;
    }
    if (shm->answer == SHM_REFUSED)
        complain(0, CLI_RUN_SHARED_SHM, shm->why);

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

/* Says that the guard of the outer run serves the command. */
static void outer_say(const RunCommand *run)
{
    const RunOptions *options = &run->options;
    const struct {
        bool given;
        const char *name;
    } idle[] = {{options->no_guard, "--no-guard"},
                {options->budget.kind != WISH_AUTO, "--budget"},
                {options->wait_seconds >= 0, "--wait"},
                {options->pin != CHOICE_AUTO, "--pin"},
                {options->lane != CHOICE_AUTO, "--lane"},
                {options->freeze != CHOICE_AUTO, "--freeze"},
                {options->where, "--where"}};
    const char *names[ARRAY_SIZE(idle) + 1] = {0};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
        if (idle[i].given)
            names[n++] = idle[i].name;
    _cleanup_buffer_ Buffer list = {0};
    names_join(names, NAMES_AND, &list);
    if (n == 0)
        complain(0, CLI_RUN_JOINED, run->outer.pid);
    else
        complain(0, PLURAL(n, CLI_RUN_JOINED_ONE, CLI_RUN_JOINED_MANY), run->outer.pid, buffer_text(&list));
}

static void site_record(void *context, const SiteWindow *window)
{
    const RunCommand *run = context;
    if (run->job.recorder)
        recorder_sites(run->job.recorder, window);
}

/* --- Attempts ----------------------------------------------------------------------------------------- */

static void record_finish(RunCommand *run)
{
    Recorder *recorder = TAKE_PTR(run->job.recorder);
    if (!recorder)
        return;
    bool nothing = recorder_status(recorder).samples == 0; /* no attempt could be started */
    if (!nothing && !run->options.quiet)
        recorder_say(recorder, run->options.record);
    recorder_close(recorder, nothing);
}

/* The job is served by this same thread: a reader of ours that has stopped, or is gone, must not stop it. */
static void crawl_say(RunCommand *run, const RunTick *tick)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (run->options.quiet || poll(&ready, 1, 0) <= 0)
        return;
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    progress_erase(&run->progress, !tick->guard.line);
    if (tick->guard.unfinished)
        fputc('\n', stderr);
    show_crawl(&terminal, tick);
    signal(SIGPIPE, before);
}

static void progress_tick(void *context, const RunTick *tick)
{
    RunCommand *run = context;
    const GuardFigures *guard = &tick->guard;
    Recorder *recorder = run->job.recorder;
    ProgressFigures figures = {
        .seconds = tick->seconds,
        .tensors = guard->segments_created + guard->segments_reused + guard->small_backed,
        .batches = guard->batches,
        .bytes_backed = guard->bytes_backed,
        .bytes_now = guard->bytes_now,
        .budget_bytes = guard->budget_bytes,
        .waiting = (uint32_t)guard->waiting,
        .freezing = guard->freezing.seconds >= FREEZING_SECONDS ? guard->freezing.objects : 0,
    };
    if (recorder && run->guarded)
        recorder_guard(recorder, guard);
    if (recorder && recorder_status(recorder).error < 0) {
        progress_erase(&run->progress, !guard->line);
        recorder_say_stopped(recorder, run->options.record);
    }
    if (tick->crawl)
        crawl_say(run, tick);
    if (tick->over) {
        progress_erase(&run->progress, !guard->line); /* unless the job has erased it */
        if (guard->unfinished)                        /* a bar, which our text would continue */
            fputc('\n', stderr);
    } else
        progress_draw(&run->progress, &figures, tick->pid, tick->wrote);
    run_line(run->job.run, progress_terminal(&run->progress), run->progress.drawn);
}

/* The reader of our messages may be gone, and the next attempt must be made in any case. The command starts
 * with the disposition that we were started with. */
static void say(const RunCommand *run, const NextAttempt *next, const char *why_not)
{
    if (run->options.quiet)
        return;
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    if (next)
        show_attempt(&terminal, next);
    else
        show_no_attempt(&terminal, why_not);
    signal(SIGPIPE, before);
}

static int attempt_make(RunCommand *run)
{
    JobRun *job = &run->job;
    ChildStage stage = CHILD_NONE;
    int guard_error = 0;
    int code = 0;
    int r = attempt_prepare(job, &guard_error);
    if (r < 0)
        return r;
    bool own = !run->options.no_guard && !run->outer.socket;
    run->guarded = own && guard_error == 0;
    if (own && guard_error < 0 && job->report.n_attempts == 1)
        guard_complain(job->library, guard_error);
    run_line(job->run, progress_terminal(&run->progress), false);
    r = attempt_start(job, &stage);
    if (r < 0)
        code = start_complain("run", report_last(&job->report)->command[0], stage, -r);
    return attempt_finish(job, MAX(-r, 0), code);
}

static int attempts_make(RunCommand *run)
{
    for (;;) {
        AttemptAnswer answer = ATTEMPT_NONE;
        NextAttempt next;
        const char *why_not = NULL;
        int r = attempt_make(run);
        if (r >= 0)
            r = attempt_next(&run->job, &answer, &next, &why_not);
        if (r < 0 || answer == ATTEMPT_NONE)
            return r;
        if (answer == ATTEMPT_FOLLOWS) {
            say(run, &next, NULL);
            if (run_pause(run->job.run, next.pause_seconds, &run->typed))
                continue;
            why_not = retry_words(RETRY_ASKED);
        }
        say(run, NULL, why_not);
        return 0;
    }
}

/* Says who is in charge of further attempts, if it is not us. */
static void restarts_say(const Restarts *restarts)
{
    typedef unsigned long long ull; /* what printf takes */
    switch (restarts->by) {
    case RESTARTS_COMMAND:
        complain(0, CLI_RUN_RESTARTS_COMMAND, restarts->launcher, (ull)restarts->most);
        break;
    case RESTARTS_LAUNCHER:
        complain(0, CLI_RUN_RESTARTS_LAUNCHER, restarts->launcher, (ull)restarts->rank, (ull)restarts->ranks,
                 (ull)restarts->most);
        break;
    case RESTARTS_NOBODY:
        complain(0, CLI_RUN_RESTARTS_NOBODY, (ull)restarts->rank, (ull)restarts->ranks, restarts->launcher,
                 restarts->launcher);
        break;
    case RESTARTS_OURS:
        break;
    }
}

static void place_take(RunCommand *run)
{
    Root root;
    LauncherNames names = {0};
    RunReport *report = &run->job.report;
    report->retries = run->options.retry > 0;
    report->place = JOB_PLACE_UNKNOWN;
    if (root_open(NULL, &root) >= 0) {
        (void)launcher_names_read(&root, getpid(), &names);
        report->place = job_place_here(&root);
        root_close(&root);
    }
    report->restarts = restarts_judge(run->words, getenv("PET_MAX_RESTARTS"), &names);
    if (report->retries && !run->options.quiet)
        restarts_say(&report->restarts);
}

/* Opens what must be there before the command can start. EX_OK, or the exit code for what went wrong, which
 * was said. */
static int job_open(RunCommand *run)
{
    const RunOptions *options = &run->options;
    JobRun *job = &run->job;
    if (options->record) {
        _cleanup_buffer_ Buffer words = {0};
        (void)command_join(run->words, &words);
        int r = recorder_open(options->record, buffer_text(&words), RECORD_SECONDS, &job->recorder);
        if (r < 0)
            return recorder_complain("run: --record", options->record, r);
    }
    clock_gettime(CLOCK_REALTIME, &job->began);
    int r = run_open(&job->run);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_NO_SUPERVISOR, "run", error_text(-r));
    if (run->shm.answer == SHM_PRIVATE)
        run_private_shm(job->run, &run->shm);
    if (job->recorder) /* if that fails, the supervisor takes samples of its own */
        (void)run_relay(job->run, recorder_relay(job->recorder));
    if (outer_find(&run->outer) && !options->quiet)
        outer_say(run);
    if (run->forked > 0)
        run_forked(job->run, run->forked, options->forked);
    place_take(run);
    job->command = run->words;
    job->retries = options->retry;
    job->guard = (GuardWish){.only_witness = options->no_guard,
                             .budget = options->budget,
                             .wait_seconds = options->wait_seconds,
                             .no_pin = options->pin == CHOICE_OFF,
                             .no_lane = options->lane == CHOICE_OFF,
                             .no_freeze = options->freeze == CHOICE_OFF,
                             .where = options->where,
                             .outer = run->outer.socket};
    job->report.path = options->report;
    return EX_OK;
}

static void run_show(RunCommand *run, const Terminal *terminal)
{
    SiteView sites = {0};
    show_run(terminal, &run->job.report, run->options.verbose);
    if (site_view_make(run_sites(run->job.run), NULL, &run->job.arena, &sites) >= 0)
        show_sites(terminal, &sites);
}

/* "cgroup-oom The kernel killed …". A launcher that does not read, or is gone, loses it. */
static void cause_tell(int fd, const RunReport *report)
{
    const Cause *cause = &report_last(report)->judged.cause;
    _cleanup_buffer_ Buffer line = {0};
    if (fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
        buffer_printf(&line, "%s %.*s\n", cause_name(cause->id), CAUSE_LINE_MAX, cause->summary) >= 0)
        (void)!write(fd, line.data, line.size);
}

static int job_do(RunCommand *run)
{
    const RunOptions *options = &run->options;
    _cleanup_report_file_ ReportFile file = REPORT_FILE_NONE;
    int code = EX_OK;
    if (options->report && (code = report_open(options->report, &file)) != EX_OK)
        return code;
    code = job_open(run);
    if (code != EX_OK)
        return code;
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    run->progress =
        progress_open(&terminal, STDOUT_FILENO, options->quiet || options->no_guard || run->outer.socket);
    run_on_tick(run->job.run, progress_tick, run);
    run_on_site(run->job.run, site_record, run);
    int r = attempts_make(run);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_FAILED, "run", error_text(-r));
    if (run_forked_waits(run->job.run)) /* it could not be started with us */
        return EX_SOFTWARE;
    run->forked = 0;

    /* The reader of our messages may be gone; the exit code must be the command's in any case. */
    signal(SIGPIPE, SIG_IGN);
    const RunReport *report = &run->job.report;
    const RunResult *result = &report_last(report)->result;
    if (options->report)
        report_write(&file, report);
    if (options->cause_fd != FD_NOT_GIVEN)
        cause_tell(options->cause_fd, report);
    if (!options->quiet)
        run_show(run, &terminal);
    else if (result->work.n > 0) /* otherwise nothing would explain the exit code 1 */
        show_stray_work(&terminal, &result->work);
    record_finish(run);
    if (run->typed || result->typed)
        run_die();
    return report_exit_code(report);
}

/* Its launcher must not lose it because we cannot watch it. */
static int forked_go_on(const RunCommand *run)
{
    complain(0, CLI_RUN_FORKED_PLAIN);
    forked_command_release(run->options.forked, environ, NULL);
    int code = crash_await(run->forked);
    return code < 0 ? complain(EX_SOFTWARE, CLI_FAILED, "run", error_text(-code)) : code;
}

static int run_run(const Command *command, int argc, char **argv)
{
    _cleanup_(run_command_free) RunCommand run = {
        .options = {.retry = RETRY_NOT_GIVEN,
                    .shm.kind = WISH_OFF,
                    .wait_seconds = -1,
                    .forked = FD_NOT_GIVEN,
                    .cause_fd = FD_NOT_GIVEN},
        .progress = PROGRESS_NONE,
        .job.report.peaks = PEAKS_UNKNOWN,
    };
    const RunOptions *options = &run.options;
    int code = EX_OK;
    if (!run_parse(command, argc, argv, &run, &code))
        return code != EX_OK && options->forked != FD_NOT_GIVEN &&
                       forked_command_find(options->forked, &run.forked) == 0
                   ? forked_go_on(&run)
                   : code;
    if (options->cause_fd != FD_NOT_GIVEN)
        (void)fcntl(options->cause_fd, F_SETFD, FD_CLOEXEC);
    if (options->forked != FD_NOT_GIVEN) {
        if (forked_command_find(options->forked, &run.forked) < 0)
            return complain(EX_USAGE, CLI_RUN_FORKED_NONE, options->forked);
        (void)fcntl(options->forked, F_SETFD, FD_CLOEXEC);
    }
    if (look_ahead(options, &run.shm, &code))
        code = job_do(&run);
    return run.forked > 0 ? forked_go_on(&run) : code;
}

const Command command_run = {
    .name = "run",
    .summary = N_("run a training so that a small /dev/shm cannot kill it, and faster"),
    .operands = "-- COMMAND [ARGUMENT]...",
    .operands_most = INT_MAX,
    .about = N_("Runs COMMAND with its shared tensors in recycled memory outside /dev/shm, so that the size "
                "of /dev/shm no longer matters. Workers wait before memory runs out. The training needs no "
                "changes. Signals reach the command, and no process, file or memory is left behind. The exit "
                "code is the command's (128 + signal when a signal ended it), or 1 when that is 0 although "
                "batches were lost. A summary goes to standard error; after a failure it says what died, the "
                "evidence for that, and what to do."),
    .options = run_options,
    .run = run_run,
};
