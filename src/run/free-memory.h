/* SPDX-License-Identifier: Apache-2.0 */
/* Whether memory is short now. If it is, memory that is kept only for speed must be freed. */
#pragma once

#include "mounts.h"

/* Does not change while a job runs. */
typedef struct FreeMemory {
    Root root;
    Arena arena;
    Mounts mounts;
} FreeMemory;

/* `path` as root_open takes it. */
int free_memory_open(const char *path, FreeMemory *ret);
void free_memory_close(FreeMemory *free_memory);

/* A figure that cannot be read is not taken as a shortage. */
bool free_memory_is_short(const FreeMemory *free_memory);

/* How much may still be taken from the machine and every control group above us. U64_UNKNOWN: nothing tells.
 */
typedef struct Spare {
    uint64_t bytes;      /* before memory would be short */
    uint64_t most_bytes; /* before there is none; swap counts, too */
    bool tight;          /* the processes' private memory may need all of it for a moment */
    bool of_group;       /* a control group has less than the machine */
} Spare;
Spare free_memory_spare(const FreeMemory *free_memory);

/* What Slurm has allotted to this process, by the environment that it sets: where several tasks of a step run
 * on this node, to one of them. U64_UNKNOWN: nothing tells. */
uint64_t free_memory_allotted(const FreeMemory *free_memory);

/* Of the machine, or of the control group above us that has the least. 0: nothing tells. */
uint64_t free_memory_total(const FreeMemory *free_memory);
