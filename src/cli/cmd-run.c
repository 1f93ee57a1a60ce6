#include <limits.h>
#include <signal.h>
#include <string.h>

#include "command.h"
#include "guard.h"
#include "report-file.h"
#include "run.h"
#include "show-run.h"

/* As shells have it. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

typedef struct RunOptions {
    bool quiet;
    bool no_guard;
    const char *report;
} RunOptions;

static const Option run_options[] = {
    {OPTION_FLAG, 'q', "quiet", offsetof(RunOptions, quiet), .help = "no summary at the end"},
    {OPTION_FLAG, 0, "no-guard", offsetof(RunOptions, no_guard),
     .help = "only watch over the command: its tensors stay in /dev/shm"},
    {OPTION_TEXT, 0, "report", offsetof(RunOptions, report), "FILE",
     .help = "write what happened to FILE as JSON, also after a crash"},
    {OPTION_END},
};

static void run_free_pointer(Run **run)
{
    run_free(*run);
}

/* The "--" before the command, or the end of argv. */
static int command_place(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--") != 0)
        i++;
    return i;
}

/* Our options stand before the "--"; the command's own are none of our business. */
static bool run_parse(const Command *command, int argc, char **argv, RunOptions *ret, char ***ret_command,
                      int *ret_code)
{
    Operands operands;
    int place = command_place(argc, argv);
    char **words = place < argc ? argv + place + 1 : argv + argc;
    argv[place] = NULL;
    if (!command_parse(command, place, argv, ret, &operands, ret_code))
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
    *ret_command = words;
    return true;
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

/* Without the guard a training still trains: say so, and go on. */
static void guard_start(Run *run, char library[static PATH_MAX])
{
    int r = guard_library(library) ? run_guard(run, library) : -ENOENT;
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

static int attempt_make(Run *run, Arena *arena, RunAttempt *attempt)
{
    bool ran = false;
    int error = -run_start(run, attempt->command, &ran);
    if (error > 0)
        attempt->result.code = start_complain(attempt->command[0], ran, error);
    else {
        int r = run_finish(run, &attempt->result);
        if (r < 0)
            return r;
    }
    return attempt_judge(&attempt->result, attempt->command[0], MAX(error, 0), arena, &attempt->judged);
}

static int run_run(const Command *command, int argc, char **argv)
{
    RunOptions options = {0};
    char **words = NULL;
    int code = EX_OK;
    if (!run_parse(command, argc, argv, &options, &words, &code))
        return code;
    _cleanup_report_file_ ReportFile file = REPORT_FILE_NONE;
    if (options.report && (code = report_open(options.report, &file)) != EX_OK)
        return code;

    char library[PATH_MAX];
    _cleanup_(run_free_pointer) Run *run = NULL;
    int r = run_open(&run);
    if (r < 0)
        return complain(EX_SOFTWARE, "run: cannot watch over a command here: %s", strerror(-r));
    if (!options.no_guard)
        guard_start(run, library);

    _cleanup_arena_ Arena arena = {0};
    RunAttempt attempt = {.command = words};
    r = attempt_make(run, &arena, &attempt);
    if (r < 0)
        return complain(EX_SOFTWARE, "run: %s", strerror(-r));

    RunReport report = {
        .attempts = &attempt,
        .n_attempts = 1,
        .peaks = {attempt.result.guarded ? attempt.result.guard.bytes_peak : U64_UNKNOWN, U64_UNKNOWN,
                  U64_UNKNOWN, U64_UNKNOWN},
        .path = options.report,
    };
    signal(
        SIGPIPE,
        SIG_IGN); /* whoever read our messages may have gone; the exit code is the command's all the same */
    if (options.report)
        report_write(&file, &report);
    if (!options.quiet) {
        Terminal terminal = terminal_of(stderr, COLOR_AUTO);
        show_run(&terminal, &report);
    }
    if (attempt.result.typed)
        run_die();
    return attempt.result.code;
}

const Command command_run = {
    .name = "run",
    .summary = "run a training so that a small /dev/shm cannot kill it, and faster",
    .operands = "-- COMMAND [ARGUMENT]...",
    .operands_most = INT_MAX,
    .about = "Runs COMMAND with its shared tensors in recycled memory outside of /dev/shm, which\n"
             "may then be as small as it likes. Nothing in the training changes. Signals reach\n"
             "the command, the exit code is its own (128 + signal when a signal ended it), and\n"
             "no process, file or memory is left behind. A short summary goes to standard error.",
    .options = run_options,
    .run = run_run,
};
