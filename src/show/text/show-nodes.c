/* SPDX-License-Identifier: Apache-2.0 */
#include "show-nodes.h"
#include "message.h"
#include "plan-text.h"
#include "table.h"
#include "units.h"

enum { GROUPS_MOST = 20, WIDE = 100 };

typedef unsigned long long ull; /* what printf takes */

enum {
    COL_NODES,
    COL_EXAMPLE,
    COL_CPUS,
    COL_MEMORY,
    COL_SHM,
    COL_GPUS,
    COL_FILES,
    COL_JOBS,
    COL_LIMIT,
    COL_GUARDED,
};

static const Column columns[] = {
    [COL_NODES] = {NODES_HEAD_NODES, .right = true},
    [COL_EXAMPLE] = {NODES_HEAD_EXAMPLE, .least = 7},
    [COL_CPUS] = {NODES_HEAD_CPUS, .right = true},
    [COL_MEMORY] = {NODES_HEAD_MEMORY, .right = true},
    [COL_SHM] = {NODES_HEAD_SHM, .right = true},
    [COL_GPUS] = {NODES_HEAD_GPUS, .right = true, .appears_from = WIDE},
    [COL_FILES] = {NODES_HEAD_FILES, .right = true, .appears_from = WIDE},
    [COL_JOBS] = {NODES_HEAD_JOBS, .right = true},
    [COL_LIMIT] = {NODES_HEAD_LIMIT},
    [COL_GUARDED] = {NODES_HEAD_GUARDED, .right = true},
};

static void count_append(uint64_t n, Buffer *out)
{
    if (n == U64_UNKNOWN)
        (void)buffer_append_text(out, "?");
    else
        (void)buffer_printf(out, "%llu", (ull)n);
}

static void group_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const NodeGroup *group = &((const NodesPlan *)context)->groups[row];
    const NodeRoom *room = group->room;
    switch (column) {
    case COL_NODES:
        count_append(group->nodes, out);
        break;
    case COL_EXAMPLE:
        (void)text_escape(text_of(room->name), out);
        break;
    case COL_CPUS:
        count_append(room->cpus, out);
        break;
    case COL_MEMORY:
        (void)buffer_append_text(out, SIZE_TEXT(room->memory_bytes));
        break;
    case COL_SHM:
        (void)buffer_append_text(out, SIZE_TEXT(room->shm_bytes));
        break;
    case COL_GPUS:
        count_append(room->gpus, out);
        break;
    case COL_FILES:
        count_append(room->open_files, out);
        break;
    case COL_JOBS:
        count_append(group->fit.jobs, out);
        break;
    case COL_LIMIT:
        (void)buffer_append_text(out, node_limit_name(group->fit.limit));
        break;
    default:
        count_append(group->fit.guarded_jobs, out);
    }
}

static void show_label(const Terminal *terminal, const char *label, const char *line)
{
    terminal_label(terminal, label);
    terminal_wrap(terminal, LABEL_COLUMNS, LABEL_COLUMNS, line);
}

static void show_totals(const Terminal *terminal, const NodesPlan *nodes, uint64_t wanted_jobs)
{
    const NodeJobNeed *need = &nodes->need;
    _cleanup_buffer_ Buffer line = {0};
    if (need->open_files > 0)
        (void)buffer_printf(&line, NODES_JOB, SIZE_TEXT(need->shm_bytes), SIZE_TEXT(need->memory_bytes),
                            (ull)need->cpus, (ull)need->open_files);
    else
        (void)buffer_printf(&line, NODES_JOB_ALONE, SIZE_TEXT(need->shm_bytes), SIZE_TEXT(need->memory_bytes),
                            (ull)need->cpus);
    show_label(terminal, NODES_LABEL_JOB, buffer_text(&line));
    buffer_clear(&line);
    (void)buffer_printf(&line, NODES_TOTAL, (ull)nodes->jobs, (ull)nodes->nodes_used, (ull)nodes->nodes);
    if (wanted_jobs > 1 && wanted_jobs <= nodes->jobs)
        message_add(&line, ". ", NODES_WANTED, (ull)wanted_jobs);
    else if (wanted_jobs > 1)
        message_add(&line, ". ", NODES_WANTED_NOT, (ull)wanted_jobs, (ull)nodes->jobs);
    show_label(terminal, NODES_LABEL_TOTAL, buffer_text(&line));
    buffer_clear(&line);
    (void)buffer_printf(&line, NODES_GUARDED, (ull)nodes->guarded_jobs);
    show_label(terminal, NODES_LABEL_GUARDED, buffer_text(&line));
}

static void show_changes(const Terminal *terminal, const NodesPlan *nodes, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const NodeGroup *group = &nodes->groups[i];
        _cleanup_buffer_ Buffer name = {0};
        _cleanup_buffer_ Buffer line = {0};
        if (!group->change)
            continue;
        if (!any)
            fprintf(terminal->out, "\n%s\n", NODES_CHANGES);
        any = true;
        (void)text_escape(text_of(group->room->name), &name);
        (void)buffer_printf(&line, NODES_CHANGE, buffer_text(&name), group->change);
        fputs("  ", terminal->out);
        terminal_wrap(terminal, 2, 4, buffer_text(&line));
    }
}

static void show_note(const Terminal *terminal, const char *note)
{
    const char *mark = terminal_mark(terminal, MARK_INFO);
    fprintf(terminal->out, "%s ", mark);
    terminal_wrap(terminal, (unsigned)text_columns(text_of(mark)) + 1, 2, note);
}

static void show_unknown(const Terminal *terminal, const NodesPlan *nodes)
{
    _cleanup_buffer_ Buffer list = {0};
    _cleanup_buffer_ Buffer line = {0};
    for (size_t i = 0; nodes->unknown[i]; i++)
        message_add(&list, ", ", "%s", nodes->unknown[i]);
    (void)buffer_printf(&line, NODES_NOTE_UNKNOWN, buffer_text(&list));
    if (list.size > 0 || nodes->need.process_bytes == 0)
        fputc('\n', terminal->out);
    if (list.size > 0)
        show_note(terminal, buffer_text(&line));
    if (nodes->need.process_bytes == 0)
        show_note(terminal, NODES_NOTE_PRIVATE);
}

void show_nodes(const Terminal *terminal, const NodesPlan *nodes, uint64_t wanted_jobs)
{
    size_t n = MIN(nodes->n_groups, (size_t)GROUPS_MOST);
    show_totals(terminal, nodes, wanted_jobs);
    fprintf(terminal->out, "\n%s\n", NODES_TITLE);
    table_print(terminal, &(Table){columns, ARRAY_SIZE(columns), n, group_cell, nodes});
    if (nodes->n_groups > n)
        fprintf(terminal->out, NODES_MORE "\n", nodes->n_groups - n);
    show_changes(terminal, nodes, n);
    show_unknown(terminal, nodes);
}
