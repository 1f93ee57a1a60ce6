/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli-text.h"
#include "command.h"
#include "plan-parse.h"
#include "progress.h"
#include "report-file.h"
#include "show-tune.h"
#include "tune-grid.h"
#include "tune-trial.h"

/* FAILURES_MOST: so many failed trials in a row at the start end the search. STATE_MOST_BYTES: a larger file
 * is not a state. */
enum { FAILURES_MOST = 3, STATE_MOST_BYTES = 32 << 20 };

typedef struct TuneOptions {
    OptionList vary;
    OptionList samples;
    double trial_seconds;
    double start_seconds;
    const char *rate;
    int trials; /* negative: not given */
    SizeWish memory;
    const char *state;
    bool quiet;
    bool json;
    int color;
} TuneOptions;

static const Option tune_options[] = {
    {OPTION_LIST, 0, "vary", offsetof(TuneOptions, vary), "NAME=V1,V2,...",
     .help =
         N_("try these values in place of {NAME} in COMMAND; A..B stands for all whole numbers from A to B")},
    {OPTION_SECONDS, 0, "trial", offsetof(TuneOptions, trial_seconds), "TIME",
     .help = N_(
         "how long a trial lasts from its first batch on (default: 30s); its first quarter is not measured")},
    {OPTION_TEXT, 0, "rate", offsetof(TuneOptions, rate), "REGEX",
     .help = N_("find samples per second in the command's output, for example 'rate: ([0-9.]+)' (default: "
                "the guard counts the bytes of batches)")},
    {OPTION_COUNT, 0, "trials", offsetof(TuneOptions, trials), "N",
     .help = N_("make at most N trials (default: a third of the settings)")},
    {OPTION_WISH, 0, "memory", offsetof(TuneOptions, memory), "SIZE|auto|off",
     .help = N_("a limit for all processes together (default: auto, what the machine can spare)")},
    {OPTION_LIST, 0, "sample", offsetof(TuneOptions, samples), "DTYPE[D0,D1,...]",
     .help = N_("a tensor of one sample, as for plan, so that settings that cannot fit are known before the "
                "first trial")},
    {OPTION_SECONDS, 0, "start", offsetof(TuneOptions, start_seconds), "TIME",
     .help = N_("how long the first batch may take (default: 2min)")},
    {OPTION_TEXT, 0, "state", offsetof(TuneOptions, state), "FILE",
     .help = N_("keep the trials in FILE, and continue from it")},
    {OPTION_FLAG, 'q', "quiet", offsetof(TuneOptions, quiet), .help = N_("print nothing between trials")},
    OPTION_JSON(TuneOptions),
    OPTION_COLOR(TuneOptions),
    {OPTION_END},
};

/* One `tune`, from its options to its report. */
typedef struct Tuning {
    TuneOptions options;
    Arena arena;
    PlanLoader loader; /* with the samples that were given */
    TuneReport report;
    Trials trials;
    Progress progress;
    ReportFile state;
    bool typed;
} Tuning;

static void tuning_free(Tuning *tuning)
{
    progress_close(&tuning->progress);
    trials_close(&tuning->trials);
    report_file_close(&tuning->state);
    arena_free(&tuning->arena);
}

/* --- Options ------------------------------------------------------------------------------------------ */

static int options_check(const TuneOptions *options)
{
    if (options->trial_seconds < 1 || options->trial_seconds > 86400)
        return complain(EX_USAGE, CLI_TUNE_TRIAL);
    if (options->start_seconds < 1)
        return complain(EX_USAGE, CLI_TUNE_START);
    if (options->trials == 0 || options->trials > TUNE_TRIALS_MAX)
        return complain(EX_USAGE, CLI_TUNE_TRIALS, TUNE_TRIALS_MAX);
    return EX_OK;
}

static int samples_take(Tuning *tuning)
{
    const OptionList *samples = &tuning->options.samples;
    Tune *tune = &tuning->report.tune;
    for (size_t i = 0; i < samples->n; i++) {
        _cleanup_buffer_ Buffer error = {0};
        int r = plan_loader_add(&tuning->loader, text_of(samples->items[i]), &tuning->arena, &error);
        if (r < 0)
            return r == -ENOMEM ? complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY)
                                : complain(EX_USAGE, CLI_TUNE_SAMPLE, buffer_text(&error));
    }
    bool has_batch = false;
    for (size_t i = 0; i < tune->n_axes; i++)
        has_batch |= tune->axes[i].counts == COUNTS_SAMPLES;
    if (samples->n > 0 && !has_batch)
        return complain(EX_USAGE, CLI_TUNE_SAMPLE_IDLE);
    tune->loader = samples->n > 0 ? &tuning->loader : NULL;
    return EX_OK;
}

