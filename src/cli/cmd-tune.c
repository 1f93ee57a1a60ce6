#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "attempts.h"
#include "clock.h"
#include "command.h"
#include "guard.h"
#include "job.h"
#include "progress.h"
#include "rate.h"
#include "report-file.h"
#include "retry.h"
#include "show-tune.h"

/*
 * PULSE_MSEC: how exactly the time of a batch is known. CHECK_SECONDS: between two looks whether a trial is
 * hopeless. CHECK_FROM: a part of the measured time before which it is not judged. FILLED_LEAST: likewise,
 * with which a training that ends by itself was measured. STATE_MOST_BYTES: more is no state.
 */
#define CHECK_SECONDS 0.5
#define CHECK_FROM    0.35
#define FILLED_LEAST  0.3
enum { PULSE_MSEC = 20, FAILURES_MOST = 3, STATE_MOST_BYTES = 32 << 20 };

typedef struct TuneOptions {
    OptionList vary;
    double trial_seconds;
    double start_seconds;
    const char *rate;
    int trials; /* 0: not said */
    SizeWish memory;
    const char *state;
    bool quiet;
    bool json;
    int color;
} TuneOptions;

static const Option tune_options[] = {
    {OPTION_LIST, 0, "vary", offsetof(TuneOptions, vary), "NAME=V1,V2,...",
     .help =
         "values to try in the place of {NAME} in COMMAND;\nA..B stands for all whole numbers from A to B"},
    {OPTION_SECONDS, 0, "trial", offsetof(TuneOptions, trial_seconds), "TIME",
     .help = "how long a trial lasts from its first batch on\n(30s); its first quarter is not measured"},
    {OPTION_TEXT, 0, "rate", offsetof(TuneOptions, rate), "REGEX",
     .help = "finds samples per second in the command's\noutput, as in 'rate: ([0-9.]+)'; without it the\n"
             "guard counts the bytes of batches"},
    {OPTION_COUNT, 0, "trials", offsetof(TuneOptions, trials), "N",
     .help = "at most so many; a third of the grid"},
    {OPTION_WISH, 0, "memory", offsetof(TuneOptions, memory), "SIZE|auto|off",
     .help = "a ceiling for all processes together;\nauto: what the machine can spare"},
    {OPTION_SECONDS, 0, "start", offsetof(TuneOptions, start_seconds), "TIME",
     .help = "how long the first batch may take (2min)"},
    {OPTION_TEXT, 0, "state", offsetof(TuneOptions, state), "FILE",
     .help = "keep the trials in FILE, and go on from it"},
    {OPTION_FLAG, 'q', "quiet", offsetof(TuneOptions, quiet), .help = "no word between trials"},
    OPTION_JSON(TuneOptions),
    OPTION_COLOR(TuneOptions),
    {OPTION_END},
};

/* The trial that runs. */
typedef struct Running {
    size_t setting;
    bool first_look; /* of this setting: it may be given up early */
    Meter meter;
    double checked;
    bool silent; /* nothing came before its time was over */
    bool stopped;
} Running;

/* One `tune`, from its options to its report. */
typedef struct Tuning {
    TuneOptions options;
    Arena arena;
    Knobs knobs;
    TuneReport report;
    RateReader reader;
    Run *run;
    RunWatch watch;
    Running running;
    double trials_seconds; /* that the trials of this call have taken, with their beginnings and ends */
    size_t trials_made;    /* by this call */
    Progress progress;
    ReportFile state;
    char library[PATH_MAX];
    bool typed;
} Tuning;

static void tuning_free(Tuning *tuning)
{
    progress_close(&tuning->progress);
    report_file_close(&tuning->state);
    rate_reader_close(&tuning->reader);
    run_free(tuning->run);
    arena_free(&tuning->arena);
}

/* --- What is varied ----------------------------------------------------------------------------------- */

static int vary_refuse(const char *name, const char *value, const char *why)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(value), &safe);
    return complain(EX_USAGE, "tune: --vary %s: \"%s\" %s", name, buffer_text(&safe), why);
}

