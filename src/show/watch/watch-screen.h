/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal, through ncurses: paints pictures and reads keys and the mouse. ncurses has one terminal per
 * process, so there is one screen at a time. Between screen_open and screen_close nothing else may write to
 * it.
 *
 * Signals are handled by the caller: it must block them before screen_open, and call screen_close before it
 * dies of one.
 */
#pragma once

#include "watch.h"

typedef enum ScreenError {
    SCREEN_GOOD,
    SCREEN_UNKNOWN, /* TERM is not set, or names an unknown terminal */
    SCREEN_DUMB,    /* the terminal cannot position the cursor */
    SCREEN_FAILED,
} ScreenError;

/* `terminal` is that of standard output; it says whether colours are wanted. */
ScreenError screen_open(const Terminal *terminal);
void screen_close(void);

/* "ncurses 6.4.20221231" */
const char *screen_library(void);

/* Around a time in which another program has the terminal, and after its size has changed. */
void screen_leave(void);
void screen_return(void);

void screen_size(unsigned *ret_columns, unsigned *ret_rows);
void screen_paint(const Terminal *terminal, const Picture *picture);

typedef enum ScreenInputKind {
    INPUT_KEY,
    INPUT_CLICK,
    INPUT_WHEEL,
    INPUT_OTHER, /* ignored */
} ScreenInputKind;

typedef struct ScreenInput {
    ScreenInputKind kind;
    uint32_t key; /* as watch_press takes it */
    unsigned row;
    unsigned column;
    int wheel; /* -1 up, 1 down */
} ScreenInput;

/* False: no more input. Does not wait. */
bool screen_read(ScreenInput *ret);