static int tuning_parse(const Command *command, int argc, char **argv, Tuning *tuning)
{
    char **words = NULL;
    int code = EX_OK;
    if (!command_take(command, argc, argv, &tuning->options, &words, &code))
        return code == EX_OK ? -1 : code;
    TuneReport *report = &tuning->report;
    const TuneOptions *options = &tuning->options;
    report->command = words;
    report->by_bytes = !options->rate;
    report->trial_seconds = options->trial_seconds;
    code = options_check(options);
    _cleanup_buffer_ Buffer error = {0};
    if (code == EX_OK && rate_reader_open(options->rate, &tuning->trials.reader, &error) < 0)
        code = complain(EX_USAGE, CLI_TUNE_RATE, buffer_text(&error));
    TuneAxis *axes = NULL;
    if (code == EX_OK)
        code =
            tune_grid_make(&options->vary, words, options->rate, &tuning->arena, &axes, &report->tune.n_axes);
    if (code != EX_OK)
        return code;
    Tune *tune = &report->tune;
    tune->axes = axes;
    tune->most = options->trials > 0 ? (size_t)options->trials
                                     : tune_trials_default(tune_settings(tune), tune->n_axes);
    return samples_take(tuning);
}

/* --- The state ---------------------------------------------------------------------------------------- */

static int state_complain(const char *path, int r)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    return complain(r == -EACCES || r == -EPERM || r == -EROFS ? EX_NOPERM : EX_DATAERR, CLI_TUNE_STATE,
                    buffer_text(&safe), error_text(-r));
}

static int state_load(Tuning *tuning)
{
    const char *path = tuning->options.state;
    _cleanup_buffer_ Buffer text = {0};
    _cleanup_buffer_ Buffer error = {0};
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno != ENOENT)
        return state_complain(path, -errno);
    int r = fd < 0 ? 0 : buffer_read_fd(&text, fd, STATE_MOST_BYTES);
    if (r < 0)
        return state_complain(path, r);
    if (text.size > 0 && tune_state_parse((Text){buffer_text(&text), text.size}, &tuning->report,
                                          &tuning->arena, &error) < 0) {
        _cleanup_buffer_ Buffer safe = {0};
        (void)text_escape(text_of(path), &safe);
        return complain(EX_DATAERR, CLI_TUNE_STATE_BAD, buffer_text(&safe), buffer_text(&error));
    }
    r = report_file_open(path, &tuning->state);
    return r < 0 ? state_complain(path, r) : EX_OK;
}

static int state_fill(FILE *out, const void *context)
{
    return tune_state_write(out, context);
}

static void state_save(const Tuning *tuning)
{
    int r = tuning->options.state ? report_file_write(&tuning->state, state_fill, &tuning->report) : 0;
    if (r < 0)
        complain(0, CLI_TUNE_STATE_LOST, error_text(-r));
}

/* --- Trials ------------------------------------------------------------------------------------------- */

/* Ends the search when nothing was measured and more trials will not help. EX_OK: go on. */
static int failures_check(const Tuning *tuning)
{
    const Tune *tune = &tuning->report.tune;
    for (size_t i = 0; i < tune->n; i++)
        if (tune->trials[i].measured || tune->trials[i].less_helps)
            return EX_OK;
    if (tune->n == 0)
        return EX_OK;
    const TuneTrial *last = &tune->trials[tune->n - 1];
    bool told_nothing = last->cause.id == CAUSE_UNKNOWN && last->cause.n_evidence == 0;
    if (!told_nothing && tune->n < FAILURES_MOST)
        return EX_OK;
    _cleanup_buffer_ Buffer words = {0};
    _cleanup_buffer_ Buffer summary = {0};
    (void)tune_setting_words(tune, last->setting, &words);
    (void)text_escape_prose(text_of(last->shown ? last->shown : last->cause.summary), &summary);
    return complain(EX_DATAERR, tune->n == 1 ? CLI_TUNE_FIRST_FAILED : CLI_TUNE_ALL_FAILED,
                    buffer_text(&words), buffer_text(&summary));
}

