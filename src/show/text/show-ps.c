/* SPDX-License-Identifier: Apache-2.0 */
#include "show-ps.h"
#include "ps-text.h"
#include "show-machine.h"
#include "table.h"
#include "units.h"

enum {
    WIDE = 100, /* from here on there is room for more columns */
    VERY_WIDE = 140,
};

/* All sizes of a table have one unit, so that they can be compared at a glance. */
static void append_mib(Buffer *out, uint64_t bytes)
{
    if (bytes == U64_UNKNOWN)
        (void)buffer_append_text(out, "?");
    else
        (void)buffer_printf(out, "%.1f", (double)bytes / 0x1p20);
}

static void append_raw(Buffer *out, Text text)
{
    (void)text_escape(text, out);
}

/* Processes */

enum { COL_PID, COL_ROLE, COL_RSS, COL_PSS, COL_USS, COL_SHM, COL_FDS, COL_THREADS, COL_START, COL_COMMAND };

static const Column process_columns[] = {
    [COL_PID] = {PS_HEAD_PID, .right = true},
    [COL_ROLE] = {PS_HEAD_ROLE},
    [COL_RSS] = {PS_HEAD_RSS, .right = true},
    [COL_PSS] = {PS_HEAD_PSS, .right = true},
    [COL_USS] = {PS_HEAD_USS, .right = true},
    [COL_SHM] = {PS_HEAD_SHM, .right = true},
    [COL_FDS] = {PS_HEAD_FDS, .right = true},
    [COL_THREADS] = {PS_HEAD_THREADS, .right = true, .appears_from = WIDE},
    [COL_START] = {PS_HEAD_START, .appears_from = VERY_WIDE},
    [COL_COMMAND] = {PS_HEAD_COMMAND, .least = 8},
};

static void append_count(Buffer *out, uint64_t count)
{
    if (count == U64_UNKNOWN)
        (void)buffer_append_text(out, "?");
    else
        (void)buffer_printf(out, "%llu", (unsigned long long)count);
}

static uint64_t process_figure(const PsProcess *shown, size_t column)
{
    switch (column) {
    case COL_RSS:
        return shown->process->rss_bytes;
    case COL_PSS:
        return shown->pss_bytes;
    case COL_USS:
        return shown->uss_bytes;
    case COL_SHM:
        return shown->shm_bytes;
    case COL_FDS:
        return shown->fds;
    default:
        return shown->process->threads;
    }
}

/* Unknown if any of them is. */
static uint64_t figures_sum(const PsView *view, size_t column)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < view->n_processes; i++) {
        uint64_t figure = process_figure(&view->processes[i], column);
        if (figure == U64_UNKNOWN)
            return U64_UNKNOWN;
        sum += figure;
    }
    return sum;
}

/* PSS adds up to what the processes take together, and USS to what would become free if they ended. RSS and
 * SHM count shared pages once per process, so their sums mean nothing and are not shown. */
static void total_cell(const PsView *view, size_t column, Buffer *out)
{
    if (column == COL_ROLE)
        (void)buffer_append_text(out, PS_TOTAL);
    else if (column == COL_COMMAND)
        (void)buffer_printf(out, PLURAL(view->n_processes, PS_TOTAL_PROCESSES_ONE, PS_TOTAL_PROCESSES_MANY),
                            view->n_processes);
    else if (column == COL_PSS || column == COL_USS)
        append_mib(out, figures_sum(view, column));
    else if (column == COL_FDS || column == COL_THREADS)
        append_count(out, figures_sum(view, column));
}

static void process_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const PsView *view = context;
    if (row == view->n_processes) {
        total_cell(view, column, out);
        return;
    }
    const PsProcess *shown = &view->processes[row];
    const Process *process = shown->process;
    switch (column) {
    case COL_PID:
        append_count(out, (uint64_t)process->pid);
        break;
    case COL_ROLE:
        (void)buffer_printf(out, "%s%s", shown->child ? "  " : "", role_name(process->role));
        break;
    case COL_FDS:
    case COL_THREADS:
        append_count(out, process_figure(shown, column));
        break;
    case COL_START:
        if (process->role == ROLE_WORKER)
            (void)buffer_append_text(out, start_method_name(process->start));
        break;
    case COL_COMMAND:
        append_raw(out, process->command);
        break;
    default:
        append_mib(out, process_figure(shown, column));
    }
}

