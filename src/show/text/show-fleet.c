/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "message.h"
#include "ranks-text.h"
#include "show-fleet.h"
#include "table.h"
#include "units.h"

enum { INDENT = 2, WIDE = 100, VERY_WIDE = 140 };

/* --- Ranks ---------------------------------------------------------------------------------------------- */

enum {
    COL_RANK,
    COL_NODE,
    COL_ATTEMPT,
    COL_TIME,
    COL_STEP,
    COL_LOADER,
    COL_ROOM,
    COL_CPU,
    COL_DISK,
    COL_WORK,
    COL_RSS,
    COL_LATE,
    COL_FILE,
};

static const Column rank_columns[] = {
    [COL_RANK] = {FLEET_HEAD_RANK, .right = true},
    [COL_NODE] = {FLEET_HEAD_NODE},
    [COL_ATTEMPT] = {FLEET_HEAD_ATTEMPT, .right = true, .appears_from = WIDE},
    [COL_TIME] = {FLEET_HEAD_TIME, .right = true},
    [COL_STEP] = {FLEET_HEAD_STEP, .right = true, .appears_from = WIDE},
    [COL_LOADER] = {FLEET_HEAD_LOADER, .right = true},
    [COL_ROOM] = {FLEET_HEAD_ROOM, .right = true},
    [COL_CPU] = {FLEET_HEAD_CPU, .right = true},
    [COL_DISK] = {FLEET_HEAD_DISK, .right = true},
    [COL_WORK] = {FLEET_HEAD_WORK, .right = true, .appears_from = WIDE},
    [COL_RSS] = {FLEET_HEAD_RSS, .right = true},
    [COL_LATE] = {FLEET_HEAD_LATE},
    [COL_FILE] = {FLEET_HEAD_FILE, .least = 8, .appears_from = VERY_WIDE},
};

typedef struct FleetRows {
    const Terminal *terminal;
    const FleetView *fleet;
} FleetRows;

static void share_append(double share, Buffer *out)
{
    if (isnan(share))
        (void)buffer_append_text(out, "?");
    else
        (void)buffer_printf(out, "%.0f%%", 100 * share);
}

static void number_append(int number, bool known, Buffer *out)
{
    if (known)
        (void)buffer_printf(out, "%d", number);
    else
        (void)buffer_append_text(out, "?");
}

static void node_append(const NodeView *node, Buffer *out)
{
    (void)text_escape(text_of(node->name[0] != '\0' ? node->name : "?"), out);
    if (node->number != RANK_UNKNOWN)
        (void)buffer_printf(out, " (%d)", node->number);
}

static const char *late_words(LateWhy why)
{
    static const char *const words[LATE_WHYS] = {FLEET_WHY_ROOM, FLEET_WHY_CPU, FLEET_WHY_DISK,
                                                 FLEET_WHY_WORK, FLEET_WHY_UNKNOWN};
    return words[why];
}

static void rank_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const FleetRows *rows = context;
    const RankView *rank = &rows->fleet->ranks[row];
    const SourceView *source = &rows->fleet->sources[rank->source];
    switch (column) {
    case COL_RANK:
        number_append(rank->rank, rank->rank != RANK_UNKNOWN, out);
        break;
    case COL_NODE:
        node_append(&rows->fleet->nodes[source->node], out);
        break;
    case COL_ATTEMPT:
        number_append(rank->attempt, rank->attempt > 0, out);
        break;
    case COL_TIME:
        (void)buffer_append_text(out, DURATION_TEXT(rank->seconds));
        break;
    case COL_STEP:
        if (isnan(rank->step_seconds))
            (void)buffer_append_text(out, "?");
        else
            (void)buffer_printf(out, "%.1f s", rank->step_seconds);
        break;
    case COL_LOADER:
        share_append(rank->loader_share, out);
        break;
    case COL_ROOM:
        share_append(rank->room_share, out);
        break;
    case COL_CPU:
        share_append(rank->cpu_share, out);
        break;
    case COL_DISK:
        share_append(rank->disk_share, out);
        break;
    case COL_WORK:
        share_append(rank->work_share, out);
        break;
    case COL_RSS:
        (void)buffer_append_text(out, SIZE_TEXT(rank->rss_peak));
        break;
    case COL_LATE:
        if (rank->late)
            (void)buffer_printf(out, "%s %s", terminal_mark(rows->terminal, MARK_WARNING),
                                late_words(rank->why));
        break;
    default:
        (void)text_escape(text_of(source->report->path), out);
    }
}

