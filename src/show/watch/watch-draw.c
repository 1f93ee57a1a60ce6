/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "message-text.h"
#include "message.h"
#include "ps-text.h"
#include "show-ps.h"
#include "units.h"
#include "watch-internal.h"
#include "watch-text.h"

enum {
    ROWS_FULL = 14,  /* below this height the meters share one row */
    ROWS_KINDS = 16, /* from here on there is a row for the kinds of segments */
    ROWS_KEYS = 7,
    ROWS_EVENTS = 5,
    YET_SECONDS = 300, /* what is still unknown after this time, we are not permitted to read */
};

typedef struct ColumnLook {
    const char *title;
    unsigned columns;      /* 0: what is left */
    unsigned appears_from; /* columns of the picture */
    bool right;
} ColumnLook;

static const ColumnLook column_looks[WATCH_COLUMNS] = {
    [WATCH_PID] = {WATCH_TEXT_HEAD_PID, 7, 0, true},
    [WATCH_ROLE] = {WATCH_TEXT_HEAD_ROLE, 11, 24, false},
    [WATCH_USS] = {WATCH_TEXT_HEAD_USS, 5, 38, true},
    [WATCH_PSS] = {WATCH_TEXT_HEAD_PSS, 5, 46, true},
    [WATCH_RSS] = {WATCH_TEXT_HEAD_RSS, 5, 0, true},
    [WATCH_SHARED] = {WATCH_TEXT_HEAD_SHARED, 5, 54, true},
    [WATCH_HELD] = {WATCH_TEXT_HEAD_HELD, 5, 100, true},
    [WATCH_FDS] = {WATCH_TEXT_HEAD_FDS, 5, 62, true},
    [WATCH_THREADS] = {WATCH_TEXT_HEAD_THREADS, 4, 120, true},
    [WATCH_CPU] = {WATCH_TEXT_HEAD_CPU, 5, 110, true},
    [WATCH_TREND] = {"", 10, 40, false},
    [WATCH_RATE] = {WATCH_TEXT_HEAD_RATE, 10, 100, true},
    [WATCH_COMMAND] = {WATCH_TEXT_HEAD_COMMAND, 0, 30, false},
};

/* The figure whose trend is shown: the one that is sorted by, else the one that every sample has. */
static WatchColumn trend_column(const WatchView *view)
{
    return column_is_figure(view->sort) && view->sort != WATCH_CPU ? view->sort : WATCH_RSS;
}

/* The time of day at that second of the history: "14:03:22". */
static void clock_text(const History *history, double at, char buf[static 16])
{
    time_t seconds = (time_t)(history->began + at);
    struct tm parts;
    if (!localtime_r(&seconds, &parts) || strftime(buf, 16, "%H:%M:%S", &parts) == 0)
        snprintf(buf, 16, "?");
}

/* --- The title ---------------------------------------------------------------------------------------- */

/* What watch itself takes, in the corner. Returns the columns to the left of it. */
static unsigned cost_draw(const WatchScene *scene, Picture *picture)
{
    char text[64];
    char size[FIGURE_MAX];
    unsigned all = picture->columns;
    bool late = scene->late_seconds >= 1;
    if (!late && (scene->replay || scene->own_bytes == U64_UNKNOWN || all < 60))
        return all;
    bool wide = all >= 100;
    figure_text(scene->own_bytes, true, size);
    if (late)
        snprintf(text, sizeof text, WATCH_TEXT_LATE, scene->late_seconds);
    else if (scene->own_cpu < 0)
        snprintf(text, sizeof text, wide ? WATCH_TEXT_COST_FIRST_LONG : WATCH_TEXT_COST_FIRST, size);
    else
        snprintf(text, sizeof text, wide ? WATCH_TEXT_COST_LONG : WATCH_TEXT_COST, scene->own_cpu * 100,
                 size);
    unsigned columns = (unsigned)text_columns(text_of(text));
    if (columns + 1 >= all)
        return all;
    picture_text(picture, 0, all - columns, columns, late ? INK_WARNING : INK_DIM, text_of(text));
    return all - columns - 1;
}

