/* SPDX-License-Identifier: Apache-2.0 */
#include "show-sites.h"
#include "sites-text.h"

enum { INDENT = 2 };

void show_sites(const Terminal *terminal, const SiteView *view)
{
    if (!view->sought)
        return;
    terminal_print(terminal, STYLE_BOLD, SITES_TITLE);
    fputc('\n', terminal->out);
    for (size_t i = 0; i < view->n; i++) {
        fprintf(terminal->out, "%*s", INDENT, "");
        terminal_wrap(terminal, INDENT, 2 * INDENT, view->items[i].words);
    }
    for (size_t i = 0; i < view->n_notes; i++) {
        fprintf(terminal->out, "%*s", INDENT, "");
        terminal_wrap(terminal, INDENT, INDENT, view->notes[i]);
    }
    fputc('\n', terminal->out);
}
