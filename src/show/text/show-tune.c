/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "show-tune.h"
#include "table.h"
#include "units.h"

/* ROWS_MOST: of settings that were skipped; the rest is counted. */
enum { LABEL_MOST = 26, RATE_BAR = 24, MEMORY_BAR = 10, SKIPPED_MOST = 6 };

int tune_rate_words(const TuneReport *report, double rate, Buffer *out)
{
    if (report->by_bytes)
        return buffer_printf(out, "%s/s", SIZE_TEXT(rate < 0x1p62 ? (uint64_t)rate : UINT64_C(1) << 62));
    return buffer_printf(out,
                         rate < 10     ? "%.2f samples/s"
                         : rate < 1000 ? "%.1f samples/s"
                                       : "%.0f samples/s",
                         rate);
}

/* --- Sentences ---------------------------------------------------------------------------------------- */

static int fate_words(const TuneSetting *known, Buffer *out)
{
    switch (known->fate) {
    case TUNE_MEASURED:
        return buffer_append_text(out, known->last->stopped ? "slower, cut short" : "");
    case TUNE_OVER:
        return buffer_append_text(out, "over the ceiling");
    case TUNE_FAILED:
        return buffer_printf(out, "failed: %s", cause_name(known->last->cause.id));
    case TUNE_SKIPPED_MEMORY:
        return buffer_append_text(out, "skipped: estimated");
    case TUNE_SKIPPED_SMALLER:
        return buffer_append_text(out, "skipped: a smaller one ran out");
    case TUNE_UNTRIED:
        break;
    }
    return 0;
}

int tune_trial_words(const TuneReport *report, const TuneTrial *trial, Buffer *out)
{
    int r = tune_setting_words(&report->tune, trial->setting, out);
    if (r == 0)
        r = buffer_append_text(out, ": ");
    if (r == 0 && trial->cause.id != CAUSE_OK) {
        r = buffer_printf(out, "%s. ", cause_name(trial->cause.id));
        return r < 0 ? r : text_escape_prose(text_of(trial->cause.summary), out);
    }
    if (r == 0)
        r = tune_rate_words(report, trial->rate, out);
    if (r == 0 && trial->shm_bytes != U64_UNKNOWN && trial->own_bytes != U64_UNKNOWN)
        r = buffer_printf(out, ", at most %s of memory", SIZE_TEXT(trial->shm_bytes + trial->own_bytes));
    if (r == 0 && trial->stopped)
        r = buffer_append_text(out, "; clearly slower, stopped early");
    return r;
}

static int interval_words(const TuneReport *report, const TuneSetting *known, Buffer *out)
{
    int r = tune_rate_words(report, known->rate, out);
    return r < 0 ? r
                 : buffer_printf(out, " (%s %.1f%%)", "give or take",
                                 known->rate > 0 ? (known->high - known->rate) / known->rate * 100 : 0);
}

static int comparison_words(const TuneReport *report, const TuneSetting *best, Buffer *out)
{
    const TuneVerdict *verdict = &report->verdict;
    if (!verdict->has_next)
        return buffer_append_text(out, ". There is nothing to compare it with");
    TuneSetting next = tune_setting(&report->tune, verdict->next);
    int r = 0;
    if (verdict->separated)
        r = buffer_printf(out, ". It is %.1f%% faster than the next, ", (best->rate / next.rate - 1) * 100);
    else
        r = buffer_printf(out,
                          ". %zu other%s cannot be told apart from it: trials of one setting differ by about "
                          "%.1f%%. The fastest of them is ",
                          verdict->rivals, verdict->rivals == 1 ? "" : "s", tune_noise(&report->tune) * 100);
    if (r == 0)
        r = tune_setting_words(&report->tune, verdict->next, out);
    if (r == 0 && !verdict->separated) {
        r = buffer_append_text(out, " with ");
        if (r == 0)
            r = tune_rate_words(report, next.rate, out);
        if (r == 0 && best->memory_bytes < next.memory_bytes && next.memory_bytes != U64_UNKNOWN)
            r = buffer_printf(out, " and %s of memory", SIZE_TEXT(next.memory_bytes));
    }
    return r;
}

static int safety_words(const TuneReport *report, const TuneSetting *best, Buffer *out)
{
    uint64_t ceiling = report->tune.ceiling_bytes;
    if (best->fate == TUNE_OVER)
        return buffer_printf(out, ". It is not safe: it took up to %s of memory, and the ceiling is %s",
                             SIZE_TEXT(best->memory_bytes), SIZE_TEXT(ceiling));
    if (best->fate != TUNE_MEASURED)
        return buffer_printf(out, ". It is not safe: a trial of it failed (%s)",
                             cause_name(best->last->cause.id));
    if (best->memory_bytes == U64_UNKNOWN || ceiling == U64_UNKNOWN)
        return buffer_append_text(out, "; its memory could not be compared with a ceiling");
    return buffer_printf(out, ", with at most %s of memory; the ceiling is %s", SIZE_TEXT(best->memory_bytes),
                         SIZE_TEXT(ceiling));
}