/* "A..B", both whole numbers. */
static bool range_parse(const char *value, uint64_t *ret_from, uint64_t *ret_to)
{
    const char *dots = strstr(value, "..");
    return dots && text_u64((Text){value, (size_t)(dots - value)}, 10, ret_from) == 0 &&
           text_u64(text_of(dots + 2), 10, ret_to) == 0;
}

static int value_push(Tuning *tuning, Knob *knob, const char *value)
{
    for (size_t i = 0; i < knob->n_values; i++)
        if (strcmp(knob->values[i], value) == 0)
            return vary_refuse(knob->name, value, "is there twice");
    if (knob->n_values == TUNE_VALUES_MAX)
        return complain(EX_USAGE, "tune: --vary %s: %d values are the most", knob->name, TUNE_VALUES_MAX);
    const char **slot = ARENA_PUSH(&tuning->arena, knob->values, knob->n_values, knob->values_capacity);
    if (!slot)
        return complain(EX_SOFTWARE, "tune: %s", strerror(ENOMEM));
    *slot = value;
    return EX_OK;
}

static int range_push(Tuning *tuning, Knob *knob, const char *value, uint64_t from, uint64_t to)
{
    if (from > to)
        return vary_refuse(knob->name, value, "goes backwards; the smaller number comes first");
    if (to - from >= TUNE_VALUES_MAX)
        return vary_refuse(knob->name, value, "has more than 64 values; name those that matter");
    int code = EX_OK;
    for (uint64_t i = from; code == EX_OK && i <= to; i++) {
        const char *number = arena_printf(&tuning->arena, "%llu", (unsigned long long)i);
        code =
            number ? value_push(tuning, knob, number) : complain(EX_SOFTWARE, "tune: %s", strerror(ENOMEM));
    }
    return code;
}

/* A batch has samples; workers are counted from 0 on, and without any the guard has nothing to count. */
static int values_check(const Tuning *tuning, const Knob *knob)
{
    TuneAxis axis;
    _cleanup_arena_ Arena scratch = {0};
    if (tune_axis_make(knob->name, knob->values, knob->n_values, &scratch, &axis) < 0)
        return complain(EX_SOFTWARE, "tune: %s", strerror(ENOMEM));
    bool is_batch = axis.counts == COUNTS_SAMPLES;
    bool is_processes = tune_counts_processes(axis.counts);
    for (size_t i = 0; i < knob->n_values; i++) {
        if (is_batch && (!axis.numbers || axis.numbers[i] < 1))
            return vary_refuse(knob->name, knob->values[i],
                               axis.numbers || knob->values[i][0] == '-' || knob->n_values == 1
                                   ? "is no batch size; it takes 1 or more"
                                   : "and its neighbours must be batch sizes, 1 or more");
        if (is_processes && knob->values[i][0] == '-')
            return vary_refuse(knob->name, knob->values[i], "is no number of workers; it takes 0 or more");
        if (is_processes && axis.numbers && axis.numbers[i] == 0 && !tuning->options.rate)
            return vary_refuse(knob->name, knob->values[i],
                               "workers share nothing that could be counted; leave it out, or say --rate");
    }
    return EX_OK;
}

static int vary_add(Tuning *tuning, const char *text)
{
    _cleanup_buffer_ Buffer error = {0};
    int r = knobs_add(&tuning->knobs, text, &tuning->arena, &error);
    if (r < 0)
        return complain(EX_USAGE, "tune: --vary: %s", r == -ENOMEM ? strerror(-r) : buffer_text(&error));
    Knob *knob = &tuning->knobs.items[tuning->knobs.n - 1];
    Knob given = *knob;
    int code = EX_OK;
    *knob = (Knob){.name = given.name};
    for (size_t i = 0; code == EX_OK && i < given.n_values; i++) {
        uint64_t from = 0;
        uint64_t to = 0;
        code = range_parse(given.values[i], &from, &to) ? range_push(tuning, knob, given.values[i], from, to)
                                                        : value_push(tuning, knob, given.values[i]);
    }
    return code == EX_OK ? values_check(tuning, knob) : code;
}

static bool command_has(char *const *command, const char *name)
{
    char place[128];
    int n = snprintf(place, sizeof place, "{%s}", name);
    for (; n < (int)sizeof place && *command; command++)
        if (strstr(*command, place))
            return true;
    return false;
}

