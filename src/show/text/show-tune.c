/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "message-text.h"
#include "message.h"
#include "show-tune.h"
#include "table.h"
#include "tune-text.h"
#include "units.h"

/* SKIPPED_MOST: rows of settings that were skipped; the rest is counted. */
enum { LABEL_MOST = 26, RATE_BAR = 24, MEMORY_BAR = 10, SKIPPED_MOST = 6 };

int tune_rate_words(const TuneReport *report, double rate, Buffer *out)
{
    if (report->by_bytes)
        return buffer_printf(out, TUNE_RATE_BYTES,
                             SIZE_TEXT(rate < 0x1p62 ? (uint64_t)rate : UINT64_C(1) << 62));
    return buffer_printf(out, TUNE_RATE_SAMPLES, rate < 10 ? 2 : rate < 1000 ? 1 : 0, rate);
}

/* --- Sentences ---------------------------------------------------------------------------------------- */

static int fate_words(const TuneSetting *known, Buffer *out)
{
    switch (known->fate) {
    case TUNE_MEASURED:
        return buffer_append_text(out, known->last->stopped ? TUNE_ROW_STOPPED : "");
    case TUNE_OVER:
        return buffer_append_text(out, TUNE_ROW_OVER);
    case TUNE_FAILED:
        return buffer_printf(out, TUNE_ROW_FAILED, cause_name(known->last->cause.id));
    case TUNE_SKIPPED_MEMORY:
        return buffer_append_text(out, TUNE_ROW_ESTIMATED);
    case TUNE_SKIPPED_SMALLER:
        return buffer_append_text(out, TUNE_ROW_SMALLER);
    case TUNE_UNTRIED:
        break;
    }
    return 0;
}

int tune_trial_words(const TuneReport *report, const TuneTrial *trial, Buffer *out)
{
    _cleanup_buffer_ Buffer setting = {0};
    _cleanup_buffer_ Buffer words = {0};
    int r = tune_setting_words(&report->tune, trial->setting, &setting);
    if (r == 0 && trial->cause.id != CAUSE_OK) {
        r = text_escape_prose(text_of(trial->shown ? trial->shown : trial->cause.summary), &words);
        return r < 0 ? r
                     : buffer_printf(out, TUNE_TRIAL_FAILED, buffer_text(&setting),
                                     cause_name(trial->cause.id), buffer_text(&words));
    }
    if (r == 0)
        r = tune_rate_words(report, trial->rate, &words);
    if (r == 0)
        r = buffer_printf(out, TUNE_TRIAL, buffer_text(&setting), buffer_text(&words));
    if (r == 0 && trial->shm_bytes != U64_UNKNOWN && trial->own_bytes != U64_UNKNOWN)
        r = message_add(out, MESSAGE_ITEMS, TUNE_TRIAL_MEMORY,
                        SIZE_TEXT(trial->shm_bytes + trial->own_bytes));
    if (r == 0 && trial->stopped)
        r = message_add(out, MESSAGE_ITEMS, TUNE_TRIAL_STOPPED);
    return r;
}

static int best_add(const TuneReport *report, const TuneSetting *best, Buffer *out)
{
    _cleanup_buffer_ Buffer setting = {0};
    _cleanup_buffer_ Buffer rate = {0};
    int r = tune_setting_words(&report->tune, report->verdict.best, &setting);
    if (r == 0)
        r = tune_rate_words(report, best->rate, &rate);
    return r < 0 ? r
                 : message_add(out, " ", PLURAL(best->measured, TUNE_BEST_ONE, TUNE_BEST_MANY),
                               buffer_text(&setting), buffer_text(&rate),
                               best->rate > 0 ? (best->high - best->rate) / best->rate * 100 : 0,
                               best->measured);
}

static int safety_add(const TuneReport *report, const TuneSetting *best, Buffer *out)
{
    uint64_t ceiling = report->tune.ceiling_bytes;
    if (best->fate == TUNE_OVER)
        return message_add(out, " ", TUNE_SAFE_OVER, SIZE_TEXT(best->memory_bytes), SIZE_TEXT(ceiling));
    if (best->fate != TUNE_MEASURED)
        return message_add(out, " ", TUNE_SAFE_FAILED, cause_name(best->last->cause.id));
    if (best->memory_bytes == U64_UNKNOWN || ceiling == U64_UNKNOWN)
        return message_add(out, " ", TUNE_SAFE_UNKNOWN);
    return message_add(out, " ", TUNE_SAFE, SIZE_TEXT(best->memory_bytes), SIZE_TEXT(ceiling));
}

