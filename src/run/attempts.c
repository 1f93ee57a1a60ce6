/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "attempts.h"
#include "supervisor-text.h"

/* --- Knobs -------------------------------------------------------------------------------------------- */

/* Says what is wrong with the text that the user wrote, which replaces %s in the format. -EINVAL. */
#define REFUSE(error, format, written)                                                                       \
    ({                                                                                                       \
        _cleanup_buffer_ Buffer _safe = {0};                                                                 \
        (void)text_escape(written, &_safe);                                                                  \
        (void)buffer_printf(error, format, buffer_text(&_safe));                                             \
        -EINVAL;                                                                                             \
    })

static bool is_ascii_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_identifier(Text a)
{
    if (a.size == 0 || !is_ascii_letter(a.data[0]))
        return false;
    for (size_t i = 1; i < a.size; i++)
        if (!is_ascii_letter(a.data[i]) && !(a.data[i] >= '0' && a.data[i] <= '9'))
            return false;
    return true;
}

static const Knob *knob_find(const Knobs *knobs, Text name)
{
    for (size_t i = 0; i < knobs->n; i++)
        if (text_equal(name, knobs->items[i].name))
            return &knobs->items[i];
    return NULL;
}

/* Not tolower(): in a Turkish locale "i" and "I" are different letters. */
static char capital_of(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool names_are_alike(const char *a, const char *b)
{
    while (*a && capital_of(*a) == capital_of(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

/* In the environment, names are in capitals. */
static bool name_is_taken(const Knobs *knobs, const char *name)
{
    for (size_t i = 0; i < knobs->n; i++)
        if (names_are_alike(knobs->items[i].name, name))
            return true;
    return false;
}

static int values_split(Text values, Arena *arena, Knob *knob, Buffer *error)
{
    Text all = values;
    for (;;) {
        size_t n = 0;
        while (n < values.size && values.data[n] != ',')
            n++;
        if (n == 0)
            return REFUSE(error, DEGRADE_EMPTY_VALUE, all);
        const char **slot = ARENA_PUSH(arena, knob->values, knob->n_values, knob->values_capacity);
        if (!slot || !(*slot = arena_copy(arena, values.data, n)))
            return -ENOMEM;
        if (n == values.size)
            return 0;
        values = text_skip(values, n + 1);
    }
}

int knobs_add(Knobs *knobs, const char *text, Arena *arena, Buffer *error)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return REFUSE(error, DEGRADE_NO_VALUES, text_of(text));
    Text name = {text, (size_t)(equals - text)};
    if (!is_identifier(name))
        return REFUSE(error, DEGRADE_BAD_NAME, name);
    Knob knob = {.name = arena_copy(arena, name.data, name.size)};
    if (!knob.name)
        return -ENOMEM;
    if (name_is_taken(knobs, knob.name))
        return REFUSE(error, DEGRADE_REPEATED, name);
    int r = values_split(text_of(equals + 1), arena, &knob, error);
    if (r < 0)
        return r;
    Knob *slot = ARENA_PUSH(arena, knobs->items, knobs->n, knobs->capacity);
    if (!slot)
        return -ENOMEM;
    *slot = knob;
    return 0;
}

const char *knob_value(const Knob *knob, unsigned level)
{
    return knob->values[MIN((size_t)level, knob->n_values - 1)];
}

bool knobs_have_less(const Knobs *knobs, unsigned level)
{
    for (size_t i = 0; i < knobs->n; i++)
        if (level + 1 < knobs->items[i].n_values)
            return true;
    return false;
}

/* --- The effective batch ------------------------------------------------------------------------------ */

static const char *const batch_names[] = {
    "batch",       "batch_size",  "batchsize",        "bs",
    "bsz",         "mbs",         "micro_batch_size", "per_device_train_batch_size",
    "train_batch", "micro_batch", "train_batch_size", NULL,
};
static const char *const accumulation_names[] = {
    "accum",
    "accum_steps",
    "accumulate",
    "accumulate_grad_batches",
    "accumulation",
    "accumulation_steps",
    "acc_steps",
    "grad_acc",
    "grad_accum",
    "grad_accum_steps",
    "grad_accumulation_steps",
    "gradient_accumulation",
    "gradient_accumulation_steps",
    NULL,
};

static bool name_is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (names_are_alike(name, *names))
            return true;
    return false;
}

/* The number of knobs that have one of these names. The value is that of the last one; 0 if it is not a
 * positive number. */
static unsigned value_by_names(const Knobs *knobs, unsigned level, const char *const *names,
                               uint64_t *ret_value)
{
    unsigned n = 0;
    for (size_t i = 0; i < knobs->n; i++)
        if (name_is_one_of(knobs->items[i].name, names)) {
            if (text_u64(text_of(knob_value(&knobs->items[i], level)), 10, ret_value) < 0)
                *ret_value = 0;
            n++;
        }
    return n;
}

EffectiveBatch effective_batch(const Knobs *knobs, unsigned level)
{
    EffectiveBatch effective = {0};
    uint64_t batch = 0;
    uint64_t steps = 0;
    unsigned batches = value_by_names(knobs, level, batch_names, &batch);
    unsigned accumulations = value_by_names(knobs, level, accumulation_names, &steps);
    if (batches != 1 || batch == 0 || accumulations > 1 || (accumulations == 1 && steps == 0))
        return effective;
    effective.accumulated = accumulations == 1;
    effective.known = !__builtin_mul_overflow(batch, effective.accumulated ? steps : 1, &effective.samples);
    return effective;
}

/* --- The arguments of --resume ------------------------------------------------------------------------ */

static const char latest[] = "{latest:";

/* Takes the text before the next {latest:GLOB}, and the GLOB, off *rest. False: there is no other one. Braces
 * within the glob ({a,b}) come in pairs. unclosed: the closing brace is missing, and GLOB is all of the rest.
 */
static bool latest_next(Text *rest, Text *ret_before, Text *ret_glob, bool *ret_unclosed)
{
    const char *found = rest->size == 0 ? NULL : memmem(rest->data, rest->size, latest, sizeof latest - 1);
    if (!found)
        return false;
    *ret_before = (Text){rest->data, (size_t)(found - rest->data)};
    Text glob = text_skip(*rest, ret_before->size + sizeof latest - 1);
    size_t open = 0;
    size_t n = 0;
    for (; n < glob.size; n++) {
        if (glob.data[n] == '}' && open == 0)
            break;
        open += glob.data[n] == '{';
        open -= glob.data[n] == '}';
    }
    *ret_unclosed = n == glob.size;
    *ret_glob = (Text){glob.data, n};
    *rest = text_skip(glob, n + 1);
    return true;
}

static int globs_collect(Text word, Arena *arena, Resume *resume, Buffer *error)
{
    Text rest = word;
    Text before;
    Text glob;
    for (bool unclosed = false; latest_next(&rest, &before, &glob, &unclosed);) {
        if (unclosed)
            return REFUSE(error, RESUME_NO_BRACE, word);
        if (glob.size == 0)
            return REFUSE(error, RESUME_NO_GLOB, word);
        char **slot = ARENA_PUSH(arena, resume->globs, resume->n_globs, resume->globs_capacity);
        if (!slot || !(*slot = arena_copy(arena, glob.data, glob.size)))
            return -ENOMEM;
    }
    return 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Appends the unquoted part that begins at *p, up to a blank or the end. */
static int word_take(const char **p, Buffer *word, Buffer *error)
{
    char quote = '\0';
    const char *began = *p;
    int r = 0;
    for (; r == 0 && **p && (quote || !is_blank(**p)); (*p)++) {
        char c = **p;
        if (quote ? c == quote : c == '\'' || c == '"') {
            quote = quote ? '\0' : c;
            continue;
        }
        if (quote != '\'' && (c == '$' || c == '`'))
            return REFUSE(error, RESUME_NO_SHELL, text_of(began));
        /* Within double quotes a backslash stands for itself, unless the next character is special there. */
        if (quote != '\'' && c == '\\' && (!quote || ((*p)[1] && strchr("\"\\$`\n", (*p)[1])))) {
            (*p)++;
            if (!**p)
                return REFUSE(error, RESUME_BACKSLASH, text_of(began));
            if (**p == '\n')
                continue;
            c = **p;
        }
        r = buffer_append(word, &c, 1);
    }
    if (quote)
        return REFUSE(error, RESUME_QUOTE, text_of(began));
    return r;
}

int resume_parse(const char *text, Arena *arena, Resume *ret, Buffer *error)
{
    Resume resume = {0};
    _cleanup_buffer_ Buffer word = {0};
    for (const char *p = text;;) {
        while (is_blank(*p))
            p++;
        if (!*p)
            break;
        buffer_clear(&word);
        int r = word_take(&p, &word, error);
        Text taken = {buffer_text(&word), word.size};
        if (r >= 0)
            r = globs_collect(taken, arena, &resume, error);
        if (r < 0)
            return r;
        char **slot = ARENA_PUSH(arena, resume.words, resume.n_words, resume.words_capacity);
        if (!slot || !(*slot = arena_copy(arena, taken.data, taken.size)))
            return -ENOMEM;
    }
    if (resume.n_words == 0) {
        (void)buffer_append_text(error, RESUME_NO_ARGUMENTS);
        return -EINVAL;
    }
    *ret = resume;
    return 0;
}

/* --- One attempt -------------------------------------------------------------------------------------- */

/* Appends `a` with the values of the knobs inserted. */
static int knobs_expand(Text a, const Knobs *knobs, unsigned level, Buffer *out)
{
    int r = 0;
    while (r == 0 && a.size > 0) {
        const char *brace = memchr(a.data, '{', a.size);
        size_t before = brace ? (size_t)(brace - a.data) : a.size;
        r = buffer_append(out, a.data, before);
        a = text_skip(a, before);
        if (r < 0 || a.size == 0)
            break;
        const char *end = memchr(a.data, '}', a.size);
        Text name = end ? (Text){a.data + 1, (size_t)(end - a.data) - 1} : (Text){"", 0};
        const Knob *knob = knob_find(knobs, name);
        r = knob ? buffer_append_text(out, knob_value(knob, level)) : buffer_append(out, "{", 1);
        a = text_skip(a, knob ? name.size + 2 : 1);
    }
    return r;
}

/* The path of a checkpoint is a file name: no knob is replaced in it. */
static int resume_word_expand(Text word, const Knobs *knobs, unsigned level, const char *const **found,
                              Buffer *out)
{
    Text before;
    Text glob;
    int r = 0;
    for (bool unclosed = false; r == 0 && latest_next(&word, &before, &glob, &unclosed); (*found)++) {
        r = knobs_expand(before, knobs, level, out);
        if (r == 0)
            r = buffer_append_text(out, **found);
    }
    return r < 0 ? r : knobs_expand(word, knobs, level, out);
}

int attempt_command(char *const *command, const Knobs *knobs, unsigned level, const Resume *resume,
                    const char *const *found, Arena *arena, char ***ret)
{
    size_t n = 0;
    while (command[n])
        n++;
    size_t n_more = resume ? resume->n_words : 0;
    char **words = arena_alloc(arena, (n + n_more + 1) * sizeof *words);
    if (!words)
        return -ENOMEM;
    _cleanup_buffer_ Buffer word = {0};
    for (size_t i = 0; i < n + n_more; i++) {
        buffer_clear(&word);
        int r = i < n ? knobs_expand(text_of(command[i]), knobs, level, &word)
                      : resume_word_expand(text_of(resume->words[i - n]), knobs, level, &found, &word);
        if (r < 0 || !(words[i] = arena_copy(arena, buffer_text(&word), word.size)))
            return -ENOMEM;
    }
    *ret = words;
    return 0;
}

static char *setting_of_knob(const Knob *knob, unsigned level, Arena *arena)
{
    static const char prefix[] = "SHMGUARD_VALUE_";
    char *setting = arena_printf(arena, "%s%s=%s", prefix, knob->name, knob_value(knob, level));
    if (setting)
        for (char *c = setting + sizeof prefix - 1; *c != '='; c++)
            *c = capital_of(*c);
    return setting;
}

int attempt_settings(const Knobs *knobs, unsigned level, unsigned attempt, Arena *arena, char ***ret)
{
    char **settings = arena_alloc(arena, (knobs->n + 2) * sizeof *settings);
    if (!settings || !(settings[0] = arena_printf(arena, "SHMGUARD_ATTEMPT=%u", attempt)))
        return -ENOMEM;
    for (size_t i = 0; i < knobs->n; i++)
        if (!(settings[i + 1] = setting_of_knob(&knobs->items[i], level, arena)))
            return -ENOMEM;
    *ret = settings;
    return 0;
}

unsigned attempt_pause_seconds(unsigned failed)
{
    enum { MOST = 60 };
    return failed > 6 ? MOST : MIN(1U << (MAX(failed, 1U) - 1), (unsigned)MOST);
}