static void counts_add(const WatchScene *scene, const WatchView *view, Buffer *out)
{
    size_t trainers = 0;
    size_t workers = 0;
    size_t all = 0;
    for (size_t i = 0; i < scene->history->n_tracks; i++) {
        const ProcessTrack *track = &scene->history->tracks[i];
        if (track->first_seconds > view->at || view->at >= track->ended_seconds)
            continue;
        trainers += track->last.role == ROLE_TRAINER;
        workers += track->last.role == ROLE_WORKER;
        all++;
    }
    size_t others = all - trainers - workers;
    message_add(out, MESSAGE_ITEMS, PLURAL(trainers, WATCH_TEXT_TRAINERS_ONE, WATCH_TEXT_TRAINERS_MANY),
                trainers);
    message_add(out, MESSAGE_ITEMS, PLURAL(workers, WATCH_TEXT_WORKERS_ONE, WATCH_TEXT_WORKERS_MANY),
                workers);
    if (others > 0)
        message_add(out, MESSAGE_ITEMS, PLURAL(others, WATCH_TEXT_OTHERS_ONE, WATCH_TEXT_OTHERS_MANY),
                    others);
}

static void title_draw(const WatchScene *scene, const WatchView *view, Picture *picture)
{
    char time[16];
    unsigned end = cost_draw(scene, picture);
    clock_text(scene->history, view->at, time);
    unsigned at = picture_print(picture, 0, 0, end, INK_BOLD, "shmguard ");
    at += picture_print(picture, 0, at, end - at, INK_PLAIN, "%s ", time);
    if (scene->over)
        at += picture_text(picture, 0, at, end - at, INK_WARNING, text_of(WATCH_TEXT_ENDED)) + 1;
    else if (view->paused && !scene->replay)
        at += picture_text(picture, 0, at, end - at, INK_WARNING, text_of(WATCH_TEXT_PAUSED)) + 1;
    _cleanup_buffer_ Buffer words = {0};
    _cleanup_buffer_ Buffer file = {0};
    if (scene->replay && text_escape(text_of(scene->replay), &file) == 0)
        message_add(&words, MESSAGE_ITEMS, WATCH_TEXT_RECORDING, buffer_text(&file));
    else if (scene->job)
        message_add(&words, MESSAGE_ITEMS, WATCH_TEXT_JOB, scene->history->pid);
    counts_add(scene, view, &words);
    picture_text(picture, 0, at, end - at, INK_PLAIN, (Text){buffer_text(&words), words.size});
}

/* "[=======>------] 03:12 of 10:00  x4 playing" */
static void position_draw(const WatchScene *scene, const WatchView *view, Picture *picture, unsigned row)
{
    const Series *series = &scene->history->series;
    double first = series->seconds[0];
    double whole = series->seconds[series->n - 1] - first;
    double gone = view->at - first;
    char words[128];
    char speed[16];
    if (view->speed >= 0)
        snprintf(speed, sizeof speed, "x%d", 1 << view->speed);
    else
        snprintf(speed, sizeof speed, "x1/%d", 1 << -view->speed);
    snprintf(words, sizeof words, view->playing ? WATCH_TEXT_PLAYING : WATCH_TEXT_STOPPED,
             (long long)gone / 60, (long long)gone % 60, (long long)whole / 60, (long long)whole % 60, speed);
    unsigned tail = (unsigned)text_columns(text_of(words));
    if (picture->columns > tail + 9) {
        unsigned inside = picture->columns - tail - 3;
        unsigned mark = whole > 0 ? (unsigned)(gone / whole * (inside - 1)) : 0;
        picture_text(picture, row, 0, 1, INK_BOLD, TEXT("["));
        for (unsigned i = 0; i < inside; i++)
            picture_text(picture, row, 1 + i, 1,
                         i < mark    ? INK_GOOD
                         : i == mark ? INK_BOLD
                                     : INK_DIM,
                         i < mark    ? TEXT("=")
                         : i == mark ? TEXT(">")
                                     : TEXT("-"));
        picture_text(picture, row, 1 + inside, 1, INK_BOLD, TEXT("]"));
        picture_text(picture, row, 3 + inside, tail, INK_PLAIN, text_of(words));
    } else
        picture_text(picture, row, 0, picture->columns, INK_PLAIN, text_of(words));
}

/* --- Processes ---------------------------------------------------------------------------------------- */

static unsigned column_columns(WatchColumn column, unsigned width)
{
    if (column == WATCH_TREND)
        return width >= 180 ? 26 : width >= 120 ? 18 : width >= 72 ? 10 : 1;
    return column_looks[column].columns;
}

