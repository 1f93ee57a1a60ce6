/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables that fit the terminal. A table holds no cells: it asks for each one twice, once to measure and once
 * to print, so that ten thousand rows take no memory.
 */
#pragma once

#include "terminal.h"

typedef struct Column {
    const char *title;
    bool right;            /* numbers */
    unsigned least;        /* not 0: may shrink to this many columns when the table is too wide */
    unsigned appears_from; /* shown on terminals at least this wide */
} Column;

/* Appends the cell's text, which must be valid UTF-8 without control characters. */
typedef void (*TableCell)(const void *context, size_t row, size_t column, Buffer *out);

typedef struct Table {
    const Column *columns;
    size_t n_columns;
    size_t n_rows;
    TableCell cell;
    const void *context;
} Table;

enum { TABLE_COLUMNS_MAX = 16 };

void table_print(const Terminal *terminal, const Table *table);
