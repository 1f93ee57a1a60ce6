/* SPDX-License-Identifier: Apache-2.0 */
/* Lets calls of the C library's allocator pass through us, for a while. native-hooks.c has the argument. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct NativeHook {
    const char *name;
    void *ours;
    bool allocates; /* and does nothing else */
    void *real;     /* of the whole program; NULL: it has none */
} NativeHook;

/* A loaded file: the one that Python is in, or that the real malloc is in. */
typedef struct NativeFile {
    const void *address; /* anywhere within it */
    uintptr_t low;       /* filled in by the exchange */
    uintptr_t high;
} NativeFile;

typedef struct NativeFiles {
    NativeFile python;
    NativeFile allocator;
} NativeFiles;

/* The function that the whole program calls by that name; NULL. */
void *native_function_find(const char *name);

/* back: they pass through us no longer. How many addresses are now as wanted. Takes the linker's lock. */
size_t native_hooks_exchange(NativeHook *hooks, size_t n, bool back, NativeFiles *files);
