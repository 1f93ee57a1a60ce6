/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "cli-text.h"
#include "options.h"
#include "terminal.h"

/* Those of every command, which its array does not list. */
static const Option everywhere[] = {
    {OPTION_TEXT, 0, "lang", .argument = "LANG", .help = CLI_LANG_HELP},
    {OPTION_FLAG, 'h', "help", .help = CLI_HELP_HELP},
};

static const Option *option_by_name(const Option *options, Text name)
{
    for (; options->type != OPTION_END; options++)
        if (text_equal(name, options->name))
            return options;
    return NULL;
}

static const Option *option_by_letter(const Option *options, char letter)
{
    for (; options->type != OPTION_END; options++)
        if (options->letter && options->letter == letter)
            return options;
    return NULL;
}

/* The number of insertions, deletions, replacements and swapped neighbours that lead from a to b. Long words
 * are truncated: they are near nothing anyway. */
static unsigned edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 31 };
    size_t n = MIN(strlen(a), (size_t)LONGEST);
    size_t m = MIN(strlen(b), (size_t)LONGEST);
    unsigned rows[3][LONGEST + 1];
    unsigned *before = rows[0];
    unsigned *last = rows[1];
    unsigned *row = rows[2];
    for (size_t j = 0; j <= m; j++)
        before[j] = last[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = MIN(best, last[j] + 1);
            best = MIN(best, row[j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, before[j - 2] + 1);
            row[j] = best;
        }
        unsigned *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[m];
}

/* A name is near if at most a third of its letters are wrong, or if `wrong` is its beginning. */
static void nearest_consider(const char *wrong, const char *name, unsigned *best, const char **ret)
{
    size_t length = strlen(wrong);
    unsigned distance = edit_distance(wrong, name);
    if (length >= 2 && strncmp(wrong, name, length) == 0)
        distance = 1;
    if (distance < *best && distance <= MAX(strlen(name), (size_t)3) / 3) {
        *best = distance;
        *ret = name;
    }
}

const char *nearest_name(const char *wrong, const char *const *names)
{
    unsigned best = ~0U;
    const char *nearest = NULL;
    for (; *names; names++)
        nearest_consider(wrong, *names, &best, &nearest);
    return nearest;
}

static const char *nearest_option(const Option *options, const char *wrong)
{
    unsigned best = ~0U;
    const char *nearest = NULL;
    for (; options->type != OPTION_END; options++)
        nearest_consider(wrong, options->name, &best, &nearest);
    for (size_t i = 0; i < ARRAY_SIZE(everywhere); i++)
        nearest_consider(wrong, everywhere[i].name, &best, &nearest);
    return nearest;
}

static Parsed wrong_name(const Option *options, Text name, Buffer *error)
{
    _cleanup_buffer_ Buffer copy = {0};
    _cleanup_buffer_ Buffer safe = {0};
    (void)buffer_append(&copy, name.data, name.size);
    (void)text_escape(name, &safe);
    const char *nearest = nearest_option(options, buffer_text(&copy));
    if (nearest)
        (void)buffer_printf(error, OPTION_UNKNOWN_NEAR, buffer_text(&safe), nearest);
    else
        (void)buffer_printf(error, OPTION_UNKNOWN, buffer_text(&safe));
    return PARSED_WRONG;
}

void names_join(const char *const *names, const char *last, Buffer *out)
{
    for (const char *const *name = names; *name; name++) {
        const char *before = name == names ? "" : name[1] ? NAMES_COMMA : last;
        (void)buffer_printf(out, "%s%s", before, *name);
    }
}

static Parsed wrong_value(const Option *option, const char *value, Buffer *error)
{
    _cleanup_buffer_ Buffer safe = {0};
    _cleanup_buffer_ Buffer choices = {0};
    (void)text_escape(text_of(value), &safe);
    const char *given = buffer_text(&safe);
    switch (option->type) {
    case OPTION_PID:
        (void)buffer_printf(error, OPTION_TAKES_PID, option->name, given);
        break;
    case OPTION_COUNT:
        (void)buffer_printf(error, OPTION_TAKES_COUNT, option->name, given);
        break;
    case OPTION_SECONDS:
        (void)buffer_printf(error, OPTION_TAKES_SECONDS, option->name, given);
        break;
    case OPTION_WISH:
        (void)buffer_printf(error, OPTION_TAKES_SIZE, option->name, given);
        break;
    case OPTION_CHOICE:
        names_join(option->choices, NAMES_OR, &choices);
        (void)buffer_printf(error, OPTION_TAKES_NAMES, option->name, buffer_text(&choices), given);
        break;
    case OPTION_LIST: /* of these, any value is right */
    case OPTION_FLAG:
    case OPTION_TEXT:
    case OPTION_END:
        break;
    }
    return PARSED_WRONG;
}

static int count_parse(Text text, int *ret)
{
    uint32_t count = 0;
    int r = text_u32(text, 10, &count);
    if (r < 0)
        return r;
    if (count > INT_MAX)
        return -ERANGE;
    *ret = (int)count;
    return 0;
}

static Parsed list_add(const Option *option, OptionList *list, const char *value, Buffer *error)
{
    if (list->n == OPTION_LIST_MAX) {
        (void)buffer_printf(error, OPTION_TOO_OFTEN, option->name, OPTION_LIST_MAX);
        return PARSED_WRONG;
    }
    list->items[list->n++] = value;
    return PARSED_GO;
}