static int start_words(const TuneReport *report, Buffer *out)
{
    const Tune *tune = &report->tune;
    TuneStart start = tune_start(tune);
    if (tune->n == 0 || tune->trials[0].setting != start.setting) /* it goes on from other options */
        return 0;
    int r = buffer_append_text(out, ". The first was ");
    if (r == 0)
        r = tune_setting_words(tune, start.setting, out);
    if (r < 0 || tune->ceiling_bytes == U64_UNKNOWN)
        return r < 0 ? r : buffer_append_text(out, ", the middle of the grid");
    if (!start.fits)
        return buffer_printf(out, ", which needs least: for samples of %s%s none is known to be safe",
                             SIZE_TEXT(start.sample_bytes), start.assumed ? " (assumed)" : "");
    return buffer_printf(out, ", safe by plan's arithmetic for samples of up to %s%s",
                         SIZE_TEXT(start.sample_bytes), start.assumed ? " (assumed)" : "");
}

static int effort_words(const TuneReport *report, Buffer *out)
{
    const TuneVerdict *verdict = &report->verdict;
    int r = buffer_printf(out, ". %zu of the %zu settings were tried, in %zu trial%s",
                          verdict->measured + verdict->failed, tune_settings(&report->tune), report->tune.n,
                          report->tune.n == 1 ? "" : "s");
    if (r == 0 && verdict->failed > 0)
        r = buffer_printf(out, ", %zu of which failed", verdict->failed);
    if (r == 0 && verdict->skipped > 0)
        r = buffer_printf(out, "; %zu would not fit, as estimated, and %s skipped", verdict->skipped,
                          verdict->skipped == 1 ? "was" : "were");
    if (r == 0)
        r = start_words(report, out);
    if (r == 0 && report->interrupted)
        r = buffer_append_text(out, "; the search was interrupted");
    return r < 0 ? r : buffer_append_text(out, ".");
}

int tune_why(const TuneReport *report, Buffer *out)
{
    const TuneVerdict *verdict = &report->verdict;
    TuneSetting best = tune_setting(&report->tune, verdict->best);
    int r = tune_setting_words(&report->tune, verdict->best, out);
    if (r == 0)
        r = buffer_append_text(out, " gave ");
    if (r == 0)
        r = interval_words(report, &best, out);
    if (r == 0)
        r = buffer_printf(out, ", measured in %zu trial%s", best.measured, best.measured == 1 ? "" : "s");
    if (r == 0)
        r = safety_words(report, &best, out);
    if (r == 0)
        r = comparison_words(report, &best, out);
    return r < 0 ? r : effort_words(report, out);
}

/* --- The table ---------------------------------------------------------------------------------------- */

typedef struct SettingRow {
    size_t setting;
    TuneSetting known;
} SettingRow;

typedef struct SettingRows {
    const TuneReport *report;
    SettingRow *items;
    size_t n;
    size_t measured; /* the first ones */
    size_t left_out;
} SettingRows;

static int row_rank(const SettingRow *row)
{
    return row->known.measured > 0 ? 0 : row->known.trials > 0 ? 1 : 2;
}

static int row_compare(const void *a, const void *b)
{
    const SettingRow *one = a;
    const SettingRow *other = b;
    int ranks = row_rank(one) - row_rank(other);
    if (ranks != 0)
        return ranks;
    if (one->known.rate != other->known.rate)
        return one->known.rate < other->known.rate ? 1 : -1;
    return (one->setting > other->setting) - (one->setting < other->setting);
}

static int rows_make(const TuneReport *report, Arena *arena, SettingRows *ret)
{
    const Tune *tune = &report->tune;
    size_t n_settings = tune_settings(tune);
    SettingRows rows = {.report = report, .items = arena_alloc(arena, n_settings * sizeof *rows.items)};
    size_t skipped = 0;
    if (!rows.items)
        return -ENOMEM;
    for (size_t i = 0; i < n_settings; i++) {
        TuneSetting known = tune_setting(tune, i);
        bool is_skipped = known.fate == TUNE_SKIPPED_MEMORY || known.fate == TUNE_SKIPPED_SMALLER;
        skipped += is_skipped;
        if (known.fate == TUNE_UNTRIED)
            continue;
        if (is_skipped && skipped > SKIPPED_MOST)
            rows.left_out++;
        else
            rows.items[rows.n++] = (SettingRow){i, known};
        rows.measured += known.measured > 0;
    }
    qsort(rows.items, rows.n, sizeof *rows.items, row_compare);
    *ret = rows;
    return 0;
}

