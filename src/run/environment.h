/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of the command: ours, with the preload library and the address of the supervisor added. */
#pragma once

#include <stdbool.h>

#include "arena.h"

/* `old` with the settings ("NAME=value", NULL-terminated) in place of those of the same names. -ENOMEM.
 * Strings stay where they are. */
int environment_set(char *const *old, char *const *settings, Arena *arena, char ***ret);

/* The dynamic linker splits LD_PRELOAD at colons and blanks: a path with one of those cannot be preloaded. */
bool library_can_be_preloaded(const char *library);

/* What the command's processes are told about us. */
typedef struct GuardSettings {
    const char *library;
    const char *socket;
    const char *inner; /* the socket of a run within a run; NULL: none */
    bool only_witness; /* the library must leave memory alone */
    bool no_pin;       /* it must not register anything with CUDA */
    bool no_library;   /* the command would not start with it (LINKER_FAILS) */
    bool no_lane;      /* batches must travel as PyTorch sends them */
    bool no_freeze;    /* it must not make datasets immortal */
} GuardSettings;

/*
 * `library` comes first in LD_PRELOAD, before the old value; it is not added if a file of its name is already
 * there, and removed for `no_library`. -ENOMEM. Unchanged strings stay where they are.
 */
int environment_make(char *const *old, const GuardSettings *settings, Arena *arena, char ***ret);
