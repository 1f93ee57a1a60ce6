/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "attempts.h"
#include "clock.h"
#include "command.h"
#include "retry.h"
#include "tune-trial.h"
#include "user-command.h"

/*
 * PULSE_MSEC: how exactly the time of a batch is known. CHECK_SECONDS: between two looks whether a trial is
 * hopeless. CHECK_FROM: a part of the measured time before which it is not judged. FILLED_LEAST: likewise,
 * with which a training that ends by itself was measured.
 */
#define CHECK_SECONDS 0.5
#define CHECK_FROM    0.35
#define FILLED_LEAST  0.3
enum { PULSE_MSEC = 20 };

static bool is_hopeless(Trials *trials, double seconds)
{
    Running *running = &trials->running;
    MeterReading reading;
    if (!running->first_look || seconds - running->checked < CHECK_SECONDS)
        return false;
    running->checked = seconds;
    return meter_read(&running->meter, &reading) && reading.filled >= CHECK_FROM &&
           tune_is_hopeless(&trials->report->tune, reading.rate, reading.error);
}

static void trial_pulse(void *context, double seconds, uint64_t bytes)
{
    Trials *trials = context;
    Running *running = &trials->running;
    if (trials->report->by_bytes)
        meter_count(&running->meter, seconds, bytes);
    bool over = meter_is_over(&running->meter, seconds);
    bool silent = !running->meter.began && seconds > trials->start_seconds;
    running->stopped = running->stopped || (!over && !silent && is_hopeless(trials, seconds));
    if (over || silent || running->stopped)
        run_end(trials->run);
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
    Trials *trials = context;
    Found found = {&trials->running, seconds};
    rate_reader_feed(&trials->reader, piece, rate_found, &found);
}

static double trial_mean_seconds(const Trials *trials)
{
    return trials->made > 0 ? trials->seconds / (double)trials->made : trials->report->trial_seconds * 1.3;
}

static void progress_tick(void *context, const RunTick *tick)
{
    Trials *trials = context;
    const Running *running = &trials->running;
    const Tune *tune = &trials->report->tune;
    _cleanup_buffer_ Buffer line = {0};
    MeterReading reading;
    if (tick->over) {
        progress_erase(&trials->progress, false);
        return;
    }
    double mean = trial_mean_seconds(trials);
    double left = (double)(tune->most - tune->n - 1) * mean + MAX(mean - tick->seconds, 0.0);
    (void)buffer_printf(&line, "shmguard: trial %zu/%zu, about %s left: ", tune->n + 1, tune->most,
                        DURATION_TEXT(left));
    (void)tune_setting_words(tune, running->setting, &line);
    if (!running->meter.began)
        (void)buffer_append_text(&line, ", starting");
    else if (meter_read(&running->meter, &reading)) {
        (void)buffer_append_text(&line, ", ");
        (void)tune_rate_words(trials->report, reading.rate, &line);
    } else
        (void)buffer_append_text(&line, ", warming up");
    progress_say(&trials->progress, buffer_text(&line), tick->pid);
}

/* The command with the values of a setting, and its environment. */
static int trial_command(Trials *trials, size_t setting, Arena *arena, char ***ret_command,
                         char ***ret_settings)
{
    const Tune *tune = &trials->report->tune;
    Knob items[TUNE_AXES_MAX];
    const char *values[TUNE_AXES_MAX];
    for (size_t i = 0; i < tune->n_axes; i++) {
        values[i] = tune->axes[i].values[tune_value(tune, setting, i)];
        items[i] = (Knob){.name = tune->axes[i].name, .values = &values[i], .n_values = 1};
    }
    Knobs chosen = {items, tune->n_axes, tune->n_axes};
    char **settings = NULL;
    int r = attempt_command(trials->report->command, &chosen, 0, NULL, NULL, arena, ret_command);
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

/* The end of what the command printed, escaped and short. */
static void last_line(const RateReader *reader, Buffer *out)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(reader->last), &safe);
    (void)text_shorten(text_of(buffer_text(&safe)), 60, "...", out);
}

/* A trial that has told nothing, in one sentence. NULL: no memory. */
static const char *silence_words(const Trials *trials, const RunResult *result, Arena *arena)
{
    const RateReader *reader = &trials->reader;
    const char *seconds = arena_printf(arena, "%.1f s", result->seconds);
    if (!seconds)
        return NULL;
    if (trials->running.meter.began)
        return arena_printf(arena,
                            "It ended after %s, before anything could be measured: it needs more steps, "
                            "or --trial less time.",
                            seconds);
    if (trials->report->by_bytes)
        return arena_printf(arena,
                            "The guard saw no shared tensor in %s: a loader without workers has none. "
                            "Say --rate and let the training print its rate.",
                            seconds);
    if (reader->lines == 0)
        return arena_printf(arena, "It printed nothing in %s, so --rate found nothing.", seconds);
    _cleanup_buffer_ Buffer last = {0};
    last_line(reader, &last);
    return arena_printf(arena,
                        reader->nonsense > 0
                            ? "What the group of --rate matched is no number; the last of %llu lines is: %s"
                            : "--rate matched none of its %llu lines; the last is: %s",
                        (unsigned long long)reader->lines, buffer_text(&last));
}

