/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "units.h"
#include "watch-internal.h"
#include "watch-text.h"

enum {
    METERS = 4,
    PARTS = SEGMENT_KINDS + 2,
    LABEL = 9,
    FIGURES = 40, /* for "999M of 1.0G 100% critical, run 1234567 of 2", the longest that is common */
    WIDE = 100,   /* from here on sizes are written in full */
    FIGURES_WIDE = 56,
    BAR_COLUMNS = 60, /* from this width of the picture on there are bars */
    BAR_MOST = 100,
    WORTH_A_ROW = 1 << 20,
};

typedef struct MeterPart {
    char letter;
    const char *name;
    uint64_t bytes;
} MeterPart;

typedef struct WatchMeter {
    const char *name;
    const char *name_short;
    uint64_t used;
    uint64_t limit; /* U64_UNKNOWN: none, or not known */
    Alert alert;
    MeterPart parts[PARTS];
    size_t n_parts; /* 0: all of one kind */
    uint64_t cache; /* beyond `used`: pages of files that can be dropped */
    char note[64];
} WatchMeter;

static double meter_share(const WatchMeter *meter)
{
    return meter->limit == U64_UNKNOWN || meter->limit == 0 ? -1 : (double)meter->used / (double)meter->limit;
}

/* --- What they measure -------------------------------------------------------------------------------- */

static void part_add(WatchMeter *meter, char letter, const char *name, uint64_t bytes)
{
    if (bytes > 0 && meter->n_parts < PARTS)
        meter->parts[meter->n_parts++] = (MeterPart){letter, name, bytes};
}

static char kind_letter(SegmentKind kind)
{
    static const char letters[SEGMENT_KINDS] = {
        [KIND_OTHER] = 'O',     [KIND_TORCH] = 'T',    [KIND_NCCL] = 'N', [KIND_PYTHON] = 'P',
        [KIND_GLOO] = 'G',      [KIND_DALI] = 'D',     [KIND_RAY] = 'R',  [KIND_MPI] = 'M',
        [KIND_SEMAPHORE] = 'S', [KIND_SHMGUARD] = 'B',
    };
    return letters[kind];
}

/* Which kinds of segments use /dev/shm. A live survey knows which segments are files of the mount. The sums
 * of a recording include memfds, so the guard's segments and those of an unknown kind, which most memfds are,
 * are left out, and the rest is reduced to what fits. */
static void shm_parts(const WatchScene *scene, double at, WatchMeter *meter)
{
    uint64_t kinds[SEGMENT_KINDS] = {0};
    uint64_t unheld = 0;
    if (scene->survey && !scene->job) {
        for (size_t i = 0; i < scene->survey->n_segments; i++) {
            const Segment *segment = &scene->survey->segments[i];
            if (segment->on_mount)
                *(segment->n_holders > 0 ? &kinds[segment->kind] : &unheld) += segment->allocated_bytes;
        }
    } else
        for (SegmentKind kind = 0; kind < SEGMENT_KINDS; kind++) {
            uint64_t bytes = series_known(&scene->history->series, JOB_KIND_BYTES + kind, at);
            bool memfds = kind == KIND_SHMGUARD || kind == KIND_OTHER;
            kinds[kind] = bytes == U64_UNKNOWN || memfds ? 0 : bytes;
        }
    uint64_t left = meter->used;
    for (SegmentKind kind = 0; kind < SEGMENT_KINDS; kind++) {
        uint64_t bytes = MIN(kinds[kind], left);
        part_add(meter, kind_letter(kind), segment_kind_name(kind), bytes);
        left -= bytes;
    }
    unheld = MIN(unheld, left);
    part_add(meter, '-', WATCH_TEXT_PART_UNHELD, unheld);
    part_add(meter, '?', scene->survey && !scene->job ? WATCH_TEXT_PART_UNATTRIBUTED : WATCH_TEXT_PART_OTHERS,
             left - unheld);
}

