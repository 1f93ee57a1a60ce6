/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable run of bytes, always followed by a NUL that is not counted, so that text in it can be handed to
 * the C library. It may hold NULs of its own. Reuse one buffer for many reads: clearing keeps the memory.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "macro.h"

typedef struct Buffer {
    char *data; /* NULL until the first append */
    size_t size;
    size_t capacity;
} Buffer;

#define _cleanup_buffer_ _cleanup_(buffer_free)

void buffer_free(Buffer *buffer);
void buffer_clear(Buffer *buffer);

/* 0, or -ENOMEM with the buffer unchanged. */
int buffer_append(Buffer *buffer, const void *bytes, size_t n);
int buffer_append_text(Buffer *buffer, const char *text);
int buffer_printf(Buffer *buffer, const char *format, ...) _printf_(2, 3);

/* The text, "" when nothing was appended. Valid until the next change. */
const char *buffer_text(const Buffer *buffer);

/*
 * Appends the rest of fd, up to limit bytes in all; a longer file is truncated there, which is not an error:
 * parsers take complete lines. Returns 0 or negative errno.
 */
int buffer_read_fd(Buffer *buffer, int fd, size_t limit);
