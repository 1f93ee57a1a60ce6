/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "cli-text.h"
#include "complain.h"

/* The exit codes of shells. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* Of this thread; NULL: the standard streams. */
static _Thread_local FILE *collected_result;
static _Thread_local FILE *collected_messages;

void output_collect(FILE *result, FILE *messages)
{
    collected_result = result;
    collected_messages = messages;
}

bool output_is_collected(void)
{
    return collected_result;
}

FILE *result_stream(void)
{
    return collected_result ? collected_result : stdout;
}

int complain(int code, const char *format, ...)
{
    FILE *out = collected_messages ? collected_messages : stderr;
    va_list list;
    if (!collected_messages)
        fputs("shmguard: ", out);
    va_start(list, format);
    vfprintf(out, format, list);
    va_end(list);
    fputc('\n', out);
    return code;
}

int start_complain(const char *name, const char *command, ChildStage stage, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(command), &safe);
    if (stage == CHILD_NONE)
        return complain(EX_SOFTWARE, CLI_NO_FORK, name, error_text(error));
    if (stage == CHILD_NO_SHM)
        return complain(EX_UNAVAILABLE, CLI_SHM_REFUSED, name, error_text(error));
    if (error == ENOENT)
        return complain(EXIT_NOT_FOUND, CLI_NOT_FOUND, name, buffer_text(&safe));
    return complain(EXIT_NOT_EXECUTABLE, CLI_NOT_STARTED, name, buffer_text(&safe), error_text(error));
}

void guard_complain(const char *library, int error)
{
    if (error == -ENOENT)
        complain(0, CLI_GUARD_MISSING);
    else if (error == -ENAMETOOLONG)
        complain(0, CLI_GUARD_PATH, library);
    else
        complain(0, CLI_GUARD_REFUSED, error_text(-error));
}
