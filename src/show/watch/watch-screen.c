/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/ioctl.h>
#include <unistd.h>

/* The headers of ncurses define common words as macros (columns), so they come last, and only here. */
#include "watch-screen.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>
#undef columns

enum { ESCAPE_MSEC = 25, SIZE_MOST = 1000 };

static attr_t ink_attributes(Ink ink, bool color)
{
    switch (ink) {
    case INK_BOLD:
        return A_BOLD;
    case INK_DIM:
        return A_DIM;
    case INK_TITLE:
    case INK_CHOSEN:
        return color ? (attr_t)COLOR_PAIR(ink) : A_REVERSE;
    case INK_GOOD:
        return color ? (attr_t)COLOR_PAIR(ink) : A_NORMAL;
    case INK_WARNING:
    case INK_BAD:
        return A_BOLD | (color ? (attr_t)COLOR_PAIR(ink) : A_NORMAL);
    case INK_PLAIN:
    case INKS:
        break;
    }
    return A_NORMAL;
}

static void colors_prepare(void)
{
    static const struct {
        Ink ink;
        short front;
        short back;
    } pairs[] = {
        {INK_GOOD, COLOR_GREEN, -1},
        {INK_WARNING, COLOR_YELLOW, -1},
        {INK_BAD, COLOR_RED, -1},
        {INK_TITLE, COLOR_BLACK, COLOR_GREEN},
        {INK_CHOSEN, COLOR_BLACK, COLOR_CYAN},
    };
    start_color();
    short none = use_default_colors() == OK ? -1 : COLOR_BLACK;
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
        init_pair((short)pairs[i].ink, pairs[i].front, pairs[i].back < 0 ? none : pairs[i].back);
}

ScreenError screen_open(const Terminal *terminal)
{
    int error = 0;
    if (setupterm(NULL, STDOUT_FILENO, &error) != OK)
        return SCREEN_UNKNOWN;
    const char *place = tigetstr("cup");
    bool dumb = !place || place == (const char *)-1;
    del_curterm(cur_term); /* newterm allocates another one */
    if (dumb)
        return SCREEN_DUMB;
    if (!newterm(NULL, stdout, stdin))
        return SCREEN_FAILED;
    if (terminal->color && has_colors())
        colors_prepare();
    /* Ctrl-C and Ctrl-Z arrive as keys, so they do not interrupt painting, and Ctrl-S does not block it. */
    raw();
    noecho();
    nonl();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    leaveok(stdscr, TRUE);
    typeahead(-1); /* a picture is painted completely before keys are read */
    set_escdelay(ESCAPE_MSEC);
    mouseinterval(0);
    mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    return SCREEN_GOOD;
}

const char *screen_library(void)
{
    return curses_version();
}

void screen_close(void)
{
    mousemask(0, NULL);
    endwin();
    SCREEN *screen = set_term(NULL);
    if (screen)
        delscreen(screen);
}

void screen_leave(void)
{
    endwin();
}

void screen_return(void)
{
    unsigned columns = 0;
    unsigned rows = 0;
    screen_size(&columns, &rows);
    resizeterm((int)rows, (int)columns);
    clearok(curscr, TRUE);
    refresh();
}

void screen_size(unsigned *ret_columns, unsigned *ret_rows)
{
    struct winsize size = {0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    /* A serial line has no size of its own: take that of terminfo. */
    unsigned columns = size.ws_col > 0 ? size.ws_col : (unsigned)MAX(COLS, 1);
    unsigned rows = size.ws_row > 0 ? size.ws_row : (unsigned)MAX(LINES, 1);
    *ret_columns = MIN(columns, (unsigned)SIZE_MOST);
    *ret_rows = MIN(rows, (unsigned)SIZE_MOST);
}

void screen_paint(const Terminal *terminal, const Picture *picture)
{
    _cleanup_buffer_ Buffer text = {0};
    bool color = terminal->color && has_colors();
    for (unsigned row = 0; row < picture->rows; row++) {
        PictureRun run;
        unsigned column = 0;
        while (picture_run(picture, row, &column, &run, &text)) {
            attrset((int)ink_attributes(run.ink, color));
            mvaddstr((int)row, (int)run.column, buffer_text(&text));
            buffer_clear(&text);
        }
    }
    refresh();
}

/* --- Input -------------------------------------------------------------------------------------------- */

static uint32_t key_of(wint_t code)
{
    static const struct {
        wint_t code;
        uint32_t key;
    } keys[] = {
        {KEY_UP, WATCH_KEY_UP},        {KEY_DOWN, WATCH_KEY_DOWN},     {KEY_LEFT, WATCH_KEY_LEFT},
        {KEY_RIGHT, WATCH_KEY_RIGHT},  {KEY_PPAGE, WATCH_KEY_PAGE_UP}, {KEY_NPAGE, WATCH_KEY_PAGE_DOWN},
        {KEY_HOME, WATCH_KEY_HOME},    {KEY_END, WATCH_KEY_END},       {KEY_BACKSPACE, WATCH_KEY_BACKSPACE},
        {KEY_DC, WATCH_KEY_BACKSPACE}, {KEY_ENTER, WATCH_KEY_ENTER},
    };
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (keys[i].code == code)
            return keys[i].key;
    return code >= KEY_F(1) && code <= KEY_F(12) ? WATCH_KEY_F0 + (code - KEY_F0) : 0;
}

static uint32_t character_of(wint_t code)
{
    switch (code) {
    case '\r':
    case '\n':
        return WATCH_KEY_ENTER;
    case 0x7F:
    case '\b':
        return WATCH_KEY_BACKSPACE;
    case 0x1B:
        return WATCH_KEY_ESCAPE;
    default:
        return (uint32_t)code;
    }
}

static ScreenInput mouse_input(void)
{
    MEVENT event;
    ScreenInput input = {.kind = INPUT_OTHER};
    if (getmouse(&event) != OK)
        return input;
    input.row = (unsigned)MAX(event.y, 0);
    input.column = (unsigned)MAX(event.x, 0);
    if (event.bstate & BUTTON1_PRESSED)
        input.kind = INPUT_CLICK;
    else if (event.bstate & (BUTTON4_PRESSED | BUTTON5_PRESSED)) {
        input.kind = INPUT_WHEEL;
        input.wheel = event.bstate & BUTTON4_PRESSED ? -1 : 1;
    }
    return input;
}

bool screen_read(ScreenInput *ret)
{
    wint_t code = 0;
    int what = get_wch(&code);
    if (what == ERR)
        return false;
    if (what == OK)
        *ret = (ScreenInput){.kind = INPUT_KEY, .key = character_of(code)};
    else if (code == KEY_MOUSE)
        *ret = mouse_input();
    else {
        uint32_t key = key_of(code);
        *ret = (ScreenInput){.kind = key ? INPUT_KEY : INPUT_OTHER, .key = key};
    }
    return true;
}
