/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>

#include "guard.h"

/*
 * The supervisor's progress line and the job's output share a terminal. A process of the job erases the line
 * before it writes there, so that nothing is appended to it and nothing of it remains. It also records where
 * the cursor is, so that the supervisor draws only on an empty line to which the job will not return.
 *
 * Progress bars below each other (tqdm's position=1, rich) move the cursor up and down. A newline after a
 * move up leads to a line that has a bar on it, and not to an empty one: so the lines below the cursor are
 * counted. Movements that cannot be followed (to a position on the screen, to a saved position, to another
 * screen) end the drawing for the rest of the run: the terminal is left to the job.
 *
 * Signal handlers write, too: only single words of the counters' page and variables of this thread are
 * changed. If two processes write at the same time, the output of both may appear beside the line, as on any
 * terminal; nothing worse can happen.
 */

typedef enum Reading {
    READING_TEXT,
    READING_ESCAPE,  /* after ESC */
    READING_CONTROL, /* after ESC [ */
    READING_CHARSET, /* after ESC (, one more byte */
    READING_STRING,  /* after ESC ], up to BEL or ESC \ */
} Reading;

enum { MOVE_MOST = 9999 };

/* A sequence may be split between two writes. */
static __thread Reading reading __attribute__((tls_model("initial-exec")));
static __thread unsigned number
    __attribute__((tls_model("initial-exec")));                       /* the first number of the sequence */
static __thread bool more __attribute__((tls_model("initial-exec"))); /* it has more numbers, or a mark */

typedef struct Cursor {
    uint32_t below; /* lines that were written below the cursor */
    bool unfinished;
    bool adrift;
} Cursor;

static bool is_its_terminal(int fd)
{
    uint64_t terminal = atomic_load_explicit(&guard_counters()->terminal, memory_order_relaxed);
    FileId id;
    return terminal != 0 && file_id(fd, &id) == 0 && id.special == terminal;
}

void progress_line_make_way(int fd)
{
    static const char erase[] = "\r\033[K";
    Counters *counters = guard_counters();
    if (atomic_load_explicit(&counters->line, memory_order_relaxed) != 0 && is_its_terminal(fd) &&
        atomic_exchange_explicit(&counters->line, 0, memory_order_relaxed) != 0)
        (void)real_write(fd, erase, sizeof erase - 1);
}

static void cursor_down(Cursor *cursor, uint32_t lines)
{
    cursor->below -= lines < cursor->below ? lines : cursor->below;
    cursor->unfinished = true;
}

static void newline(Cursor *cursor)
{
    if (cursor->below > 0)
        cursor_down(cursor, 1);
    else
        cursor->unfinished = false;
}

static void control_end(Cursor *cursor, char final)
{
    uint32_t lines = number > 0 ? number : 1;
    switch (final) {
    case 'A':
    case 'F':
        cursor->below += lines;
        cursor->unfinished = true;
        break;
    case 'B':
    case 'E':
        cursor_down(cursor, lines);
        break;
    case 'm': /* colours */
    case 'J': /* erases, and leaves the cursor where it is */
    case 'K':
    case 'n': /* asks for the position */
        break;
    case 'h':
    case 'l': /* modes: these numbers switch to another screen */
        cursor->adrift |= more && (number == 47 || number == 1047 || number == 1049);
        break;
    case 'C':
    case 'D':
    case 'G':
    case 'P':
    case 'X':
    case '@':
        cursor->unfinished = true;
        break;
    default:
        cursor->adrift = true;
        break;
    }
}

static void text_read(Cursor *cursor, char byte)
{
    if (byte == '\033')
        reading = READING_ESCAPE;
    else if (byte == '\n' || byte == '\v' || byte == '\f')
        newline(cursor);
    else if (byte != '\r' && byte != '\a' && byte != '\0')
        cursor->unfinished = true;
}

static void escape_read(Cursor *cursor, char byte)
{
    reading = READING_TEXT;
    number = 0;
    more = false;
    switch (byte) {
    case '[':
        reading = READING_CONTROL;
        break;
    case ']':
    case 'P':
    case '_':
        reading = READING_STRING;
        break;
    case '(':
    case ')':
        reading = READING_CHARSET;
        break;
    case '\\': /* the end of a string */
    case '=':
    case '>': /* the keypad */
        break;
    default:
        cursor->adrift = true;
        break;
    }
}

static void control_read(Cursor *cursor, char byte)
{
    if (byte >= '0' && byte <= '9') {
        unsigned next = number * 10 + (unsigned)(byte - '0');
        number = next < MOVE_MOST ? next : MOVE_MOST;
    } else if (byte >= 0x20 && byte < 0x40) /* ; ? and the like */
        more = true;
    else {
        reading = READING_TEXT;
        control_end(cursor, byte);
    }
}

static void byte_read(Cursor *cursor, char byte)
{
    switch (reading) {
    case READING_TEXT:
        text_read(cursor, byte);
        break;
    case READING_ESCAPE:
        escape_read(cursor, byte);
        break;
    case READING_CONTROL:
        control_read(cursor, byte);
        break;
    case READING_CHARSET:
        reading = READING_TEXT;
        break;
    case READING_STRING:
        if (byte == '\a')
            reading = READING_TEXT;
        else if (byte == '\033')
            reading = READING_ESCAPE;
        break;
    }
}

void progress_line_note(int fd, const char *text, size_t n)
{
    Counters *counters = guard_counters();
    int saved = errno;
    if (is_its_terminal(fd)) {
        Cursor cursor = {
            .below = atomic_load_explicit(&counters->below, memory_order_relaxed),
            .unfinished = atomic_load_explicit(&counters->unfinished, memory_order_relaxed) != 0,
        };
        for (size_t i = 0; i < n; i++)
            byte_read(&cursor, text[i]);
        atomic_store_explicit(&counters->below, cursor.below, memory_order_relaxed);
        atomic_store_explicit(&counters->unfinished, cursor.unfinished, memory_order_relaxed);
        if (cursor.adrift)
            atomic_store_explicit(&counters->adrift, 1, memory_order_relaxed);
        atomic_store_explicit(&counters->wrote_msec, now_msec(), memory_order_relaxed);
    }
    errno = saved;
}
