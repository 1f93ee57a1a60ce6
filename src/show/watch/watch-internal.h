/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `watch` share. */
#pragma once

#include "trends.h"
#include "watch.h"

/* --- Figures (watch-figures.c) ------------------------------------------------------------------------ */

/* The newest figure that was known by then: costly ones are sampled in turns. U64_UNKNOWN. */
uint64_t series_known(const Series *series, size_t metric, double at);

/* Of a process in one sample; the column must be a figure. */
uint64_t track_value(const Series *series, WatchColumn column, size_t place);

/* The newest figure that was known by then. U64_UNKNOWN, also for columns that are not figures. */
uint64_t track_figure(const ProcessTrack *track, WatchColumn column, double at);
bool column_is_figure(WatchColumn column);
bool column_is_bytes(WatchColumn column);

/* "812K", "9.9M", "123G": at most 5 columns. Counts beyond 99999 are shortened in the same way. */
enum { FIGURE_MAX = 16 };
char *figure_text(uint64_t value, bool bytes, char buf[static FIGURE_MAX]);

/* --- Over time (watch-trend.c) ------------------------------------------------------------------------ */

CurrentTrend track_trend(const History *history, const ProcessTrack *track, WatchColumn column, double at);

/* `columns` characters, the newest at the right; blanks before the first figure. */
void track_sparkline(const History *history, const ProcessTrack *track, WatchColumn column, double at,
                     unsigned columns, bool utf8, Buffer *out);

/* "/dev/shm full in about 4 min (estimated)": what is used up first. False: nothing soon. */
bool forecast_words(const History *history, double at, Buffer *out);

/* The newest event; events of one kind at about the same time are told together. False: nothing yet. */
bool happened_words(const EventList *events, double at, Ink *ret_ink, Buffer *out);

/* "worker 4711 ended: killed by signal 9" */
void event_words(const Event *event, Buffer *out);
Ink event_ink(const Event *event);

/* --- Lists (watch-list.c) ----------------------------------------------------------------------------- */

typedef struct WatchItem {
    uint64_t key;
    const ProcessTrack *track;
    const PsSegment *segment;
    const Event *event;
    uint64_t sort_value;
    unsigned depth;
    bool last;      /* of its parent's children */
    uint64_t rails; /* bit d: a branch at depth d continues below this row */
} WatchItem;

typedef struct WatchList {
    WatchItem *items;
    size_t n;
    size_t all; /* before the filter */
} WatchList;

/* What the page shows, in order. In arena. -ENOMEM. */
int watch_list(const WatchScene *scene, const WatchView *view, Arena *arena, WatchList *ret);

/* Of a recording with its epochs. */
EventList scene_events(const WatchScene *scene);
bool item_matches(const WatchItem *item, const char *words);

/* --- The top (watch-meters.c) ------------------------------------------------------------------------- */

/* How many rows the meters take; `kinds`: with a row for the kinds of segments below /dev/shm. */
unsigned meters_rows(const WatchScene *scene, double at, bool kinds);
void meters_draw(const WatchScene *scene, double at, bool kinds, Picture *picture, unsigned row);

/* All meters in one row. */
void meters_draw_short(const WatchScene *scene, double at, Picture *picture, unsigned row);

/* What a click on a title of the page of segments sorts by; PS_SORT_NONE: nothing. */
PsSort segment_place_sort(int what);
