/* SPDX-License-Identifier: Apache-2.0 */
/* For test-hooks.c: a library with an allocator of its own, which is bound at the first call. */
#include <stdbool.h>
#include <stddef.h>

static _Alignas(16) char arena[1 << 12];
static size_t used;

void *malloc(size_t size)
{
    void *made = arena + used;
    used += (size + 15) & ~(size_t)15;
    return made;
}

void free(void *pointer)
{
    (void)pointer;
}

bool own_is_kept(void)
{
    char *volatile made = malloc(16);
    bool kept = made >= arena && made < arena + sizeof arena;
    free(made);
    return kept;
}
