#include "show-clean.h"
#include "table.h"
#include "units.h"

enum { COL_NAME, COL_KIND, COL_SIZE, COL_WHY };

static const Column removed_columns[] = {
    [COL_NAME] = {"NAME", .least = 16},
    [COL_KIND] = {"KIND"},
    [COL_SIZE] = {"ALLOCATED", .right = true},
};

/* The reason is what matters here: on a narrow terminal it gets the room. */
static const Column kept_columns[] = {
    [COL_NAME] = {"NAME", .least = 16},
    [COL_KIND] = {"KIND", .appears_from = 100},
    [COL_SIZE] = {"ALLOCATED", .right = true, .appears_from = 100},
    [COL_WHY] = {"WHY", .least = 16},
};

static void append_cell(Buffer *out, const Segment *segment, size_t column)
{
    if (column == COL_NAME)
        (void)text_escape(segment->name, out);
    else if (column == COL_KIND)
        (void)buffer_append_text(out, segment_kind_name(segment->kind));
    else if (column == COL_SIZE)
        (void)buffer_append_text(out, SIZE_TEXT(segment->allocated_bytes));
}

static void removed_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const Cleaning *cleaning = context;
    append_cell(out, cleaning->removed.items[row].segment, column);
}

static void kept_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const Cleaned *kept = &((const Cleaning *)context)->kept.items[row];
    append_cell(out, kept->segment, column);
    if (column == COL_WHY)
        (void)text_escape_prose(text_of(kept->why), out);
}

void show_cleaning(const Terminal *terminal, const Cleaning *cleaning)
{
    const char *would = cleaning->dry_run ? "would be " : "";
    if (cleaning->removed.n > 0) {
        terminal_print(terminal, STYLE_BOLD, cleaning->dry_run ? "Would be removed" : "Removed");
        fputc('\n', terminal->out);
        table_print(terminal, &(Table){removed_columns, ARRAY_SIZE(removed_columns), cleaning->removed.n,
                                       removed_cell, cleaning});
        fputc('\n', terminal->out);
    }
    if (cleaning->kept.n > 0) {
        terminal_print(terminal, STYLE_BOLD, "Kept");
        fputc('\n', terminal->out);
        table_print(terminal,
                    &(Table){kept_columns, ARRAY_SIZE(kept_columns), cleaning->kept.n, kept_cell, cleaning});
        fputc('\n', terminal->out);
    }
    fprintf(terminal->out, "%zu %sremoved, %zu kept, %s %sfreed\n", cleaning->removed.n, would,
            cleaning->kept.n, SIZE_TEXT(cleaning->freed_bytes), would);
}
