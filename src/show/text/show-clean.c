/* SPDX-License-Identifier: Apache-2.0 */
#include "show-clean.h"
#include "ps-text.h"
#include "table.h"
#include "units.h"

enum { COL_NAME, COL_KIND, COL_SIZE };

static const Column removed_columns[] = {
    [COL_NAME] = {PS_HEAD_NAME, .least = 16},
    [COL_KIND] = {PS_HEAD_KIND},
    [COL_SIZE] = {PS_HEAD_ALLOCATED, .right = true},
};

static void removed_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const Segment *segment = ((const Cleaning *)context)->removed.items[row].segment;
    if (column == COL_NAME)
        (void)text_escape(segment->name, out);
    else if (column == COL_KIND)
        (void)buffer_append_text(out, segment_kind_name(segment->kind));
    else
        (void)buffer_append_text(out, SIZE_TEXT(segment->allocated_bytes));
}

/* Names are shortened, reasons are not. */
static void show_kept(const Terminal *terminal, const CleanedList *kept)
{
    enum { NAME_COLUMNS_MOST = 32, GAP = 2 };
    _cleanup_buffer_ Buffer name = {0};
    _cleanup_buffer_ Buffer fitted = {0};
    size_t widest = 0;
    for (size_t i = 0; i < kept->n; i++) {
        buffer_clear(&name);
        (void)text_escape(kept->items[i].segment->name, &name);
        widest = MAX(widest, text_columns((Text){buffer_text(&name), name.size}));
    }
    widest = MIN(widest, (size_t)NAME_COLUMNS_MOST);
    for (size_t i = 0; i < kept->n; i++) {
        buffer_clear(&name);
        buffer_clear(&fitted);
        (void)text_escape(kept->items[i].segment->name, &name);
        (void)text_shorten((Text){buffer_text(&name), name.size}, widest,
                           terminal_mark(terminal, MARK_ELLIPSIS), &fitted);
        size_t used = text_columns((Text){buffer_text(&fitted), fitted.size});
        fprintf(terminal->out, "%s%*s", buffer_text(&fitted), (int)(widest - used + GAP), "");
        terminal_wrap(terminal, (unsigned)widest + GAP, (unsigned)widest + GAP, kept->items[i].why);
    }
}

void show_cleaning(const Terminal *terminal, const Cleaning *cleaning)
{
    if (cleaning->removed.n > 0) {
        terminal_print(terminal, STYLE_BOLD, cleaning->dry_run ? CLEAN_TO_REMOVE : CLEAN_REMOVED);
        fputc('\n', terminal->out);
        table_print(terminal, &(Table){removed_columns, ARRAY_SIZE(removed_columns), cleaning->removed.n,
                                       removed_cell, cleaning});
        fputc('\n', terminal->out);
    }
    if (cleaning->kept.n > 0) {
        terminal_print(terminal, STYLE_BOLD, CLEAN_KEPT);
        fputc('\n', terminal->out);
        show_kept(terminal, &cleaning->kept);
        fputc('\n', terminal->out);
    }
    fprintf(terminal->out, cleaning->dry_run ? CLEAN_DRY_RUN : CLEAN_DONE, cleaning->removed.n,
            cleaning->kept.n, SIZE_TEXT(cleaning->freed_bytes));
    fputc('\n', terminal->out);
}
