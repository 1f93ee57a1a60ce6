/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture of a terminal: a grid of cells, each with a character and the ink that it is drawn in. It is made
 * without a terminal, so that it can be tested without one, printed to a pipe, and painted by whoever has a
 * screen.
 */
#pragma once

#include "terminal.h"

/* What a stretch of text is; which colour that gets is the painter's. */
typedef enum Ink {
    INK_PLAIN,
    INK_BOLD,
    INK_DIM,
    INK_GOOD,
    INK_WARNING,
    INK_BAD,
    INK_TITLE,  /* heads of columns, names of keys */
    INK_CHOSEN, /* the row under the cursor */
    INKS,
} Ink;

enum { CELL_TEXT_MAX = 15 }; /* a character and the combining ones on it; more of those are dropped */

typedef struct Cell {
    char text[CELL_TEXT_MAX + 1]; /* "": the right half of a wide character, or blank at the end of a row */
    uint8_t ink;
    uint8_t columns; /* 1, 2, or 0 of the right half of a wide character */
} Cell;

typedef struct Picture {
    unsigned columns;
    unsigned rows;
    bool utf8; /* else what is not ASCII is drawn as "?" */
    Cell *cells;
    size_t capacity;
} Picture;

#define _cleanup_picture_ _cleanup_(picture_free)
void picture_free(Picture *picture);

/* Makes it blank and of that size. -ENOMEM: it is then of no size at all, and drawing into it does nothing.
 */
int picture_clear(Picture *picture, unsigned columns, unsigned rows, bool utf8);

/*
 * Draws valid UTF-8 without control characters, at most `width` columns of it and never beyond the edge. A
 * wide character that would be cut in half is left out. Returns the columns drawn. A place outside of the
 * picture is no error.
 */
unsigned picture_text(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink, Text text);
unsigned picture_print(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink,
                       const char *format, ...) _printf_(6, 7);

/* The same, ending before column + width. What does not fit is cut at its end. */
void picture_right(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink,
                   const char *text);

/* Changes the ink of what is there. */
void picture_ink(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink);

/* A run of cells of one ink. */
typedef struct PictureRun {
    unsigned column;
    unsigned columns;
    Ink ink;
} PictureRun;

/* Appends the text of the run that starts in the row's *column, and moves that behind it. False at the end of
 * the row. -ENOMEM is treated as an empty text. */
bool picture_run(const Picture *picture, unsigned row, unsigned *column, PictureRun *ret, Buffer *text);

/* Prints all rows, without blanks at their ends, in the colours that the terminal has. */
void picture_write(const Picture *picture, const Terminal *terminal);
