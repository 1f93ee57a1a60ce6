/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "show-tune.h"
#include "tune-text.h"

/* Far more than TUNE_TRIALS_MAX trials take. */
#define STATE_MOST_BYTES (UINT64_C(16) << 20)
enum { EVIDENCE_MOST = 32 };

#define _cleanup_json_ _cleanup_(json_drop)
static void json_drop(json_t **value)
{
    json_decref(*value);
}

/* --- Writing ------------------------------------------------------------------------------------------ */

static json_t *strings_of(const char *const *strings, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_raw(text_of(strings[i]))) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *command_of(char *const *command)
{
    size_t n = 0;
    while (command[n])
        n++;
    return strings_of((const char *const *)command, n);
}

/* A list, not an object, since the order of the names is that of the grid. */
static json_t *vary_of(const Tune *tune)
{
    json_t *list = json_array();
    for (size_t i = 0; i < tune->n_axes; i++) {
        const TuneAxis *axis = &tune->axes[i];
        if (json_array_append_new(list, json_pack("{s:s, s:o}", "name", axis->name, "values",
                                                  strings_of(axis->values, axis->n))) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

int tune_state_write(FILE *out, const TuneReport *report)
{
    JsonWriter writer;
    json_writer_open(&writer, out, true);
    json_writer_field(&writer, "schema", json_string("shmguard.tune-state/1"));
    json_writer_field(&writer, "command", command_of(report->command));
    json_writer_field(&writer, "vary", vary_of(&report->tune));
    json_writer_field(&writer, "unit", json_string(report->by_bytes ? "bytes/s" : "samples/s"));
    json_tune_trials(&writer, &report->tune);
    return json_writer_close(&writer);
}

/* --- Reading ------------------------------------------------------------------------------------------ */

static int refuse(Buffer *error, const char *what)
{
    (void)buffer_append_text(error, what);
    return -EINVAL;
}

/* A field that must equal what this run was given. */
static int field_is(const json_t *root, const char *name, json_t *wanted, Buffer *error, const char *what)
{
    _cleanup_json_ json_t *own = wanted;
    if (!own)
        return -ENOMEM;
    return json_equal(json_object_get(root, name), own) ? 0 : refuse(error, what);
}

static bool number_read(const json_t *value, double *ret)
{
    if (!json_is_number(value))
        return false;
    *ret = json_number_value(value);
    return isfinite(*ret) && *ret >= 0;
}

/* null is unknown. */
static bool size_read(const json_t *object, const char *name, uint64_t *ret)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_null(value)) {
        *ret = U64_UNKNOWN;
        return true;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

static bool bool_read(const json_t *object, const char *name, bool *ret)
{
    const json_t *value = json_object_get(object, name);
    *ret = json_is_true(value);
    return json_is_boolean(value);
}

/* The value of the axis that is escaped in the file. */
static bool place_read(const TuneAxis *axis, const json_t *values, size_t *ret)
{
    const char *wanted = json_string_value(json_object_get(values, axis->name));
    _cleanup_buffer_ Buffer safe = {0};
    for (size_t i = 0; wanted && i < axis->n; i++) {
        buffer_clear(&safe);
        if (text_escape(text_of(axis->values[i]), &safe) == 0 && strcmp(buffer_text(&safe), wanted) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool setting_read(const Tune *tune, const json_t *values, size_t *ret)
{
    size_t setting = 0;
    for (size_t i = 0; i < tune->n_axes; i++) {
        size_t place = 0;
        if (!place_read(&tune->axes[i], values, &place))
            return false;
        setting = setting * tune->axes[i].n + place;
    }
    *ret = setting;
    return json_object_size(values) == tune->n_axes;
}

static bool cause_id_read(const json_t *value, CauseId *ret)
{
    const char *name = json_string_value(value);
    for (CauseId id = 0; name && id < CAUSE_IDS; id++)
        if (strcmp(cause_name(id), name) == 0) {
            *ret = id;
            return true;
        }
    return false;
}

static int text_keep(const json_t *value, Arena *arena, const char **ret)
{
    *ret = NULL;
    if (json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return -EINVAL;
    *ret = arena_copy(arena, json_string_value(value), json_string_length(value));
    return *ret ? 0 : -ENOMEM;
}

static int cause_read(const json_t *object, Arena *arena, Cause *ret)
{
    const json_t *evidence = json_object_get(object, "evidence");
    if (!cause_id_read(json_object_get(object, "id"), &ret->id) ||
        !number_read(json_object_get(object, "confidence"), &ret->confidence) || ret->confidence > 1 ||
        !json_is_array(evidence) || json_array_size(evidence) > EVIDENCE_MOST)
        return -EINVAL;
    int r = text_keep(json_object_get(object, "summary"), arena, &ret->summary);
    for (size_t i = 0; r == 0 && i < json_array_size(evidence); i++) {
        const char **slot = ARENA_PUSH(arena, ret->evidence, ret->n_evidence, ret->evidence_capacity);
        r = slot ? text_keep(json_array_get(evidence, i), arena, slot) : -ENOMEM;
        if (r == 0 && !*slot)
            r = -EINVAL;
    }
    return r;
}

static int trial_read(const Tune *tune, const json_t *object, Arena *arena, TuneTrial *ret)
{
    const json_t *rate = json_object_get(object, "rate");
    const json_t *peaks = json_object_get(object, "peaks");
    ret->measured = json_is_number(rate);
    if (!setting_read(tune, json_object_get(object, "values"), &ret->setting) ||
        !(ret->measured ? number_read(rate, &ret->rate) && ret->rate > 0 &&
                              number_read(json_object_get(object, "error"), &ret->error)
                        : json_is_null(rate)) ||
        !number_read(json_object_get(object, "seconds"), &ret->seconds) ||
        !bool_read(object, "stopped_early", &ret->stopped) ||
        !bool_read(object, "less_helps", &ret->less_helps) || !size_read(peaks, "shm", &ret->shm_bytes) ||
        !size_read(peaks, "own", &ret->own_bytes) || !size_read(peaks, "rss", &ret->rss_bytes) ||
        !size_read(peaks, "fds", &ret->fds) || !size_read(peaks, "processes", &ret->processes))
        return -EINVAL;
    int r = cause_read(json_object_get(object, "cause"), arena, &ret->cause);
    bool whole = ret->measured || ret->cause.id != CAUSE_OK;
    return r == 0 && !whole ? -EINVAL : r;
}

static int trials_read(const json_t *list, const Tune *tune, Arena *arena, Tune *ret, Buffer *error)
{
    if (!json_is_array(list) || json_array_size(list) > TUNE_TRIALS_MAX)
        return refuse(error, TUNE_STATE_TRIALS);
    for (size_t i = 0; i < json_array_size(list); i++) {
        TuneTrial *trial = ARENA_PUSH(arena, ret->trials, ret->n, ret->capacity);
        int r = trial ? trial_read(tune, json_array_get(list, i), arena, trial) : -ENOMEM;
        if (r == -EINVAL)
            (void)buffer_printf(error, TUNE_STATE_TRIAL, i + 1);
        if (r < 0)
            return r;
    }
    return 0;
}

static int state_read(const json_t *root, const TuneReport *report, Arena *arena, Tune *ret, Buffer *error)
{
    int r = field_is(root, "schema", json_string("shmguard.tune-state/1"), error, TUNE_STATE_SCHEMA);
    if (r == 0)
        r = field_is(root, "command", command_of(report->command), error, TUNE_STATE_COMMAND);
    if (r == 0)
        r = field_is(root, "vary", vary_of(&report->tune), error, TUNE_STATE_VARY);
    if (r == 0)
        r = field_is(root, "unit", json_string(report->by_bytes ? "bytes/s" : "samples/s"), error,
                     TUNE_STATE_RATE);
    return r < 0 ? r : trials_read(json_object_get(root, "trials"), &report->tune, arena, ret, error);
}

int tune_state_parse(Text text, TuneReport *report, Arena *arena, Buffer *error)
{
    json_error_t problem;
    if (text.size > STATE_MOST_BYTES)
        return refuse(error, TUNE_STATE_LARGE);
    _cleanup_json_ json_t *root = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &problem);
    if (!root) {
        (void)buffer_printf(error, TUNE_STATE_JSON, MAX(problem.line, 1));
        return -EINVAL;
    }
    Tune tune = report->tune;
    int r = state_read(root, report, arena, &tune, error);
    if (r == 0)
        report->tune = tune;
    return r;
}
