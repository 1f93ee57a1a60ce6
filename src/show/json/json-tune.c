/* SPDX-License-Identifier: Apache-2.0 */
#include "show-explain.h"
#include "show-run.h"
#include "show-tune.h"
#include "tune-text.h"

static json_t *values_of(const Tune *tune, size_t setting)
{
    AttemptValue values[TUNE_AXES_MAX];
    for (size_t i = 0; i < tune->n_axes; i++)
        values[i] = (AttemptValue){tune->axes[i].name, tune->axes[i].values[tune_value(tune, setting, i)]};
    return json_values(values, tune->n_axes);
}

/* The documented peaks, and `own`, from which the memory of a trial is computed. */
static json_t *peaks_of(const TuneTrial *trial)
{
    Peaks peaks = {trial->shm_bytes, trial->rss_bytes, trial->fds, trial->processes, trial->own_bytes};
    json_t *object = json_peaks(&peaks);
    if (object && json_object_set_new(object, "own", json_size(trial->own_bytes)) >= 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *json_trial(const Tune *tune, const TuneTrial *trial)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:f, s:b, s:b}", "values", values_of(tune, trial->setting),
                     "rate", trial->measured ? json_real(trial->rate) : json_null(), "peaks", peaks_of(trial),
                     "cause", json_cause(&trial->cause), "error",
                     trial->measured ? json_real(trial->error) : json_null(), "seconds", trial->seconds,
                     "stopped_early", trial->stopped, "less_helps", trial->less_helps);
}

void json_tune_trials(JsonWriter *writer, const Tune *tune)
{
    json_writer_list(writer, "trials");
    for (size_t i = 0; i < tune->n; i++)
        json_writer_item(writer, json_trial(tune, &tune->trials[i]));
    json_writer_list_end(writer);
}

static json_t *json_best(const TuneReport *report)
{
    if (!report->verdict.found)
        return json_null();
    TuneSetting best = tune_setting(&report->tune, report->verdict.best);
    return json_pack("{s:o, s:f, s:f, s:f, s:I, s:o}", "values",
                     values_of(&report->tune, report->verdict.best), "rate", best.rate, "low", best.low,
                     "high", best.high, "trials", (json_int_t)best.measured, "memory",
                     json_size(best.memory_bytes));
}

static json_t *json_start(const Tune *tune)
{
    TuneStart start = tune_start(tune);
    return json_pack("{s:o, s:o, s:b, s:b, s:o}", "values", values_of(tune, start.setting), "sample_bytes",
                     json_size(start.sample_bytes), "assumed", (int)start.assumed, "fits", (int)start.fits,
                     "shm", json_size(start.need_bytes));
}

static void skipped_write(JsonWriter *writer, const Tune *tune)
{
    json_writer_list(writer, "skipped");
    for (size_t i = 0; i < tune_settings(tune); i++) {
        TuneSetting known = tune_setting(tune, i);
        if (known.fate == TUNE_SKIPPED_MEMORY || known.fate == TUNE_SKIPPED_SMALLER)
            json_writer_item(
                writer, json_pack("{s:o, s:o, s:s}", "values", values_of(tune, i), "estimated",
                                  json_size(known.memory_bytes), "why",
                                  known.fate == TUNE_SKIPPED_MEMORY ? TUNE_WHY_MEMORY : TUNE_WHY_SMALLER));
    }
    json_writer_list_end(writer);
}

int json_tune(FILE *out, bool indented, const TuneReport *report)
{
    const TuneVerdict *verdict = &report->verdict;
    JsonWriter writer;
    json_writer_open(&writer, out, indented);
    json_writer_field(&writer, "schema", json_string("shmguard.tune/1"));
    json_tune_trials(&writer, &report->tune);
    json_writer_field(&writer, "best", json_best(report));
    json_writer_field(&writer, "safe", json_boolean(verdict->safe));
    json_writer_field(&writer, "why", json_prose(report->why));
    json_writer_field(&writer, "separated", json_boolean(verdict->separated));
    json_writer_field(&writer, "rivals", json_integer((json_int_t)verdict->rivals));
    json_writer_field(&writer, "unit", json_string(report->by_bytes ? "bytes/s" : "samples/s"));
    json_writer_field(&writer, "noise", json_real(tune_noise(&report->tune)));
    json_writer_field(&writer, "ceiling", json_size(report->tune.ceiling_bytes));
    json_writer_field(&writer, "grid", json_integer((json_int_t)tune_settings(&report->tune)));
    json_writer_field(&writer, "trials_most", json_integer((json_int_t)report->tune.most));
    json_writer_field(&writer, "start", json_start(&report->tune));
    json_writer_field(&writer, "method", json_string("gaussian-process"));
    skipped_write(&writer, &report->tune);
    json_writer_field(&writer, "interrupted", json_boolean(report->interrupted));
    return json_writer_close(&writer);
}
