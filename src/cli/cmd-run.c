#include <limits.h>
#include <signal.h>
#include <string.h>

#include "attempts.h"
#include "checkpoint.h"
#include "command.h"
#include "guard.h"
#include "report-file.h"
#include "retry.h"
#include "run.h"
#include "show-attempt.h"
#include "show-run.h"

/* As shells have it. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

enum { RETRY_NOT_SAID = -1 };

typedef struct RunOptions {
    bool quiet;
    bool no_guard;
    bool check;
    const char *report;
    RunWish wish;
    int retry;
    OptionList degrade;
    const char *resume;
} RunOptions;

static const Option run_options[] = {
    {OPTION_FLAG, 'q', "quiet", offsetof(RunOptions, quiet),
     .help = "no summary at the end, no word between attempts"},
    {OPTION_FLAG, 0, "no-guard", offsetof(RunOptions, no_guard),
     .help = "only watch over the command: its tensors\nstay in /dev/shm"},
    {OPTION_TEXT, 0, "report", offsetof(RunOptions, report), "FILE",
     .help = "write what happened to FILE as JSON,\nalso after a crash"},
    {OPTION_FLAG, 0, "check", offsetof(RunOptions, check),
     .help = "only say what threatens a job here;\nexit code as doctor's"},
    {OPTION_WISH, 0, "shm", offsetof(RunOptions, wish.shm), "SIZE|auto|off",
     .help = "a /dev/shm of the job's own, where the rights\nallow it"},
    {OPTION_WISH, 0, "budget", offsetof(RunOptions, wish.budget), "SIZE|auto|off",
     .help = "a ceiling for shared memory: workers wait\nfor room"},
    {OPTION_SECONDS, 0, "wait", offsetof(RunOptions, wish.wait_seconds), "SECONDS",
     .help = "how long a worker may wait for room"},
    {OPTION_COUNT, 0, "retry", offsetof(RunOptions, retry), "N",
     .help = "try again up to N times when it has failed"},
    {OPTION_LIST, 0, "degrade", offsetof(RunOptions, degrade), "NAME=V1,V2,...",
     .help = "put V1 in the place of {NAME} in COMMAND,\nV2 after less could have helped, and so on;\n"
             "may be given for several names"},
    {OPTION_TEXT, 0, "resume", offsetof(RunOptions, resume), "ARGS",
     .help = "further arguments from the second attempt on;\n{latest:GLOB} is the newest whole checkpoint"},
    {OPTION_END},
};

/* One `run`, from its options to its report. */
typedef struct Job {
    RunOptions options;
    char **command;
    Knobs knobs;
    Resume resume; /* without words: none */
    Run *run;
    char library[PATH_MAX];
    struct timespec began;
    Arena arena;
    RunAttempt *attempts;
    size_t n_attempts;
    size_t attempts_capacity;
    bool typed; /* a Ctrl-C between two attempts */
} Job;

static const RunAttempt *attempt_last(const Job *job)
{
    return &job->attempts[job->n_attempts - 1];
}

static void job_free(Job *job)
{
    run_free(job->run);
    arena_free(&job->arena);
}

/* The "--" before the command, or the end of argv. */
static int command_place(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--") != 0)
        i++;
    return i;
}

static bool degrade_parse(Job *job, int *ret_code)
{
    _cleanup_buffer_ Buffer error = {0};
    for (size_t i = 0; i < job->options.degrade.n; i++)
        if (knobs_add(&job->knobs, job->options.degrade.items[i], &job->arena, &error) < 0) {
            *ret_code = complain(EX_USAGE, "run: --degrade: %s", buffer_text(&error));
            return false;
        }
    return true;
}

static bool resume_take(Job *job, int *ret_code)
{
    _cleanup_buffer_ Buffer error = {0};
    if (job->options.resume && resume_parse(job->options.resume, &job->arena, &job->resume, &error) < 0) {
        *ret_code = complain(EX_USAGE, "run: --resume: %s", buffer_text(&error));
        return false;
    }
    return true;
}

static bool retry_is_said(const RunOptions *options, int *ret_code)
{
    const char *idle = options->degrade.n > 0 ? "degrade" : options->resume ? "resume" : NULL;
    if (!idle || options->retry != RETRY_NOT_SAID)
        return true;
    *ret_code = complain(EX_USAGE, "run: --%s is for further attempts; say how many with --retry N", idle);
    return false;
}