/* 1, 2, 4 … up to twice the processors, which more workers only wait for. */
static const char *workers_values(Arena *arena, const char *name)
{
    _cleanup_buffer_ Buffer text = {0};
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    (void)buffer_printf(&text, "%s=1", name);
    for (long n = 2; n <= MAX(2 * cpus, 2L) && n <= 64; n *= 2)
        (void)buffer_printf(&text, ",%ld", n);
    return arena_copy(arena, buffer_text(&text), text.size);
}

/* For those who name no values: what everybody tries. */
static int vary_guess(Tuning *tuning)
{
    static const char *const batch_names[] = {"batch", "batch_size"};
    static const char *const worker_names[] = {"workers", "num_workers"};
    int code = EX_OK;
    for (size_t i = 0; code == EX_OK && i < ARRAY_SIZE(batch_names); i++)
        if (command_has(tuning->report.command, batch_names[i]))
            code = vary_add(tuning, i == 0 ? "batch=16,32,64,128,256" : "batch_size=16,32,64,128,256");
    for (size_t i = 0; code == EX_OK && i < ARRAY_SIZE(worker_names); i++)
        if (command_has(tuning->report.command, worker_names[i]))
            code = vary_add(tuning, workers_values(&tuning->arena, worker_names[i]));
    if (code == EX_OK && tuning->knobs.n == 0)
        code =
            complain(EX_USAGE, "tune: nothing to vary in the command; put {batch} or {workers} in it, as in "
                               "--workers {workers}, and say --vary workers=1,2,4");
    return code;
}

static int vary_take(Tuning *tuning)
{
    const OptionList *vary = &tuning->options.vary;
    int code = EX_OK;
    for (size_t i = 0; code == EX_OK && i < vary->n; i++)
        code = vary_add(tuning, vary->items[i]);
    if (code == EX_OK && vary->n == 0)
        code = vary_guess(tuning);
    for (size_t i = 0; code == EX_OK && i < tuning->knobs.n; i++)
        if (!command_has(tuning->report.command, tuning->knobs.items[i].name))
            code = complain(EX_USAGE, "tune: {%s} does not stand in the command; put it where its value goes",
                            tuning->knobs.items[i].name);
    return code;
}

static int grid_make(Tuning *tuning)
{
    Tune *tune = &tuning->report.tune;
    size_t n = tuning->knobs.n;
    if (n > TUNE_AXES_MAX)
        return complain(EX_USAGE, "tune: --vary takes %d names at most", TUNE_AXES_MAX);
    TuneAxis *axes = arena_alloc(&tuning->arena, n * sizeof *axes);
    size_t settings = 1;
    for (size_t i = 0; axes && i < n; i++) {
        const Knob *knob = &tuning->knobs.items[i];
        if (tune_axis_make(knob->name, knob->values, knob->n_values, &tuning->arena, &axes[i]) < 0)
            axes = NULL;
        settings *= knob->n_values; /* at most 64 to the power of 6 */
    }
    if (!axes)
        return complain(EX_SOFTWARE, "tune: %s", strerror(ENOMEM));
    if (settings > TUNE_SETTINGS_MAX)
        return complain(EX_USAGE, "tune: %zu settings are too many to choose from; %d are the most", settings,
                        TUNE_SETTINGS_MAX);
    if (settings < 2)
        return complain(EX_USAGE, "tune: there is nothing to choose from; give --vary several values");
    tune->axes = axes;
    tune->n_axes = n;
    tune->most =
        tuning->options.trials > 0 ? (size_t)tuning->options.trials : tune_trials_default(settings, n);
    return EX_OK;
}

static int options_check(const TuneOptions *options)
{
    if (options->trial_seconds < 1 || options->trial_seconds > 86400)
        return complain(EX_USAGE, "tune: --trial takes a second or more, and a day at most");
    if (options->start_seconds < 1)
        return complain(EX_USAGE, "tune: --start takes a second or more");
    if (options->trials == 0 || options->trials > TUNE_TRIALS_MAX)
        return complain(EX_USAGE, "tune: --trials takes 1 to %d", TUNE_TRIALS_MAX);
    return EX_OK;
}