static bool shm_meter(const WatchScene *scene, double at, WatchMeter *ret)
{
    const Series *series = &scene->history->series;
    WatchMeter meter = {.name = WATCH_TEXT_METER_SHM,
                        .name_short = WATCH_TEXT_METER_SHM_SHORT,
                        .used = series_known(series, JOB_SHM_USED, at)};
    if (meter.used == U64_UNKNOWN)
        return false;
    meter.limit = series_known(series, JOB_SHM_SIZE, at);
    if (meter.limit == 0) /* a mount without a limit */
        meter.limit = U64_UNKNOWN;
    shm_parts(scene, at, &meter);
    *ret = meter;
    return true;
}

static bool memory_meter(const WatchScene *scene, double at, WatchMeter *ret)
{
    const Series *series = &scene->history->series;
    uint64_t total = series_known(series, JOB_MEMORY_TOTAL, at);
    uint64_t available = series_known(series, JOB_MEMORY_AVAILABLE, at);
    if (total == U64_UNKNOWN || available == U64_UNKNOWN)
        return false;
    *ret = (WatchMeter){.name = WATCH_TEXT_METER_MEMORY,
                        .name_short = WATCH_TEXT_METER_MEMORY,
                        .used = total - MIN(available, total),
                        .limit = total};
    return true;
}

static bool group_meter(const WatchScene *scene, double at, WatchMeter *ret)
{
    const Series *series = &scene->history->series;
    uint64_t limit = series_known(series, JOB_GROUP_LIMIT, at);
    uint64_t used = series_known(series, JOB_GROUP_USED, at);
    uint64_t file = series_known(series, JOB_GROUP_FILE, at);
    if (limit == U64_UNKNOWN || used == U64_UNKNOWN)
        return false;
    file = file == U64_UNKNOWN ? 0 : MIN(file, used);
    *ret = (WatchMeter){.name = WATCH_TEXT_METER_GROUP,
                        .name_short = WATCH_TEXT_METER_GROUP_SHORT,
                        .used = used - file,
                        .limit = limit,
                        .cache = file};
    return true;
}

/* Requests that were refused recently, as far back as trends look. */
static uint64_t refused_lately(const History *history, size_t place, double at)
{
    const uint64_t *refused = history->series.values[JOB_GUARD_REFUSED];
    uint64_t before = refused[place];
    double from = at - trend_window(history);
    for (size_t i = place; i-- > 0 && history->series.seconds[i] >= from;)
        before = MIN(before, refused[i]);
    return refused[place] == U64_UNKNOWN ? 0 : refused[place] - before;
}

static bool guard_meter(const WatchScene *scene, double at, WatchMeter *ret)
{
    const Series *series = &scene->history->series;
    size_t place = 0;
    if (!series_place(series, at, &place))
        return false;
    /* Of this sample alone: an older figure may belong to a run that has ended. */
    uint64_t used = series->values[JOB_GUARD_BYTES][place];
    uint64_t budget = series->values[JOB_GUARD_BUDGET][place];
    uint64_t waiting = series->values[JOB_GUARD_WAITING][place];
    uint64_t refused = refused_lately(scene->history, place, at);
    waiting = waiting == U64_UNKNOWN ? 0 : waiting;
    WatchMeter meter = {.name = WATCH_TEXT_METER_BUDGET,
                        .name_short = WATCH_TEXT_METER_BUDGET,
                        .used = used,
                        .limit = budget};
    if (used != U64_UNKNOWN) {
        meter.alert = budget == U64_UNKNOWN ? ALERT_UNKNOWN : alert_of_budget(waiting, refused);
        if (refused > 0)
            snprintf(meter.note, sizeof meter.note, WATCH_TEXT_NOTE_REFUSED, (unsigned long long)refused);
        else if (waiting > 0)
            snprintf(meter.note, sizeof meter.note, WATCH_TEXT_NOTE_WAITING, (unsigned long long)waiting);
        else if (budget == U64_UNKNOWN)
            snprintf(meter.note, sizeof meter.note, WATCH_TEXT_NOTE_NO_CEILING);
        else if (scene->guards > 1)
            snprintf(meter.note, sizeof meter.note, WATCH_TEXT_NOTE_RUN, scene->guard_pid, scene->guards);
    } else {
        /* The guard's memory is visible from outside, its budget only to the run itself. */
        meter.used = series_known(series, JOB_KIND_BYTES + KIND_SHMGUARD, at);
        if (meter.used == U64_UNKNOWN || meter.used < WORTH_A_ROW) /* a page of counters is not worth a row */
            return false;
        meter.name = meter.name_short = WATCH_TEXT_METER_GUARD;
        snprintf(meter.note, sizeof meter.note, WATCH_TEXT_NOTE_UNKNOWN);
    }
    *ret = meter;
    return true;
}

