/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the commands and their options as JSON, for scripts/manuals. */
#include <jansson.h>

#include "begin.h"
#include "checks.h"
#include "command.h"

static const char *type_name(OptionType type)
{
    switch (type) {
    case OPTION_FLAG:
        return "flag";
    case OPTION_TEXT:
        return "text";
    case OPTION_PID:
        return "pid";
    case OPTION_CHOICE:
        return "choice";
    case OPTION_COUNT:
        return "count";
    case OPTION_SECONDS:
        return "seconds";
    case OPTION_WISH:
        return "wish";
    case OPTION_LIST:
        return "list";
    case OPTION_END:
        break;
    }
    return NULL;
}

static json_t *option_pack(const Option *option)
{
    json_t *choices = json_array();
    for (const char *const *choice = option->choices; choice && *choice; choice++)
        json_array_append_new(choices, json_string(*choice));
    return json_pack("{s:s, s:s, s:s%, s:s?, s:o, s:s}", "type", type_name(option->type), "name",
                     option->name, "letter", &option->letter, (size_t)(option->letter != 0), "argument",
                     option->argument, "choices", choices, "help", option->help);
}

static json_t *command_pack(const Command *command)
{
    json_t *options = json_array();
    for (const Option *option = command->options; option->type != OPTION_END; option++)
        json_array_append_new(options, option_pack(option));
    return json_pack("{s:s, s:s, s:s?, s:s, s:o}", "name", command->name, "summary", command->summary,
                     "operands", command->operands, "about", command->about, "options", options);
}

static json_t *starting_point_pack(const StartingPoint *point)
{
    json_t *ways = json_array();
    for (size_t i = 0; i < BEGIN_WAYS && point->ways[i].command; i++)
        json_array_append_new(
            ways, json_pack("{s:s, s:s}", "command", point->ways[i].command, "what", point->ways[i].what));
    return json_pack("{s:s, s:o}", "when", point->when, "ways", ways);
}

int main(void)
{
    json_t *made = json_array();
    for (const Command *const *command = commands; *command; command++)
        json_array_append_new(made, command_pack(*command));
    json_t *findings = json_array();
    const Check *check = NULL;
    for (size_t i = 0; (check = check_at(i)); i++)
        json_array_append_new(findings, json_string(check->id));
    json_t *begin = json_array();
    for (const StartingPoint *point = starting_points; point->when; point++)
        json_array_append_new(begin, starting_point_pack(point));
    json_t *tables = json_pack("{s:s, s:o, s:o, s:o}", "version", SHMGUARD_VERSION, "commands", made,
                               "findings", findings, "situations", begin);
    int r = tables ? json_dumpf(tables, stdout, JSON_INDENT(1)) : -1;
    json_decref(tables);
    return r != 0 || fflush(stdout) != 0;
}
