/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buffer.h"

void buffer_free(Buffer *buffer)
{
    free(buffer->data);
    *buffer = (Buffer){0};
}

void buffer_clear(Buffer *buffer)
{
    buffer->size = 0;
    if (buffer->data)
        buffer->data[0] = '\0';
}

/* Makes room for `extra` bytes and the closing NUL. */
static int buffer_reserve(Buffer *buffer, size_t extra)
{
    size_t need = 0;
    if (__builtin_add_overflow(buffer->size, extra, &need) || __builtin_add_overflow(need, 1, &need))
        return -ENOMEM;
    if (need <= buffer->capacity)
        return 0;

    size_t capacity = MAX(need, buffer->capacity + buffer->capacity / 2);
    capacity = MAX(capacity, 256);
    char *data = realloc(buffer->data, capacity);
    if (!data)
        return -ENOMEM;
    buffer->data = data;
    buffer->capacity = capacity;
    return 0;
}

int buffer_append(Buffer *buffer, const void *bytes, size_t n)
{
    int r = buffer_reserve(buffer, n);
    if (r < 0)
        return r;
    if (n > 0)
        memcpy(buffer->data + buffer->size, bytes, n);
    buffer->size += n;
    buffer->data[buffer->size] = '\0';
    return 0;
}

int buffer_append_text(Buffer *buffer, const char *text)
{
    return buffer_append(buffer, text, strlen(text));
}

int buffer_printf(Buffer *buffer, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    va_list again;
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);

    int r = n < 0 ? -EINVAL : buffer_reserve(buffer, (size_t)n);
    if (r >= 0) {
        vsnprintf(buffer->data + buffer->size, (size_t)n + 1, format, again);
        buffer->size += (size_t)n;
    }
    va_end(again);
    return r;
}

const char *buffer_text(const Buffer *buffer)
{
    return buffer->data ? buffer->data : "";
}

int buffer_read_fd(Buffer *buffer, int fd, size_t limit)
{
    while (buffer->size < limit) {
        /* As much as is there already, and at least a page: /proc returns no more than about a page per call.
         */
        int r = buffer_reserve(buffer, MIN(limit - buffer->size, MAX(buffer->size, (size_t)4096)));
        if (r < 0)
            return r;
        size_t room = MIN(limit - buffer->size, buffer->capacity - buffer->size - 1);
        ssize_t n = read(fd, buffer->data + buffer->size, room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        buffer->size += (size_t)n;
        buffer->data[buffer->size] = '\0';
    }
    return 0;
}
