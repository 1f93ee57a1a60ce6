/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "watch-internal.h"

enum {
    CTRL_C = 3,
    CTRL_L = 12,
    CTRL_Z = 26,
    LEAP = 60,
    WHEEL_ROWS = 3,
};

/* --- Words that are typed ----------------------------------------------------------------------------- */

static void words_append(char *words, uint32_t point)
{
    char bytes[5] = {0};
    if (point < 0x80)
        bytes[0] = (char)point;
    else if (point < 0x800) {
        bytes[0] = (char)(0xC0 | point >> 6);
        bytes[1] = (char)(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        bytes[0] = (char)(0xE0 | point >> 12);
        bytes[1] = (char)(0x80 | (point >> 6 & 0x3F));
        bytes[2] = (char)(0x80 | (point & 0x3F));
    } else {
        bytes[0] = (char)(0xF0 | point >> 18);
        bytes[1] = (char)(0x80 | (point >> 12 & 0x3F));
        bytes[2] = (char)(0x80 | (point >> 6 & 0x3F));
        bytes[3] = (char)(0x80 | (point & 0x3F));
    }
    size_t n = strlen(words);
    if (n + strlen(bytes) < WATCH_WORDS_MAX)
        memcpy(words + n, bytes, sizeof bytes);
}

static void words_shorten(char *words)
{
    size_t n = strlen(words);
    while (n > 0 && ((unsigned char)words[n - 1] & 0xC0) == 0x80)
        n--;
    words[n > 0 ? n - 1 : 0] = '\0';
}

static bool is_printable(uint32_t point)
{
    return point >= 0x20 && point < 0x110000 && !(point >= 0x7F && point < 0xA0) &&
           !(point >= 0xD800 && point < 0xE000);
}

static void edit_press(WatchView *view, uint32_t key)
{
    bool search = view->edit == EDIT_SEARCH;
    char *words = search ? view->search : view->filter;
    if (key == WATCH_KEY_ENTER)
        view->edit = EDIT_NONE;
    else if (key == WATCH_KEY_ESCAPE) {
        words[0] = '\0';
        view->edit = EDIT_NONE;
    } else if (search && key == WATCH_KEY_F0 + 3) {
        view->find = 1;
        return;
    } else if (key == WATCH_KEY_BACKSPACE)
        words_shorten(words);
    else if (is_printable(key))
        words_append(words, key);
    if (search && view->edit != EDIT_NONE)
        view->find = 2;
}

/* --- Time --------------------------------------------------------------------------------------------- */

static void time_step(WatchView *view, const History *history, long steps)
{
    const Series *series = &history->series;
    size_t place = 0;
    if (series->n == 0)
        return;
    if (!series_place(series, view->at, &place))
        place = 0;
    long wanted = (long)place + steps;
    size_t most = series->n - 1;
    view->at = series->seconds[wanted < 0 ? 0 : MIN((size_t)wanted, most)];
    view->playing = false;
}

bool watch_play(WatchView *view, const History *history, double elapsed_seconds)
{
    const Series *series = &history->series;
    if (!view->playing || series->n == 0)
        return false;
    double factor = view->speed >= 0 ? 1 << view->speed : 1.0 / (1 << -view->speed);
    double end = series->seconds[series->n - 1];
    view->at = MIN(view->at + elapsed_seconds * factor, end);
    view->playing = view->at < end;
    return true;
}

/* True if the key moves through time. */
static bool time_press(WatchView *view, const WatchScene *scene, uint32_t key)
{
    /* A live view goes back in time only while it is paused. */
    const History *history = scene->history;
    if ((!scene->replay && !view->paused) || history->series.n == 0)
        return false;
    switch (key) {
    case WATCH_KEY_LEFT:
        time_step(view, history, -1);
        return true;
    case WATCH_KEY_RIGHT:
        time_step(view, history, 1);
        return true;
    case '[':
        time_step(view, history, -LEAP);
        return true;
    case ']':
        time_step(view, history, LEAP);
        return true;
    case 'b':
        time_step(view, history, -(long)history->series.n);
        return true;
    case 'e':
        time_step(view, history, (long)history->series.n);
        return true;
    default:
        break;
    }
    if (!scene->replay)
        return false;
    if (key == ' ' || key == 'Z') {
        /* At the end it plays again from the start. */
        if (!view->playing && view->at >= history->series.seconds[history->series.n - 1])
            time_step(view, history, -(long)history->series.n);
        view->playing = !view->playing;
        return true;
    }
    if (key == '+' || key == '=')
        view->speed = MIN(view->speed + 1, WATCH_SPEED_MOST);
    else if (key == '-')
        view->speed = MAX(view->speed - 1, WATCH_SPEED_LEAST);
    else
        return false;
    return true;
}

/* --- The list ----------------------------------------------------------------------------------------- */

static void cursor_move(WatchView *view, long rows)
{
    size_t last = view->layout.n_items > 0 ? view->layout.n_items - 1 : 0;
    long wanted = (long)MIN(view->cursor, last) + rows;
    view->cursor = wanted < 0 ? 0 : MIN((size_t)wanted, last);
    view->follow = false;
}

static void page_turn(WatchView *view)
{
    view->page = (WatchPage)((view->page + 1) % PAGES);
    view->cursor = 0;
    view->top = 0;
    view->follow = false;
    view->inverted = false;
}

static bool column_sorts(WatchColumn column)
{
    return column != WATCH_TREND && column != WATCH_RATE;
}

/* Also steps to columns that a narrow terminal does not show: the order is then not visible, but the step is
 * never stuck. */
static void sort_step(WatchView *view, int step)
{
    if (view->page == PAGE_PROCESSES)
        do
            view->sort = (WatchColumn)((view->sort + WATCH_COLUMNS + (unsigned)step) % WATCH_COLUMNS);
        while (!column_sorts(view->sort));
    if (view->page == PAGE_SEGMENTS) {
        int n = PS_SORTS - PS_SORT_SIZE;
        int now =
            (view->segment_sort == PS_SORT_NONE ? PS_SORT_ALLOCATED : (int)view->segment_sort) - PS_SORT_SIZE;
        view->segment_sort = (PsSort)(PS_SORT_SIZE + (now + n + step) % n);
    }
    view->inverted = false;
}

static WatchAct list_press(WatchView *view, const WatchScene *scene, uint32_t key)
{
    long screen = (long)MAX(view->layout.list_rows, 1U);
    switch (key) {
    case WATCH_KEY_UP:
    case 'k':
        cursor_move(view, -1);
        break;
    case WATCH_KEY_DOWN:
    case 'j':
        cursor_move(view, 1);
        break;
    case WATCH_KEY_PAGE_UP:
        cursor_move(view, -screen);
        break;
    case WATCH_KEY_PAGE_DOWN:
        cursor_move(view, screen);
        break;
    case WATCH_KEY_HOME:
    case 'g':
        cursor_move(view, -(long)view->layout.n_items);
        break;
    case WATCH_KEY_END:
    case 'G':
        cursor_move(view, (long)view->layout.n_items);
        break;
    case 't':
    case WATCH_KEY_F0 + 5:
        view->flat = !view->flat;
        break;
    case '>':
    case '.':
    case WATCH_KEY_F0 + 6:
        sort_step(view, 1);
        break;
    case '<':
    case ',':
        sort_step(view, -1);
        break;
    case 'I':
        view->inverted = !view->inverted;
        break;
    case 'n':
        view->find = 1;
        break;
    case 'N':
        view->find = -1;
        break;
    case 'Z':
        if (!scene->replay && !scene->over)
            view->paused = !view->paused;
        break;
    default:
        break;
    }
    return ACT_NONE;
}

WatchAct watch_press(WatchView *view, const WatchScene *scene, uint32_t key)
{
    if (key == CTRL_C)
        return ACT_INTERRUPT;
    if (key == CTRL_Z)
        return ACT_SUSPEND;
    if (key == CTRL_L)
        return ACT_REPAINT;
    if (view->edit != EDIT_NONE) {
        edit_press(view, key);
        return ACT_NONE;
    }
    if (key == WATCH_KEY_F0 + 10 || (key == 'q' && !view->help))
        return ACT_QUIT;
    if (view->help) {
        view->help = false;
        return ACT_NONE;
    }
    switch (key) {
    case WATCH_KEY_F0 + 1:
    case 'h':
    case '?':
        view->help = true;
        return ACT_NONE;
    case WATCH_KEY_F0 + 2:
    case '\t':
        page_turn(view);
        return ACT_NONE;
    case '/':
    case WATCH_KEY_F0 + 3:
        /* A repeated search moves to the next match. */
        if (key != '/' && view->search[0] != '\0') {
            view->find = 1;
            return ACT_NONE;
        }
        view->search[0] = '\0';
        view->edit = EDIT_SEARCH;
        return ACT_NONE;
    case '\\':
    case WATCH_KEY_F0 + 4:
        view->edit = EDIT_FILTER;
        return ACT_NONE;
    default:
        break;
    }
    return time_press(view, scene, key) ? ACT_NONE : list_press(view, scene, key);
}

/* --- The mouse ---------------------------------------------------------------------------------------- */

static void head_click(WatchView *view, const WatchPlace *place)
{
    if (view->page == PAGE_PROCESSES) {
        WatchColumn column = (WatchColumn)place->what;
        if (!column_sorts(column))
            return;
        view->inverted = column == view->sort && !view->inverted;
        view->sort = column;
    } else {
        PsSort sort = segment_place_sort(place->what);
        PsSort now = view->segment_sort == PS_SORT_NONE ? PS_SORT_ALLOCATED : view->segment_sort;
        if (sort == PS_SORT_NONE)
            return;
        view->inverted = sort == now && !view->inverted;
        view->segment_sort = sort;
    }
}

void watch_click(WatchView *view, unsigned row, unsigned column)
{
    const WatchLayout *layout = &view->layout;
    if (view->help) {
        view->help = false;
        return;
    }
    if (row == layout->head_row)
        for (size_t i = 0; i < layout->n_heads; i++)
            if (column >= layout->heads[i].column &&
                column <= layout->heads[i].column + layout->heads[i].columns) {
                head_click(view, &layout->heads[i]);
                return;
            }
    size_t item = view->top + row - layout->list_row;
    if (row >= layout->list_row && row < layout->list_row + layout->list_rows && item < layout->n_items) {
        view->cursor = item;
        view->follow = false;
    }
}

void watch_wheel(WatchView *view, int rows)
{
    cursor_move(view, (long)rows * WHEEL_ROWS);
}
