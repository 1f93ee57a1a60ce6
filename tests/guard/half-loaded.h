/* SPDX-License-Identifier: Apache-2.0 */
/* What test-hooks.c leaves for half-loaded.c. */
#pragma once

#include <stdint.h>

typedef struct HalfLoadedWord {
    void (*run)(void);
} HalfLoadedWord;

#define HALF_LOADED_WORD ((HalfLoadedWord *)(uintptr_t)0x100000000000)