static int tuning_parse(const Command *command, int argc, char **argv, Tuning *tuning)
{
    char **words = NULL;
    int code = EX_OK;
    if (!command_take(command, argc, argv, &tuning->options, &words, &code))
        return code == EX_OK ? -1 : code;
    tuning->report.command = words;
    tuning->report.by_bytes = !tuning->options.rate;
    tuning->report.trial_seconds = tuning->options.trial_seconds;
    code = options_check(&tuning->options);
    _cleanup_buffer_ Buffer error = {0};
    if (code == EX_OK && rate_reader_open(tuning->options.rate, &tuning->reader, &error) < 0)
        code = complain(EX_USAGE, "tune: --rate: %s", buffer_text(&error));
    if (code == EX_OK)
        code = vary_take(tuning);
    return code == EX_OK ? grid_make(tuning) : code;
}

/* --- The state ---------------------------------------------------------------------------------------- */

static int state_complain(const char *path, int code, const char *what)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    return complain(code, "tune: --state %s: %s", buffer_text(&safe), what);
}

static int errno_code(int r)
{
    return r == -EACCES || r == -EPERM || r == -EROFS ? EX_NOPERM : EX_DATAERR;
}

static int state_load(Tuning *tuning)
{
    const char *path = tuning->options.state;
    _cleanup_buffer_ Buffer text = {0};
    _cleanup_buffer_ Buffer error = {0};
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno != ENOENT)
        return state_complain(path, errno_code(-errno), strerror(errno));
    int r = fd < 0 ? 0 : buffer_read_fd(&text, fd, STATE_MOST_BYTES);
    if (r < 0)
        return state_complain(path, errno_code(r), strerror(-r));
    if (text.size > 0 && tune_state_parse((Text){buffer_text(&text), text.size}, &tuning->report,
                                          &tuning->arena, &error) < 0) {
        (void)buffer_append_text(&error, "; name another file, or remove this one to begin anew");
        return state_complain(path, EX_DATAERR, buffer_text(&error));
    }
    r = report_file_open(path, &tuning->state);
    return r < 0 ? state_complain(path, errno_code(r), strerror(-r)) : EX_OK;
}

static int state_fill(FILE *out, const void *context)
{
    return tune_state_write(out, context);
}

static void state_save(const Tuning *tuning)
{
    int r = tuning->options.state ? report_file_write(&tuning->state, state_fill, &tuning->report) : 0;
    if (r < 0)
        complain(0, "tune: the state could not be written: %s", strerror(-r));
}

/* --- One trial ---------------------------------------------------------------------------------------- */

static bool is_hopeless(Tuning *tuning, double seconds)
{
    Running *running = &tuning->running;
    MeterReading reading;
    if (!running->first_look || seconds - running->checked < CHECK_SECONDS)
        return false;
    running->checked = seconds;
    return meter_read(&running->meter, &reading) && reading.filled >= CHECK_FROM &&
           tune_is_hopeless(&tuning->report.tune, reading.rate, reading.error);
}

static void trial_pulse(void *context, double seconds, uint64_t bytes)
{
    Tuning *tuning = context;
    Running *running = &tuning->running;
    if (tuning->report.by_bytes)
        meter_count(&running->meter, seconds, bytes);
    if (meter_is_over(&running->meter, seconds))
        run_end(tuning->run);
    else if (!running->meter.began && seconds > tuning->options.start_seconds) {
        running->silent = true;
        run_end(tuning->run);
    } else if (is_hopeless(tuning, seconds)) {
        running->stopped = true;
        run_end(tuning->run);
    }
}

typedef struct Found {
    Running *running;
    double seconds;
} Found;

static void rate_found(void *context, double number)
{
    Found *found = context;
    meter_value(&found->running->meter, found->seconds, number);
}

static void trial_output(void *context, double seconds, Text piece)
{
    Tuning *tuning = context;
    Found found = {&tuning->running, seconds};
    rate_reader_feed(&tuning->reader, piece, rate_found, &found);
}