/* "Rank 3 on node n2 is late." and why, for each that is. */
static void show_late(const Terminal *terminal, const FleetView *fleet)
{
    for (size_t i = 0; i < fleet->n_ranks; i++) {
        const RankView *rank = &fleet->ranks[i];
        const NodeView *node = &fleet->nodes[fleet->sources[rank->source].node];
        if (!rank->late)
            continue;
        _cleanup_buffer_ Buffer name = {0};
        node_append(node, &name);
        terminal_print(terminal, STYLE_WARNING, "%s ", terminal_mark(terminal, MARK_WARNING));
        if (rank->rank == RANK_UNKNOWN)
            terminal_print(terminal, STYLE_BOLD, FLEET_LATE_NODE, buffer_text(&name));
        else
            terminal_print(terminal, STYLE_BOLD, FLEET_LATE_RANK, rank->rank, buffer_text(&name));
        fprintf(terminal->out, "\n%*s", INDENT, "");
        terminal_wrap(terminal, INDENT, INDENT, rank->reason);
        fprintf(terminal->out, "%*s", INDENT, "");
        terminal_wrap(terminal, INDENT, INDENT, rank->advice);
        fputc('\n', terminal->out);
    }
}

static void show_rank_table(const Terminal *terminal, const FleetView *fleet)
{
    FleetRows rows = {terminal, fleet};
    terminal_print(terminal, STYLE_BOLD, FLEET_RANKS);
    fputc('\n', terminal->out);
    table_print(terminal, &(Table){rank_columns, ARRAY_SIZE(rank_columns), fleet->n_ranks, rank_cell, &rows});
}

void show_ranks(const Terminal *terminal, const FleetView *fleet)
{
    if (fleet->n_ranks < 2)
        return;
    fputc('\n', terminal->out);
    show_late(terminal, fleet);
    show_rank_table(terminal, fleet);
}

/* --- Nodes ---------------------------------------------------------------------------------------------- */

enum { NODE_NAME, NODE_RANKS, NODE_MEMORY, NODE_GROUP, NODE_SHM, NODE_GUARD, NODE_WAITS, NODE_KILLS };

static const Column node_columns[] = {
    [NODE_NAME] = {FLEET_HEAD_NODE},
    [NODE_RANKS] = {FLEET_HEAD_RANKS, .right = true},
    [NODE_MEMORY] = {FLEET_HEAD_MEMORY, .right = true},
    [NODE_GROUP] = {FLEET_HEAD_GROUP, .right = true},
    [NODE_SHM] = {FLEET_HEAD_SHM, .right = true, .appears_from = WIDE},
    [NODE_GUARD] = {FLEET_HEAD_GUARD, .right = true},
    [NODE_WAITS] = {FLEET_HEAD_WAITS, .right = true, .appears_from = WIDE},
    [NODE_KILLS] = {FLEET_HEAD_KILLS, .right = true},
};

static void of_append(uint64_t used, uint64_t limit, Buffer *out)
{
    if (limit == U64_UNKNOWN)
        (void)buffer_append_text(out, "-");
    else
        (void)buffer_printf(out, "%s/%s", SIZE_TEXT(used), SIZE_TEXT(limit));
}

static void count_append(uint64_t n, Buffer *out)
{
    if (n == U64_UNKNOWN)
        (void)buffer_append_text(out, "?");
    else
        (void)buffer_printf(out, "%llu", (unsigned long long)n);
}

