/* SPDX-License-Identifier: Apache-2.0 */
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"

enum { BLOCK_BYTES = 16 * 1024 };

struct ArenaBlock {
    struct ArenaBlock *next;
    size_t used;
    size_t size;
    alignas(max_align_t) char data[];
};

void arena_free(Arena *arena)
{
    for (struct ArenaBlock *block = arena->blocks; block;) {
        struct ArenaBlock *next = block->next;
        free(block);
        block = next;
    }
    *arena = (Arena){0};
}

void *arena_alloc(Arena *arena, size_t n)
{
    size_t rounded = 0;
    if (__builtin_add_overflow(n, alignof(max_align_t) - 1, &rounded))
        return NULL;
    rounded &= ~(alignof(max_align_t) - 1);

    struct ArenaBlock *block = arena->blocks;
    if (!block || block->size - block->used < rounded) {
        size_t size = MAX(rounded, (size_t)BLOCK_BYTES);
        size_t whole = 0;
        if (__builtin_add_overflow(size, sizeof *block, &whole))
            return NULL;
        struct ArenaBlock *fresh = calloc(1, whole);
        if (!fresh)
            return NULL;
        fresh->size = size;
        fresh->next = block;
        arena->blocks = block = fresh;
    }
    void *p = block->data + block->used;
    block->used += rounded;
    return p;
}

char *arena_copy(Arena *arena, const char *text, size_t n)
{
    char *copy = arena_alloc(arena, n + 1);
    if (copy && n > 0)
        memcpy(copy, text, n);
    return copy;
}

char *arena_printf(Arena *arena, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    va_list again;
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);

    char *text = n < 0 ? NULL : arena_alloc(arena, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

void *arena_push(Arena *arena, void **items, size_t *n, size_t *capacity, size_t item_size)
{
    if (*n == *capacity) {
        size_t wanted = *capacity ? *capacity * 2 : 8;
        size_t bytes = 0;
        if (__builtin_mul_overflow(wanted, item_size, &bytes))
            return NULL;
        void *grown = arena_alloc(arena, bytes);
        if (!grown)
            return NULL;
        if (*n > 0)
            memcpy(grown, *items, *n * item_size);
        *items = grown;
        *capacity = wanted;
    }
    return (char *)*items + (*n)++ * item_size;
}