static double trial_mean_seconds(const Tuning *tuning)
{
    return tuning->trials_made > 0 ? tuning->trials_seconds / (double)tuning->trials_made
                                   : tuning->options.trial_seconds * 1.3;
}

static void progress_tick(void *context, const RunTick *tick)
{
    Tuning *tuning = context;
    const Running *running = &tuning->running;
    const Tune *tune = &tuning->report.tune;
    _cleanup_buffer_ Buffer line = {0};
    MeterReading reading;
    if (tick->over) {
        progress_erase(&tuning->progress, false);
        return;
    }
    double mean = trial_mean_seconds(tuning);
    double left = (double)(tune->most - tune->n - 1) * mean + MAX(mean - tick->seconds, 0.0);
    (void)buffer_printf(&line, "shmguard: trial %zu/%zu, about %s left: ", tune->n + 1, tune->most,
                        DURATION_TEXT(left));
    (void)tune_setting_words(tune, running->setting, &line);
    if (!running->meter.began)
        (void)buffer_append_text(&line, ", starting");
    else if (meter_read(&running->meter, &reading)) {
        (void)buffer_append_text(&line, ", ");
        (void)tune_rate_words(&tuning->report, reading.rate, &line);
    } else
        (void)buffer_append_text(&line, ", warming up");
    progress_say(&tuning->progress, buffer_text(&line), tick->pid);
}

/* The command with the values of a setting, and its environment. */
static int trial_command(Tuning *tuning, size_t setting, Arena *arena, char ***ret_command,
                         char ***ret_settings)
{
    const Tune *tune = &tuning->report.tune;
    Knob items[TUNE_AXES_MAX];
    const char *values[TUNE_AXES_MAX];
    for (size_t i = 0; i < tune->n_axes; i++) {
        values[i] = tune->axes[i].values[tune_value(tune, setting, i)];
        items[i] = (Knob){.name = tune->axes[i].name, .values = &values[i], .n_values = 1};
    }
    Knobs chosen = {items, tune->n_axes, tune->n_axes};
    char **settings = NULL;
    int r = attempt_command(tuning->report.command, &chosen, 0, NULL, NULL, arena, ret_command);
    if (r >= 0)
        r = attempt_settings(&chosen, 0, (unsigned)tune->n + 1, arena, &settings);
    if (r < 0)
        return r;
    size_t n = 0;
    while (settings[n])
        n++;
    *ret_settings = arena_alloc(arena, (n + 2) * sizeof **ret_settings);
    if (!*ret_settings)
        return -ENOMEM;
    memcpy(*ret_settings, settings, n * sizeof *settings);
    /* Its output is a pipe, in which Python would keep lines back until there are many. */
    (*ret_settings)[n] = arena_copy(arena, "PYTHONUNBUFFERED=1", strlen("PYTHONUNBUFFERED=1"));
    return (*ret_settings)[n] ? 0 : -ENOMEM;
}

/* A trial that has told nothing, in one sentence. NULL: no memory. */
static const char *silence_words(const Tuning *tuning, const RunResult *result, Arena *arena)
{
    const RateReader *reader = &tuning->reader;
    const char *seconds = arena_printf(arena, "%.1f s", result->seconds);
    if (!seconds)
        return NULL;
    if (tuning->running.meter.began)
        return arena_printf(arena,
                            "It ended after %s, before anything could be measured: it needs more steps, "
                            "or --trial less time.",
                            seconds);
    if (tuning->report.by_bytes)
        return arena_printf(arena,
                            "The guard saw no shared tensor in %s: a loader without workers has none. "
                            "Say --rate and let the training print its rate.",
                            seconds);
    if (reader->lines == 0)
        return arena_printf(arena, "It printed nothing in %s, so --rate found nothing.", seconds);
    _cleanup_buffer_ Buffer last = {0};
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(reader->last), &safe);
    (void)text_shorten(text_of(buffer_text(&safe)), 60, "...", &last);
    return arena_printf(arena,
                        reader->nonsense > 0
                            ? "What the group of --rate matched is no number; the last of %llu lines is: %s"
                            : "--rate matched none of its %llu lines; the last is: %s",
                        (unsigned long long)reader->lines, buffer_text(&last));
}