static void heads_place(WatchLayout *layout, unsigned width)
{
    unsigned at = 0;
    layout->n_heads = 0;
    for (WatchColumn column = 0; column < WATCH_COLUMNS; column++) {
        if (width < column_looks[column].appears_from || at >= width)
            continue;
        unsigned columns = column_columns(column, width);
        columns = columns == 0 ? width - at : MIN(columns, width - at);
        layout->heads[layout->n_heads++] = (WatchPlace){at, columns, (int)column};
        at += columns + 1;
    }
}

static void heads_draw(const WatchView *view, Picture *picture, unsigned row, bool marked)
{
    picture_ink(picture, row, 0, picture->columns, INK_TITLE);
    for (size_t i = 0; i < view->layout.n_heads; i++) {
        const WatchPlace *place = &view->layout.heads[i];
        WatchColumn column = (WatchColumn)place->what;
        char title[32];
        if (column == WATCH_TREND)
            snprintf(title, sizeof title, WATCH_TEXT_HEAD_TREND, _(column_looks[trend_column(view)].title));
        else
            snprintf(title, sizeof title, "%s", _(column_looks[column].title));
        if (column == WATCH_TREND && place->columns < 9)
            title[0] = '\0';
        if (column_looks[column].right)
            picture_right(picture, row, place->column, place->columns, INK_TITLE, title);
        else
            picture_text(picture, row, place->column, place->columns, INK_TITLE, text_of(title));
        /* The sign stands in the gap after the title, so that numbers stay aligned. */
        if (marked && column == view->sort)
            picture_text(picture, row, place->column + place->columns, 1, INK_TITLE,
                         view->inverted == column_is_figure(column)
                             ? (picture->utf8 ? TEXT("▲") : TEXT("^"))
                             : (picture->utf8 ? TEXT("▼") : TEXT("v")));
    }
}

/* "├─worker" */
static void role_append(const WatchItem *item, bool utf8, Buffer *out)
{
    for (unsigned depth = 1; depth < item->depth; depth++)
        (void)buffer_append_text(out, item->rails >> MIN(depth, 63U) & 1 ? (utf8 ? "│ " : "| ") : "  ");
    if (item->depth > 0)
        (void)buffer_append_text(out, item->last ? (utf8 ? "└─" : "`-") : (utf8 ? "├─" : "|-"));
    (void)buffer_append_text(out, role_name(item->track->last.role));
}

static void figure_append(const WatchItem *item, WatchColumn column, const WatchView *view, bool utf8,
                          Buffer *out)
{
    char text[FIGURE_MAX];
    uint64_t value = track_figure(item->track, column, view->at);
    if (value == U64_UNKNOWN)
        /* Its turn has not come yet, or we are not permitted to read it. */
        (void)buffer_append_text(out, view->at - item->track->first_seconds >= YET_SECONDS ? "?"
                                      : utf8                                               ? "…"
                                                                                           : "..");
    else if (column == WATCH_CPU)
        (void)buffer_printf(out, "%.1f", (double)value / 10);
    else
        (void)buffer_append_text(out, figure_text(value, column_is_bytes(column), text));
}

static const char *arrow_text(Direction direction, bool utf8)
{
    switch (direction) {
    case DIRECTION_UP:
        return utf8 ? "↑" : "^";
    case DIRECTION_DOWN:
        return utf8 ? "↓" : "v";
    case DIRECTION_FLAT:
        return utf8 ? "→" : "-";
    case DIRECTION_UNKNOWN:
        break;
    }
    return " ";
}

static void trend_append(const WatchScene *scene, const WatchItem *item, const WatchView *view,
                         unsigned columns, bool utf8, CurrentTrend trend, Buffer *out)
{
    (void)buffer_append_text(out, arrow_text(trend.direction, utf8));
    if (columns > 2) {
        (void)buffer_append_text(out, " ");
        track_sparkline(scene->history, item->track, trend_column(view), view->at, columns - 2, utf8, out);
    }
}

static void rate_append(const WatchView *view, CurrentTrend trend, Buffer *out)
{
    char text[FIGURE_MAX];
    double per_minute = fabs(trend.rate) * 60;
    if (trend.direction == DIRECTION_UP || trend.direction == DIRECTION_DOWN)
        (void)buffer_printf(
            out, WATCH_TEXT_RATE, trend.rate > 0 ? '+' : '-',
            figure_text((uint64_t)MIN(per_minute, 0x1p62), column_is_bytes(trend_column(view)), text));
}