static void show_processes(const Terminal *terminal, const PsView *view)
{
    if (view->n_processes == 0) {
        fprintf(terminal->out, "%s\n", PS_NO_PROCESSES);
        return;
    }
    terminal_print(terminal, STYLE_BOLD, PS_PROCESSES);
    fputc('\n', terminal->out);
    table_print(terminal, &(Table){process_columns, ARRAY_SIZE(process_columns),
                                   view->n_processes + (view->n_processes > 1), process_cell, view});
}

/* Segments, one by one */

enum { COL_NAME, COL_KIND, COL_STATE, COL_SIZE, COL_ALLOCATED, COL_ORPHAN, COL_HOLDERS };

static const Column segment_columns[] = {
    [COL_NAME] = {PS_HEAD_NAME, .least = 16},
    [COL_KIND] = {PS_HEAD_KIND},
    [COL_STATE] = {PS_HEAD_STATE, .appears_from = WIDE},
    [COL_SIZE] = {PS_HEAD_SIZE, .right = true},
    [COL_ALLOCATED] = {PS_HEAD_ALLOCATED, .right = true},
    [COL_ORPHAN] = {PS_HEAD_ORPHAN},
    [COL_HOLDERS] = {PS_HEAD_HOLDERS, .least = 8},
};

const char *segment_state_words(const Segment *segment)
{
    return segment->backing == BACKING_MEMFD ? PS_STATE_MEMFD
           : segment->deleted                ? PS_STATE_UNLINKED
           : segment->on_mount               ? PS_STATE_NAMED
                                             : PS_STATE_ELSEWHERE;
}

typedef struct SegmentRows {
    const PsView *view;
    size_t pids_most; /* holders shown by pid; the rest is a number */
} SegmentRows;

static void append_holders(Buffer *out, const Segment *segment, size_t most)
{
    if (segment->n_holders == 0)
        (void)buffer_append_text(out, PS_NO_HOLDERS);
    for (size_t i = 0; i < segment->n_holders; i++) {
        if (i >= most) {
            (void)buffer_printf(out, " +%zu", segment->n_holders - i);
            break;
        }
        (void)buffer_printf(out, "%s%d", i > 0 ? " " : "", segment->holders[i]);
    }
}

static void segment_total_cell(const PsView *view, size_t column, Buffer *out)
{
    uint64_t sum = 0;
    if (column == COL_NAME)
        (void)buffer_printf(out, PS_TOTAL_SEGMENTS, view->n_segments);
    if (column == COL_SIZE || column == COL_ALLOCATED) {
        for (size_t i = 0; i < view->n_segments; i++) {
            const Segment *segment = view->segments[i].segment;
            sum += column == COL_SIZE ? segment->size_bytes : segment->allocated_bytes;
        }
        (void)buffer_append_text(out, SIZE_TEXT(sum));
    }
}

static void segment_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const SegmentRows *rows = context;
    if (row == rows->view->n_segments) {
        segment_total_cell(rows->view, column, out);
        return;
    }
    const PsSegment *shown = &rows->view->segments[row];
    const Segment *segment = shown->segment;
    switch (column) {
    case COL_NAME:
        if (segment->backing == BACKING_MEMFD)
            (void)buffer_append_text(out, "memfd:");
        append_raw(out, segment->name);
        break;
    case COL_KIND:
        (void)buffer_append_text(out, segment_kind_name(segment->kind));
        break;
    case COL_STATE:
        (void)buffer_append_text(out, segment_state_words(segment));
        break;
    case COL_SIZE:
        (void)buffer_append_text(out, SIZE_TEXT(segment->size_bytes));
        break;
    case COL_ALLOCATED:
        (void)buffer_printf(out, "%s%s", segment->allocated_estimated ? "~" : "",
                            SIZE_TEXT(segment->allocated_bytes));
        break;
    case COL_ORPHAN:
        (void)buffer_append_text(out, _(orphan_name(shown->orphan)));
        break;
    default:
        append_holders(out, segment, rows->pids_most);
    }
}

