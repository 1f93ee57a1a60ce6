/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "attempts.h"
#include "cli-text.h"
#include "command.h"
#include "tune-grid.h"
#include "tune-rate.h"

/* The grid while it is built from --vary. */
typedef struct Vary {
    Arena *arena;
    char *const *command;
    bool by_rate; /* the training prints its rate */
    Knobs knobs;
} Vary;

static int out_of_memory(void)
{
    return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
}

/* Escaped, for a message. */
static const char *shown(const Vary *vary, const char *value)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(value), &safe);
    const char *copy = arena_copy(vary->arena, buffer_text(&safe), safe.size);
    return copy ? copy : "";
}

/* "A..B", both whole numbers. */
static bool range_parse(const char *value, uint64_t *ret_from, uint64_t *ret_to)
{
    const char *dots = strstr(value, "..");
    return dots && text_u64((Text){value, (size_t)(dots - value)}, 10, ret_from) == 0 &&
           text_u64(text_of(dots + 2), 10, ret_to) == 0;
}

static int value_push(Vary *vary, Knob *knob, const char *value)
{
    for (size_t i = 0; i < knob->n_values; i++)
        if (strcmp(knob->values[i], value) == 0)
            return complain(EX_USAGE, CLI_VARY_TWICE, knob->name, shown(vary, value));
    if (knob->n_values == TUNE_VALUES_MAX)
        return complain(EX_USAGE, CLI_VARY_MANY_VALUES, knob->name, TUNE_VALUES_MAX);
    const char **slot = ARENA_PUSH(vary->arena, knob->values, knob->n_values, knob->values_capacity);
    if (!slot)
        return out_of_memory();
    *slot = value;
    return EX_OK;
}

static int range_push(Vary *vary, Knob *knob, const char *value, uint64_t from, uint64_t to)
{
    if (from > to)
        return complain(EX_USAGE, CLI_VARY_BACKWARDS, knob->name, shown(vary, value));
    if (to - from >= TUNE_VALUES_MAX)
        return complain(EX_USAGE, CLI_VARY_LONG, knob->name, shown(vary, value));
    int code = EX_OK;
    for (uint64_t i = from; code == EX_OK && i <= to; i++) {
        const char *number = arena_printf(vary->arena, "%llu", (unsigned long long)i);
        code = number ? value_push(vary, knob, number) : out_of_memory();
    }
    return code;
}

/* A batch has at least one sample. There may be no workers, but without any the guard has nothing to count.
 */
static int values_check(const Vary *vary, const Knob *knob)
{
    TuneAxis axis;
    _cleanup_arena_ Arena scratch = {0};
    if (tune_axis_make(knob->name, knob->values, knob->n_values, &scratch, &axis) < 0)
        return out_of_memory();
    bool is_batch = axis.counts == COUNTS_SAMPLES;
    bool is_processes = tune_counts_processes(axis.counts);
    for (size_t i = 0; i < knob->n_values; i++) {
        double number = 0;
        bool is_number = rate_number_parse(text_of(knob->values[i]), &number) == 0;
        if (is_batch && (!is_number || number < 1))
            return complain(EX_USAGE, CLI_VARY_BATCH, knob->name, shown(vary, knob->values[i]));
        if (is_processes && knob->values[i][0] == '-')
            return complain(EX_USAGE, CLI_VARY_WORKERS, knob->name, shown(vary, knob->values[i]));
        if (is_processes && is_number && number == 0 && !vary->by_rate)
            return complain(EX_USAGE, CLI_VARY_NO_WORKERS, knob->name, shown(vary, knob->values[i]));
    }
    return EX_OK;
}