typedef struct Meters {
    WatchMeter items[METERS];
    size_t n;
} Meters;

static void meters_take(const WatchScene *scene, double at, Meters *ret)
{
    static bool (*const all[METERS])(const WatchScene *, double, WatchMeter *) = {
        shm_meter,
        memory_meter,
        group_meter,
        guard_meter,
    };
    ret->n = 0;
    for (size_t i = 0; i < METERS; i++) {
        WatchMeter *meter = &ret->items[ret->n];
        if (!all[i](scene, at, meter))
            continue;
        if (meter->alert == ALERT_UNKNOWN)
            meter->alert = alert_of_share(meter_share(meter));
        ret->n++;
    }
}

/* --- How they look ------------------------------------------------------------------------------------ */

static Ink alert_ink(Alert alert)
{
    static const Ink inks[ALERTS] = {
        [ALERT_UNKNOWN] = INK_PLAIN,
        [ALERT_FINE] = INK_GOOD,
        [ALERT_WARNING] = INK_WARNING,
        [ALERT_CRITICAL] = INK_BAD,
    };
    return inks[alert];
}

static unsigned cells_of(uint64_t bytes, uint64_t limit, unsigned cells)
{
    return limit == 0 ? 0 : (unsigned)MIN((double)bytes / (double)limit * cells + 0.5, (double)cells);
}

/* "[TTTTNN??|||:::    ]" */
static void bar_draw(const WatchMeter *meter, Picture *picture, unsigned row, unsigned column, unsigned width)
{
    unsigned inside = width - 2;
    Ink ink = alert_ink(meter->alert);
    char bar[BAR_MOST + 1];
    memset(bar, ' ', inside);
    bar[inside] = '\0';
    unsigned used = cells_of(meter->used, meter->limit, inside);
    unsigned with_cache = cells_of(meter->used + meter->cache, meter->limit, inside);
    memset(bar, ':', with_cache);
    memset(bar, '|', used);
    uint64_t sum = 0;
    for (size_t i = 0; i < meter->n_parts; i++) {
        unsigned from = cells_of(sum, meter->limit, inside);
        sum += meter->parts[i].bytes;
        unsigned to = cells_of(sum, meter->limit, inside);
        memset(bar + from, meter->parts[i].letter, to - from);
    }
    picture_text(picture, row, column, 1, INK_BOLD, TEXT("["));
    picture_text(picture, row, column + 1, inside, ink, text_of(bar));
    picture_ink(picture, row, column + 1 + used, with_cache > used ? with_cache - used : 0, INK_DIM);
    picture_text(picture, row, column + width - 1, 1, INK_BOLD, TEXT("]"));
}

enum { SIZE_MAX_COLUMNS = MAX((int)SIZE_TEXT_MAX, (int)FIGURE_MAX) };

static char *size_text(const Picture *picture, uint64_t bytes, char buf[static SIZE_MAX_COLUMNS])
{
    return picture->columns >= WIDE ? size_format(bytes, buf) : figure_text(bytes, true, buf);
}

/* "950M of 1.0G 93% warning". Colour is not the only sign. */
static unsigned share_draw(const WatchMeter *meter, Picture *picture, unsigned row, unsigned column)
{
    char used[SIZE_MAX_COLUMNS];
    char limit[SIZE_MAX_COLUMNS];
    double percent = meter_share(meter) * 100;
    unsigned at = column;
    at += picture_print(picture, row, at, picture->columns, INK_PLAIN, WATCH_TEXT_METER_OF,
                        size_text(picture, meter->used, used), size_text(picture, meter->limit, limit));
    at += picture_text(picture, row, at, 1, INK_PLAIN, TEXT(" "));
    at += picture_print(picture, row, at, picture->columns, alert_ink(meter->alert),
                        meter->alert == ALERT_CRITICAL  ? WATCH_TEXT_METER_CRITICAL
                        : meter->alert == ALERT_WARNING ? WATCH_TEXT_METER_WARNING
                                                        : WATCH_TEXT_METER_FINE,
                        percent);
    return at - column;
}