static Text without_directory(Text word)
{
    const char *slash = word.size > 0 ? memrchr(word.data, '/', word.size) : NULL;
    return slash && slash + 1 < word.data + word.size ? text_skip(word, (size_t)(slash - word.data) + 1)
                                                      : word;
}

/* Where the whole command does not fit, the program tells more than its directory. */
static void command_append(const char *command, unsigned columns, Buffer *out)
{
    (void)text_escape(text_of(command), out);
    if (text_columns((Text){buffer_text(out), out->size}) <= columns)
        return;
    buffer_clear(out);
    bool script = false;
    unsigned words = 0;
    Text rest = text_of(command);
    Text word;
    while (text_word(&rest, &word)) {
        bool first = out->size == 0;
        bool second = words++ == 1 && !text_starts(word, "-");
        bool is_script = !script && (second || text_ends(word, ".py"));
        script |= is_script;
        (void)buffer_append_text(out, first ? "" : " ");
        (void)text_escape(first || is_script ? without_directory(word) : word, out);
    }
}

static void process_draw(const WatchScene *scene, const WatchView *view, const WatchItem *item,
                         Picture *picture, unsigned row, Buffer *text)
{
    CurrentTrend trend = track_trend(scene->history, item->track, trend_column(view), view->at);
    for (size_t i = 0; i < view->layout.n_heads; i++) {
        const WatchPlace *place = &view->layout.heads[i];
        WatchColumn column = (WatchColumn)place->what;
        Ink ink = INK_PLAIN;
        buffer_clear(text);
        if (column == WATCH_PID)
            (void)buffer_printf(text, "%d", item->track->last.pid);
        else if (column == WATCH_ROLE)
            role_append(item, picture->utf8, text);
        else if (column == WATCH_TREND)
            trend_append(scene, item, view, place->columns, picture->utf8, trend, text);
        else if (column == WATCH_RATE)
            rate_append(view, trend, text);
        else if (column == WATCH_COMMAND)
            command_append(item->track->last.command, place->columns, text);
        else
            figure_append(item, column, view, picture->utf8, text);
        if ((column == WATCH_TREND || column == WATCH_RATE) && trend.direction == DIRECTION_UP)
            ink = INK_WARNING;
        if (column == WATCH_ROLE && item->track->last.role == ROLE_TRAINER)
            ink = INK_BOLD;
        if (column_looks[column].right)
            picture_right(picture, row, place->column, place->columns, ink, buffer_text(text));
        else
            picture_text(picture, row, place->column, place->columns, ink,
                         (Text){buffer_text(text), text->size});
    }
}

/* --- Segments and events ------------------------------------------------------------------------------ */

enum { SEGMENT_NAME, SEGMENT_KIND, SEGMENT_STATE, SEGMENT_SIZE, SEGMENT_ALLOCATED, SEGMENT_HOLDERS };

static const struct {
    const char *title;
    unsigned columns; /* 0: a part of what is left */
    unsigned appears_from;
    PsSort sort;
    bool right;
} segment_looks[] = {
    [SEGMENT_NAME] = {WATCH_TEXT_HEAD_NAME, 0, 0, PS_SORT_NAME, false},
    [SEGMENT_KIND] = {WATCH_TEXT_HEAD_KIND, 9, 40, PS_SORT_NONE, false},
    [SEGMENT_STATE] = {WATCH_TEXT_HEAD_STATE, 9, 100, PS_SORT_NONE, false},
    [SEGMENT_SIZE] = {WATCH_TEXT_HEAD_SIZE, 5, 60, PS_SORT_SIZE, true},
    [SEGMENT_ALLOCATED] = {WATCH_TEXT_HEAD_ALLOCATED, 6, 0, PS_SORT_ALLOCATED, true},
    [SEGMENT_HOLDERS] = {WATCH_TEXT_HEAD_HOLDERS, 0, 30, PS_SORT_HOLDERS, false},
};

PsSort segment_place_sort(int what)
{
    return segment_looks[what].sort;
}

