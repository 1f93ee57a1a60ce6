/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream that people read: how wide it is, whether it shows colours and more than ASCII. Text from
 * strangers never reaches it raw: what could control a terminal is escaped first.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "severity.h"
#include "text.h"

typedef enum ColorMode {
    COLOR_AUTO, /* on a terminal, unless NO_COLOR is set or TERM is "dumb" */
    COLOR_ALWAYS,
    COLOR_NEVER,
} ColorMode;

typedef enum Style {
    STYLE_PLAIN,
    STYLE_BOLD,
    STYLE_GOOD,
    STYLE_WARNING,
    STYLE_BAD,
    STYLES,
} Style;

/* Signs beside a word, since colour is never the only sign. */
typedef enum Mark {
    MARK_GOOD,
    MARK_INFO,
    MARK_WARNING,
    MARK_BAD,
    MARK_ELLIPSIS,
    MARKS,
} Mark;

typedef struct Terminal {
    FILE *out;
    unsigned columns;
    bool is_tty;
    bool color;
    bool utf8;
} Terminal;

/* Call after setlocale(LC_CTYPE, ""). The width is the terminal's, else COLUMNS, else 80. */
Terminal terminal_of(FILE *out, ColorMode color);

/* printf in a style. */
void terminal_print(const Terminal *terminal, Style style, const char *format, ...) _printf_(3, 4);
const char *terminal_mark(const Terminal *terminal, Mark mark);

/* How findings and verdicts of a severity look. */
Mark severity_mark(Severity severity);
Style severity_style(Severity severity);

/* One of eight characters of a sparkline; height is 0…1. */
const char *terminal_spark(bool utf8, double height);

/*
 * Prints prose, broken at blanks to fit, with a newline at its end. The cursor is at column `at`; further
 * lines are indented by `indent`. Words that are not plain text are escaped.
 */
void terminal_wrap(const Terminal *terminal, unsigned at, unsigned indent, const char *text);

/* Prints text unchanged but for the indentation of its lines and escapes where needed: commands to copy, log
 * lines. */
void terminal_verbatim(const Terminal *terminal, unsigned indent, const char *text);

/* "Label     ", padded to a width that all commands share. */
enum { LABEL_COLUMNS = 14 };
void terminal_label(const Terminal *terminal, const char *label);