static void show_segments(const Terminal *terminal, const PsView *view)
{
    if (view->n_segments == 0) {
        fprintf(terminal->out, "%s\n", PS_NO_SEGMENTS);
        return;
    }
    SegmentRows rows = {view, terminal->columns >= VERY_WIDE ? 6 : terminal->columns >= WIDE ? 3 : 1};
    table_print(terminal, &(Table){segment_columns, ARRAY_SIZE(segment_columns),
                                   view->n_segments + (view->n_segments > 1), segment_cell, &rows});
    for (size_t i = 0; i < view->n_segments; i++)
        if (view->segments[i].segment->allocated_estimated) {
            fprintf(terminal->out, "%s\n", PS_ESTIMATED);
            break;
        }
}

/* Segments, summed up by kind */

typedef struct KindSum {
    SegmentKind kind;
    size_t n;
    uint64_t allocated_bytes;
    size_t unheld;
    size_t orphans;
    uint64_t orphan_bytes;
} KindSum;

typedef struct KindSums {
    KindSum items[SEGMENT_KINDS];
    size_t n;
} KindSums;

static KindSums kinds_sum(const PsView *view)
{
    KindSums all = {0};
    for (size_t i = 0; i < view->n_segments; i++) {
        const PsSegment *shown = &view->segments[i];
        KindSum *sum = &all.items[shown->segment->kind];
        sum->n++;
        sum->allocated_bytes += shown->segment->allocated_bytes;
        sum->unheld += shown->segment->n_holders == 0;
        sum->orphans += shown->orphan == ORPHAN_YES;
        sum->orphan_bytes += shown->orphan == ORPHAN_YES ? shown->segment->allocated_bytes : 0;
    }
    KindSums seen = {0};
    for (SegmentKind kind = 0; kind < SEGMENT_KINDS; kind++)
        if (all.items[kind].n > 0) {
            seen.items[seen.n] = all.items[kind];
            seen.items[seen.n++].kind = kind;
        }
    return seen;
}

enum { COL_SUM_KIND, COL_SUM_N, COL_SUM_ALLOCATED, COL_SUM_UNHELD, COL_SUM_ORPHANS };

static const Column kind_columns[] = {
    [COL_SUM_KIND] = {PS_HEAD_KIND},
    [COL_SUM_N] = {PS_HEAD_COUNT, .right = true},
    [COL_SUM_ALLOCATED] = {PS_HEAD_ALLOCATED, .right = true},
    [COL_SUM_UNHELD] = {PS_HEAD_UNHELD, .right = true},
    [COL_SUM_ORPHANS] = {PS_HEAD_ORPHANS, .right = true},
};

static void kind_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const KindSum *sum = &((const KindSums *)context)->items[row];
    switch (column) {
    case COL_SUM_KIND:
        (void)buffer_append_text(out, segment_kind_name(sum->kind));
        break;
    case COL_SUM_N:
        (void)buffer_printf(out, "%zu", sum->n);
        break;
    case COL_SUM_ALLOCATED:
        (void)buffer_append_text(out, SIZE_TEXT(sum->allocated_bytes));
        break;
    case COL_SUM_UNHELD:
        (void)buffer_printf(out, "%zu", sum->unheld);
        break;
    default:
        (void)buffer_printf(out, sum->orphans > 0 ? "%zu, %s" : "%zu", sum->orphans,
                            SIZE_TEXT(sum->orphan_bytes));
    }
}

static void show_kinds(const Terminal *terminal, const PsView *view)
{
    KindSums sums = kinds_sum(view);
    if (sums.n == 0)
        return;
    fputc('\n', terminal->out);
    terminal_print(terminal, STYLE_BOLD, PS_KINDS);
    fputc('\n', terminal->out);
    table_print(terminal, &(Table){kind_columns, ARRAY_SIZE(kind_columns), sums.n, kind_cell, &sums});
}

