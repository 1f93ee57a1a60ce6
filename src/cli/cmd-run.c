#include <limits.h>
#include <signal.h>
#include <string.h>

#include "command.h"
#include "exit-status.h"
#include "guard.h"
#include "report-file.h"
#include "run.h"
#include "show-preflight.h"
#include "show-run.h"

/* As shells have it. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

typedef struct RunOptions {
    bool quiet;
    bool no_guard;
    bool check;
    const char *shm;
    const char *report;
} RunOptions;

static const Option run_options[] = {
    {OPTION_FLAG, 'q', "quiet", offsetof(RunOptions, quiet), .help = "no summary at the end"},
    {OPTION_FLAG, 0, "no-guard", offsetof(RunOptions, no_guard),
     .help = "only watch over the command: its tensors stay in /dev/shm"},
    {OPTION_FLAG, 0, "check", offsetof(RunOptions, check),
     .help = "start nothing: only say what threatens the job (exit code as of doctor)"},
    {OPTION_TEXT, 0, "shm", offsetof(RunOptions, shm), "SIZE",
     .help = "a /dev/shm of the job's own: its size, auto (when needed) or off"},
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

static int shm_parse(const char *text, ShmWish *ret)
{
    int r = text ? shm_wish_parse(text_of(text), ret) : 0;
    if (r >= 0)
        return EX_OK;
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(text), &safe);
    return complain(EX_USAGE, "run: --shm %s: give a size of at least 1 MiB (64M, 8g), auto or off",
                    buffer_text(&safe));
}

/* Decides about the job's /dev/shm and says what threatens the job. False: leave with *ret_code. */
static bool look_ahead(const RunOptions *options, const ShmWish *wish, PrivateShm *shm, int *ret_code)
{
    _cleanup_arena_ Arena arena = {0};
    Root root;
    Machine machine;
    int r = root_open(NULL, &root);
    if (r < 0)
        return true; /* without /proc there is nothing to see, and nothing to promise */
    r = machine_read(&root, 0, &arena, &machine);
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
        complain(0, "no /dev/shm of the job's own: %s", shm->why);

    Guard guard = guard_find(&machine);
    PreflightPlan plan = {
        .guarded = guard.ready && !options->no_guard,
        .shm_tried = wish->kind != WISH_OFF,
        .private_shm_bytes = shm->answer == SHM_PRIVATE ? shm->bytes : 0,
        .budget_bytes = U64_UNKNOWN,
    };
    Preflight preflight = {0};
    (void)preflight_judge(&machine, &guard, &plan, &arena, &preflight);
    Terminal terminal = terminal_of(options->check ? stdout : stderr, COLOR_AUTO);
    if (options->check && preflight.n == 0)
        show_preflight_fine(&terminal, &machine, &plan);
    else if (options->check || !options->quiet)
        show_preflight(&terminal, &preflight);
    *ret_code = (int)preflight_verdict(&preflight);
    return !options->check;
}

/* The exit code of a command that could not be started, said. */
static int start_complain(const char *command, ChildStage stage, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(command), &safe);
    if (stage == CHILD_NONE)
        return complain(EX_SOFTWARE, "run: no process could be made: %s", strerror(error));
    if (stage == CHILD_NO_SHM)
        return complain(EX_UNAVAILABLE, "run: --shm: refused at the second try: %s", strerror(error));
    if (error == ENOENT)
        return complain(EXIT_NOT_FOUND, "run: %s: command not found", buffer_text(&safe));
    return complain(EXIT_NOT_EXECUTABLE, "run: %s: %s", buffer_text(&safe), strerror(error));
}

static int attempt_make(Run *run, char **command, Arena *arena, RunReport *report)
{
    ChildStage stage = CHILD_NONE;
    int r = run_start(run, command, &stage);
    if (r < 0) {
        report->result.code = start_complain(command[0], stage, -r);
        return cause_of_no_start(command[0], -r, arena, &report->cause);
    }
    r = run_finish(run, &report->result);
    if (r < 0)
        return r;
    const RunResult *result = &report->result;
    return cause_of_ending(&(Ending){result->pid, result->code, result->signal, result->passed_on}, arena,
                           &report->cause);
}

static int run_run(const Command *command, int argc, char **argv)
{
    RunOptions options = {0};
    char **words = NULL;
    int code = EX_OK;
    if (!run_parse(command, argc, argv, &options, &words, &code))
        return code;
    ShmWish wish = {.kind = WISH_OFF};
    PrivateShm shm = {.answer = SHM_SHARED};
    if ((code = shm_parse(options.shm, &wish)) != EX_OK || !look_ahead(&options, &wish, &shm, &code))
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

    if (shm.answer == SHM_PRIVATE)
        run_private_shm(run, &shm);

    _cleanup_arena_ Arena arena = {0};
    RunReport report = {.command = words};
    r = attempt_make(run, words, &arena, &report);
    if (r < 0)
        return complain(EX_SOFTWARE, "run: %s", strerror(-r));

    signal(
        SIGPIPE,
        SIG_IGN); /* whoever read our messages may have gone; the exit code is the command's all the same */
    if (options.report)
        report_write(&file, &report);
    if (!options.quiet && report.result.pid > 0) {
        Terminal terminal = terminal_of(stderr, COLOR_AUTO);
        show_run(&terminal, &report);
    }
    if (report.result.typed)
        run_die();
    return report.result.code;
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