static int vary_add(Vary *vary, const char *text)
{
    _cleanup_buffer_ Buffer error = {0};
    int r = knobs_add(&vary->knobs, text, vary->arena, &error);
    if (r < 0)
        return complain(EX_USAGE, CLI_TUNE_VARY, r == -ENOMEM ? error_text(-r) : buffer_text(&error));
    Knob *knob = &vary->knobs.items[vary->knobs.n - 1];
    Knob given = *knob;
    int code = EX_OK;
    *knob = (Knob){.name = given.name};
    for (size_t i = 0; code == EX_OK && i < given.n_values; i++) {
        uint64_t from = 0;
        uint64_t to = 0;
        code = range_parse(given.values[i], &from, &to) ? range_push(vary, knob, given.values[i], from, to)
                                                        : value_push(vary, knob, given.values[i]);
    }
    return code == EX_OK ? values_check(vary, knob) : code;
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

/* 1, 2, 4 … up to twice the number of processors: more workers would only wait for one. */
static const char *workers_values(Arena *arena, const char *name)
{
    _cleanup_buffer_ Buffer text = {0};
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    (void)buffer_printf(&text, "%s=1", name);
    for (long n = 2; n <= MAX(2 * cpus, 2L) && n <= 64; n *= 2)
        (void)buffer_printf(&text, ",%ld", n);
    return arena_copy(arena, buffer_text(&text), text.size);
}

/* Without --vary: the usual values. */
static int vary_guess(Vary *vary)
{
    static const char *const batch_names[] = {"batch", "batch_size"};
    static const char *const worker_names[] = {"workers", "num_workers"};
    int code = EX_OK;
    for (size_t i = 0; code == EX_OK && i < ARRAY_SIZE(batch_names); i++)
        if (command_has(vary->command, batch_names[i]))
            code = vary_add(vary, i == 0 ? "batch=16,32,64,128,256" : "batch_size=16,32,64,128,256");
    for (size_t i = 0; code == EX_OK && i < ARRAY_SIZE(worker_names); i++)
        if (command_has(vary->command, worker_names[i]))
            code = vary_add(vary, workers_values(vary->arena, worker_names[i]));
    if (code == EX_OK && vary->knobs.n == 0)
        code = complain(EX_USAGE, CLI_VARY_NOTHING);
    return code;
}

static int vary_take(Vary *vary, const OptionList *texts)
{
    int code = EX_OK;
    for (size_t i = 0; code == EX_OK && i < texts->n; i++)
        code = vary_add(vary, texts->items[i]);
    if (code == EX_OK && texts->n == 0)
        code = vary_guess(vary);
    for (size_t i = 0; code == EX_OK && i < vary->knobs.n; i++)
        if (!command_has(vary->command, vary->knobs.items[i].name))
            code = complain(EX_USAGE, CLI_VARY_NO_PLACE, vary->knobs.items[i].name);
    return code;
}

int tune_grid_make(const OptionList *texts, char *const *command, bool by_rate, Arena *arena,
                   TuneAxis **ret_axes, size_t *ret_n)
{
    Vary vary = {.arena = arena, .command = command, .by_rate = by_rate};
    int code = vary_take(&vary, texts);
    if (code != EX_OK)
        return code;
    size_t n = vary.knobs.n;
    if (n > TUNE_AXES_MAX)
        return complain(EX_USAGE, CLI_VARY_MANY_NAMES, TUNE_AXES_MAX);
    TuneAxis *axes = arena_alloc(arena, n * sizeof *axes);
    size_t settings = 1;
    for (size_t i = 0; axes && i < n; i++) {
        const Knob *knob = &vary.knobs.items[i];
        if (tune_axis_make(knob->name, knob->values, knob->n_values, arena, &axes[i]) < 0)
            axes = NULL;
        settings *= knob->n_values; /* at most 64 to the power of 6 */
    }
    if (!axes)
        return out_of_memory();
    if (settings > TUNE_SETTINGS_MAX)
        return complain(EX_USAGE, CLI_TUNE_TOO_MANY, settings, TUNE_SETTINGS_MAX);
    if (settings < 2)
        return complain(EX_USAGE, CLI_TUNE_TOO_FEW);
    *ret_axes = axes;
    *ret_n = n;
    return EX_OK;
}
