/* SPDX-License-Identifier: Apache-2.0 */
#include <langinfo.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "terminal.h"

enum {
    COLUMNS_DEFAULT = 80,
    COLUMNS_LEAST = 40,
    COLUMNS_MOST = 1000,
    PROSE_COLUMNS = 100, /* longer lines are hard to read, however wide the terminal is */
};

static unsigned columns_clamp(uint64_t columns)
{
    return (unsigned)MIN(MAX(columns, (uint64_t)COLUMNS_LEAST), (uint64_t)COLUMNS_MOST);
}

static unsigned columns_find(FILE *out)
{
    struct winsize size;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return columns_clamp(size.ws_col);
    uint64_t columns = 0;
    if (text_u64(text_of(getenv("COLUMNS")), 10, &columns) == 0 && columns > 0)
        return columns_clamp(columns);
    return COLUMNS_DEFAULT;
}

Terminal terminal_of(FILE *out, ColorMode color)
{
    Terminal terminal = {
        .out = out,
        .columns = columns_find(out),
        .is_tty = isatty(fileno(out)) != 0,
        .color = color == COLOR_ALWAYS,
        .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
    };
    if (color == COLOR_AUTO)
        terminal.color = terminal.is_tty && text_of(getenv("NO_COLOR")).size == 0 &&
                         !text_equal(text_of(getenv("TERM")), "dumb");
    return terminal;
}

void terminal_print(const Terminal *terminal, Style style, const char *format, ...)
{
    static const char *const codes[STYLES] = {
        [STYLE_PLAIN] = "",         [STYLE_BOLD] = "\033[1m",
        [STYLE_GOOD] = "\033[32m",  [STYLE_WARNING] = "\033[1;33m",
        [STYLE_BAD] = "\033[1;31m",
    };
    bool styled = terminal->color && style != STYLE_PLAIN;
    if (styled)
        fputs(codes[style], terminal->out);
    va_list list;
    va_start(list, format);
    vfprintf(terminal->out, format, list);
    va_end(list);
    if (styled)
        fputs("\033[0m", terminal->out);
}

const char *terminal_mark(const Terminal *terminal, Mark mark)
{
    static const char *const marks[MARKS][2] = {
        [MARK_GOOD] = {"ok", "✓"}, [MARK_INFO] = {"i", "i"},      [MARK_WARNING] = {"!", "!"},
        [MARK_BAD] = {"X", "✗"},   [MARK_ELLIPSIS] = {"..", "…"},
    };
    return marks[mark][terminal->utf8];
}

Mark severity_mark(Severity severity)
{
    static const Mark marks[] = {
        [SEVERITY_GOOD] = MARK_GOOD,
        [SEVERITY_INFO] = MARK_INFO,
        [SEVERITY_WARNING] = MARK_WARNING,
        [SEVERITY_CRITICAL] = MARK_BAD,
    };
    return marks[severity];
}

Style severity_style(Severity severity)
{
    static const Style styles[] = {
        [SEVERITY_GOOD] = STYLE_GOOD,
        [SEVERITY_INFO] = STYLE_BOLD,
        [SEVERITY_WARNING] = STYLE_WARNING,
        [SEVERITY_CRITICAL] = STYLE_BAD,
    };
    return styles[severity];
}

const char *terminal_spark(bool utf8, double height)
{
    static const char *const levels[][2] = {{"_", "▁"}, {".", "▂"}, {":", "▃"}, {"-", "▄"},
                                            {"=", "▅"}, {"+", "▆"}, {"*", "▇"}, {"#", "█"}};
    int most = ARRAY_SIZE(levels) - 1;
    return levels[(int)MIN(MAX(height, 0.0) * (most + 1), (double)most)][utf8];
}

/* Where a paragraph is being written. */
typedef struct Wrap {
    const Terminal *terminal;
    size_t limit;
    size_t column;
    unsigned indent;
    bool fresh; /* the line is empty: even a word that is too long goes here */
} Wrap;

static void wrap_piece(Wrap *wrap, Text piece, bool blank)
{
    FILE *out = wrap->terminal->out;
    size_t columns = text_columns(piece);
    if (!wrap->fresh && wrap->column + blank + columns > wrap->limit) {
        fprintf(out, "\n%*s", (int)wrap->indent, "");
        wrap->column = wrap->indent;
        wrap->fresh = true;
    }
    if (!wrap->fresh && blank) {
        fputc(' ', out);
        wrap->column++;
    }
    fwrite(piece.data, 1, piece.size, out);
    wrap->column += columns;
    wrap->fresh = false;
}

void terminal_wrap(const Terminal *terminal, unsigned at, unsigned indent, const char *text)
{
    _cleanup_buffer_ Buffer safe = {0};
    Wrap wrap = {terminal, MIN(terminal->columns, (unsigned)PROSE_COLUMNS), at, indent, true};
    Text rest = text_of(text);
    Text word;
    while (text_word(&rest, &word)) {
        buffer_clear(&safe);
        (void)text_escape_prose(word, &safe);
        Text left = {buffer_text(&safe), safe.size};
        Text piece;
        for (bool blank = true; text_piece(&left, &piece); blank = false)
            wrap_piece(&wrap, piece, blank);
    }
    fputc('\n', terminal->out);
}

void terminal_verbatim(const Terminal *terminal, unsigned indent, const char *text)
{
    _cleanup_buffer_ Buffer safe = {0};
    TEXT_FOR_EACH_LINE (line, text_of(text)) {
        buffer_clear(&safe);
        (void)text_escape_prose(line, &safe);
        fprintf(terminal->out, "%*s%s\n", safe.size > 0 ? (int)indent : 0, "", buffer_text(&safe));
    }
}

void terminal_label(const Terminal *terminal, const char *label)
{
    terminal_print(terminal, STYLE_BOLD, "%s", label);
    fprintf(terminal->out, "%*s", LABEL_COLUMNS - (int)text_columns(text_of(label)), "");
}