static int comparison_add(const TuneReport *report, const TuneSetting *best, Buffer *out)
{
    const TuneVerdict *verdict = &report->verdict;
    _cleanup_buffer_ Buffer setting = {0};
    _cleanup_buffer_ Buffer rate = {0};
    if (!verdict->has_next)
        return message_add(out, " ", TUNE_ALONE);
    TuneSetting next = tune_setting(&report->tune, verdict->next);
    int r = tune_setting_words(&report->tune, verdict->next, &setting);
    if (r == 0)
        r = tune_rate_words(report, next.rate, &rate);
    if (r < 0)
        return r;
    if (verdict->separated)
        return message_add(out, " ", TUNE_FASTER, (best->rate / next.rate - 1) * 100, buffer_text(&setting));
    r = message_add(out, " ", PLURAL(verdict->rivals, TUNE_RIVALS_ONE, TUNE_RIVALS_MANY), verdict->rivals,
                    tune_noise(&report->tune) * 100);
    if (r < 0)
        return r;
    if (best->memory_bytes < next.memory_bytes && next.memory_bytes != U64_UNKNOWN)
        return message_add(out, " ", TUNE_RIVAL_MEMORY, buffer_text(&setting), buffer_text(&rate),
                           SIZE_TEXT(next.memory_bytes));
    return message_add(out, " ", TUNE_RIVAL, buffer_text(&setting), buffer_text(&rate));
}

static int start_add(const TuneReport *report, Buffer *out)
{
    const Tune *tune = &report->tune;
    TuneStart start = tune_start(tune);
    _cleanup_buffer_ Buffer setting = {0};
    if (tune->n == 0 || tune->trials[0].setting != start.setting) /* it continues with other options */
        return 0;
    int r = tune_setting_words(tune, start.setting, &setting);
    if (r < 0)
        return r;
    if (tune->ceiling_bytes == U64_UNKNOWN)
        return message_add(out, " ", TUNE_FIRST_MIDDLE, buffer_text(&setting));
    return message_add(out, " ",
                       start.fits      ? start.assumed ? TUNE_FIRST_SAFE_ASSUMED : TUNE_FIRST_SAFE
                       : start.assumed ? TUNE_FIRST_LEAST_ASSUMED
                                       : TUNE_FIRST_LEAST,
                       buffer_text(&setting), SIZE_TEXT(start.sample_bytes));
}

static int effort_add(const TuneReport *report, Buffer *out)
{
    const TuneVerdict *verdict = &report->verdict;
    int r = message_add(out, " ", PLURAL(report->tune.n, TUNE_TRIED_ONE, TUNE_TRIED_MANY),
                        verdict->measured + verdict->failed, tune_settings(&report->tune), report->tune.n);
    if (r == 0 && verdict->failed > 0)
        r = message_add(out, " ", TUNE_FAILED_COUNT, verdict->failed);
    if (r == 0 && verdict->skipped > 0)
        r = message_add(out, " ", TUNE_SKIPPED_COUNT, verdict->skipped);
    if (r == 0)
        r = start_add(report, out);
    if (r == 0 && report->interrupted)
        r = message_add(out, " ", TUNE_INTERRUPTED);
    return r;
}

int tune_why(const TuneReport *report, Buffer *out)
{
    TuneSetting best = tune_setting(&report->tune, report->verdict.best);
    int r = best_add(report, &best, out);
    if (r == 0)
        r = safety_add(report, &best, out);
    if (r == 0)
        r = comparison_add(report, &best, out);
    return r < 0 ? r : effort_add(report, out);
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
            (void)buffer_append_text(out, rows->report->verdict.safe ? TUNE_ROW_BEST : TUNE_ROW_UNSAFE);
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
    columns[n++] = (Column){TUNE_HEAD_RATE, true, 0, 0};
    columns[n++] = (Column){terminal->utf8 ? "±" : "+-", true, 0, 0};
    columns[n++] = (Column){TUNE_HEAD_TRIALS, true, 0, 70};
    columns[n++] = (Column){TUNE_HEAD_MEMORY, true, 0, 0};
    columns[n++] = (Column){"", false, 10, 0};
    Table table = {columns, n, rows->n, row_cell, rows};
    table_print(terminal, &table);
    if (rows->left_out == 0)
        return;
    fprintf(terminal->out, PLURAL(rows->left_out, TUNE_MORE_ONE, TUNE_MORE_MANY), rows->left_out);
    fputc('\n', terminal->out);
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
    terminal_print(terminal, STYLE_BOLD, "%-*s %-*s   %s", LABEL_MOST, "", RATE_BAR, TUNE_HEAD_RATE,
                   TUNE_HEAD_PEAK);
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
