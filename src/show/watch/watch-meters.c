/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "units.h"
#include "watch-internal.h"

enum {
    METERS = 4,
    PARTS = SEGMENT_KINDS + 2,
    LABEL = 9,
    FIGURES = 40, /* "999M of 1.0G 100% critical, run 1234567 of 2" is the longest that is usual */
    WIDE = 100,   /* from here on sizes are written in full */
    FIGURES_WIDE = 56,
    BAR_COLUMNS = 60, /* from this width of the picture on there are bars */
    BAR_MOST = 100,
    WORTH_A_ROW = 1 << 20,
};

typedef enum State {
    STATE_NONE, /* there is no limit */
    STATE_FINE,
    STATE_WARNING,
    STATE_CRITICAL,
    STATES,
} State;

typedef struct MeterPart {
    char letter;
    const char *name;
    uint64_t bytes;
} MeterPart;

typedef struct WatchMeter {
    const char *name;
    const char *name_short;
    uint64_t used;
    uint64_t limit; /* U64_UNKNOWN: none to be seen */
    State state;
    MeterPart parts[PARTS];
    size_t n_parts; /* 0: all is of one kind */
    uint64_t cache; /* beyond `used`: pages of files that can be dropped */
    char note[64];
} WatchMeter;

static double meter_share(const WatchMeter *meter)
{
    return meter->limit == U64_UNKNOWN || meter->limit == 0 ? -1 : (double)meter->used / (double)meter->limit;
}

static State share_state(double share)
{
    return share < 0 ? STATE_NONE : share >= 0.9 ? STATE_CRITICAL : share >= 0.8 ? STATE_WARNING : STATE_FINE;
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

/* Of what is used in /dev/shm, who has it. A live look knows which segments are files of the mount; a
 * recording has sums in which memfds count too, so the guard's and those of an unknown kind, which most
 * memfds are, are left out, and the rest is cut to fit. */
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
    part_add(meter, '-', "no holder seen", unheld);
    part_add(meter, '?', scene->survey && !scene->job ? "unattributed" : "others", left - unheld);
}

static bool shm_meter(const WatchScene *scene, double at, WatchMeter *ret)
{
    const Series *series = &scene->history->series;
    WatchMeter meter = {
        .name = "/dev/shm", .name_short = "shm", .used = series_known(series, JOB_SHM_USED, at)};
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
    *ret = (WatchMeter){
        .name = "RAM", .name_short = "RAM", .used = total - MIN(available, total), .limit = total};
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
    *ret = (WatchMeter){
        .name = "cgroup", .name_short = "cg", .used = used - file, .limit = limit, .cache = file};
    return true;
}

/* Requests that were refused of late, as far back as trends look. */
static uint64_t refused_lately(const History *history, size_t place, double at)
{
    const uint64_t *refused = history->series.values[JOB_GUARD_REFUSED];
    uint64_t before = refused[place];
    double from = at - trend_window(history);
    for (size_t i = place; i-- > 0 && history->series.seconds[i] >= from;)
        before = MIN(before, refused[i]);
    return refused[place] == U64_UNKNOWN ? 0 : refused[place] - before;
}

/* A budget is there to be used up: what is full is fine for as long as nobody has to wait for room in it, and
 * the training is harmed when a worker gets none. */