static void segment_heads_place(WatchLayout *layout, unsigned width)
{
    unsigned fixed = 0;
    unsigned flexible = 0;
    for (size_t i = 0; i < ARRAY_SIZE(segment_looks); i++)
        if (width >= segment_looks[i].appears_from) {
            fixed += segment_looks[i].columns + 1;
            flexible += segment_looks[i].columns == 0;
        }
    unsigned left = width > fixed ? width - fixed : 0;
    unsigned at = 0;
    layout->n_heads = 0;
    for (size_t i = 0; i < ARRAY_SIZE(segment_looks) && at < width; i++) {
        if (width < segment_looks[i].appears_from)
            continue;
        /* Names are longer than lists of pids. */
        unsigned columns = segment_looks[i].columns > 0 ? segment_looks[i].columns
                           : flexible == 1              ? left
                           : i == SEGMENT_NAME          ? left - left * 2 / 5
                                                        : left * 2 / 5;
        columns = MIN(MAX(columns, 1U), width - at);
        layout->heads[layout->n_heads++] = (WatchPlace){at, columns, (int)i};
        at += columns + 1;
    }
}

static void segment_heads_draw(const WatchScene *scene, const WatchView *view, Picture *picture, unsigned row)
{
    char time[16];
    char seen[32];
    PsSort sort = view->segment_sort == PS_SORT_NONE ? PS_SORT_ALLOCATED : view->segment_sort;
    picture_ink(picture, row, 0, picture->columns, INK_TITLE);
    if (scene->survey && picture->columns >= 100) {
        clock_text(scene->history, scene->survey_seconds, time);
        snprintf(seen, sizeof seen, WATCH_TEXT_SEEN_AT, time);
        picture_right(picture, row, 0, picture->columns, INK_TITLE, seen);
    }
    for (size_t i = 0; i < view->layout.n_heads; i++) {
        const WatchPlace *place = &view->layout.heads[i];
        const char *title = _(segment_looks[place->what].title);
        if (segment_looks[place->what].right)
            picture_right(picture, row, place->column, place->columns, INK_TITLE, title);
        else
            picture_text(picture, row, place->column, place->columns, INK_TITLE, text_of(title));
        if (segment_looks[place->what].sort == sort)
            picture_text(picture, row, place->column + place->columns, 1, INK_TITLE,
                         view->inverted == (sort != PS_SORT_NAME) ? (picture->utf8 ? TEXT("▲") : TEXT("^"))
                                                                  : (picture->utf8 ? TEXT("▼") : TEXT("v")));
    }
}

static void segment_draw(const WatchView *view, const WatchItem *item, Picture *picture, unsigned row,
                         Buffer *text)
{
    const Segment *segment = item->segment->segment;
    char figure[FIGURE_MAX];
    for (size_t i = 0; i < view->layout.n_heads; i++) {
        const WatchPlace *place = &view->layout.heads[i];
        Ink ink = INK_PLAIN;
        buffer_clear(text);
        switch (place->what) {
        case SEGMENT_NAME: {
            _cleanup_buffer_ Buffer name = {0};
            if (segment->backing == BACKING_MEMFD)
                (void)buffer_append_text(&name, "memfd:");
            (void)text_escape(segment->name, &name);
            (void)text_shorten((Text){buffer_text(&name), name.size}, place->columns,
                               picture->utf8 ? "…" : "..", text);
            break;
        }
        case SEGMENT_KIND:
            (void)buffer_append_text(text, segment_kind_name(segment->kind));
            break;
        case SEGMENT_STATE:
            (void)buffer_append_text(text, segment_state_words(segment));
            break;
        case SEGMENT_SIZE:
            (void)buffer_append_text(text, figure_text(segment->size_bytes, true, figure));
            break;
        case SEGMENT_ALLOCATED:
            (void)buffer_printf(text, "%s%s", segment->allocated_estimated ? "~" : "",
                                figure_text(segment->allocated_bytes, true, figure));
            break;
        default:
            for (size_t holder = 0; holder < segment->n_holders; holder++)
                (void)buffer_printf(text, "%s%d", holder > 0 ? " " : "", segment->holders[holder]);
            if (segment->n_holders == 0)
                (void)buffer_append_text(text, PS_NO_HOLDERS);
            ink = segment->n_holders == 0 ? INK_WARNING : INK_PLAIN;
        }
        if (segment_looks[place->what].right)
            picture_right(picture, row, place->column, place->columns, ink, buffer_text(text));
        else
            picture_text(picture, row, place->column, place->columns, ink,
                         (Text){buffer_text(text), text->size});
    }
}