static void row_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const SettingRows *rows = context;
    const SettingRow *item = &rows->items[row];
    const Tune *tune = &rows->report->tune;
    if (column < tune->n_axes) {
        const TuneAxis *axis = &tune->axes[column];
        (void)text_escape(text_of(axis->values[tune_value(tune, item->setting, column)]), out);
        return;
    }
    switch (column - tune->n_axes) {
    case 0:
        if (item->known.measured > 0)
            (void)tune_rate_words(rows->report, item->known.rate, out);
        break;
    case 1:
        if (item->known.measured > 0)
            (void)buffer_printf(out, "%.1f%%", (item->known.high / item->known.rate - 1) * 100);
        break;
    case 2:
        if (item->known.trials > 0)
            (void)buffer_printf(out, "%zu", item->known.trials);
        break;
    case 3:
        (void)buffer_append_text(out, SIZE_TEXT(item->known.memory_bytes));
        break;
    default:
        if (rows->report->verdict.found && item->setting == rows->report->verdict.best)
            (void)buffer_append_text(out, rows->report->verdict.safe ? "best" : "fastest, not safe");
        else
            (void)fate_words(&item->known, out);
        break;
    }
}

static void show_table(const Terminal *terminal, const SettingRows *rows)
{
    const Tune *tune = &rows->report->tune;
    Column columns[TUNE_AXES_MAX + 5];
    size_t n = 0;
    for (; n < tune->n_axes; n++)
        columns[n] = (Column){tune->axes[n].name, tune->axes[n].numbers != NULL, 6, 0};
    columns[n++] = (Column){"rate", true, 0, 0};
    columns[n++] = (Column){terminal->utf8 ? "±" : "+-", true, 0, 0};
    columns[n++] = (Column){"trials", true, 0, 70};
    columns[n++] = (Column){"memory", true, 0, 0};
    columns[n++] = (Column){"", false, 10, 0};
    Table table = {columns, n, rows->n, row_cell, rows};
    table_print(terminal, &table);
    if (rows->left_out > 0)
        fprintf(terminal->out, "and %zu more that would not fit, as estimated\n", rows->left_out);
}

/* --- The plot ----------------------------------------------------------------------------------------- */

static void show_bar(const Terminal *terminal, double part, unsigned width)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double columns = MIN(MAX(part, 0.0), 1.0) * width;
    unsigned whole = (unsigned)(terminal->utf8 ? columns : columns + 0.5);
    unsigned eighth = terminal->utf8 ? (unsigned)((columns - whole) * 8) : 0;
    for (unsigned i = 0; i < whole; i++)
        fputs(terminal->utf8 ? "█" : "#", terminal->out);
    fputs(eighths[eighth], terminal->out);
    fprintf(terminal->out, "%*s", (int)(width - whole - (eighth > 0)), "");
}

static int setting_compare(const void *a, const void *b)
{
    const SettingRow *one = a;
    const SettingRow *other = b;
    return (one->setting > other->setting) - (one->setting < other->setting);
}

static void show_plot_row(const Terminal *terminal, const SettingRows *rows, const SettingRow *row,
                          double rate_most, uint64_t memory_most)
{
    _cleanup_buffer_ Buffer label = {0};
    _cleanup_buffer_ Buffer fitted = {0};
    (void)tune_setting_words(&rows->report->tune, row->setting, &label);
    (void)text_shorten((Text){buffer_text(&label), label.size}, LABEL_MOST,
                       terminal_mark(terminal, MARK_ELLIPSIS), &fitted);
    int blanks = LABEL_MOST - (int)text_columns((Text){buffer_text(&fitted), fitted.size});
    fprintf(terminal->out, "%s%*s ", buffer_text(&fitted), blanks, "");
    show_bar(terminal, row->known.rate / rate_most, RATE_BAR);
    bool known = row->known.memory_bytes != U64_UNKNOWN && memory_most != U64_UNKNOWN;
    fputs(terminal->utf8 ? " │ " : " | ", terminal->out);
    show_bar(terminal, known ? (double)row->known.memory_bytes / (double)memory_most : 0, MEMORY_BAR);
    fprintf(terminal->out, " %s\n", SIZE_TEXT(row->known.memory_bytes));
}

static void show_plot(const Terminal *terminal, SettingRows *rows)
{
    double rate_most = 0;
    uint64_t memory_most = U64_UNKNOWN;
    for (size_t i = 0; i < rows->measured; i++) {
        rate_most = MAX(rate_most, rows->items[i].known.rate);
        u64_raise(&memory_most, rows->items[i].known.memory_bytes);
    }
    if (rate_most <= 0 || rows->measured < 2)
        return;
    qsort(rows->items, rows->measured, sizeof *rows->items, setting_compare);
    fputc('\n', terminal->out);
    terminal_print(terminal, STYLE_BOLD, "%-*s %-*s   %s", LABEL_MOST, "", RATE_BAR, "rate",
                   "memory, at most");
    fputc('\n', terminal->out);
    for (size_t i = 0; i < rows->measured; i++)
        show_plot_row(terminal, rows, &rows->items[i], rate_most, memory_most);
}

void show_tune(const Terminal *terminal, const TuneReport *report)
{
    _cleanup_arena_ Arena arena = {0};
    SettingRows rows;
    if (rows_make(report, &arena, &rows) < 0)
        return;
    show_table(terminal, &rows);
    show_plot(terminal, &rows);
    if (!report->verdict.found)
        return;
    fputc('\n', terminal->out);
    terminal_wrap(terminal, 0, 0, report->why);
}