static int trial_judge(Tuning *tuning, const RunResult *result, const char *command, TuneTrial *trial)
{
    Judged judged = {0};
    Evidence evidence;
    int r = end_judge(tuning->run, result, command, 0, &tuning->arena, &evidence, &judged);
    if (r < 0)
        return r;
    /* We ended it: that is no cause. What had killed part of it before is. */
    bool ours = result->cut_off && !cause_helped_by_less(judged.cause.id);
    if (ours)
        judged.cause = (Cause){.id = CAUSE_OK, .confidence = 1, .summary = "It ran for its time."};
    trial->cause = judged.cause;
    if (judged.cause.id == CAUSE_OK && !trial->measured) {
        const char *words = silence_words(tuning, result, &tuning->arena);
        if (!words)
            return -ENOMEM;
        trial->cause = (Cause){.id = CAUSE_UNKNOWN, .summary = words};
    }
    trial->less_helps = !ours && retry_judge(&(RetryCase){.cause = judged.cause.id,
                                                          .detail = judged.detail,
                                                          .code = result->code,
                                                          .signal = result->signal,
                                                          .started = true,
                                                          .can_degrade = true}) == RETRY_LESS;
    return 0;
}

static void trial_measure(const Tuning *tuning, const RunResult *result, TuneTrial *trial)
{
    const Running *running = &tuning->running;
    MeterReading reading;
    Peaks peaks = run_peaks(tuning->run);
    if (meter_read(&running->meter, &reading) && reading.filled >= FILLED_LEAST) {
        trial->measured = true;
        trial->rate = reading.rate;
        trial->error = reading.error;
    }
    trial->stopped = running->stopped;
    trial->seconds = result->seconds;
    trial->shm_bytes = result->guarded ? result->guard.bytes_peak : peaks.shm_bytes;
    trial->own_bytes = peaks.own_bytes;
    trial->rss_bytes = peaks.rss_bytes;
    trial->fds = peaks.fds;
    trial->processes = peaks.processes;
}

static void trial_say(Tuning *tuning, const TuneTrial *trial)
{
    _cleanup_buffer_ Buffer line = {0};
    if (tuning->options.quiet || tuning->options.json)
        return;
    if (tune_trial_words(&tuning->report, trial, &line) == 0)
        fprintf(stderr, "trial %zu of at most %zu: %s\n", tuning->report.tune.n, tuning->report.tune.most,
                buffer_text(&line));
}

static int trial_finish(Tuning *tuning, const RunResult *result, const char *command)
{
    Tune *tune = &tuning->report.tune;
    TuneTrial made = {.setting = tuning->running.setting};
    trial_measure(tuning, result, &made);
    int r = trial_judge(tuning, result, command, &made);
    TuneTrial *trial = r < 0 ? NULL : ARENA_PUSH(&tuning->arena, tune->trials, tune->n, tune->capacity);
    if (!trial)
        return r < 0 ? r : -ENOMEM;
    *trial = made;
    state_save(tuning);
    trial_say(tuning, trial);
    return 0;
}

/* EX_OK, or the exit code for what kept the command from starting. Negative errno. */
static int trial_make(Tuning *tuning, const TuneStep *step)
{
    _cleanup_arena_ Arena arena = {0};
    char **command = NULL;
    char **settings = NULL;
    ChildStage stage = CHILD_NONE;
    RunResult result;
    double began = now_seconds();
    int r = trial_command(tuning, step->setting, &arena, &command, &settings);
    if (r < 0)
        return r;
    const SizeWish *memory = &tuning->options.memory;
    GuardWish wish = {.budget = *memory, .wait_seconds = -1};
    r = guard_serve(tuning->run, tuning->library, &wish,
                    tuning->trials_made == 0 && !tuning->report.by_bytes);
    if (r < 0 && tuning->report.by_bytes)
        return complain(EX_UNAVAILABLE,
                        "tune: the guard, which would count the batches, cannot be had here (%s); "
                        "say --rate and let the training print its rate",
                        r == -ENOENT ? "this build has no preload library" : strerror(-r));
    rate_reader_clear(&tuning->reader);
    tuning->running = (Running){.setting = step->setting,
                                .first_look = step->move == TUNE_TRY,
                                .meter.seconds = tuning->options.trial_seconds};
    r = run_start(tuning->run, command, settings, &stage);
    if (r < 0)
        return start_complain("tune", command[0], stage, -r);
    r = run_finish(tuning->run, &result);
    tuning->trials_seconds += now_seconds() - began;
    tuning->trials_made++;
    if (r < 0)
        return r;
    if (result.told_to_end || result.typed) {
        tuning->report.interrupted = true;
        tuning->typed = result.typed || result.told_to_end == SIGINT;
        return EX_OK;
    }
    return trial_finish(tuning, &result, command[0]);
}

