/* SPDX-License-Identifier: Apache-2.0 */
/* The public library: the commands, with what they would print collected. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "cli-text.h"
#include "command.h"
#include "shmguard.h"

#define PUBLIC __attribute__((visibility("default")))

typedef struct ApiCall {
    const Command *command; /* NULL: explain */
    int argc;
    char **argv;
    Text log;
} ApiCall;

static int call_command(const ApiCall *call)
{
    return call->command ? call->command->run(call->command, call->argc, call->argv)
                         : explain_text(call->log);
}

/* Numbers are read and written with a point, whatever locale the process has. */
static int call_collected(const ApiCall *call, FILE *result, FILE *messages)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    output_collect(result, messages);
    int code = call_command(call);
    output_collect(NULL, NULL);
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
    return code;
}

static bool stream_close(FILE *stream)
{
    bool whole = stream && !ferror(stream);
    return stream && fclose(stream) == 0 && whole;
}

static int answer(const ApiCall *call, char **ret_json, char **ret_error)
{
    int error = errno;
    _cleanup_free_ char *json = NULL;
    _cleanup_free_ char *line = NULL;
    size_t json_size = 0;
    size_t line_size = 0;
    FILE *result = open_memstream(&json, &json_size);
    FILE *messages = open_memstream(&line, &line_size);
    int code = result && messages ? call_collected(call, result, messages) : EX_SOFTWARE;
    bool whole = stream_close(result);
    whole = stream_close(messages) && whole;
    if (!whole)
        code = EX_SOFTWARE;
    if (code < EX__BASE)
        *ret_json = TAKE_PTR(json);
    else {
        if (line_size > 0)
            line[line_size - 1] = '\0'; /* the newline */
        *ret_error = line_size > 0 ? TAKE_PTR(line) : strdup(CLI_OUT_OF_MEMORY);
    }
    errno = error;
    return code;
}

static int answer_command(const Command *command, const char *const *options, char **ret_json,
                          char **ret_error)
{
    size_t n = 0;
    while (options && options[n])
        n++;
    char **argv = calloc(n + 3, sizeof *argv);
    if (!argv) {
        *ret_error = strdup(CLI_OUT_OF_MEMORY);
        return EX_SOFTWARE;
    }
    /* The commands reorder the words, and do not change them. */
    argv[0] = (char *)command->name;
    argv[1] = (char *)"--json";
    for (size_t i = 0; i < n; i++)
        argv[i + 2] = (char *)options[i];
    const ApiCall call = {.command = command, .argc = (int)n + 2, .argv = argv};
    int code = answer(&call, ret_json, ret_error);
    free(argv);
    return code;
}

PUBLIC const char *shmguard_version(void)
{
    return SHMGUARD_VERSION;
}

PUBLIC int shmguard_doctor(const char *const *options, char **ret_json, char **ret_error)
{
    return answer_command(&command_doctor, options, ret_json, ret_error);
}

PUBLIC int shmguard_ps(const char *const *options, char **ret_json, char **ret_error)
{
    return answer_command(&command_ps, options, ret_json, ret_error);
}

PUBLIC int shmguard_plan(const char *const *options, char **ret_json, char **ret_error)
{
    return answer_command(&command_plan, options, ret_json, ret_error);
}

PUBLIC int shmguard_explain(const char *log, size_t size, char **ret_json, char **ret_error)
{
    const ApiCall call = {.log = {log, size}};
    return answer(&call, ret_json, ret_error);
}

PUBLIC void shmguard_free(char *text)
{
    free(text);
}
