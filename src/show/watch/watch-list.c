/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "watch-internal.h"

enum { NOBODY = -1, DEPTH_MOST = 63 };

/* --- Matching ----------------------------------------------------------------------------------------- */

static bool text_has(const char *text, const char *words)
{
    return text && strcasestr(text, words) != NULL;
}

static bool raw_has(Text text, const char *words)
{
    size_t n = strlen(words);
    for (size_t i = 0; i + n <= text.size; i++)
        if (strncasecmp(text.data + i, words, n) == 0)
            return true;
    return false;
}

static bool segment_matches(const Segment *segment, const char *words)
{
    char pid[16];
    if (raw_has(segment->name, words) || text_has(segment_kind_name(segment->kind), words))
        return true;
    for (size_t i = 0; i < segment->n_holders; i++) {
        snprintf(pid, sizeof pid, "%d", segment->holders[i]);
        if (strcmp(pid, words) == 0)
            return true;
    }
    return false;
}

bool item_matches(const WatchItem *item, const char *words)
{
    if (words[0] == '\0')
        return true;
    if (item->segment)
        return segment_matches(item->segment->segment, words);
    if (item->event) {
        _cleanup_buffer_ Buffer text = {0};
        event_words(item->event, &text);
        return text_has(buffer_text(&text), words);
    }
    char pid[16];
    snprintf(pid, sizeof pid, "%d", item->track->last.pid);
    return text_has(item->track->last.command, words) || text_has(item->track->last.comm, words) ||
           text_has(role_name(item->track->last.role), words) || text_has(pid, words);
}

/* --- Processes ---------------------------------------------------------------------------------------- */

typedef struct Order {
    WatchColumn column;
    bool inverted;
} Order;

static int number_order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int item_order(const void *left, const void *right, void *context)
{
    const WatchItem *a = left;
    const WatchItem *b = right;
    const Order *order = context;
    int by = 0;
    if (column_is_figure(order->column)) {
        /* Unknown values come last in either order. */
        bool a_known = a->sort_value != U64_UNKNOWN;
        bool b_known = b->sort_value != U64_UNKNOWN;
        if (a_known != b_known)
            return a_known ? -1 : 1;
        by = number_order(b->sort_value, a->sort_value);
    } else if (order->column == WATCH_ROLE)
        by = number_order(a->track->last.role, b->track->last.role);
    else if (order->column == WATCH_COMMAND)
        by = strcmp(a->track->last.command, b->track->last.command);
    if (by == 0)
        by = number_order((uint64_t)a->track->last.pid, (uint64_t)b->track->last.pid);
    if (by == 0)
        by = number_order(a->track->last.start_ticks, b->track->last.start_ticks);
    return order->inverted ? -by : by;
}

typedef struct ByPid {
    int pid;
    long item;
} ByPid;

