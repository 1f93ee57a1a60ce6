/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli-text.h"
#include "command.h"
#include "outer.h"
#include "progress.h"
#include "user-command.h"

/* Shorter intervals would take CPU time from the training; longer ones show nothing. */
#define INTERVAL_LEAST 0.05
#define INTERVAL_MOST  3600.0

typedef struct RecordOptions {
    const char *output;
    int pid;
    double interval;
    bool quiet;
    bool where;
} RecordOptions;

static const Option record_options[] = {
    {OPTION_TEXT, 'o', "output", offsetof(RecordOptions, output), "FILE",
     .help = N_("write the recording to FILE; an existing recording is renamed to FILE.old")},
    {OPTION_PID, 'p', "pid", offsetof(RecordOptions, pid), "PID",
     .help = N_("record a running training, with all processes below it")},
    {OPTION_SECONDS, 'i', "interval", offsetof(RecordOptions, interval), "SECONDS",
     .help = N_("time between two samples, at least 0.05 (default: 1)")},
    {OPTION_FLAG, 0, "where", offsetof(RecordOptions, where),
     .help = N_("find the line that leaks: look into COMMAND's processes now and then, and closer where "
                "memory grows")},
    {OPTION_FLAG, 'q', "quiet", offsetof(RecordOptions, quiet),
     .help = N_("print no progress and no summary")},
    {OPTION_END},
};

typedef struct Record {
    RecordOptions options;
    char **command;
    Recorder *recorder;
    Progress progress;
    char library[PATH_MAX];
} Record;

static void record_free(Record *record)
{
    progress_close(&record->progress);
    recorder_close(record->recorder, false);
}

static bool options_check(const Record *record, int *ret_code)
{
    const RecordOptions *options = &record->options;
    bool command = *record->command;
    if (!options->output)
        *ret_code = complain(EX_USAGE, command ? CLI_RECORD_NO_FILE : CLI_RECORD_NO_FILE_PID);
    else if (command && options->pid > 0)
        *ret_code = complain(EX_USAGE, CLI_RECORD_TWO);
    else if (!command && options->pid == 0)
        *ret_code = complain(EX_USAGE, CLI_RECORD_NOTHING);
    else if (options->where && !command)
        *ret_code = complain(EX_USAGE, CLI_RECORD_WHERE, options->pid);
    else if (options->interval < INTERVAL_LEAST || options->interval > INTERVAL_MOST)
        *ret_code = complain(EX_USAGE, CLI_RECORD_INTERVAL);
    else
        return true;
    return false;
}

static int file_open(Record *record, const char *command)
{
    int r = recorder_open(record->options.output, command, record->options.interval, &record->recorder);
    return r < 0 ? recorder_complain("record", record->options.output, r) : EX_OK;
}

static void finish(Record *record)
{
    recorder_end(record->recorder);
    progress_erase(&record->progress, false);
    if (!record->options.quiet)
        recorder_say(record->recorder, record->options.output);
    else
        recorder_say_stopped(record->recorder, record->options.output);
    recorder_close(TAKE_PTR(record->recorder), false);
}

/* --- A running job ------------------------------------------------------------------------------------ */

static void progress_tell(Record *record)
{
    RecorderStatus status = recorder_status(record->recorder);
    char text[128];
    snprintf(text, sizeof text, CLI_RECORD_PROGRESS, (unsigned long long)status.samples,
             (unsigned long long)status.processes);
    progress_say(&record->progress, text, getpgrp());
}

/* Returns when the job ends, the recording stops, or we get a signal to end. */
static void job_watch(Record *record, int signals)
{
    struct pollfd ready[] = {{.fd = signals, .events = POLLIN},
                             {.fd = recorder_fd(record->recorder), .events = POLLIN}};
    int timeout = record->progress.fd >= 0 ? 1000 : -1;
    do
        progress_tell(record);
    while (poll(ready, ARRAY_SIZE(ready), timeout) <= 0);
}

static int command_of(int pid, Buffer *command)
{
    _cleanup_opened_survey_ OpenedSurvey opened = {0};
    int code = survey_open(NULL, pid, 0, &opened);
    const Process *process = code == EX_OK ? survey_process(&opened.survey, pid) : NULL;
    if (process)
        (void)buffer_append(command, process->command.data, process->command.size);
    return code;
}