static void event_draw(const WatchScene *scene, const WatchItem *item, Picture *picture, unsigned row,
                       Buffer *text)
{
    char time[16];
    clock_text(scene->history, item->event->seconds, time);
    buffer_clear(text);
    event_words(item->event, text);
    unsigned at = picture_print(picture, row, 0, picture->columns, INK_PLAIN, "%-9s ", time);
    picture_text(picture, row, at, picture->columns, event_ink(item->event),
                 (Text){buffer_text(text), text->size});
}

/* --- The list ----------------------------------------------------------------------------------------- */

/* What an empty list says instead. */
static const char *list_empty_words(const WatchScene *scene, const WatchView *view, const WatchList *list)
{
    if (list->all > 0)
        return WATCH_TEXT_NO_MATCH;
    switch (view->page) {
    case PAGE_SEGMENTS:
        return scene->replay ? WATCH_TEXT_NO_RECORDED : scene->survey ? PS_NO_SEGMENTS : WATCH_TEXT_NOT_YET;
    case PAGE_EVENTS:
        return WATCH_TEXT_NO_EVENTS;
    case PAGE_PROCESSES:
    case PAGES:
        break;
    }
    return PS_NO_PROCESSES;
}

static void cursor_settle(WatchView *view, const WatchList *list)
{
    size_t n = list->n;
    view->layout.n_items = n;
    view->missed &= view->find == 0;
    size_t followed = view->follow ? 0 : n;
    while (followed < n && list->items[followed].key != view->chosen)
        followed++;
    if (followed < n)
        view->cursor = followed;
    view->cursor = n == 0 ? 0 : MIN(view->cursor, n - 1);
    if (view->find != 0 && n > 0 && view->search[0] != '\0') {
        view->missed = true;
        size_t step = view->find < 0 ? n - 1 : 1;
        size_t at = view->find == 2 ? view->cursor : (view->cursor + step) % n;
        for (size_t i = 0; i < n && view->missed; i++, at = (at + step) % n)
            if (item_matches(&list->items[at], view->search)) {
                view->cursor = at;
                view->missed = false;
            }
    }
    view->find = 0;
    view->follow = n > 0;
    view->chosen = n > 0 ? list->items[view->cursor].key : 0;
    size_t seen = view->layout.list_rows;
    if (view->cursor < view->top || seen == 0)
        view->top = view->cursor;
    else if (view->cursor >= view->top + seen)
        view->top = view->cursor - seen + 1;
    /* No blank rows at the end while items above are out of view. */
    if (view->top + seen > n)
        view->top = n > seen ? n - seen : 0;
}

static void list_draw(const WatchScene *scene, const WatchView *view, const WatchList *list, bool cursor,
                      Picture *picture)
{
    _cleanup_buffer_ Buffer text = {0};
    const WatchLayout *layout = &view->layout;
    if (list->n == 0)
        picture_text(picture, layout->list_row, 0, layout->list_rows > 0 ? picture->columns : 0, INK_PLAIN,
                     text_of(list_empty_words(scene, view, list)));
    for (unsigned i = 0; i < layout->list_rows && view->top + i < list->n; i++) {
        const WatchItem *item = &list->items[view->top + i];
        unsigned row = layout->list_row + i;
        if (item->segment)
            segment_draw(view, item, picture, row, &text);
        else if (item->event)
            event_draw(scene, item, picture, row, &text);
        else
            process_draw(scene, view, item, picture, row, &text);
        if (cursor && view->top + i == view->cursor)
            picture_ink(picture, row, 0, picture->columns, INK_CHOSEN);
    }
}

static void list_heads(const WatchScene *scene, WatchView *view, Picture *picture, bool drawn)
{
    unsigned row = view->layout.head_row;
    char time[16];
    view->layout.n_heads = 0;
    switch (view->page) {
    case PAGE_SEGMENTS:
        segment_heads_place(&view->layout, picture->columns);
        if (drawn)
            segment_heads_draw(scene, view, picture, row);
        break;
    case PAGE_EVENTS:
        if (drawn) {
            clock_text(scene->history, 0, time);
            picture_ink(picture, row, 0, picture->columns, INK_TITLE);
            picture_print(picture, row, 0, picture->columns, INK_TITLE, WATCH_TEXT_HEAD_EVENTS, time);
        }
        break;
    case PAGE_PROCESSES:
    case PAGES:
        heads_place(&view->layout, picture->columns);
        if (drawn)
            heads_draw(view, picture, row, true);
        break;
    }
}

/* --- The bottom --------------------------------------------------------------------------------------- */

