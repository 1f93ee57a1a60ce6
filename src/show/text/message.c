/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "language.h"
#include "message.h"

static const char name[] = "shmguard:";

enum { NAME_COLUMNS = sizeof name, INDENT = 2 }; /* with the blank behind it */

static const char *separator_after(const Buffer *message, const char *separator)
{
    return strcmp(separator, " ") == 0 ? sentence_gap((Text){message->data, message->size}) : separator;
}

int message_add(Buffer *message, const char *separator, const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list list;
    va_start(list, format);
    if (vasprintf(&text, format, list) < 0)
        text = NULL;
    va_end(list);
    if (!text)
        return -ENOMEM;
    int r = message->size > 0 ? buffer_append_text(message, separator_after(message, separator)) : 0;
    return r < 0 ? r : buffer_append_text(message, text);
}

void message_print(const Terminal *terminal, Style style, const Buffer *message)
{
    if (message->size == 0)
        return;
    terminal_print(terminal, style, "%s", name);
    fputc(' ', terminal->out);
    terminal_wrap(terminal, NAME_COLUMNS, INDENT, buffer_text(message));
}

void message_print_line(const Terminal *terminal, const Buffer *message)
{
    if (message->size == 0)
        return;
    terminal_print(terminal, STYLE_BOLD, "%s", name);
    fprintf(terminal->out, " %s\n", buffer_text(message));
}