static void node_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const NodeView *node = &((const FleetRows *)context)->fleet->nodes[row];
    const uint64_t *peaks = node->peaks;
    switch (column) {
    case NODE_NAME:
        node_append(node, out);
        break;
    case NODE_RANKS:
        count_append(node->n_ranks, out);
        break;
    case NODE_MEMORY:
        (void)buffer_append_text(out, SIZE_TEXT(node->memory_least));
        break;
    case NODE_GROUP:
        of_append(peaks[JOB_GROUP_USED], peaks[JOB_GROUP_LIMIT], out);
        break;
    case NODE_SHM:
        of_append(peaks[JOB_SHM_USED], peaks[JOB_SHM_SIZE], out);
        break;
    case NODE_GUARD:
        of_append(peaks[JOB_GUARD_BYTES], peaks[JOB_GUARD_BUDGET], out);
        break;
    case NODE_WAITS:
        count_append(peaks[JOB_GUARD_WAITS], out);
        break;
    default:
        count_append(node->oom_kills, out);
    }
}

/* --- All of it ------------------------------------------------------------------------------------------ */

static void show_line(const Terminal *terminal, const char *label, const char *line)
{
    terminal_label(terminal, label);
    terminal_wrap(terminal, LABEL_COLUMNS, LABEL_COLUMNS, line);
}

/* The worst verdict of each recording that has one which grows; the report of that file alone has the rest.
 */
static void show_growth(const Terminal *terminal, const FleetView *fleet)
{
    for (size_t i = 0; i < fleet->n_sources; i++) {
        const ReportView *report = fleet->sources[i].report;
        const Verdict *verdict = &report->verdicts->items[0];
        if (!verdict_grows(verdict))
            continue;
        _cleanup_buffer_ Buffer rate = {0};
        _cleanup_buffer_ Buffer path = {0};
        _cleanup_buffer_ Buffer line = {0};
        (void)verdict_rate_words(verdict, &rate);
        (void)text_escape(text_of(report->path), &path);
        terminal_print(terminal, severity_style(verdict_severity(verdict->id)), "%s ",
                       terminal_mark(terminal, severity_mark(verdict_severity(verdict->id))));
        (void)buffer_printf(&line, FLEET_GROWS, verdict_title(verdict->id), buffer_text(&rate),
                            buffer_text(&path));
        terminal_wrap(terminal, INDENT, INDENT, buffer_text(&line));
    }
}

void show_merged(const Terminal *terminal, const FleetView *fleet)
{
    FleetRows rows = {terminal, fleet};
    _cleanup_buffer_ Buffer line = {0};
    show_late(terminal, fleet);
    show_growth(terminal, fleet);
    if (fleet->n_late == 0)
        terminal_wrap(terminal, 0, 0, FLEET_NONE_LATE);
    fputc('\n', terminal->out);
    if (fleet->job[0] != '\0') {
        (void)text_escape(text_of(fleet->job), &line);
        show_line(terminal, FLEET_LABEL_JOB, buffer_text(&line));
        buffer_clear(&line);
    }
    (void)buffer_printf(&line, FLEET_MERGED, fleet->n_sources, fleet->n_nodes, fleet->n_ranks);
    show_line(terminal, FLEET_LABEL_MERGED, buffer_text(&line));
    show_line(terminal, FLEET_LABEL_CLOCKS, fleet->clock);
    if (fleet->n_jobs > 1) {
        buffer_clear(&line);
        (void)buffer_printf(&line, FLEET_JOBS, fleet->n_jobs);
        show_line(terminal, FLEET_LABEL_NOTE, buffer_text(&line));
    }
    fputc('\n', terminal->out);
    show_rank_table(terminal, fleet);
    fputc('\n', terminal->out);
    terminal_print(terminal, STYLE_BOLD, FLEET_NODES);
    fputc('\n', terminal->out);
    table_print(terminal, &(Table){node_columns, ARRAY_SIZE(node_columns), fleet->n_nodes, node_cell, &rows});
}