/* "! /dev/shm full in about 4 min (estimated); 12 s ago: worker 4711 ended" */
static void events_draw(const WatchScene *scene, const WatchView *view, Picture *picture, unsigned row)
{
    _cleanup_buffer_ Buffer words = {0};
    unsigned at = 0;
    if (forecast_words(scene->history, view->at, &words)) {
        at += picture_text(picture, row, at, picture->columns, INK_BAD, TEXT("! "));
        at += picture_text(picture, row, at, picture->columns, INK_BAD,
                           (Text){buffer_text(&words), words.size});
        at += picture_text(picture, row, at, picture->columns, INK_PLAIN, text_of(MESSAGE_PARTS));
    }
    buffer_clear(&words);
    Ink ink = INK_PLAIN;
    EventList events = scene_events(scene);
    if (happened_words(&events, view->at, &ink, &words))
        picture_text(picture, row, at, picture->columns, ink, (Text){buffer_text(&words), words.size});
    else
        picture_text(picture, row, at, picture->columns, INK_DIM, text_of(WATCH_TEXT_NO_NEWS));
}

static void keys_draw(const WatchScene *scene, const WatchView *view, Picture *picture, unsigned row)
{
    const char *next = view->page == PAGE_PROCESSES  ? WATCH_TEXT_KEY_SEGMENTS
                       : view->page == PAGE_SEGMENTS ? WATCH_TEXT_KEY_EVENTS
                                                     : WATCH_TEXT_KEY_PROCESSES;
    bool processes = view->page == PAGE_PROCESSES;
    const char *const keys[][2] = {
        {"F1", WATCH_TEXT_KEY_HELP},
        {"F2", next},
        {"F3", WATCH_TEXT_KEY_SEARCH},
        {"F4", view->filter[0] != '\0' ? WATCH_TEXT_KEY_FILTER_ON : WATCH_TEXT_KEY_FILTER},
        {processes ? "F5" : NULL, view->flat ? WATCH_TEXT_KEY_TREE : WATCH_TEXT_KEY_FLAT},
        {view->page != PAGE_EVENTS ? "F6" : NULL, WATCH_TEXT_KEY_SORT},
        {scene->replay || scene->over ? NULL : "Z",
         view->paused ? WATCH_TEXT_KEY_RESUME : WATCH_TEXT_KEY_PAUSE},
        {scene->replay ? WATCH_TEXT_KEY_NAME_SPACE : NULL,
         view->playing ? WATCH_TEXT_KEY_STOP : WATCH_TEXT_KEY_PLAY},
        {scene->replay || view->paused ? "<->" : NULL, WATCH_TEXT_KEY_TIME},
        {"q", WATCH_TEXT_KEY_QUIT},
    };
    unsigned at = 0;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (!keys[i][0])
            continue;
        at += picture_text(picture, row, at, picture->columns, INK_PLAIN, text_of(keys[i][0]));
        at += picture_print(picture, row, at, picture->columns, INK_TITLE, "%s", keys[i][1]);
        at += picture_text(picture, row, at, picture->columns, INK_PLAIN, TEXT(" "));
    }
}

static void edit_draw(const WatchView *view, Picture *picture, unsigned row)
{
    bool search = view->edit == EDIT_SEARCH;
    picture_ink(picture, row, 0, picture->columns, INK_PLAIN);
    for (unsigned i = 0; i < picture->columns; i++)
        picture_text(picture, row, i, 1, INK_PLAIN, TEXT(" "));
    unsigned at = picture_text(picture, row, 0, picture->columns, INK_TITLE,
                               search ? text_of(WATCH_TEXT_EDIT_SEARCH) : text_of(WATCH_TEXT_EDIT_FILTER));
    at += picture_print(picture, row, at, picture->columns, INK_BOLD, " %s",
                        search ? view->search : view->filter);
    at += picture_text(picture, row, at, 1, INK_CHOSEN, TEXT(" "));
    if (search && view->missed)
        at += picture_text(picture, row, at + 1, picture->columns, INK_WARNING,
                           text_of(WATCH_TEXT_EDIT_MISSED)) +
              1;
    picture_text(picture, row, at + 2, picture->columns, INK_DIM,
                 text_of(search ? WATCH_TEXT_EDIT_SEARCH_KEYS : WATCH_TEXT_EDIT_FILTER_KEYS));
}