/* --- All of them -------------------------------------------------------------------------------------- */

/* Nothing was measured so far, and more of the same will not help. EX_OK: go on. */
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
    (void)tune_setting_words(tune, last->setting, &words);
    (void)buffer_append_text(&words, ": ");
    (void)text_escape_prose(text_of(last->cause.summary), &words);
    return complain(EX_DATAERR, "tune: %s %s",
                    tune->n == 1 ? "the first trial failed," : "no trial could be measured; the last,",
                    buffer_text(&words));
}

static int trials_make(Tuning *tuning)
{
    for (;;) {
        TuneStep step;
        int r = failures_check(tuning);
        if (r != EX_OK)
            return r;
        r = tune_next(&tuning->report.tune, &step);
        if (r < 0 || step.move == TUNE_DONE)
            return r;
        r = trial_make(tuning, &step);
        if (r != EX_OK || tuning->report.interrupted)
            return r;
        if (!run_pause(tuning->run, 0, &tuning->typed)) {
            tuning->report.interrupted = true;
            return EX_OK;
        }
    }
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
    if (machine_read(&root, 0, &arena, &machine) >= 0)
        room = memory_room_bytes(&machine);
    root_close(&root);
    return room == U64_UNKNOWN ? room : room / 10 * 9; /* the rest is the machine's own */
}

static int report_show(Tuning *tuning)
{
    TuneReport *report = &tuning->report;
    _cleanup_buffer_ Buffer why = {0};
    report->verdict = tune_verdict(&report->tune);
    if (report->verdict.found) {
        if (tune_why(report, &why) < 0)
            return complain(EX_SOFTWARE, "tune: %s", strerror(ENOMEM));
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
    return complain(EX_DATAERR, report->verdict.found
                                    ? "tune: none of the settings is safe; try smaller values"
                                    : "tune: no trial could be measured");
}

static int tuning_open(Tuning *tuning)
{
    int code = tuning->options.state ? state_load(tuning) : EX_OK;
    if (code != EX_OK)
        return code;
    tuning->report.tune.ceiling_bytes = ceiling_find(&tuning->options.memory);
    tuning->watch = (RunWatch){PULSE_MSEC, trial_pulse, trial_output, tuning};
    int r = run_open(&tuning->run);
    if (r >= 0)
        r = run_watch(tuning->run, &tuning->watch);
    if (r < 0)
        return complain(EX_SOFTWARE, "tune: cannot watch over a command here: %s", strerror(-r));
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    tuning->progress = progress_open(&terminal, STDERR_FILENO, tuning->options.quiet);
    run_on_tick(tuning->run, progress_tick, tuning);
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
        return complain(EX_SOFTWARE, "tune: %s", strerror(-code));
    if (code != EX_OK)
        return code;
    if (tuning.report.interrupted && tuning.report.tune.n == 0) {
        if (tuning.typed)
            run_die();
        return complain(128 + SIGTERM, "tune: ended before the first trial was over");
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
    .summary = "find the fastest settings that are still safe, in few short trials",
    .operands = "-- COMMAND [ARGUMENT]...",
    .operands_most = INT_MAX,
    .about = "Runs COMMAND for seconds at a time, with other values in the place of {NAME}, and\n"
             "says which are fastest within the memory that there is, and how sure that is.\n"
             "Without --vary, {batch} and {workers} get the usual values. Trials run as under\n"
             "shmguard run, and end with SIGTERM: let COMMAND write its checkpoints elsewhere.",
    .options = tune_options,
    .run = tune_run,
};