static int trial_judge(Trials *trials, const RunResult *result, const char *command, TuneTrial *trial)
{
    Diagnosis judged = {0};
    Evidence evidence;
    int r = end_judge(trials->run, result, command, 0, trials->arena, &evidence, &judged);
    if (r < 0)
        return r;
    /* We ended it: that is no cause. What had killed part of it before is. */
    bool ours = result->cut_off && !cause_helped_by_less(judged.cause.id);
    if (ours)
        judged.cause = (Cause){.id = CAUSE_OK, .confidence = 1, .summary = "It ran for its time."};
    trial->cause = judged.cause;
    if (judged.cause.id == CAUSE_OK && !trial->measured) {
        const char *words = silence_words(trials, result, trials->arena);
        if (!words)
            return -ENOMEM;
        trial->cause = (Cause){.id = CAUSE_UNKNOWN, .summary = words};
    } else if (judged.cause.id == CAUSE_UNKNOWN && trials->reader.lines > 0) {
        _cleanup_buffer_ Buffer last = {0};
        last_line(&trials->reader, &last);
        trial->cause.summary =
            arena_printf(trials->arena, "%s Its last line: %s", judged.cause.summary, buffer_text(&last));
        if (!trial->cause.summary)
            return -ENOMEM;
    }
    trial->less_helps = !ours && retry_judge(&(RetryCase){.cause = judged.cause.id,
                                                          .detail = judged.detail,
                                                          .code = result->code,
                                                          .signal = result->signal,
                                                          .started = true,
                                                          .can_degrade = true}) == RETRY_LESS;
    return 0;
}

static void trial_measure(const Trials *trials, const RunResult *result, TuneTrial *trial)
{
    const Running *running = &trials->running;
    MeterReading reading;
    Peaks peaks = run_peaks(trials->run);
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

int trial_make(Trials *trials, const TuneStep *step, TrialEnd *ret)
{
    _cleanup_arena_ Arena arena = {0};
    char **command = NULL;
    char **settings = NULL;
    ChildStage stage = CHILD_NONE;
    RunResult result;
    double began = now_seconds();
    int r = trial_command(trials, step->setting, &arena, &command, &settings);
    if (r < 0)
        return r;
    GuardWish wish = {.budget = trials->memory, .wait_seconds = -1};
    r = guard_serve(trials->run, trials->library, &wish, trials->made == 0 && !trials->report->by_bytes);
    if (r < 0 && trials->report->by_bytes)
        return complain(EX_UNAVAILABLE,
                        "tune: the guard, which would count the batches, cannot be had here (%s); "
                        "say --rate and let the training print its rate",
                        r == -ENOENT ? "this build has no preload library" : strerror(-r));
    rate_reader_clear(&trials->reader);
    trials->running = (Running){.setting = step->setting,
                                .first_look = step->move == TUNE_TRY,
                                .meter.seconds = trials->report->trial_seconds};
    r = run_start(trials->run, command, settings, &stage);
    if (r < 0)
        return start_complain("tune", command[0], stage, -r);
    r = run_finish(trials->run, &result);
    trials->seconds += now_seconds() - began;
    trials->made++;
    if (r < 0)
        return r;
    TrialEnd end = {.interrupted = result.told_to_end || result.typed,
                    .typed = result.typed || result.told_to_end == SIGINT,
                    .trial.setting = step->setting};
    if (!end.interrupted) {
        trial_measure(trials, &result, &end.trial);
        r = trial_judge(trials, &result, command[0], &end.trial);
        if (r < 0)
            return r;
    }
    *ret = end;
    return EX_OK;
}

bool trials_pause(Trials *trials, bool *ret_typed)
{
    return run_pause(trials->run, 0, ret_typed);
}

int trials_open(Trials *trials)
{
    trials->watch = (RunWatch){PULSE_MSEC, trial_pulse, trial_output, trials};
    int r = run_open(&trials->run);
    if (r >= 0)
        r = run_watch(trials->run, &trials->watch);
    if (r < 0)
        return complain(EX_SOFTWARE, "tune: cannot watch over a command here: %s", strerror(-r));
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    trials->progress = progress_open(&terminal, STDERR_FILENO, trials->quiet);
    run_on_tick(trials->run, progress_tick, trials);
    return EX_OK;
}

void trials_close(Trials *trials)
{
    progress_close(&trials->progress);
    rate_reader_close(&trials->reader);
    run_free(trials->run);
}
