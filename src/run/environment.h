/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of the command: the preload library and the way to the supervisor, and else what ours is.
 */
#pragma once

#include <stdbool.h>

#include "arena.h"

/* `old` with the settings ("NAME=value", NULL-terminated) in place of those of the same names. -ENOMEM.
 * Strings stay where they are. */
int environment_set(char *const *old, char *const *settings, Arena *arena, char ***ret);

/* The dynamic linker splits LD_PRELOAD at colons and blanks: a path with one of those cannot be preloaded. */
bool library_can_be_preloaded(const char *library);

/* What the command's processes get to know of us. */
typedef struct GuardSettings {
    const char *library;
    const char *socket;
    const char *inner; /* the socket of a run within a run; NULL: none */
    bool only_witness; /* the library is to leave memory alone */
    bool no_pin;       /* it is to register nothing with CUDA */
} GuardSettings;

/*
 * `library` comes first in LD_PRELOAD, before what was there; it is not added where a file of its name is
 * there already. -ENOMEM. Strings that stay as they are stay where they are.
 */
int environment_make(char *const *old, const GuardSettings *settings, Arena *arena, char ***ret);
