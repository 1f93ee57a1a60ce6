/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "message-text.h"
#include "progress.h"
#include "run-text.h"
#include "units.h"

enum { COLUMNS_DEFAULT = 80, PART_MAX = 96 };

/* In the order of the line. */
typedef enum ProgressPart {
    PART_FREEZING,
    PART_RATE,
    PART_BYTES,
    PART_MEMORY,
    PART_WAITING,
    PARTS,
} ProgressPart;

/* What is left out on a narrow terminal, in this order: what can kill a job stays longest. */
static const ProgressPart dispensable[] = {PART_RATE, PART_BYTES, PART_WAITING};

static double rate_of(uint64_t now, uint64_t last, double seconds)
{
    return (double)(now >= last ? now - last : now) / seconds;
}

static void parts_write(const ProgressFigures *now, const ProgressFigures *last,
                        char parts[static PARTS][PART_MAX])
{
    double seconds = now->seconds - last->seconds;
    if (now->freezing > 0)
        snprintf(parts[PART_FREEZING], PART_MAX, RUN_PROGRESS_FREEZING, (double)now->freezing / 1e6);
    if (now->tensors == 0)
        return;
    if (seconds > 0) {
        bool known = now->batches > 0;
        double rate = known ? rate_of(now->batches, last->batches, seconds)
                            : rate_of(now->tensors, last->tensors, seconds);
        double bytes = rate_of(now->bytes_backed, last->bytes_backed, seconds);
        snprintf(parts[PART_RATE], PART_MAX, known ? RUN_PROGRESS_BATCHES : RUN_PROGRESS_TENSORS,
                 rate < 100 ? 1 : 0, rate);
        if (bytes < 0x1p62)
            snprintf(parts[PART_BYTES], PART_MAX, RUN_PROGRESS_BYTES, SIZE_TEXT((uint64_t)bytes));
    }
    if (now->bytes_now != U64_UNKNOWN && now->budget_bytes != U64_UNKNOWN)
        snprintf(parts[PART_MEMORY], PART_MAX, RUN_PROGRESS_SHARED_OF, SIZE_TEXT(now->bytes_now),
                 SIZE_TEXT(now->budget_bytes));
    else if (now->bytes_now != U64_UNKNOWN)
        snprintf(parts[PART_MEMORY], PART_MAX, RUN_PROGRESS_SHARED, SIZE_TEXT(now->bytes_now));
    if (now->waiting > 0)
        snprintf(parts[PART_WAITING], PART_MAX,
                 PLURAL(now->waiting, RUN_PROGRESS_WAITING_ONE, RUN_PROGRESS_WAITING_MANY), now->waiting);
}

static void line_write(char parts[static PARTS][PART_MAX], char line[static(PARTS + 1) * PART_MAX])
{
    const char *separator = "shmguard: ";
    char *end = line;
    for (size_t i = 0; i < PARTS; i++)
        if (parts[i][0]) {
            end = stpcpy(stpcpy(end, separator), parts[i]);
            separator = MESSAGE_ITEMS;
        }
    *end = '\0';
}

int progress_format(const ProgressFigures *now, const ProgressFigures *last, unsigned columns, Buffer *out)
{
    char parts[PARTS][PART_MAX] = {0};
    char line[(PARTS + 1) * PART_MAX];
    if (now->tensors == 0 && now->freezing == 0)
        return 0;
    parts_write(now, last, parts);
    line_write(parts, line);
    for (size_t i = 0; text_columns(text_of(line)) >= columns; i++) {
        if (i == ARRAY_SIZE(dispensable))
            return 0;
        parts[dispensable[i]][0] = '\0';
        line_write(parts, line);
    }
    return buffer_append_text(out, line);
}

/*
 * Opens the terminal again, since O_NONBLOCK belongs to the open file description, and the one that we were
 * given is the command's, too. Where it cannot be opened, because the terminal is another user's, no progress
 * is shown.
 */
Progress progress_open(const Terminal *terminal, int output, bool quiet)
{
    Progress progress = PROGRESS_NONE;
    struct stat st;
    char path[64];
    Text kind = text_of(getenv("TERM"));
    if (quiet || !terminal->is_tty || kind.size == 0 || text_equal(kind, "dumb"))
        return progress;
    if (fstat(output, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
        return progress;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(terminal->out));
    progress.fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return progress;
}

void progress_close(Progress *progress)
{
    fd_close(progress->fd);
    buffer_free(&progress->line);
    *progress = PROGRESS_NONE;
}

uint64_t progress_terminal(const Progress *progress)
{
    struct stat st;
    return progress->fd >= 0 && fstat(progress->fd, &st) == 0 ? st.st_rdev : 0;
}

static unsigned columns_now(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : COLUMNS_DEFAULT;
}

/* While the shell has the terminal, the line would be drawn into what the user types. */
static bool is_in_foreground(int fd, pid_t job)
{
    pid_t group = tcgetpgrp(fd);
    return group > 0 && (group == job || group == getpgrp());
}

static void line_send(Progress *progress, bool drawn)
{
    /* What the terminal does not accept is lost; the next line starts at the margin anyway. */
    ssize_t n = write(progress->fd, progress->line.data, progress->line.size);
    progress->drawn = drawn && n > 0;
}

void progress_draw(Progress *progress, const ProgressFigures *now, pid_t job, bool wrote)
{
    if (progress->fd < 0)
        return;
    ProgressFigures last = TAKE(progress->last, *now);
    if (wrote || !is_in_foreground(progress->fd, job)) {
        progress->drawn = false; /* the cursor is no longer where we left it */
        return;
    }
    buffer_clear(&progress->line);
    if (buffer_append_text(&progress->line, "\r") < 0 ||
        progress_format(now, &last, columns_now(progress->fd), &progress->line) < 0)
        return;
    if (progress->line.size == 1)
        progress_erase(progress, false);
    else if (buffer_append_text(&progress->line, "\033[K") == 0)
        line_send(progress, true);
}

void progress_say(Progress *progress, const char *text, pid_t job)
{
    if (progress->fd < 0)
        return;
    if (!is_in_foreground(progress->fd, job)) {
        progress->drawn = false;
        return;
    }
    buffer_clear(&progress->line);
    if (buffer_append_text(&progress->line, "\r") == 0 &&
        text_shorten(text_of(text), columns_now(progress->fd) - 1, "..", &progress->line) == 0 &&
        buffer_append_text(&progress->line, "\033[K") == 0)
        line_send(progress, true);
}

void progress_erase(Progress *progress, bool wrote)
{
    if (!progress->drawn)
        return;
    progress->drawn = false;
    buffer_clear(&progress->line);
    if (!wrote && buffer_append_text(&progress->line, "\r\033[K") == 0)
        line_send(progress, false);
}
