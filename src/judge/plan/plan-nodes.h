/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many of the planned jobs fit on each node of a list, what limits them, and what to change. Pure
 * arithmetic. A job has question->ranks trainers, all on one node. What the list does not say does not limit.
 */
#pragma once

#include "node-list.h"
#include "plan.h"

/* What a node runs out of first. */
typedef enum NodeLimit {
    LIMIT_SHM,
    LIMIT_MEMORY,
    LIMIT_CPUS,
    LIMIT_GPUS,
    LIMIT_OPEN_FILES,
    LIMIT_UNUSABLE, /* the node is down, drained or cordoned */
    LIMIT_UNKNOWN,  /* nothing is known of the node */
    NODE_LIMITS,
} NodeLimit;

/* What one job needs. */
typedef struct NodeJobNeed {
    uint64_t shm_bytes;     /* with the margin; rounded for one job alone */
    uint64_t memory_bytes;  /* that, and the private memory of its processes */
    uint64_t guard_bytes;   /* of memory under the guard, in the same way */
    uint64_t cpus;          /* one for each trainer and worker; of --per-process: for each trainer */
    uint64_t gpus;          /* one for each trainer */
    uint64_t open_files;    /* of the process with the most: estimated; 0 unknown */
    uint64_t process_bytes; /* private memory of a process, as the user gave it; 0: not counted */
} NodeJobNeed;

typedef struct NodeFit {
    uint64_t jobs; /* on one such node */
    NodeLimit limit;
    uint64_t guarded_jobs; /* under the guard, where the size of /dev/shm does not matter */
    NodeLimit guarded_limit;
} NodeFit;

/* Nodes that have the same, and so the same answer. */
typedef struct NodeGroup {
    const NodeRoom *room; /* of the first of them */
    uint64_t nodes;
    NodeFit fit;
    const char *change; /* what to do for more; NULL: nothing, all GPUs are in use */
} NodeGroup;

typedef struct NodesPlan {
    const NodeList *list;
    const NodeFit *fits;     /* of each item of the list */
    const NodeGroup *groups; /* those with the most jobs first */
    size_t n_groups;
    uint64_t nodes;
    uint64_t nodes_used;
    uint64_t jobs;
    uint64_t guarded_jobs;
    NodeJobNeed need;
    const char *unknown[NODE_LIMITS]; /* resources that no node tells: "shm", …; NULL-terminated */
} NodesPlan;

/* process_bytes as in NodeJobNeed. The answer lives in arena. -EOVERFLOW, -ENOMEM. */
int plan_nodes_make(const PlanQuestion *question, const Plan *plan, const NodeList *list,
                    uint64_t process_bytes, Arena *arena, NodesPlan *ret);

const char *node_limit_name(NodeLimit limit);