static bool guard_meter(const WatchScene *scene, double at, WatchMeter *ret)
{
    const Series *series = &scene->history->series;
    size_t place = 0;
    if (!series_place(series, at, &place))
        return false;
    /* Of this look alone: what was known before may be of a run that has ended. */
    uint64_t used = series->values[JOB_GUARD_BYTES][place];
    uint64_t budget = series->values[JOB_GUARD_BUDGET][place];
    uint64_t waiting = series->values[JOB_GUARD_WAITING][place];
    uint64_t refused = refused_lately(scene->history, place, at);
    bool waits = waiting != U64_UNKNOWN && waiting > 0;
    WatchMeter meter = {.name = "budget", .name_short = "budget", .used = used, .limit = budget};
    if (used != U64_UNKNOWN) {
        meter.state = budget == U64_UNKNOWN ? STATE_NONE
                      : refused > 0         ? STATE_CRITICAL
                      : waits               ? STATE_WARNING
                                            : STATE_FINE;
        if (refused > 0)
            snprintf(meter.note, sizeof meter.note, "%llu refused", (unsigned long long)refused);
        else if (waits)
            snprintf(meter.note, sizeof meter.note, "%llu waiting", (unsigned long long)waiting);
        else if (budget == U64_UNKNOWN)
            snprintf(meter.note, sizeof meter.note, "of the guarded run, no ceiling");
        else if (scene->guards > 1)
            snprintf(meter.note, sizeof meter.note, "run %d of %u", scene->guard_pid, scene->guards);
    } else {
        /* Its memory can be seen from outside, its budget only from its own side. */
        meter.used = series_known(series, JOB_KIND_BYTES + KIND_SHMGUARD, at);
        if (meter.used == U64_UNKNOWN || meter.used < WORTH_A_ROW) /* a page of counters is no segment */
            return false;
        meter.name = "guard";
        meter.name_short = "guard";
        snprintf(meter.note, sizeof meter.note, "budget not known here");
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
        if (meter->state == STATE_NONE)
            meter->state = share_state(meter_share(meter));
        ret->n++;
    }
}

/* --- How they look ------------------------------------------------------------------------------------ */

static Ink state_ink(State state)
{
    static const Ink inks[STATES] = {
        [STATE_NONE] = INK_PLAIN,
        [STATE_FINE] = INK_GOOD,
        [STATE_WARNING] = INK_WARNING,
        [STATE_CRITICAL] = INK_BAD,
    };
    return inks[state];
}

/* Colour is not the only sign; the words are doctor's. */
static const char *state_word(State state)
{
    static const char *const words[STATES] = {
        [STATE_NONE] = "",
        [STATE_FINE] = "fine",
        [STATE_WARNING] = "warning",
        [STATE_CRITICAL] = "critical",
    };
    return words[state];
}

static unsigned cells_of(uint64_t bytes, uint64_t limit, unsigned cells)
{
    return limit == 0 ? 0 : (unsigned)MIN((double)bytes / (double)limit * cells + 0.5, (double)cells);
}

/* "[TTTTNN??|||:::    ]" */
static void bar_draw(const WatchMeter *meter, Picture *picture, unsigned row, unsigned column, unsigned width)
{
    unsigned inside = width - 2;
    Ink ink = state_ink(meter->state);
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

static unsigned size_draw(Picture *picture, unsigned row, unsigned at, const char *before, uint64_t bytes)
{
    char text[MAX((int)SIZE_TEXT_MAX, (int)FIGURE_MAX)];
    unsigned drawn = picture_text(picture, row, at, picture->columns, INK_PLAIN, text_of(before));
    if (picture->columns >= WIDE)
        size_format(bytes, text);
    else
        figure_text(bytes, true, text);
    return drawn + picture_text(picture, row, at + drawn, picture->columns, INK_PLAIN, text_of(text));
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
    at += size_draw(picture, row, at, "", meter->used);
    if (share >= 0)
        at += size_draw(picture, row, at, " of ", meter->limit);
    if (share >= 0)
        at += picture_print(picture, row, at, columns, state_ink(meter->state), " %.0f%% %s", share * 100,
                            state_word(meter->state));
    if (meter->note[0] != '\0')
        picture_print(picture, row, at, columns, INK_PLAIN, share >= 0 ? ", %s" : " %s", meter->note);
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
    return (unsigned)meters.n + (kinds && has_parts(&meters));
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
        column += picture_print(picture, row, column, picture->columns, state_ink(meter->state), "%.0f%%%s",
                                share * 100,
                                meter->state == STATE_CRITICAL  ? "!!"
                                : meter->state == STATE_WARNING ? "!"
                                                                : "");
    }
}
