/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "command.h"

const char *const color_choices[] = {"auto", "always", "never", NULL};

int complain(int code, const char *format, ...)
{
    va_list list;
    fputs("shmguard: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return code;
}

void command_help(const Command *command, FILE *out)
{
    fprintf(out, "Usage: shmguard %s [OPTION]...%s%s\n\n%s\n\n", command->name, command->operands ? " " : "",
            command->operands ? command->operands : "", command->about);
    options_help(command->options, out);
}

bool command_parse(const Command *command, int argc, char **argv, void *values, Operands *ret_operands,
                   int *ret_code)
{
    _cleanup_buffer_ Buffer error = {0};
    Operands operands = {0};
    switch (options_parse(command->options, argc - 1, argv + 1, values, &operands, &error)) {
    case PARSED_HELP:
        command_help(command, stdout);
        *ret_code = EX_OK;
        return false;
    case PARSED_WRONG:
        *ret_code = complain(EX_USAGE, "%s: %s", command->name, buffer_text(&error));
        return false;
    case PARSED_GO:
        break;
    }
    if (operands.n > command->operands_most) {
        (void)text_escape(text_of(operands.items[command->operands_most]), &error);
        *ret_code =
            complain(EX_USAGE, "%s: \"%s\" is one argument too many; shmguard %s --help shows the usage",
                     command->name, buffer_text(&error), command->name);
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

int json_finish(int r)
{
    return r < 0 ? complain(EX_SOFTWARE, "the JSON could not be made: %s", strerror(-r)) : EX_OK;
}