static void help_draw(Picture *picture)
{
    picture_ink(picture, 0, 0, picture->columns, INK_TITLE);
    picture_text(picture, 0, 0, picture->columns, INK_TITLE, text_of(WATCH_TEXT_HELP_TITLE));
    unsigned n = 0;
    TEXT_FOR_EACH_LINE (line, text_of(WATCH_TEXT_HELP))
        n++;
    unsigned row = picture->rows > n ? 1 : 0; /* without a spare row the title is left out */
    TEXT_FOR_EACH_LINE (line, text_of(WATCH_TEXT_HELP))
        picture_text(picture, row++, 0, picture->columns, INK_PLAIN, line);
}

/* --- All of it ---------------------------------------------------------------------------------------- */

/* Lays the rows out. From the top: title, meters, position, heads, list; from the bottom: keys, events. */
static void layout_make(const WatchScene *scene, const WatchView *view, unsigned rows, bool whole,
                        WatchLayout *layout)
{
    bool full = whole || rows >= ROWS_FULL;
    bool kinds = whole || rows >= ROWS_KINDS;
    unsigned at = full ? 1 + meters_rows(scene, view->at, kinds) : 1;
    at += scene->replay && !whole && rows >= ROWS_EVENTS;
    /* Of three rows one is for the list, and one for the keys or what is typed. */
    bool heads = whole || rows >= 4;
    unsigned below = whole ? 1 : (rows >= ROWS_KEYS || view->edit != EDIT_NONE) + (rows >= ROWS_EVENTS);
    *layout = (WatchLayout){.head_row = heads ? at : UINT32_MAX, .list_row = at + heads};
    layout->list_rows = rows > layout->list_row + below ? rows - layout->list_row - below : 0;
}

/* What there is to draw before the first sample. */
static void waiting_draw(const WatchScene *scene, Picture *picture)
{
    unsigned end = cost_draw(scene, picture);
    picture_text(picture, 0, 0, end, INK_BOLD, TEXT("shmguard"));
    picture_text(picture, 1, 0, picture->columns, INK_PLAIN, text_of(WATCH_TEXT_FIRST_IS_LATE));
}

static int draw(const WatchScene *scene, WatchView *view, Picture *picture, unsigned columns, unsigned rows,
                bool utf8, bool whole)
{
    _cleanup_arena_ Arena arena = {0};
    WatchList list = {0};
    if (scene->history->series.n == 0) {
        int cleared = picture_clear(picture, columns, rows, utf8);
        if (cleared >= 0)
            waiting_draw(scene, picture);
        return cleared;
    }
    int r = watch_list(scene, view, &arena, &list);
    if (r < 0)
        return r;
    layout_make(scene, view, rows, whole, &view->layout);
    if (whole) {
        view->layout.list_rows = (unsigned)MAX(list.n, (size_t)1);
        rows = view->layout.list_row + view->layout.list_rows + 1;
    }
    r = picture_clear(picture, columns, rows, utf8);
    if (r < 0)
        return r;
    cursor_settle(view, &list);
    if (view->help) {
        help_draw(picture);
        return 0;
    }
    if (whole || rows >= ROWS_FULL) {
        title_draw(scene, view, picture);
        meters_draw(scene, view->at, whole || rows >= ROWS_KINDS, picture, 1);
    } else
        meters_draw_short(scene, view->at, picture, 0);
    bool has_heads = view->layout.head_row != UINT32_MAX;
    if (scene->replay && !whole && rows >= ROWS_EVENTS)
        position_draw(scene, view, picture, (has_heads ? view->layout.head_row : view->layout.list_row) - 1);
    list_heads(scene, view, picture, has_heads);
    list_draw(scene, view, &list, !whole, picture);
    bool keys = !whole && rows >= ROWS_KEYS;
    if (whole || rows >= ROWS_EVENTS)
        events_draw(scene, view, picture, rows - 1 - (keys || (view->edit != EDIT_NONE && !whole)));
    if (keys)
        keys_draw(scene, view, picture, rows - 1);
    if (view->edit != EDIT_NONE && !whole)
        edit_draw(view, picture, rows - 1);
    return 0;
}

int watch_draw(const WatchScene *scene, WatchView *view, Picture *picture, unsigned columns, unsigned rows,
               bool utf8)
{
    return draw(scene, view, picture, columns, rows, utf8, false);
}

int watch_draw_whole(const WatchScene *scene, WatchView *view, Picture *picture, unsigned columns, bool utf8)
{
    return draw(scene, view, picture, columns, 0, utf8, true);
}
