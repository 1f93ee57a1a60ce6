/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "ps-view.h"

static const char *const sort_names[PS_SORTS] = {
    [PS_SORT_NONE] = NULL,   [PS_SORT_PID] = "pid",         [PS_SORT_RSS] = "rss",
    [PS_SORT_PSS] = "pss",   [PS_SORT_USS] = "uss",         [PS_SORT_SHM] = "shm",
    [PS_SORT_FDS] = "fds",   [PS_SORT_SIZE] = "size",       [PS_SORT_ALLOCATED] = "allocated",
    [PS_SORT_NAME] = "name", [PS_SORT_HOLDERS] = "holders",
};

const char *ps_sort_name(PsSort sort)
{
    return sort_names[sort];
}

int ps_sort_find(Text name, PsSort *ret)
{
    for (PsSort sort = PS_SORT_PID; sort < PS_SORTS; sort++)
        if (text_equal(name, sort_names[sort])) {
            *ret = sort;
            return 0;
        }
    return -EINVAL;
}

static PsProcess process_view(const Process *process, PsSort sort)
{
    bool tree = sort == PS_SORT_NONE || ps_sort_is_of_segments(sort);
    PsProcess view = {.process = process, .child = tree && process->job != 0 && process->job != process->pid};
    if (!process->has_memory)
        return view;
    view.pss_bytes = process->pss_bytes;
    view.uss_bytes = process->uss_bytes;
    view.shm_bytes = process->readable ? process->shm_bytes : U64_UNKNOWN;
    view.fds = process->readable ? process->fds : U64_UNKNOWN;
    return view;
}

/* The largest first; unknown values (all bits set) come last. */
static int order_falling(uint64_t a, uint64_t b)
{
    a++;
    b++;
    return (a < b) - (a > b);
}

static int order_rising(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int process_order(const void *left, const void *right, void *context)
{
    const PsProcess *shown_a = left;
    const PsProcess *shown_b = right;
    const Process *a = shown_a->process;
    const Process *b = shown_b->process;
    const PsSort *sort = context;
    int order = 0;
    switch (*sort) {
    case PS_SORT_RSS:
        order = order_falling(a->rss_bytes, b->rss_bytes);
        break;
    case PS_SORT_PSS:
        order = order_falling(shown_a->pss_bytes, shown_b->pss_bytes);
        break;
    case PS_SORT_USS:
        order = order_falling(shown_a->uss_bytes, shown_b->uss_bytes);
        break;
    case PS_SORT_SHM:
        order = order_falling(shown_a->shm_bytes, shown_b->shm_bytes);
        break;
    case PS_SORT_FDS:
        order = order_falling(shown_a->fds, shown_b->fds);
        break;
    case PS_SORT_PID:
        break;
    case PS_SORT_NONE:
    case PS_SORT_SIZE:
    case PS_SORT_ALLOCATED:
    case PS_SORT_NAME:
    case PS_SORT_HOLDERS:
    case PS_SORTS:
        /* Jobs in the order of their trainers, each trainer before its workers; then processes without a job.
         */
        order = order_rising((uint64_t)(a->job == 0), (uint64_t)(b->job == 0));
        if (order == 0)
            order = order_rising((uint64_t)a->job, (uint64_t)b->job);
        if (order == 0)
            order = order_rising((uint64_t)(a->job != a->pid), (uint64_t)(b->job != b->pid));
        break;
    }
    return order ? order : order_rising((uint64_t)a->pid, (uint64_t)b->pid);
}

static int name_order(Text a, Text b)
{
    int order = memcmp(a.data, b.data, MIN(a.size, b.size));
    return order ? order : order_rising(a.size, b.size);
}

static int segment_order(const void *left, const void *right, void *context)
{
    const Segment *a = ((const PsSegment *)left)->segment;
    const Segment *b = ((const PsSegment *)right)->segment;
    const PsSort *sort = context;
    int order = 0;
    if (*sort == PS_SORT_NAME)
        order = name_order(a->name, b->name);
    else if (*sort == PS_SORT_HOLDERS)
        order = order_falling(a->n_holders, b->n_holders);
    else if (*sort == PS_SORT_SIZE)
        order = order_falling(a->size_bytes, b->size_bytes);
    if (order == 0)
        order = order_falling(a->allocated_bytes, b->allocated_bytes);
    if (order == 0)
        order = name_order(a->name, b->name);
    return order ? order : order_rising(a->inode, b->inode);
}

static bool is_selected(const Survey *survey, const Process *process, const PsSelection *selection,
                        const Process *wanted)
{
    if (wanted && wanted->job == 0) /* a launcher, or no training at all */
        return process == wanted ||
               (process_is_listed(process) && process_is_below(survey, process, wanted->pid));
    if (wanted)
        return process->job == wanted->job;
    return selection->all || process_is_listed(process);
}

static int pid_order(const void *key, const void *item)
{
    int a = *(const int *)key;
    int b = *(const int *)item;
    return (a > b) - (a < b);
}

static bool is_held(const Segment *segment, int pid)
{
    return segment->n_holders > 0 &&
           bsearch(&pid, segment->holders, segment->n_holders, sizeof pid, pid_order) != NULL;
}

int ps_view_make(const Survey *survey, const PsSelection *selection, Arena *arena, PsView *ret)
{
    const Process *wanted = selection->pid ? survey_process(survey, selection->pid) : NULL;
    if (selection->pid && !wanted)
        return -ESRCH;

    PsView view = {.survey = survey, .selection = *selection};
    view.processes = arena_alloc(arena, survey->n_processes * sizeof *view.processes);
    view.segments = arena_alloc(arena, survey->n_segments * sizeof *view.segments);
    if (!view.processes || !view.segments)
        return -ENOMEM;

    for (size_t i = 0; i < survey->n_processes; i++)
        if (is_selected(survey, &survey->processes[i], selection, wanted))
            view.processes[view.n_processes++] = process_view(&survey->processes[i], selection->sort);
    for (size_t i = 0; i < survey->n_segments; i++) {
        const Segment *segment = &survey->segments[i];
        bool shown = !wanted;
        for (size_t p = 0; !shown && p < view.n_processes; p++)
            shown = is_held(segment, view.processes[p].process->pid);
        if (!shown)
            continue;
        PsSegment *item = &view.segments[view.n_segments++];
        item->segment = segment;
        item->orphan = orphan_judge(survey, segment, arena, &item->why);
    }
    qsort_r(view.processes, view.n_processes, sizeof *view.processes, process_order, &view.selection.sort);
    qsort_r(view.segments, view.n_segments, sizeof *view.segments, segment_order, &view.selection.sort);
    *ret = view;
    return 0;
}
