/* SPDX-License-Identifier: Apache-2.0 */
/* Where the cursor is after what a job has written: the same whether it comes in one piece or in two. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "progress-line.c"

enum { TERMINAL = 1 };

static Counters page;

Counters *guard_counters(void)
{
    return &page;
}

int file_id(int fd, FileId *ret)
{
    (void)fd;
    *ret = (FileId){.special = TERMINAL};
    return 0;
}

uint64_t now_msec(void)
{
    return 1;
}

ssize_t real_write(int fd, const void *data, size_t size)
{
    (void)fd;
    (void)data;
    return (ssize_t)size;
}

static Cursor cursor_after(const char *text, size_t n, size_t first)
{
    page = (Counters){.terminal = TERMINAL};
    reading = READING_TEXT;
    progress_line_note(1, text, first);
    progress_line_note(1, text + first, n - first);
    return (Cursor){.below = page.below, .unfinished = page.unfinished != 0, .adrift = page.adrift != 0};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    Cursor whole = cursor_after(text, size, size);
    Cursor parts = cursor_after(text, size, size > 0 ? data[0] % size : 0);
    if (whole.below != parts.below || whole.unfinished != parts.unfinished || whole.adrift != parts.adrift)
        abort();
    return 0;
}
