/* SPDX-License-Identifier: Apache-2.0 */
/* Is memory short, here and now? Then what is kept for speed alone has to go. */
#pragma once

#include "mounts.h"

/* What does not change while a job runs. */
typedef struct FreeMemory {
    Root root;
    Arena arena;
    Mounts mounts;
} FreeMemory;

/* `path` as root_open takes it. */
int free_memory_open(const char *path, FreeMemory *ret);
void free_memory_close(FreeMemory *free_memory);

/* What cannot be read does not speak for a shortage. */
bool free_memory_is_short(const FreeMemory *free_memory);

/* What may still be taken of the machine and of every control group above us. U64_UNKNOWN when nothing tells.
 */
typedef struct Spare {
    uint64_t bytes;      /* before memory would be short */
    uint64_t most_bytes; /* before there is none: swap counts too */
    bool tight;          /* a moment's need of the processes for memory of their own may take all of it */
} Spare;
Spare free_memory_spare(const FreeMemory *free_memory);
