/* SPDX-License-Identifier: Apache-2.0 */
#include "show-fixes.h"

static const char *needs_words(FixNeeds needs)
{
    switch (needs) {
    case NEEDS_ROOT:
        return " (needs root)";
    case NEEDS_RESTART:
        return " (needs a restart)";
    case NEEDS_ADMIN:
        return " (needs an administrator)";
    case NEEDS_NOTHING:
        break;
    }
    return "";
}

void show_fixes(const Terminal *terminal, unsigned indent, const Fixes *fixes)
{
    _cleanup_buffer_ Buffer line = {0};
    for (size_t i = 0; i < fixes->n; i++) {
        const Fix *fix = &fixes->items[i];
        int at = fprintf(terminal->out, "%*s%zu. ", (int)indent, "", i + 1);
        unsigned inner = at > 0 ? (unsigned)at : indent;
        buffer_clear(&line);
        (void)buffer_printf(&line, "%s%s", fix->what, needs_words(fix->needs));
        terminal_wrap(terminal, inner, inner, buffer_text(&line));
        if (fix->command)
            terminal_verbatim(terminal, inner + 4, fix->command);
    }
}

json_t *json_fixes(const Fixes *fixes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < fixes->n; i++) {
        const Fix *fix = &fixes->items[i];
        json_t *item = json_pack("{s:o, s:o, s:s}", "what", json_prose(fix->what), "command",
                                 json_prose(fix->command), "needs", fix_needs_name(fix->needs));
        if (json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
