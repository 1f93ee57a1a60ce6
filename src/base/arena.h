/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is freed all at once. Data that belongs together (a survey, an explanation) takes its strings
 * and arrays from one arena, so that none of it has an owner of its own. Not thread-safe.
 */
#pragma once

#include "macro.h"

typedef struct Arena {
    struct ArenaBlock *blocks; /* newest first */
} Arena;

#define _cleanup_arena_ _cleanup_(arena_free)

void arena_free(Arena *arena);

/* Zeroed and aligned for any type; NULL without memory. */
void *arena_alloc(Arena *arena, size_t n);
char *arena_copy(Arena *arena, const char *text, size_t n);
char *arena_printf(Arena *arena, const char *format, ...) _printf_(2, 3);

/*
 * Room for one more item at the end of an array that lives in the arena: grows by doubling, the old run stays
 * behind. Returns the new item, zeroed, or NULL. Use:  Thing *t = ARENA_PUSH(arena, list->items, list->n,
 * list->capacity);
 */
#define ARENA_PUSH(arena, items, n, capacity)                                                                \
    ((__typeof__(items))arena_push((arena), (void **)&(items), &(n), &(capacity), sizeof *(items)))
void *arena_push(Arena *arena, void **items, size_t *n, size_t *capacity, size_t item_size);