static int attach(Record *record)
{
    _cleanup_buffer_ Buffer command = {0};
    int code = command_of(record->options.pid, &command);
    if (code == EX_OK)
        code = file_open(record, buffer_text(&command));
    if (code != EX_OK)
        return code;

    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGHUP);
    sigprocmask(SIG_BLOCK, &taken, NULL);
    signal(SIGPIPE, SIG_IGN); /* the reader of our messages may have gone */
    _cleanup_close_ int signals = signalfd(-1, &taken, SFD_CLOEXEC);
    int r = signals < 0 ? -errno : recorder_begin(record->recorder, record->options.pid, NULL);
    if (r < 0) {
        recorder_close(TAKE_PTR(record->recorder), true);
        return complain(EX_SOFTWARE, CLI_FAILED, "record", error_text(-r));
    }
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    record->progress = progress_open(&terminal, STDERR_FILENO, record->options.quiet);
    job_watch(record, signals);
    bool stopped = recorder_status(record->recorder).error < 0;
    finish(record);
    return stopped ? EX_UNAVAILABLE : EX_OK;
}

/* --- A command ---------------------------------------------------------------------------------------- */

static void stopped_tick(void *context, const RunTick *tick)
{
    (void)tick;
    Record *record = context;
    recorder_say_stopped(record->recorder, record->options.output);
}

static void site_record(void *context, const SiteWindow *window)
{
    const Record *record = context;
    recorder_sites(record->recorder, window);
}

/* The library only looks: shared memory stays where it is. */
static void where_serve(Record *record, Run *run)
{
    Outer outer;
    if (outer_find(&outer)) {
        complain(0, CLI_RECORD_WHERE_OUTER, outer.pid, outer.pid);
        return;
    }
    GuardWish wish = {.only_witness = true, .budget.kind = WISH_OFF, .wait_seconds = -1, .where = true};
    int r = guard_serve(run, record->library, &wish);
    if (r < 0)
        guard_complain(record->library, r);
    run_on_site(run, site_record, record);
}

static int command_follow(Record *record, Run *run)
{
    ChildStage stage = CHILD_NONE;
    RunResult result = {0};
    run_unwatched(run);
    if (record->options.where)
        where_serve(record, run);
    int r = run_start(run, record->command, (char *[]){NULL}, &stage);
    if (r < 0) {
        recorder_close(TAKE_PTR(record->recorder), true);
        return start_complain("record", record->command[0], stage, -r);
    }
    (void)recorder_begin(record->recorder, run_pid(run), NULL);
    run_on_tick(run, stopped_tick, record);
    r = run_finish(run, &result);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_FAILED, "record", error_text(-r));
    signal(SIGPIPE, SIG_IGN); /* the exit code must be the command's in any case */
    finish(record);
    if (result.typed)
        run_die();
    return result.code;
}

static int launch(Record *record)
{
    _cleanup_buffer_ Buffer command = {0};
    Run *run = NULL;
    (void)command_join(record->command, &command);
    int code = file_open(record, buffer_text(&command));
    if (code != EX_OK)
        return code;
    int r = run_open(&run);
    if (r < 0)
        code = complain(EX_SOFTWARE, CLI_NO_SUPERVISOR, "record", error_text(-r));
    else
        code = command_follow(record, run);
    run_free(run);
    return code;
}

static int record_run(const Command *command, int argc, char **argv)
{
    _cleanup_(record_free) Record record = {.options = {.interval = 1}, .progress = PROGRESS_NONE};
    int code = EX_OK;
    if (!command_take_if_any(command, argc, argv, &record.options, &record.command, &code) ||
        !options_check(&record, &code))
        return code;
    return record.options.pid > 0 ? attach(&record) : launch(&record);
}

const Command command_record = {
    .name = "record",
    .summary = N_("record the memory of a training over time"),
    .operands = "-- COMMAND [ARGUMENT]...",
    .operands_most = INT_MAX,
    .about =
        N_("Runs COMMAND, or attaches to a running training, and writes its memory use to FILE: of each "
           "process, of /dev/shm, of the control group and of the machine. The training is not changed and "
           "never waits for the disk. FILE is an SQLite database; shmguard report FILE says what it means. "
           "The exit code is the command's; with --pid it is 0 when the training has ended or after Ctrl-C."),
    .options = record_options,
    .run = record_run,
};
