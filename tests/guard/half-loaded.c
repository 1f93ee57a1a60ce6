/* SPDX-License-Identifier: Apache-2.0 */
/* For test-hooks.c: a library that lets the program run when the linker has relocated half of it. Nothing
 * else of it may be called then, so the program leaves word at an address that both know. */
#include <stdlib.h>

#include "half-loaded.h"

static int chosen(void)
{
    return 1;
}

static int (*resolve(void))(void)
{
    HALF_LOADED_WORD->run();
    return chosen;
}

int half_choose(void) __attribute__((ifunc("resolve")));

/* The address of malloc is bound first, the calls last. */
void *(*half_malloc(void))(size_t)
{
    return malloc;
}

int half_use(void)
{
    void *volatile made = calloc(1, 16);
    free(made);
    return half_choose();
}
