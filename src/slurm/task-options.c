/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "slurm-text.h"
#include "task-options.h"
#include "units.h"

typedef struct Item {
    Text whole;
    Text name;
    Text value;
    bool has_value;
} Item;

#define COMPLAIN(error, words, text)                                                                         \
    ({                                                                                                       \
        _cleanup_buffer_ Buffer _safe = {0};                                                                 \
        (void)text_escape((text), &_safe);                                                                   \
        (void)buffer_printf((error), words, buffer_text(&_safe));                                            \
        -EINVAL;                                                                                             \
    })

static int word_add(TaskOptions *options, Text whole, Buffer *error)
{
    if (options->n == TASK_OPTIONS_MAX || whole.size + 3 > TASK_OPTION_SIZE)
        return COMPLAIN(error, SLURM_OPTION_MANY, whole);
    snprintf(options->words[options->n++], TASK_OPTION_SIZE, "--%.*s", (int)whole.size, whole.data);
    return 0;
}

static int flag_take(const Item *item, TaskOptions *options, Buffer *error)
{
    const struct {
        const char *name;
        bool *flag; /* NULL: only for the command line */
    } flags[] = {{"off", &options->off},
                 {"record", &options->record},
                 {"quiet", &options->quiet},
                 {"where", NULL},
                 {"no-guard", NULL}};
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        if (!text_equal(item->name, flags[i].name))
            continue;
        if (item->has_value)
            return COMPLAIN(error, SLURM_OPTION_FLAG, item->name);
        if (flags[i].flag)
            *flags[i].flag = true;
        return flags[i].flag ? 0 : word_add(options, item->whole, error);
    }
    return COMPLAIN(error, SLURM_OPTION_UNKNOWN, item->name);
}

static int item_take(const Item *item, TaskOptions *options, Buffer *error)
{
    SizeWish budget;
    double seconds = 0;
    if (text_equal(item->name, "budget") && size_wish_parse(item->value, &budget) < 0)
        return COMPLAIN(error, SLURM_OPTION_SIZE, item->value);
    if (text_equal(item->name, "wait") && duration_parse(item->value, &seconds) < 0)
        return COMPLAIN(error, SLURM_OPTION_SECONDS, item->value);
    if (text_equal(item->name, "budget") || text_equal(item->name, "wait"))
        return word_add(options, item->whole, error);
    bool report = text_equal(item->name, "report");
    if (!report && !text_equal(item->name, "pin") && !text_equal(item->name, "lane") &&
        !text_equal(item->name, "freeze"))
        return flag_take(item, options, error);
    if (!text_equal(item->value, "off"))
        return COMPLAIN(error, SLURM_OPTION_ONLY, item->name);
    options->no_report |= report;
    return report ? 0 : word_add(options, item->whole, error);
}

/* What shmguard run would refuse. */
static int guard_check(const TaskOptions *options, Buffer *error)
{
    static const char *const of_the_guard[] = {"--budget=", "--wait=", "--pin=", "--lane=", "--freeze="};
    const char *idle = NULL;
    bool no_guard = false;
    for (size_t i = 0; i < options->n; i++) {
        no_guard |= strcmp(options->words[i], "--no-guard") == 0;
        for (size_t j = 0; j < ARRAY_SIZE(of_the_guard); j++)
            if (strncmp(options->words[i], of_the_guard[j], strlen(of_the_guard[j])) == 0)
                idle = options->words[i] + 2;
    }
    return no_guard && idle ? COMPLAIN(error, SLURM_OPTION_NO_GUARD, text_of(idle)) : 0;
}

int task_options_parse(Text text, TaskOptions *ret, Buffer *error)
{
    TaskOptions options = {0};
    for (Text whole; text_until(&text, ',', &whole);) {
        Item item = {.whole = whole, .value = whole, .has_value = text_contains(whole, "=")};
        (void)text_until(&item.value, '=', &item.name);
        int r = item_take(&item, &options, error);
        if (r < 0)
            return r;
    }
    int r = guard_check(&options, error);
    if (r >= 0)
        *ret = options;
    return r;
}
