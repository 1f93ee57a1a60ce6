/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"
#include "language.h"

enum { GAP = 2 };

static bool is_shown(const Terminal *terminal, const Column *column)
{
    return terminal->columns >= column->appears_from;
}

/* The widest cell of each column, the titles included. */
static void widths_measure(const Terminal *terminal, const Table *table, Buffer *cell,
                           size_t widths[static TABLE_COLUMNS_MAX])
{
    for (size_t c = 0; c < table->n_columns; c++) {
        widths[c] = 0;
        if (!is_shown(terminal, &table->columns[c]))
            continue;
        widths[c] = text_columns(text_of(_(table->columns[c].title)));
        for (size_t row = 0; row < table->n_rows; row++) {
            buffer_clear(cell);
            table->cell(table->context, row, c, cell);
            widths[c] = MAX(widths[c], text_columns((Text){buffer_text(cell), cell->size}));
        }
    }
}

/* Shrinks the widest column that may shrink, until the table fits. */
static void widths_fit(const Terminal *terminal, const Table *table, size_t widths[static TABLE_COLUMNS_MAX])
{
    size_t total = 0;
    for (size_t c = 0; c < table->n_columns; c++)
        if (is_shown(terminal, &table->columns[c]))
            total += widths[c] + (total > 0 ? GAP : 0);

    while (total > terminal->columns) {
        size_t widest = table->n_columns;
        for (size_t c = 0; c < table->n_columns; c++)
            if (table->columns[c].least > 0 && widths[c] > table->columns[c].least &&
                (widest == table->n_columns || widths[c] > widths[widest]))
                widest = c;
        if (widest == table->n_columns)
            break;
        widths[widest]--;
        total--;
    }
}

static void row_print(const Terminal *terminal, const Table *table, const size_t *widths, const size_t *row,
                      Buffer *cell, Buffer *fitted)
{
    size_t pending = 0; /* blanks due before the next cell, so that no line ends with blanks */
    for (size_t c = 0; c < table->n_columns; c++) {
        const Column *column = &table->columns[c];
        if (!is_shown(terminal, column))
            continue;
        buffer_clear(cell);
        buffer_clear(fitted);
        if (row)
            table->cell(table->context, *row, c, cell);
        else
            (void)buffer_append_text(cell, _(column->title));
        (void)text_shorten((Text){buffer_text(cell), cell->size}, widths[c],
                           terminal_mark(terminal, MARK_ELLIPSIS), fitted);
        size_t used = text_columns((Text){buffer_text(fitted), fitted->size});
        size_t blanks = widths[c] > used ? widths[c] - used : 0;
        if (column->right)
            pending += blanks;
        if (used > 0) {
            fprintf(terminal->out, "%*s", (int)pending, "");
            terminal_print(terminal, row ? STYLE_PLAIN : STYLE_BOLD, "%s", buffer_text(fitted));
            pending = 0;
        }
        pending += GAP + (column->right ? 0 : blanks);
    }
    fputc('\n', terminal->out);
}

void table_print(const Terminal *terminal, const Table *table)
{
    _cleanup_buffer_ Buffer cell = {0};
    _cleanup_buffer_ Buffer fitted = {0};
    size_t widths[TABLE_COLUMNS_MAX];
    widths_measure(terminal, table, &cell, widths);
    widths_fit(terminal, table, widths);
    row_print(terminal, table, widths, NULL, &cell, &fitted);
    for (size_t row = 0; row < table->n_rows; row++)
        row_print(terminal, table, widths, &row, &cell, &fitted);
}
