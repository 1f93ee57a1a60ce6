/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a cluster, as people, Slurm and Kubernetes list them. Pure and strict: what is not understood
 * is refused with its line. The format is recognised by its beginning:
 *
 *     name,cpus,memory,shm,gpus,open_files       CSV; a first line with these names gives another order
 *     {"name": "n1", "cpus": 64, ...}            one JSON object per line
 *     NodeName=n1 ... CPUTot=64 RealMemory=...   scontrol show nodes, also with -o
 *     NODELIST NODES ... CPUS MEMORY ...         sinfo with any columns among which are these
 *     {"items": [{"kind": "Node", ...}]}         kubectl get nodes -o json
 */
#pragma once

#include <stdbool.h>

#include "arena.h"
#include "text.h"

enum { NODES_MOST = 1 << 17, NODE_NAME_MOST = 253 };

/* What a node has. U64_UNKNOWN: the list does not say. */
typedef struct NodeRoom {
    const char *name;
    uint64_t count; /* nodes like this: sinfo has one line for many */
    uint64_t cpus;
    uint64_t memory_bytes;
    uint64_t shm_bytes;
    uint64_t gpus;
    uint64_t open_files; /* the limit of one process */
    bool usable;         /* not down, drained or cordoned */
} NodeRoom;

typedef struct NodeList {
    NodeRoom *items;
    size_t n;
    size_t capacity;
} NodeList;

/* What was parsed lives in arena. -ENOMEM, or -EINVAL with an escaped line without newline appended to error,
 * and the number of the line in *ret_line (0: none in particular). */
int node_list_parse(Text text, Arena *arena, NodeList *ret, size_t *ret_line, Buffer *error);