/* Our options stand before the "--"; the command's own are none of our business. */
static bool job_parse(const Command *command, int argc, char **argv, Job *job, int *ret_code)
{
    Operands operands;
    int place = command_place(argc, argv);
    char **words = place < argc ? argv + place + 1 : argv + argc;
    argv[place] = NULL;
    if (!command_parse(command, place, argv, &job->options, &operands, ret_code))
        return false;
    if (operands.n > 0) {
        _cleanup_buffer_ Buffer safe = {0};
        (void)text_escape(text_of(operands.items[0]), &safe);
        *ret_code =
            complain(EX_USAGE, "run: put -- before the command: shmguard run -- %s ...", buffer_text(&safe));
        return false;
    }
    if (!*words) {
        *ret_code = complain(EX_USAGE, "run: no command; put it after --: shmguard run -- python train.py");
        return false;
    }
    job->command = words;
    return retry_is_said(&job->options, ret_code) && degrade_parse(job, ret_code) &&
           resume_take(job, ret_code);
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

/* Without the guard a training still trains: say so, once, and go on. */
static void guard_start(Run *run, char library[static PATH_MAX], bool first)
{
    int r = guard_library(library) ? run_guard(run, library) : -ENOENT;
    if (!first)
        return;
    if (r == -ENOENT)
        complain(0, "this build has no preload library; running without the guard");
    else if (r == -ENAMETOOLONG)
        complain(0, "%s: LD_PRELOAD takes no path with a colon or a blank; running without the guard",
                 library);
    else if (r < 0)
        complain(0, "memory for the guard is refused here (%s); running without the guard", strerror(-r));
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

/* The exit code of a command that could not be started, said. */
static int start_complain(const char *command, bool ran, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(command), &safe);
    if (!ran)
        return complain(EX_SOFTWARE, "run: no process could be made: %s", strerror(error));
    if (error == ENOENT)
        return complain(EXIT_NOT_FOUND, "run: %s: command not found", buffer_text(&safe));
    return complain(EXIT_NOT_EXECUTABLE, "run: %s: %s", buffer_text(&safe), strerror(error));
}

/* What is known of the end, but for what the command's own status does not tell. */
static int attempt_judge(const RunResult *result, const char *command, int start_error, Arena *arena,
                         Judged *ret)
{
    Ended ended = {.pid = result->pid,
                   .seconds = result->seconds,
                   .has_status = true,
                   .signal = result->signal,
                   .code = result->signal ? 0 : result->code};
    Evidence evidence = EVIDENCE_NONE;
    evidence.pid = result->pid;
    evidence.code = result->code;
    evidence.signal = result->signal;
    evidence.passed_on = result->passed_on;
    evidence.start_error = start_error;
    evidence.command = command;
    evidence.seconds = result->seconds;
    evidence.guarded = result->guarded;
    if (result->guarded) {
        evidence.budget_bytes = result->guard.budget_bytes;
        evidence.refused = result->guard.refused;
        evidence.refused_bytes = result->guard.refused_bytes;
        evidence.refused_pid = result->guard.refused_pid;
        evidence.refused_for_want = result->guard.refused_for_want;
    }
    evidence.ended = &ended;
    evidence.n_ended = start_error == 0;

    Root root = ROOT_NONE;
    Machine machine;
    bool known =
        result->code != 0 && root_open(NULL, &root) >= 0 && machine_read(&root, 0, arena, &machine) >= 0;
    Guard guard = guard_find(known ? &machine : NULL);
    int r = cause_judge(&evidence, known ? &machine : NULL, &guard, arena, ret);
    root_close(&root);
    return r;
}

/* --- Attempts ----------------------------------------------------------------------------------------- */

static int attempt_values(Job *job, unsigned level, RunAttempt *attempt)
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

static int attempt_run(Job *job, char *const *settings, RunAttempt *attempt)
{
    bool ran = false;
    int error = -run_start(job->run, attempt->command, settings, &ran);
    if (error > 0)
        attempt->result.code = start_complain(attempt->command[0], ran, error);
    else {
        int r = run_finish(job->run, &attempt->result);
        if (r < 0)
            return r;
    }
    return attempt_judge(&attempt->result, attempt->command[0], MAX(error, 0), &job->arena, &attempt->judged);
}

/* found: one for each {latest:GLOB}; NULL: without the arguments of --resume. */
static int attempt_make(Job *job, unsigned level, bool resumes, const char *const *found)
{
    RunAttempt *attempt = ARENA_PUSH(&job->arena, job->attempts, job->n_attempts, job->attempts_capacity);
    char **command = NULL;
    char **settings = NULL;
    if (!attempt)
        return -ENOMEM;
    int r = attempt_command(job->command, &job->knobs, level, resumes ? &job->resume : NULL, found,
                            &job->arena, &command);
    if (r >= 0)
        r = attempt_settings(&job->knobs, level, (unsigned)job->n_attempts, &job->arena, &settings);
    if (r >= 0)
        r = attempt_values(job, level, attempt);
    if (r < 0)
        return r;
    attempt->command = command;
    if (!job->options.no_guard)
        guard_start(job->run, job->library, job->n_attempts == 1);
    return attempt_run(job, settings, attempt);
}

/* Looks for the checkpoints of --resume. *ret_paths has one for each {latest:GLOB}, and is NULL when one has
 * none: then it goes from the beginning. */
static int checkpoints_look(Job *job, NextAttempt *next, const char *const **ret_paths)
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
static void say(const Job *job, const NextAttempt *next, const char *why_not)
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
static bool attempt_follows(const Job *job, Retry *ret)
{
    const RunAttempt *last = attempt_last(job);
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
    if (!why_not && job->n_attempts > (size_t)job->options.retry)
        why_not = "that was the last attempt";
    if (why_not)
        say(job, NULL, why_not);
    *ret = retry;
    return !why_not;
}

static int attempts_make(Job *job)
{
    unsigned level = 0;
    bool resumes = false;
    const char *const *found = NULL;
    for (;;) {
        Retry retry = RETRY_DONE;
        int r = attempt_make(job, level, resumes, found);
        if (r < 0 || !attempt_follows(job, &retry))
            return r;
        unsigned failed = (unsigned)job->n_attempts;
        NextAttempt next = {.attempt = failed + 1,
                            .of = (unsigned)job->options.retry + 1,
                            .pause_seconds = attempt_pause_seconds(failed),
                            .cause = attempt_last(job)->judged.cause.id,
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

static Peaks attempts_peaks(const Job *job)
{
    Peaks peaks = {U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN};
    for (size_t i = 0; i < job->n_attempts; i++) {
        const RunResult *result = &job->attempts[i].result;
        if (result->guarded && (peaks.shm_bytes == U64_UNKNOWN || result->guard.bytes_peak > peaks.shm_bytes))
            peaks.shm_bytes = result->guard.bytes_peak;
    }
    return peaks;
}

static int run_run(const Command *command, int argc, char **argv)
{
    _cleanup_(job_free) Job job = {.options = {.retry = RETRY_NOT_SAID, .wish.wait_seconds = -1}};
    int code = EX_OK;
    if (!job_parse(command, argc, argv, &job, &code))
        return code;
    if (job.options.check)
        return complain(EX_UNAVAILABLE,
                        "run: --check is not in this build; shmguard doctor looks at the machine");
    _cleanup_report_file_ ReportFile file = REPORT_FILE_NONE;
    if (job.options.report && (code = report_open(job.options.report, &file)) != EX_OK)
        return code;

    clock_gettime(CLOCK_REALTIME, &job.began);
    int r = run_open(&job.run);
    if (r < 0)
        return complain(EX_SOFTWARE, "run: cannot watch over a command here: %s", strerror(-r));
    r = attempts_make(&job);
    if (r < 0)
        return complain(EX_SOFTWARE, "run: %s", strerror(-r));

    const RunResult *result = &attempt_last(&job)->result;
    RunReport report = {
        .attempts = job.attempts,
        .n_attempts = job.n_attempts,
        .peaks = attempts_peaks(&job),
        .path = job.options.report,
    };
    signal(
        SIGPIPE,
        SIG_IGN); /* whoever read our messages may have gone; the exit code is the command's all the same */
    if (job.options.report)
        report_write(&file, &report);
    if (!job.options.quiet) {
        Terminal terminal = terminal_of(stderr, COLOR_AUTO);
        show_run(&terminal, &report);
    }
    if (job.typed || result->typed)
        run_die();
    return result->code;
}

const Command command_run = {
    .name = "run",
    .summary = "run a training so that a small /dev/shm cannot kill it, and faster",
    .operands = "-- COMMAND [ARGUMENT]...",
    .operands_most = INT_MAX,
    .about = "Runs COMMAND with its shared tensors in recycled memory outside of /dev/shm,\n"
             "which may then be as small as it likes. Nothing in the training changes. Signals\n"
             "reach the command, the exit code is its own (128 + signal when a signal ended\n"
             "it), and no process, file or memory is left behind. A short summary goes to\n"
             "standard error.",
    .options = run_options,
    .run = run_run,
};