/* The lines below the tables */

/* Files of the mount that have a name and no visible holder: the part of the unattributed bytes that we can
 * name. */
static uint64_t unheld_bytes(const Survey *survey)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < survey->n_segments; i++) {
        const Segment *segment = &survey->segments[i];
        if (segment->on_mount && segment->n_holders == 0)
            sum += segment->allocated_bytes;
    }
    return MIN(sum, survey->unattributed_bytes);
}

/* "              12.0 MiB in …", below the figure that it is a part of. */
static void show_part(const Terminal *terminal, const Buffer *line)
{
    fprintf(terminal->out, "%*s", LABEL_COLUMNS, "");
    terminal_wrap(terminal, LABEL_COLUMNS, LABEL_COLUMNS + 2, buffer_text(line));
}

static void show_attribution(const Terminal *terminal, const Survey *survey)
{
    enum { WORTH_MENTIONING = 1 << 20 };
    _cleanup_buffer_ Buffer line = {0};
    uint64_t unheld = unheld_bytes(survey);
    bool known = survey->unattributed_bytes != U64_UNKNOWN;
    uint64_t unseen = known ? survey->unattributed_bytes - unheld : 0;
    terminal_label(terminal, PS_LABEL_ATTRIBUTED);
    fprintf(terminal->out, PS_ATTRIBUTED, SIZE_TEXT(survey->attributed_bytes));
    fputc('\n', terminal->out);
    terminal_label(terminal, PS_LABEL_UNATTRIBUTED);
    fprintf(terminal->out, "%s\n", SIZE_TEXT(survey->unattributed_bytes));
    if (unheld > 0) {
        (void)buffer_printf(&line, PS_UNHELD, SIZE_TEXT(unheld));
        show_part(terminal, &line);
    }
    if (unseen >= WORTH_MENTIONING) {
        buffer_clear(&line);
        (void)buffer_printf(&line, survey->n_unreadable > 0 ? PS_UNSEEN_UNREADABLE : PS_UNSEEN,
                            SIZE_TEXT(unseen));
        show_part(terminal, &line);
    }
}

static void show_loaders(const Terminal *terminal, const PsView *view)
{
    for (size_t i = 0; i < view->n_processes; i++) {
        const Process *process = view->processes[i].process;
        uint32_t n = process->signs.loaders;
        if (n == 0)
            continue;
        _cleanup_buffer_ Buffer line = {0};
        (void)buffer_printf(&line, PLURAL(n, PS_THREADS_ONE, PS_THREADS_MANY), process->pid, n);
        terminal_label(terminal, PS_LABEL_THREADS);
        terminal_wrap(terminal, LABEL_COLUMNS, LABEL_COLUMNS, buffer_text(&line));
    }
}

static void show_summary(const Terminal *terminal, const PsView *view)
{
    const Survey *survey = view->survey;
    fputc('\n', terminal->out);
    show_shm(terminal, &survey->machine.shm);
    if (survey->machine.shm.state == SHM_OK)
        show_attribution(terminal, survey);
    terminal_label(terminal, PS_LABEL_MEMFD);
    fprintf(terminal->out, PS_MEMFD, SIZE_TEXT(survey->memfd_bytes));
    fputc('\n', terminal->out);
    show_loaders(terminal, view);
    if (survey->n_unreadable > 0) {
        size_t n = survey->n_unreadable;
        terminal_label(terminal, PS_LABEL_UNREADABLE);
        fprintf(terminal->out,
                survey->machine.sandbox.root ? PLURAL(n, PS_UNREADABLE_ONE, PS_UNREADABLE_MANY)
                                             : PLURAL(n, PS_UNREADABLE_USERS_ONE, PS_UNREADABLE_USERS_MANY),
                n);
        fputc('\n', terminal->out);
    }
}

void show_ps(const Terminal *terminal, const PsView *view, bool segments)
{
    if (segments) {
        show_segments(terminal, view);
    } else {
        show_processes(terminal, view);
        show_kinds(terminal, view);
    }
    show_summary(terminal, view);
}
