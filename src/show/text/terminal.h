/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where people read: how wide it is, whether it shows colours and more than ASCII. Text from strangers never
 * reaches it raw: what could steer a terminal is escaped on the way.
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

/* Signs beside a word; colour is never the only sign. */
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

/* One of eight heights of a sparkline, 0…1 of the full one. */
const char *terminal_spark(bool utf8, double height);

/*
 * Prints prose, broken at blanks to fit, with a newline at its end. The cursor stands at column `at`; further
 * lines are indented by `indent`. Words that are no plain text are escaped.
 */
void terminal_wrap(const Terminal *terminal, unsigned at, unsigned indent, const char *text);

/* Prints text as it stands, each of its lines indented and escaped where needed: commands to copy, lines of a
 * log. */
void terminal_verbatim(const Terminal *terminal, unsigned indent, const char *text);

/* "Label     ", padded to the width that the labelled lines of all commands share. */
enum { LABEL_COLUMNS = 14 };
void terminal_label(const Terminal *terminal, const char *label);

/* Our own words, which may quote a stranger's: escaped only when they hold what text_escape would replace. A
 * backslash alone stays single, since the words may be a command to copy. */
int text_escape_prose(Text text, Buffer *out);