static int pid_order(const void *left, const void *right)
{
    const ByPid *a = left;
    const ByPid *b = right;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static long item_find(const ByPid *by_pid, size_t n, int pid)
{
    const ByPid key = {.pid = pid};
    const ByPid *found = n > 0 ? bsearch(&key, by_pid, n, sizeof key, pid_order) : NULL;
    return found ? found->item : NOBODY;
}

/* A parent is older than its child, so there are no cycles, whatever a recording claims. */
static bool may_be_parent(const ProcessMoment *parent, const ProcessMoment *child)
{
    return parent->start_ticks < child->start_ticks ||
           (parent->start_ticks == child->start_ticks && parent->pid < child->pid);
}

/* Its parent, else the trainer that it works for, since its own parent may have ended. */
static long parent_find(const WatchItem *items, const ByPid *by_pid, size_t n, const WatchItem *item)
{
    const int candidates[] = {item->track->last.ppid, item->track->last.job};
    for (size_t i = 0; i < ARRAY_SIZE(candidates); i++) {
        long found = candidates[i] > 0 ? item_find(by_pid, n, candidates[i]) : NOBODY;
        if (found != NOBODY && may_be_parent(&items[found].track->last, &item->track->last))
            return found;
    }
    return NOBODY;
}

typedef struct Node {
    long parent;
    long first;
    long last;
    long next;
} Node;

/* Puts children after their parents; siblings keep their order. */
static int items_plant(WatchItem *items, size_t n, Arena *arena, WatchItem **ret)
{
    Node *nodes = arena_alloc(arena, (n + 1) * sizeof *nodes);
    ByPid *by_pid = arena_alloc(arena, n * sizeof *by_pid);
    WatchItem *planted = arena_alloc(arena, n * sizeof *planted);
    if (!nodes || (n > 0 && (!by_pid || !planted)))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        by_pid[i] = (ByPid){items[i].track->last.pid, (long)i};
    qsort(by_pid, n, sizeof *by_pid, pid_order);

    /* The last node is the parent of all roots. */
    long top = (long)n;
    for (size_t i = 0; i <= n; i++)
        nodes[i] = (Node){NOBODY, NOBODY, NOBODY, NOBODY};
    for (size_t i = 0; i < n; i++) {
        long parent = parent_find(items, by_pid, n, &items[i]);
        Node *above = &nodes[parent == NOBODY ? top : parent];
        nodes[i].parent = parent == NOBODY ? top : parent;
        if (above->last == NOBODY)
            above->first = (long)i;
        else
            nodes[above->last].next = (long)i;
        above->last = (long)i;
    }
    size_t done = 0;
    unsigned depth = 0;
    uint64_t rails = 0;
    long at = nodes[top].first;
    while (at != NOBODY) {
        bool goes_on = nodes[at].next != NOBODY;
        unsigned bit = MIN(depth, (unsigned)DEPTH_MOST);
        rails = goes_on ? rails | UINT64_C(1) << bit : rails & ~(UINT64_C(1) << bit);
        planted[done] = items[at];
        planted[done].depth = depth;
        planted[done].last = !goes_on;
        planted[done++].rails = rails;
        if (nodes[at].first != NOBODY) {
            at = nodes[at].first;
            depth++;
            continue;
        }
        while (at != top && nodes[at].next == NOBODY) {
            at = nodes[at].parent;
            depth -= at != top;
        }
        at = at == top ? NOBODY : nodes[at].next;
    }
    *ret = planted;
    return 0;
}

static bool track_is_there(const ProcessTrack *track, double at)
{
    return track->first_seconds <= at && at < track->ended_seconds;
}

static int list_processes(const WatchScene *scene, const WatchView *view, Arena *arena, WatchList *ret)
{
    const History *history = scene->history;
    WatchItem *items = arena_alloc(arena, (history->n_tracks + 1) * sizeof *items);
    if (!items)
        return -ENOMEM;
    size_t n = 0;
    size_t all = 0;
    for (size_t i = 0; i < history->n_tracks; i++) {
        const ProcessTrack *track = &history->tracks[i];
        if (!track_is_there(track, view->at))
            continue;
        WatchItem item = {.key = (uint64_t)track->last.pid, .track = track};
        all++;
        if (!item_matches(&item, view->filter))
            continue;
        item.sort_value = track_figure(track, view->sort, view->at);
        items[n++] = item;
    }
    Order order = {view->sort, view->inverted};
    qsort_r(items, n, sizeof *items, item_order, &order);
    if (!view->flat && view->filter[0] == '\0') {
        int r = items_plant(items, n, arena, &items);
        if (r < 0)
            return r;
    }
    *ret = (WatchList){items, n, all};
    return 0;
}

/* --- Segments and events ------------------------------------------------------------------------------ */

/* Inode numbers are unique within one tmpfs only. */
static uint64_t segment_key(const Segment *segment)
{
    return segment->inode ^ (uint64_t)segment->device.major << 52 ^ (uint64_t)segment->device.minor << 40;
}

static int list_segments(const WatchScene *scene, const WatchView *view, Arena *arena, WatchList *ret)
{
    if (!scene->survey) {
        *ret = (WatchList){0};
        return 0;
    }
    PsView shown;
    int r = ps_view_make(scene->survey, &(PsSelection){.sort = view->segment_sort}, arena, &shown);
    WatchItem *items = r < 0 ? NULL : arena_alloc(arena, (shown.n_segments + 1) * sizeof *items);
    if (!items)
        return -ENOMEM;
    size_t n = 0;
    for (size_t i = 0; i < shown.n_segments; i++) {
        const PsSegment *segment = &shown.segments[view->inverted ? shown.n_segments - 1 - i : i];
        WatchItem item = {.key = segment_key(segment->segment), .segment = segment};
        if (item_matches(&item, view->filter))
            items[n++] = item;
    }
    *ret = (WatchList){items, n, shown.n_segments};
    return 0;
}

EventList scene_events(const WatchScene *scene)
{
    const History *history = scene->history;
    return scene->told.n > 0 ? scene->told : (EventList){history->events, history->n_events};
}

/* Newest first. */
static int list_events(const WatchScene *scene, const WatchView *view, Arena *arena, WatchList *ret)
{
    EventList events = scene_events(scene);
    WatchItem *items = arena_alloc(arena, (events.n + 1) * sizeof *items);
    if (!items)
        return -ENOMEM;
    size_t n = 0;
    size_t all = 0;
    for (size_t i = events.n; i-- > 0;) {
        WatchItem item = {.key = i, .event = &events.items[i]};
        if (item.event->seconds > view->at)
            continue;
        all++;
        if (item_matches(&item, view->filter))
            items[n++] = item;
    }
    *ret = (WatchList){items, n, all};
    return 0;
}

int watch_list(const WatchScene *scene, const WatchView *view, Arena *arena, WatchList *ret)
{
    switch (view->page) {
    case PAGE_SEGMENTS:
        return list_segments(scene, view, arena, ret);
    case PAGE_EVENTS:
        return list_events(scene, view, arena, ret);
    case PAGE_PROCESSES:
    case PAGES:
        break;
    }
    return list_processes(scene, view, arena, ret);
}