static Parsed option_set(const Option *option, const char *value, void *values, Buffer *error)
{
    void *slot = (char *)values + option->offset;
    switch (option->type) {
    case OPTION_FLAG:
        *(bool *)slot = true;
        return PARSED_GO;
    case OPTION_TEXT:
        *(const char **)slot = value;
        return PARSED_GO;
    case OPTION_PID:
        return text_pid(text_of(value), slot) < 0 ? wrong_value(option, value, error) : PARSED_GO;
    case OPTION_CHOICE:
        for (int i = 0; option->choices[i]; i++)
            if (strcmp(option->choices[i], value) == 0) {
                *(int *)slot = i;
                return PARSED_GO;
            }
        return wrong_value(option, value, error);
    case OPTION_COUNT:
        return count_parse(text_of(value), slot) < 0 ? wrong_value(option, value, error) : PARSED_GO;
    case OPTION_SECONDS:
        return duration_parse(text_of(value), slot) < 0 ? wrong_value(option, value, error) : PARSED_GO;
    case OPTION_WISH:
        return size_wish_parse(text_of(value), slot) < 0 ? wrong_value(option, value, error) : PARSED_GO;
    case OPTION_LIST:
        return list_add(option, slot, value, error);
    case OPTION_END:
        break;
    }
    return PARSED_WRONG;
}

static Parsed value_missing(const Option *option, Buffer *error)
{
    (void)buffer_printf(error, OPTION_NEEDS_VALUE, option->name, option->name, option->argument);
    return PARSED_WRONG;
}

/* "--name", "--name=value". Takes the value from *next where needed. */
static Parsed long_parse(const Option *options, char *word, char ***next, void *values, Buffer *error)
{
    Text rest = text_of(word + 2);
    Text name = {"", 0};
    (void)text_until(&rest, '=', &name);
    bool has_value = name.data[name.size] == '=';
    const char *value = has_value ? name.data + name.size + 1 : NULL;
    if (text_equal(name, "help") && !has_value)
        return PARSED_HELP;
    const Option *option = option_by_name(options, name);
    if (!option)
        return wrong_name(options, name, error);
    if (option->type == OPTION_FLAG && has_value) {
        (void)buffer_printf(error, OPTION_NO_VALUE, option->name);
        return PARSED_WRONG;
    }
    if (option->type != OPTION_FLAG && !value && !(value = *(*next)))
        return value_missing(option, error);
    if (option->type != OPTION_FLAG && !has_value)
        (*next)++;
    return option_set(option, value, values, error);
}

/* "-x", "-xy", "-pvalue", "-p value". */
static Parsed short_parse(const Option *options, const char *word, char ***next, void *values, Buffer *error)
{
    for (const char *letter = word + 1; *letter; letter++) {
        if (*letter == 'h')
            return PARSED_HELP;
        const Option *option = option_by_letter(options, *letter);
        if (!option) {
            _cleanup_buffer_ Buffer safe = {0};
            (void)text_escape((Text){letter, 1}, &safe);
            (void)buffer_printf(error, OPTION_UNKNOWN_LETTER, buffer_text(&safe));
            return PARSED_WRONG;
        }
        const char *value = NULL;
        if (option->type != OPTION_FLAG) {
            value = letter[1] ? letter + 1 : *(*next);
            if (!value)
                return value_missing(option, error);
            if (!letter[1])
                (*next)++;
        }
        Parsed parsed = option_set(option, value, values, error);
        if (parsed != PARSED_GO || value)
            return parsed;
    }
    return PARSED_GO;
}

Parsed options_parse(const Option *options, int argc, char **argv, void *values, Operands *ret_operands,
                     Buffer *error)
{
    Operands operands = {argv, 0};
    bool only_operands = false;
    char **end = argv + argc; /* *end is NULL, as main's is */
    for (char **next = argv; next < end;) {
        char *word = *next++;
        Parsed parsed = PARSED_GO;
        if (only_operands || word[0] != '-' || word[1] == '\0')
            operands.items[operands.n++] = word;
        else if (strcmp(word, "--") == 0)
            only_operands = true;
        else if (word[1] == '-')
            parsed = long_parse(options, word, &next, values, error);
        else
            parsed = short_parse(options, word, &next, values, error);
        if (parsed != PARSED_GO)
            return parsed;
    }
    *ret_operands = operands;
    return PARSED_GO;
}

static int option_help_name(const Option *option, char *out, size_t size)
{
    char letter[] = "    ";
    if (option->letter)
        memcpy(letter, (char[]){'-', option->letter, ',', ' '}, 4);
    return snprintf(out, size, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
                    option->argument ? option->argument : "");
}

static void option_help_print(const Terminal *terminal, const Option *option, int widest)
{
    char name[80];
    option_help_name(option, name, sizeof name);
    fprintf(terminal->out, "  %-*s  ", widest, name);
    terminal_wrap(terminal, (unsigned)widest + 4, (unsigned)widest + 4, _(option->help));
}

void options_help(const Option *options, FILE *out)
{
    const Terminal terminal = {.out = out, .columns = HELP_COLUMNS};
    char name[80];
    int widest = 0;
    for (size_t i = 0; i < ARRAY_SIZE(everywhere); i++)
        widest = MAX(widest, option_help_name(&everywhere[i], name, sizeof name));
    for (const Option *option = options; option->type != OPTION_END; option++)
        widest = MAX(widest, option_help_name(option, name, sizeof name));
    fprintf(out, "%s\n", CLI_OPTIONS);
    for (const Option *option = options; option->type != OPTION_END; option++)
        option_help_print(&terminal, option, widest);
    for (size_t i = 0; i < ARRAY_SIZE(everywhere); i++)
        option_help_print(&terminal, &everywhere[i], widest);
}