static void meter_draw(const WatchMeter *meter, Picture *picture, unsigned row)
{
    unsigned columns = picture->columns;
    double share = meter_share(meter);
    picture_text(picture, row, 0, LABEL, INK_BOLD, text_of(meter->name));
    unsigned at = LABEL;
    if (columns >= BAR_COLUMNS && share >= 0) {
        unsigned width =
            MIN(columns - LABEL - (columns >= WIDE ? FIGURES_WIDE : FIGURES), (unsigned)BAR_MOST + 2);
        bar_draw(meter, picture, row, at, width);
        at += width + 1;
    }
    char used[SIZE_MAX_COLUMNS];
    at += share >= 0 ? share_draw(meter, picture, row, at)
                     : picture_text(picture, row, at, columns, INK_PLAIN,
                                    text_of(size_text(picture, meter->used, used)));
    if (meter->note[0] != '\0')
        picture_print(picture, row, at, columns, INK_PLAIN, share >= 0 ? WATCH_TEXT_NOTE_BEHIND : " %s",
                      meter->note);
}

/* "T torch 1.1G  N nccl 37M", the letters being those in the bar above. */
static void parts_draw(const WatchMeter *meter, Picture *picture, unsigned row)
{
    unsigned at = LABEL + 1;
    char text[FIGURE_MAX];
    for (size_t i = 0; i < meter->n_parts; i++) {
        const MeterPart *part = &meter->parts[i];
        char letter[] = {part->letter, '\0'};
        at += picture_text(picture, row, at, picture->columns, INK_BOLD, text_of(letter));
        at += picture_print(picture, row, at, picture->columns, INK_PLAIN, " %s %s  ", part->name,
                            figure_text(part->bytes, true, text));
    }
}

static bool has_parts(const Meters *meters)
{
    return meters->n > 0 && meters->items[0].n_parts > 0;
}

unsigned meters_rows(const WatchScene *scene, double at, bool kinds)
{
    Meters meters;
    meters_take(scene, at, &meters);
    return (unsigned)meters.n + (kinds && has_parts(&meters)) + (scene->leak != NULL);
}

void meters_draw(const WatchScene *scene, double at, bool kinds, Picture *picture, unsigned row)
{
    Meters meters;
    meters_take(scene, at, &meters);
    for (size_t i = 0; i < meters.n; i++) {
        meter_draw(&meters.items[i], picture, row++);
        if (i == 0 && kinds && has_parts(&meters))
            parts_draw(&meters.items[i], picture, row++);
    }
    if (scene->leak) {
        picture_text(picture, row, 0, LABEL, INK_BOLD, text_of(WATCH_TEXT_METER_LEAK));
        picture_text(picture, row, LABEL, picture->columns, INK_BAD, text_of(scene->leak));
    }
}

void meters_draw_short(const WatchScene *scene, double at, Picture *picture, unsigned row)
{
    Meters meters;
    meters_take(scene, at, &meters);
    unsigned column = 0;
    for (size_t i = 0; i < meters.n; i++) {
        const WatchMeter *meter = &meters.items[i];
        double share = meter_share(meter);
        if (share < 0)
            continue;
        column += picture_print(picture, row, column, picture->columns, INK_PLAIN, "%s%s ",
                                column > 0 ? " " : "", meter->name_short);
        column += picture_print(picture, row, column, picture->columns, alert_ink(meter->alert), "%.0f%%%s",
                                share * 100,
                                meter->alert == ALERT_CRITICAL  ? "!!"
                                : meter->alert == ALERT_WARNING ? "!"
                                                                : "");
    }
}
