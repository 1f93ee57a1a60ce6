/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal, through ncurses: paints pictures and reads keys and the mouse. ncurses has one terminal a
 * process, so there is one screen at a time. Between screen_open and screen_close nothing else writes there.
 *
 * Signals are the caller's: they must be blocked before it is opened, and screen_close come before death by
 * one.
 */
#pragma once

#include "watch.h"

typedef enum ScreenError {
    SCREEN_GOOD,
    SCREEN_UNKNOWN, /* TERM is not set, or names no terminal that is known here */
    SCREEN_DUMB,    /* it cannot place text */
    SCREEN_FAILED,
} ScreenError;

/* Terminal: of standard output, where colours are wanted or not. */
ScreenError screen_open(const Terminal *terminal);
void screen_close(void);

/* After the terminal was left to somebody else, or has another size. */
void screen_leave(void);
void screen_return(void);

void screen_size(unsigned *ret_columns, unsigned *ret_rows);
void screen_paint(const Terminal *terminal, const Picture *picture);

typedef enum ScreenInputKind {
    INPUT_KEY,
    INPUT_CLICK,
    INPUT_WHEEL,
    INPUT_OTHER, /* nothing to us */
} ScreenInputKind;

typedef struct ScreenInput {
    ScreenInputKind kind;
    uint32_t key; /* as watch_press takes it */
    unsigned row;
    unsigned column;
    int wheel; /* -1 up, 1 down */
} ScreenInput;

/* False: nothing more was typed. Does not wait. */
bool screen_read(ScreenInput *ret);
