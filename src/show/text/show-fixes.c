/* SPDX-License-Identifier: Apache-2.0 */
#include "show-fixes.h"
#include "explain-text.h"

static int fix_print(Buffer *out, const Fix *fix)
{
    switch (fix->needs) {
    case NEEDS_ROOT:
        return buffer_printf(out, FIX_NEEDS_ROOT, fix->what);
    case NEEDS_RESTART:
        return buffer_printf(out, FIX_NEEDS_RESTART, fix->what);
    case NEEDS_ADMIN:
        return buffer_printf(out, FIX_NEEDS_ADMIN, fix->what);
    case NEEDS_NOTHING:
        break;
    }
    return buffer_append_text(out, fix->what);
}

void show_fixes(const Terminal *terminal, unsigned indent, const Fixes *fixes)
{
    _cleanup_buffer_ Buffer line = {0};
    for (size_t i = 0; i < fixes->n; i++) {
        const Fix *fix = &fixes->items[i];
        int at = fprintf(terminal->out, "%*s%zu. ", (int)indent, "", i + 1);
        unsigned inner = at > 0 ? (unsigned)at : indent;
        buffer_clear(&line);
        (void)fix_print(&line, fix);
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
