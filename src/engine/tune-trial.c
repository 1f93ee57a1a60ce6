/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>

#include "attempts.h"
#include "clock.h"
#include "engine-text.h"
#include "retry.h"
#include "tune-trial.h"
#include "user-command.h"

/*
 * PULSE_MSEC: how precisely the time of a batch is known. CHECK_SECONDS: between two checks whether a trial
 * is hopeless. CHECK_FROM: the share of the measured time before which it is not checked. FILLED_LEAST: the
 * share of the measured time from which on a training that ended by itself counts as measured.
 */
#define CHECK_SECONDS 0.5
#define CHECK_FROM    0.35
#define FILLED_LEAST  0.3
enum { PULSE_MSEC = 20 };

static bool is_hopeless(Trials *trials, double seconds)
{
    RunningTrial *running = &trials->running;
    MeterReading reading;
    if (!running->first || seconds - running->checked < CHECK_SECONDS)
        return false;
    running->checked = seconds;
    return meter_read(&running->meter, &reading) && reading.filled >= CHECK_FROM &&
           tune_is_hopeless(&trials->report->tune, reading.rate, reading.error);
}

static void trial_pulse(void *context, double seconds, uint64_t bytes)
{
    Trials *trials = context;
    RunningTrial *running = &trials->running;
    if (trials->report->by_bytes)
        meter_count(&running->meter, seconds, bytes);
    bool over = meter_is_over(&running->meter, seconds);
    bool silent = !running->meter.began && seconds > trials->start_seconds;
    running->stopped = running->stopped || (!over && !silent && is_hopeless(trials, seconds));
    if (over || silent || running->stopped)
        run_end(trials->run);
}

typedef struct Found {
    RunningTrial *running;
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
    /* Its output is a pipe, into which Python would write only when its buffer is full. */
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

/* Why a trial that ended well has no rate. NULL: no memory. */
static const char *silence_words(const Trials *trials, const RunResult *result, Arena *arena)
{
    const RateReader *reader = &trials->reader;
    unsigned long long lines = reader->lines;
    const char *seconds = arena_printf(arena, "%.1f s", result->seconds);
    if (!seconds)
        return NULL;
    if (trials->running.meter.began)
        return arena_printf(arena, TRIAL_SHORT, seconds);
    if (trials->report->by_bytes)
        return arena_printf(arena, TRIAL_NO_TENSORS, seconds);
    if (lines == 0)
        return arena_printf(arena, TRIAL_SILENT, seconds);
    _cleanup_buffer_ Buffer last = {0};
    last_line(reader, &last);
    if (reader->nonsense > 0)
        return arena_printf(arena, PLURAL(lines, TRIAL_NO_NUMBER_ONE, TRIAL_NO_NUMBER_MANY), lines,
                            buffer_text(&last));
    return arena_printf(arena, PLURAL(lines, TRIAL_NO_MATCH_ONE, TRIAL_NO_MATCH_MANY), lines,
                        buffer_text(&last));
}

/* What trial->cause says in the language of this thread, from the judgement in that language. */
static int trial_cause(const Trials *trials, const RunResult *result, bool measured, const Diagnosis *judged,
                       Cause *ret)
{
    Cause cause = judged->cause;
    /* That we ended it is not a cause. What killed part of it before is one. */
    if (result->cut_off && !cause_helped_by_less(cause.id))
        cause = (Cause){.id = CAUSE_OK, .confidence = 1, .summary = TRIAL_GOOD};
    if (cause.id == CAUSE_OK && !measured)
        cause = (Cause){.id = CAUSE_UNKNOWN, .summary = silence_words(trials, result, trials->arena)};
    else if (cause.id == CAUSE_UNKNOWN && trials->reader.lines > 0) {
        _cleanup_buffer_ Buffer last = {0};
        last_line(&trials->reader, &last);
        cause.summary = arena_printf(trials->arena, TRIAL_LAST_LINE, cause.summary, buffer_text(&last));
    }
    *ret = cause;
    return cause.summary ? 0 : -ENOMEM;
}

static int trial_judge(Trials *trials, const RunResult *result, TuneTrial *trial)
{
    Diagnosis judged = {0};
    Diagnosis shown = {0};
    Evidence evidence;
    Cause cause;
    int r =
        end_judge(trials->run, result, trials->running.program, 0, trials->arena, &evidence, &judged, &shown);
    if (r >= 0)
        r = trial_cause(trials, result, trial->measured, &shown, &cause);
    if (r < 0)
        return r;
    trial->shown = cause.summary;
    {
        IN_ENGLISH;
        r = trial_cause(trials, result, trial->measured, &judged, &trial->cause);
    }
    bool ours = result->cut_off && !cause_helped_by_less(judged.cause.id);
    trial->less_helps = !ours && retry_judge(&(RetryCase){.cause = judged.cause.id,
                                                          .detail = judged.detail,
                                                          .code = result->code,
                                                          .signal = result->signal,
                                                          .started = true,
                                                          .can_degrade = true}) == RETRY_LESS;
    return r;
}

static void trial_measure(const Trials *trials, const RunResult *result, TuneTrial *trial)
{
    const RunningTrial *running = &trials->running;
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

int trial_start(Trials *trials, const TuneStep *step, TrialStart *ret)
{
    char **command = NULL;
    char **settings = NULL;
    *ret = (TrialStart){.stage = CHILD_NONE};
    trials->running = (RunningTrial){0};
    arena_free(&trials->words);
    double began = now_seconds();
    int r = trial_command(trials, step->setting, &trials->words, &command, &settings);
    if (r < 0)
        return r;
    GuardWish wish = {.budget = trials->memory, .wait_seconds = -1};
    ret->guard_error = MIN(guard_serve(trials->run, trials->library, &wish), 0);
    if (ret->guard_error < 0 && trials->report->by_bytes)
        return ret->guard_error;
    rate_reader_clear(&trials->reader);
    trials->running = (RunningTrial){.setting = step->setting,
                                     .first = step->move == TUNE_TRY,
                                     .program = command[0],
                                     .meter.seconds = trials->report->trial_seconds,
                                     .began = began};
    return run_start(trials->run, command, settings, &ret->stage);
}

int trial_finish(Trials *trials, TrialEnd *ret)
{
    RunResult result;
    int r = run_finish(trials->run, &result);
    trials->seconds += now_seconds() - trials->running.began;
    trials->made++;
    if (r < 0)
        return r;
    TrialEnd end = {.interrupted = result.told_to_end || result.typed,
                    .typed = result.typed || result.told_to_end == SIGINT,
                    .trial.setting = trials->running.setting};
    if (!end.interrupted) {
        trial_measure(trials, &result, &end.trial);
        r = trial_judge(trials, &result, &end.trial);
        if (r < 0)
            return r;
    }
    *ret = end;
    return 0;
}

bool trials_pause(Trials *trials, bool *ret_typed)
{
    return run_pause(trials->run, 0, ret_typed);
}

double trials_mean_seconds(const Trials *trials)
{
    return trials->made > 0 ? trials->seconds / (double)trials->made : trials->report->trial_seconds * 1.3;
}

int trials_open(Trials *trials)
{
    trials->watch = (RunWatch){PULSE_MSEC, trial_pulse, trial_output, trials};
    int r = run_open(&trials->run);
    return r < 0 ? r : run_watch(trials->run, &trials->watch);
}

void trials_close(Trials *trials)
{
    rate_reader_close(&trials->reader);
    run_free(trials->run);
    arena_free(&trials->words);
}
