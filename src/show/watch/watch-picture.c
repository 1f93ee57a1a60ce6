/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "watch-picture.h"

void picture_free(Picture *picture)
{
    free(picture->cells);
    *picture = (Picture){0};
}

int picture_clear(Picture *picture, unsigned columns, unsigned rows, bool utf8)
{
    size_t n = (size_t)columns * rows;
    if (n > picture->capacity) {
        Cell *cells = reallocarray(picture->cells, n, sizeof *cells);
        if (!cells) {
            picture->columns = 0;
            picture->rows = 0;
            return -ENOMEM;
        }
        picture->cells = cells;
        picture->capacity = n;
    }
    picture->columns = columns;
    picture->rows = rows;
    picture->utf8 = utf8;
    for (size_t i = 0; i < n; i++)
        picture->cells[i] = (Cell){.columns = 1};
    return 0;
}

static Cell *row_cells(const Picture *picture, unsigned row)
{
    return picture->cells + (size_t)row * picture->columns;
}

/* A cell that is about to be drawn over may be half of a wide character: the other half becomes blank. */
static void cell_break(Cell *cells, unsigned n, unsigned column)
{
    if (cells[column].columns == 0 && column > 0)
        cells[column - 1] = (Cell){.ink = cells[column - 1].ink, .columns = 1};
    if (cells[column].columns == 2 && column + 1 < n)
        cells[column + 1] = (Cell){.ink = cells[column + 1].ink, .columns = 1};
}

static void cell_put(Cell *cells, unsigned n, unsigned column, Ink ink, Text character, unsigned columns)
{
    cell_break(cells, n, column);
    if (columns == 2) {
        cell_break(cells, n, column + 1);
        cells[column + 1] = (Cell){.ink = (uint8_t)ink, .columns = 0};
    }
    Cell *cell = &cells[column];
    *cell = (Cell){.ink = (uint8_t)ink, .columns = (uint8_t)columns};
    memcpy(cell->text, character.data, MIN(character.size, (size_t)CELL_TEXT_MAX));
}

static void cell_combine(Cell *cell, Text character)
{
    size_t n = strlen(cell->text);
    if (n > 0 && n + character.size <= CELL_TEXT_MAX)
        memcpy(cell->text + n, character.data, character.size);
}

unsigned picture_text(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink, Text text)
{
    if (row >= picture->rows || column >= picture->columns)
        return 0;
    Cell *cells = row_cells(picture, row);
    unsigned end = column + MIN(width, picture->columns - column);
    unsigned at = column;
    unsigned base = column; /* of the last character, to which combining ones are added */
    while (text.size > 0) {
        size_t columns = 0;
        size_t n = text_character(text, &columns);
        Text character = {text.data, n};
        text = text_skip(text, n);
        if (!picture->utf8 && (unsigned char)character.data[0] >= 0x80)
            character = TEXT("?");
        if (columns == 0) {
            if (at > column && picture->utf8)
                cell_combine(&cells[base], character);
            continue;
        }
        columns = picture->utf8 ? columns : 1;
        if (columns > end - at)
            break;
        base = at;
        cell_put(cells, picture->columns, at, ink, character, (unsigned)columns);
        at += (unsigned)columns;
    }
    return at - column;
}

unsigned picture_print(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink,
                       const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    size_t size = n < 0 ? 0 : MIN((size_t)n, sizeof line - 1);
    /* A truncated character at the end is not valid UTF-8. */
    while (n >= (int)sizeof line && size > 0 && ((unsigned char)line[size] & 0xC0) == 0x80)
        size--;
    return picture_text(picture, row, column, width, ink, (Text){line, size});
}

void picture_right(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink, const char *text)
{
    unsigned columns = (unsigned)text_columns(text_of(text));
    unsigned gap = columns < width ? width - columns : 0;
    picture_text(picture, row, column + gap, width - gap, ink, text_of(text));
}

void picture_ink(Picture *picture, unsigned row, unsigned column, unsigned width, Ink ink)
{
    if (row >= picture->rows || column >= picture->columns)
        return;
    unsigned end = column + MIN(width, picture->columns - column);
    for (Cell *cells = row_cells(picture, row); column < end; column++)
        cells[column].ink = (uint8_t)ink;
}

bool picture_run(const Picture *picture, unsigned row, unsigned *column, PictureRun *ret, Buffer *text)
{
    if (row >= picture->rows || *column >= picture->columns)
        return false;
    const Cell *cells = row_cells(picture, row);
    unsigned start = *column;
    unsigned end = start;
    while (end < picture->columns && (cells[end].ink == cells[start].ink || cells[end].columns == 0)) {
        if (cells[end].columns > 0)
            (void)buffer_append_text(text, cells[end].text[0] ? cells[end].text : " ");
        end++;
    }
    *ret = (PictureRun){start, end - start, (Ink)cells[start].ink};
    *column = end;
    return true;
}

/* Trailing blanks matter only on a screen. */
static unsigned row_end(const Picture *picture, unsigned row)
{
    const Cell *cells = row_cells(picture, row);
    unsigned end = picture->columns;
    while (end > 0 && cells[end - 1].columns == 1 &&
           (cells[end - 1].text[0] == '\0' || strcmp(cells[end - 1].text, " ") == 0))
        end--;
    return end;
}

void picture_write(const Picture *picture, const Terminal *terminal)
{
    static const Style styles[INKS] = {
        [INK_PLAIN] = STYLE_PLAIN, [INK_BOLD] = STYLE_BOLD,       [INK_DIM] = STYLE_PLAIN,
        [INK_GOOD] = STYLE_GOOD,   [INK_WARNING] = STYLE_WARNING, [INK_BAD] = STYLE_BAD,
        [INK_TITLE] = STYLE_BOLD,  [INK_CHOSEN] = STYLE_PLAIN,
    };
    _cleanup_buffer_ Buffer text = {0};
    for (unsigned row = 0; row < picture->rows; row++) {
        PictureRun run;
        unsigned column = 0;
        unsigned end = row_end(picture, row);
        Picture cut = *picture; /* one row of it, truncated; the stride of further rows does not matter */
        cut.cells = row_cells(picture, row);
        cut.columns = end;
        cut.rows = end > 0;
        while (picture_run(&cut, 0, &column, &run, &text)) {
            terminal_print(terminal, styles[run.ink], "%s", buffer_text(&text));
            buffer_clear(&text);
        }
        fputc('\n', terminal->out);
    }
}