static void trial_say(Tuning *tuning, const TuneTrial *trial)
{
    _cleanup_buffer_ Buffer line = {0};
    if (tuning->options.quiet || tuning->options.json)
        return;
    if (tune_trial_words(&tuning->report, trial, &line) < 0)
        return;
    fprintf(stderr, CLI_TUNE_TRIAL_ENDED, tuning->report.tune.n, tuning->report.tune.most,
            buffer_text(&line));
    fputc('\n', stderr);
}

static int trial_keep(Tuning *tuning, const TuneTrial *made)
{
    Tune *tune = &tuning->report.tune;
    TuneTrial *trial = ARENA_PUSH(&tuning->arena, tune->trials, tune->n, tune->capacity);
    if (!trial)
        return -ENOMEM;
    *trial = *made;
    state_save(tuning);
    trial_say(tuning, trial);
    return 0;
}

/* By the arithmetic of plan.h, no setting is worth a trial. */
static int none_fits(const Tuning *tuning)
{
    const Tune *tune = &tuning->report.tune;
    TuneStart start = tune_start(tune);
    _cleanup_buffer_ Buffer words = {0};
    (void)tune_setting_words(tune, start.setting, &words);
    return complain(EX_DATAERR, CLI_TUNE_NONE_FITS, SIZE_TEXT(tune->ceiling_bytes), buffer_text(&words),
                    SIZE_TEXT(start.need_bytes));
}

/* EX_OK, or the exit code for what kept the command from starting, which was said. */
static int trial_begin(Tuning *tuning, const TuneStep *step)
{
    Trials *trials = &tuning->trials;
    TrialStart start;
    int r = trial_start(trials, step, &start);
    if (!trials->running.program)
        return r;
    if (start.guard_error < 0 && tuning->report.by_bytes)
        return start.guard_error == -ENOENT
                   ? complain(EX_UNAVAILABLE, CLI_TUNE_NO_LIBRARY)
                   : complain(EX_UNAVAILABLE, CLI_TUNE_NO_GUARD, error_text(-start.guard_error));
    if (start.guard_error < 0 && trials->made == 0)
        guard_complain(trials->library, start.guard_error);
    return r < 0 ? start_complain("tune", trials->running.program, start.stage, -r) : EX_OK;
}

static int trials_make(Tuning *tuning)
{
    Tune *tune = &tuning->report.tune;
    while (!tuning->report.interrupted) {
        TuneStep step;
        TrialEnd end;
        int r = failures_check(tuning);
        if (r != EX_OK)
            return r;
        r = tune_next(tune, &step);
        if (r < 0)
            return r;
        if (step.move == TUNE_DONE)
            return tune->n == 0 ? none_fits(tuning) : EX_OK;
        r = trial_begin(tuning, &step);
        if (r == EX_OK)
            r = trial_finish(&tuning->trials, &end);
        if (r != EX_OK)
            return r;
        tuning->typed = end.typed;
        r = end.interrupted ? 0 : trial_keep(tuning, &end.trial);
        if (r < 0)
            return r;
        tuning->report.interrupted = end.interrupted || !trials_pause(&tuning->trials, &tuning->typed);
    }
    return EX_OK;
}

static uint64_t ceiling_find(const SizeWish *wish)
{
    _cleanup_arena_ Arena arena = {0};
    Root root;
    Machine machine;
    uint64_t room = U64_UNKNOWN;
    if (wish->kind != WISH_AUTO)
        return wish->kind == WISH_SIZE ? wish->bytes : U64_UNKNOWN;
    if (root_open(NULL, &root) < 0)
        return U64_UNKNOWN;
    if (machine_read(&root, 0, 0, &arena, &machine) >= 0)
        room = memory_room_bytes(&machine);
    root_close(&root);
    return room == U64_UNKNOWN ? room : room / 10 * 9; /* the rest is left to the machine */
}

static int report_show(Tuning *tuning)
{
    TuneReport *report = &tuning->report;
    _cleanup_buffer_ Buffer why = {0};
    report->verdict = tune_verdict(&report->tune);
    if (report->verdict.found) {
        if (tune_why(report, &why) < 0)
            return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
        report->why = buffer_text(&why);
    }
    if (tuning->options.json) {
        int code = json_finish(json_tune(stdout, isatty(STDOUT_FILENO), report));
        if (code != EX_OK)
            return code;
    } else {
        Terminal terminal = terminal_of(stdout, (ColorMode)tuning->options.color);
        show_tune(&terminal, report);
    }
    report->why = NULL;
    if (report->verdict.found && report->verdict.safe)
        return EX_OK;
    return complain(EX_DATAERR, report->verdict.found ? CLI_TUNE_NONE_SAFE : CLI_TUNE_NONE_MEASURED);
}

