/* SPDX-License-Identifier: Apache-2.0 */
/* The memory around a job while it ran: its control group, the machine, its /dev/shm, and the OOM killer's
 * counters before and after. */
#pragma once

#include "evidence.h"

typedef struct MemoryContext {
    const Root *root;
    Arena arena;
    Mounts mounts;
    bool has_group;
    bool group_lost; /* the command was in another group than ours, and can no longer be queried */
    char group[512]; /* these two as in Cgroup: when one of them changes, the counter is another one */
    char limited_by[512];
    uint64_t group_kills_seen; /* the counter when last read; U64_UNKNOWN */
    uint64_t group_kills;      /* what it rose by; U64_UNKNOWN */
    uint64_t group_limit_bytes;
    uint64_t group_used_most_bytes;
    uint64_t machine_kills_before; /* U64_UNKNOWN */
    uint64_t available_least_bytes;
    size_t log_kills_before; /* in the kernel's log */
    double log_newest;       /* the time of the last of them; negative: none */
    uint64_t shm_size_bytes;
    uint64_t shm_used_most_bytes;
    uint64_t shm_free_least_bytes;
    uint64_t max_map_count;
    uint64_t open_files_soft;
} MemoryContext;

/* `root` must stay. Reads the counters as they are now. */
void memory_context_open(const Root *root, MemoryContext *ret);
void memory_context_close(MemoryContext *memory);

/* Looks from within process pid: the command, or 0 if it is gone. */
void memory_context_look(MemoryContext *memory, int pid);

/* Looks at its /dev/shm only, for peaks shorter than a second. */
void memory_context_look_shm(MemoryContext *memory, int pid);

/* The job's /dev/shm was looked at elsewhere. */
void memory_context_note_shm(MemoryContext *memory, uint64_t size_bytes, uint64_t free_bytes);

/* Takes a last look and fills in its part of ret. -ENOMEM. */
int memory_context_finish(MemoryContext *memory, Arena *arena, Evidence *ret);
