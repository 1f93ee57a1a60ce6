/* SPDX-License-Identifier: Apache-2.0 */
/* What a job's memory stood in while it ran: its control group, the machine, its /dev/shm, and the OOM
 * killer's counters before and after. */
#pragma once

#include "evidence.h"

typedef struct MemoryContext {
    const Root *root;
    Arena arena;
    Mounts mounts;
    bool has_group;
    bool group_lost; /* the command was in another group than we are, and cannot be asked any more */
    char group[512]; /* as Cgroup has them: the counter is another one when one of these changes */
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

/* A look, with the eyes of process pid: the command, or 0 when it is gone. */
void memory_context_look(MemoryContext *memory, int pid);

/* The same of its /dev/shm alone, for peaks that last less than a second. */
void memory_context_look_shm(MemoryContext *memory, int pid);

/* Somebody else had a look at the job's /dev/shm. */
void memory_context_note_shm(MemoryContext *memory, uint64_t size_bytes, uint64_t free_bytes);

/* Looks a last time and fills in ret's part of it. -ENOMEM. */
int memory_context_finish(MemoryContext *memory, Arena *arena, Evidence *ret);
