/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli-text.h"
#include "command.h"

const char *const color_choices[] = {"auto", "always", "never", NULL};

void command_help(const Command *command, FILE *out)
{
    const Terminal terminal = {.out = out, .columns = HELP_COLUMNS};
    if (command->operands)
        fprintf(out, CLI_USAGE_OF_WITH, command->name, command->operands);
    else
        fprintf(out, CLI_USAGE_OF, command->name);
    fputs("\n\n", out);
    terminal_wrap(&terminal, 0, 0, _(command->about));
    fputc('\n', out);
    options_help(command->options, out);
}

/* What programs read is English, and so is what accompanies it. */
static void json_speak_english(const Command *command, const void *values)
{
    if (language_now() == LANGUAGE_ENGLISH) /* as in the C library, whose callers have threads */
        return;
    for (const Option *option = command->options; option->type != OPTION_END; option++)
        if (strcmp(option->name, "json") == 0 && *(const bool *)((const char *)values + option->offset))
            language_choose(LANGUAGE_ENGLISH);
}

bool command_parse(const Command *command, int argc, char **argv, void *values, Operands *ret_operands,
                   int *ret_code)
{
    _cleanup_buffer_ Buffer error = {0};
    Operands operands = {0};
    Parsed parsed = options_parse(command->options, argc - 1, argv + 1, values, &operands, &error);
    json_speak_english(command, values);
    switch (parsed) {
    case PARSED_HELP:
        if (output_is_collected()) {
            *ret_code = complain(EX_USAGE, CLI_LIBRARY_REFUSES, command->name, "--help");
            return false;
        }
        command_help(command, stdout);
        *ret_code = EX_OK;
        return false;
    case PARSED_WRONG:
        *ret_code = complain(EX_USAGE, CLI_FAILED, command->name, buffer_text(&error));
        return false;
    case PARSED_GO:
        break;
    }
    if (operands.n > command->operands_most) {
        (void)text_escape(text_of(operands.items[command->operands_most]), &error);
        *ret_code = complain(EX_USAGE, CLI_EXTRA_ARGUMENT, command->name, buffer_text(&error), command->name);
        return false;
    }
    *ret_operands = operands;
    return true;
}

int command_place(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--") != 0)
        i++;
    return i;
}

bool command_take_if_any(const Command *command, int argc, char **argv, void *values, char ***ret_words,
                         int *ret_code)
{
    Operands operands;
    int place = command_place(argc, argv);
    char **words = place < argc ? argv + place + 1 : argv + argc;
    argv[place] = NULL;
    if (!command_parse(command, place, argv, values, &operands, ret_code))
        return false;
    if (operands.n > 0) {
        _cleanup_buffer_ Buffer safe = {0};
        (void)text_escape(text_of(operands.items[0]), &safe);
        *ret_code = complain(EX_USAGE, CLI_NO_DASHES, command->name, command->name, buffer_text(&safe));
        return false;
    }
    *ret_words = words;
    return true;
}

bool command_take(const Command *command, int argc, char **argv, void *values, char ***ret_words,
                  int *ret_code)
{
    if (!command_take_if_any(command, argc, argv, values, ret_words, ret_code))
        return false;
    if (**ret_words)
        return true;
    *ret_code = complain(EX_USAGE, CLI_NO_COMMAND, command->name, command->name);
    return false;
}

int json_finish(int r)
{
    return r < 0 ? complain(EX_SOFTWARE, CLI_JSON_FAILED, error_text(-r)) : EX_OK;
}
