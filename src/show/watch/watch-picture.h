/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture of a terminal: a grid of cells, each with a character and the ink that it is drawn in. It is made
 * without a terminal, so that it can be tested without one, printed to a pipe, or painted on a screen.
 */
#pragma once

#include "terminal.h"

/* What a stretch of text is; the painter chooses the colour. */
typedef enum Ink {
    INK_PLAIN,
    INK_BOLD,
    INK_DIM,
    INK_GOOD,
    INK_WARNING,
    INK_BAD,
    INK_TITLE,  /* titles of columns, names of keys */
    INK_CHOSEN, /* the row under the cursor */
    INKS,
} Ink;

enum { CELL_TEXT_MAX = 15 }; /* a character and its combining ones, as many as fit */

typedef struct Cell {
    char text[CELL_TEXT_MAX + 1]; /* "": the right half of a wide character, or blank at the end of a row */
    uint8_t ink;
    uint8_t columns; /* 1, 2, or 0 for the right half of a wide character */
} Cell;

typedef struct Picture {
    unsigned columns;
    unsigned rows;
    bool utf8; /* else characters beyond ASCII are drawn as "?" */
    Cell *cells;
    size_t capacity;
} Picture;

#define _cleanup_picture_ _cleanup_(picture_free)
void picture_free(Picture *picture);

/* Makes it blank and of that size. -ENOMEM: it is then empty, and drawing into it does nothing. */
int picture_clear(Picture *picture, unsigned columns, unsigned rows, bool utf8);

/*
 * Draws valid UTF-8 without control characters, at most `width` columns of it and never beyond the edge. A
 * wide character that would be cut in half is left out. Returns the columns drawn. A place outside the
 * picture is not an error.
 */
unsigned picture_text(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink, Text text);
unsigned picture_print(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink,
                       const char *format, ...) _printf_(6, 7);

/* Draws text that ends before column + width; its end is truncated if it does not fit. */
void picture_right(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink,
                   const char *text);

/* Changes the ink of cells that were drawn. */
void picture_ink(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink);

/* A run of cells of one ink. */
typedef struct PictureRun {
    unsigned column;
    unsigned columns;
    Ink ink;
} PictureRun;

/* Appends the text of the run that starts at *column of the row, and advances *column past it. False at the
 * end of the row. Out of memory, the text stays empty. */
bool picture_run(const Picture *picture, unsigned row, unsigned *column, PictureRun *ret, Buffer *text);

/* Prints all rows, without trailing blanks, in the colours of the terminal. */
void picture_write(const Picture *picture, const Terminal *terminal);