static void progress_tick(void *context, const RunTick *tick)
{
    Tuning *tuning = context;
    const RunningTrial *running = &tuning->trials.running;
    const Tune *tune = &tuning->report.tune;
    _cleanup_buffer_ Buffer line = {0};
    _cleanup_buffer_ Buffer setting = {0};
    _cleanup_buffer_ Buffer rate = {0};
    MeterReading reading;
    if (tick->over) {
        progress_erase(&tuning->progress, false);
        return;
    }
    double mean = trials_mean_seconds(&tuning->trials);
    double left = (double)(tune->most - tune->n - 1) * mean + MAX(mean - tick->seconds, 0.0);
    (void)tune_setting_words(tune, running->setting, &setting);
    if (running->meter.began && meter_read(&running->meter, &reading)) {
        (void)tune_rate_words(&tuning->report, reading.rate, &rate);
        (void)buffer_printf(&line, CLI_TUNE_PROGRESS, tune->n + 1, tune->most, DURATION_TEXT(left),
                            buffer_text(&setting), buffer_text(&rate));
    } else
        (void)buffer_printf(&line,
                            running->meter.began ? CLI_TUNE_PROGRESS_WARMING : CLI_TUNE_PROGRESS_STARTING,
                            tune->n + 1, tune->most, DURATION_TEXT(left), buffer_text(&setting));
    progress_say(&tuning->progress, buffer_text(&line), tick->pid);
}

static int tuning_open(Tuning *tuning)
{
    int code = tuning->options.state ? state_load(tuning) : EX_OK;
    if (code != EX_OK)
        return code;
    tuning->report.tune.ceiling_bytes = ceiling_find(&tuning->options.memory);
    tuning->trials.report = &tuning->report;
    tuning->trials.arena = &tuning->arena;
    tuning->trials.start_seconds = tuning->options.start_seconds;
    tuning->trials.memory = tuning->options.memory;
    int r = trials_open(&tuning->trials);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_NO_SUPERVISOR, "tune", error_text(-r));
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    tuning->progress = progress_open(&terminal, STDERR_FILENO, tuning->options.quiet);
    run_on_tick(tuning->trials.run, progress_tick, tuning);
    return EX_OK;
}

static int tune_run(const Command *command, int argc, char **argv)
{
    _cleanup_(tuning_free) Tuning tuning = {
        .options = {.trial_seconds = 30, .start_seconds = 120, .trials = -1},
        .progress = PROGRESS_NONE,
        .state = REPORT_FILE_NONE,
    };
    int code = tuning_parse(command, argc, argv, &tuning);
    if (code != EX_OK)
        return code < 0 ? EX_OK : code;
    code = tuning_open(&tuning);
    if (code != EX_OK)
        return code;
    code = trials_make(&tuning);
    if (code < 0)
        return complain(EX_SOFTWARE, CLI_FAILED, "tune", error_text(-code));
    if (code != EX_OK)
        return code;
    if (tuning.report.interrupted && tuning.report.tune.n == 0) {
        if (tuning.typed)
            run_die();
        return complain(128 + SIGTERM, CLI_TUNE_INTERRUPTED);
    }
    code = report_show(&tuning);
    if (tuning.report.interrupted) {
        fflush(stdout);
        if (tuning.typed)
            run_die();
        return 128 + SIGTERM;
    }
    return code;
}

const Command command_tune = {
    .name = "tune",
    .summary = N_("find the fastest settings that are still safe, in few short trials"),
    .operands = "-- COMMAND [ARGUMENT]...",
    .operands_most = INT_MAX,
    .about = N_("Runs COMMAND for seconds at a time, with different values in place of {NAME}, and says "
                "which are fastest within the available memory, and how certain that is. Without --vary, "
                "{batch} and {workers} get the usual values. Trials run as under shmguard run, and end with "
                "SIGTERM: let COMMAND write its checkpoints elsewhere."),
    .options = tune_options,
    .run = tune_run,
};
