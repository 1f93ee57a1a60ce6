/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `watch`: draws a history as a picture, and changes the view as keys and the mouse ask for. Pure: the same
 * for a live machine and for a recording, and tested without either. Call watch_press or watch_click, then
 * watch_draw.
 *
 * scene: what there is to see. view: how the user looks at it; it outlives scenes.
 */
#pragma once

#include "history.h"
#include "ps-view.h"
#include "watch-picture.h"

typedef enum WatchPage {
    PAGE_PROCESSES,
    PAGE_SEGMENTS,
    PAGE_EVENTS,
    PAGES,
} WatchPage;

typedef enum WatchColumn {
    WATCH_PID,
    WATCH_ROLE,
    WATCH_USS,
    WATCH_PSS,
    WATCH_RSS,
    WATCH_SHARED, /* resident shared memory */
    WATCH_HELD,   /* in the segments that it holds */
    WATCH_FDS,
    WATCH_THREADS,
    WATCH_CPU, /* thousandths of a core, since the sample before */
    WATCH_TREND,
    WATCH_RATE,
    WATCH_COMMAND,
    WATCH_COLUMNS,
} WatchColumn;

typedef struct WatchScene {
    const History *history; /* empty while the first sample is taken */
    EventList told;         /* of a recording: its events with the epochs among them; else empty */
    const Survey *survey;   /* with the segments; NULL: not surveyed yet, or a recording, which has none */
    double survey_seconds;  /* when it was taken */
    const char *replay;     /* the name of the recording; NULL: live */
    bool over;              /* the job has ended */
    bool job;               /* one job, else all training on the machine */
    int guard_pid;          /* the run whose budget is shown; 0: not known */
    unsigned guards;        /* how many guarded runs were found */
    const char *leak;       /* the line that keeps most, in words; NULL: none was found */
    double own_cpu;         /* share of a core that watch takes; negative: not known yet */
    uint64_t own_bytes;     /* resident memory of watch */
    double late_seconds;    /* how late the next sample is; 0: in time */
} WatchScene;

enum { WATCH_WORDS_MAX = 64, WATCH_SPEED_MOST = 16, WATCH_SPEED_LEAST = -2 };

typedef enum WatchEdit {
    EDIT_NONE,
    EDIT_SEARCH,
    EDIT_FILTER,
} WatchEdit;

/* Where things are in the picture that was drawn last, for the mouse. */
typedef struct WatchPlace {
    unsigned column;
    unsigned columns;
    int what; /* a WatchColumn, or a column of the page of segments */
} WatchPlace;

typedef struct WatchLayout {
    unsigned head_row; /* the titles of the columns */
    unsigned list_row;
    unsigned list_rows;
    WatchPlace heads[WATCH_COLUMNS];
    size_t n_heads;
    size_t n_items; /* in the list, visible or not */
} WatchLayout;

typedef struct WatchView {
    WatchPage page;
    bool help;
    bool flat; /* no trees */
    bool paused;
    WatchColumn sort;
    PsSort segment_sort; /* PS_SORT_NONE: by allocated bytes */
    bool inverted;
    WatchEdit edit;
    char search[WATCH_WORDS_MAX];
    char filter[WATCH_WORDS_MAX];
    double at;    /* the time that is shown, in seconds of the history */
    bool playing; /* a recording */
    int speed;    /* of playing, as a power of two */

    size_t cursor; /* in the list */
    size_t top;    /* the first visible item */
    uint64_t chosen;
    bool follow; /* the cursor stays on `chosen` wherever that moves; else it stays in its row */
    int find; /* 1: draw moves the cursor to the next match, 2: to one at or after it, -1: to the previous one
               */
    bool missed; /* there was no match */
    WatchLayout layout;
} WatchView;

/* Keys that are not characters. */
typedef enum WatchKey {
    WATCH_KEY_UP = 0x200000,
    WATCH_KEY_DOWN,
    WATCH_KEY_LEFT,
    WATCH_KEY_RIGHT,
    WATCH_KEY_PAGE_UP,
    WATCH_KEY_PAGE_DOWN,
    WATCH_KEY_HOME,
    WATCH_KEY_END,
    WATCH_KEY_BACKSPACE,
    WATCH_KEY_ENTER,
    WATCH_KEY_ESCAPE,
    WATCH_KEY_F0, /* F1 is F0 + 1 */
    WATCH_KEY_LAST = WATCH_KEY_F0 + 12,
} WatchKey;

typedef enum WatchAct {
    ACT_NONE,
    ACT_QUIT,
    ACT_INTERRUPT, /* Ctrl-C */
    ACT_SUSPEND,   /* Ctrl-Z */
    ACT_REPAINT,   /* Ctrl-L: another program has written to the terminal */
} WatchAct;

/* `key` is a character (a Unicode point) or a WatchKey. */
WatchAct watch_press(WatchView *view, const WatchScene *scene, uint32_t key);
void watch_click(WatchView *view, unsigned row, unsigned column);
void watch_wheel(WatchView *view, int rows);

/* Plays a recording for that much time, at its speed. False: it is stopped. */
bool watch_play(WatchView *view, const History *history, double elapsed_seconds);

/* Draws the scene, and updates the cursor and the layout of the view. -ENOMEM: the picture may be blank. */
int watch_draw(const WatchScene *scene, WatchView *view, Picture *picture, unsigned columns, unsigned rows,
               bool utf8);

/* Draws all rows, however many, for a pipe: without keys and cursor. */
int watch_draw_whole(const WatchScene *scene, WatchView *view, Picture *picture, unsigned columns, bool utf8);
