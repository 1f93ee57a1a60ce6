/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "checked-arithmetic.h"
#include "plan-nodes.h"
#include "plan-text.h"
#include "text.h"
#include "units.h"

/* More than that on one node is not a question about shared memory. */
enum { JOBS_MOST = 1 << 20 };

/*
 * Estimated: what a trainer has open besides batches (libraries, sockets, the queues of Python), for each
 * worker (its pipes and sentinel), and for each tensor of a batch in flight its descriptor.
 */
enum { FILES_TRAINER = 64, FILES_WORKER = 8 };

const char *node_limit_name(NodeLimit limit)
{
    static const char *const names[NODE_LIMITS] = {"shm",        "memory",   "cpus",   "gpus",
                                                   "open_files", "unusable", "unknown"};
    return names[limit];
}

static uint64_t workers_of(const PlanQuestion *question)
{
    uint64_t workers = 0;
    for (size_t i = 0; i < question->n_loaders; i++)
        workers += question->loaders[i].workers; /* each is at most PLAN_COUNT_MOST */
    return workers;
}

static int files_need(const PlanQuestion *question, const Plan *plan, uint64_t *ret)
{
    uint64_t files = FILES_TRAINER;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < plan->n_loaders; i++) {
        uint64_t tensors = 0;
        if (!question->file_system)
            r = product(plan->loaders[i].segments, plan->loaders[i].in_flight + 1, &tensors);
        if (r >= 0)
            r = sum(files, tensors + FILES_WORKER * question->loaders[i].workers, &files);
    }
    *ret = plan->n_loaders > 0 ? files : 0;
    return r;
}

/* Of one job: the plan's figures are for all trainers of the question. */
static int need_make(const PlanQuestion *question, const Plan *plan, uint64_t process_bytes, NodeJobNeed *ret)
{
    NodeJobNeed need = {.process_bytes = process_bytes, .gpus = question->ranks};
    uint64_t jobs = MAX(plan->trainers / question->ranks, (uint64_t)1);
    uint64_t private_bytes = 0;
    need.shm_bytes = plan->tight_bytes / jobs + (plan->tight_bytes % jobs != 0);
    need.guard_bytes = plan->guard_bytes / jobs + (plan->guard_bytes % jobs != 0);
    int r = product(question->ranks, 1 + workers_of(question), &need.cpus);
    if (r >= 0)
        r = product(need.cpus, process_bytes, &private_bytes);
    if (r >= 0)
        r = sum(need.shm_bytes, private_bytes, &need.memory_bytes);
    if (r >= 0)
        r = sum(need.guard_bytes, private_bytes, &need.guard_bytes);
    if (r >= 0)
        r = files_need(question, plan, &need.open_files);
    *ret = need;
    return r;
}

/* --- One node --------------------------------------------------------------------------------------------
 */

/* Of two that limit equally, the later one is harder to change. */
static void limit_apply(uint64_t room, uint64_t need, NodeLimit limit, uint64_t *jobs, NodeLimit *ret)
{
    if (room == U64_UNKNOWN || need == 0)
        return;
    if (room / need <= *jobs || *ret == LIMIT_UNKNOWN) {
        *jobs = MIN(room / need, (uint64_t)JOBS_MOST);
        *ret = limit;
    }
}

/* Descriptors limit a process, not a node: all jobs fit, or none. */
static void files_apply(uint64_t room, uint64_t need, uint64_t *jobs, NodeLimit *ret)
{
    if (room != U64_UNKNOWN && room < need) {
        *jobs = 0;
        *ret = LIMIT_OPEN_FILES;
    }
}

static void fit_find(const NodeRoom *room, const NodeJobNeed *need, bool guarded, uint64_t *ret_jobs,
                     NodeLimit *ret_limit)
{
    uint64_t jobs = 0;
    NodeLimit limit = LIMIT_UNKNOWN;
    if (!room->usable)
        limit = LIMIT_UNUSABLE;
    else {
        if (!guarded)
            limit_apply(room->shm_bytes, need->shm_bytes, LIMIT_SHM, &jobs, &limit);
        limit_apply(room->memory_bytes, guarded ? need->guard_bytes : need->memory_bytes, LIMIT_MEMORY, &jobs,
                    &limit);
        limit_apply(room->cpus, need->cpus, LIMIT_CPUS, &jobs, &limit);
        limit_apply(room->gpus, need->gpus, LIMIT_GPUS, &jobs, &limit);
        files_apply(room->open_files, need->open_files, &jobs, &limit);
    }
    *ret_jobs = jobs;
    *ret_limit = limit;
}

/* --- What to change ---------------------------------------------------------------------------------------
 */

typedef unsigned long long ull; /* what printf takes */

/* The number of jobs that the node has room for apart from one resource. */
static uint64_t jobs_without(const NodeRoom *room, const NodeJobNeed *need, NodeLimit without)
{
    NodeRoom more = *room;
    uint64_t jobs = 0;
    NodeLimit limit = LIMIT_UNKNOWN;
    if (without == LIMIT_SHM)
        more.shm_bytes = U64_UNKNOWN;
    if (without == LIMIT_OPEN_FILES)
        more.open_files = U64_UNKNOWN;
    fit_find(&more, need, false, &jobs, &limit);
    return jobs;
}

static const char *change_shm(const NodeGroup *group, const NodeJobNeed *need, Arena *arena)
{
    uint64_t jobs = MAX(jobs_without(group->room, need, LIMIT_SHM), (uint64_t)1);
    uint64_t bytes = 0;
    if (product(jobs, need->shm_bytes, &bytes) < 0)
        return NODES_CHANGE_SMALLER;
    return arena_printf(arena, PLURAL(jobs, NODES_CHANGE_SHM_ONE, NODES_CHANGE_SHM_MANY), SIZE_FLAG(bytes),
                        (ull)jobs);
}

/* The most workers with which one more job, or the first one, has a CPU for each process. */
static const char *change_cpus(const NodeGroup *group, const PlanQuestion *question, Arena *arena)
{
    uint64_t processes = group->room->cpus / ((group->fit.jobs + 1) * question->ranks);
    if (question->n_loaders != 1 || processes < 2)
        return NODES_CHANGE_CPUS;
    return arena_printf(arena, NODES_CHANGE_WORKERS, (ull)(processes - 1), (ull)(group->fit.jobs + 1));
}

static int change_find(const PlanQuestion *question, const NodeJobNeed *need, Arena *arena, NodeGroup *group)
{
    switch (group->fit.limit) {
    case LIMIT_SHM:
        group->change = change_shm(group, need, arena);
        break;
    case LIMIT_MEMORY:
        group->change = NODES_CHANGE_SMALLER;
        break;
    case LIMIT_CPUS:
        group->change = change_cpus(group, question, arena);
        break;
    case LIMIT_OPEN_FILES:
        group->change = arena_printf(arena, NODES_CHANGE_FILES, (ull)need->open_files);
        break;
    case LIMIT_GPUS:
    case LIMIT_UNUSABLE:
        return 0;
    case LIMIT_UNKNOWN:
    case NODE_LIMITS:
        group->change = NODES_CHANGE_UNKNOWN;
    }
    return group->change ? 0 : -ENOMEM;
}

/* --- All of them ------------------------------------------------------------------------------------------
 */

static int room_order(const NodeRoom *a, const NodeRoom *b)
{
    const uint64_t x[] = {a->usable, a->cpus, a->memory_bytes, a->shm_bytes, a->gpus, a->open_files};
    const uint64_t y[] = {b->usable, b->cpus, b->memory_bytes, b->shm_bytes, b->gpus, b->open_files};
    for (size_t i = 0; i < ARRAY_SIZE(x); i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static int sorted_compare(const void *a, const void *b)
{
    const NodeRoom *x = *(const NodeRoom *const *)a;
    const NodeRoom *y = *(const NodeRoom *const *)b;
    int order = room_order(x, y);
    return order != 0 ? order : (x > y) - (x < y);
}

static int group_compare(const void *a, const void *b)
{
    const NodeGroup *x = a;
    const NodeGroup *y = b;
    if (x->fit.jobs != y->fit.jobs)
        return x->fit.jobs < y->fit.jobs ? 1 : -1;
    return (x->room > y->room) - (x->room < y->room);
}

static int groups_make(const PlanQuestion *question, Arena *arena, NodesPlan *plan, NodeFit *fits)
{
    const NodeList *list = plan->list;
    const NodeRoom **sorted = arena_alloc(arena, list->n * sizeof(NodeRoom *));
    NodeGroup *groups = arena_alloc(arena, list->n * sizeof *groups);
    size_t n = 0;
    if (!sorted || !groups)
        return -ENOMEM;
    for (size_t i = 0; i < list->n; i++)
        sorted[i] = &list->items[i];
    qsort(sorted, list->n, sizeof(NodeRoom *), sorted_compare);
    for (size_t i = 0; i < list->n; i++) {
        if (i == 0 || room_order(sorted[i - 1], sorted[i]) != 0) {
            NodeGroup *group = &groups[n++];
            *group = (NodeGroup){.room = sorted[i]};
            fit_find(sorted[i], &plan->need, false, &group->fit.jobs, &group->fit.limit);
            fit_find(sorted[i], &plan->need, true, &group->fit.guarded_jobs, &group->fit.guarded_limit);
            int r = change_find(question, &plan->need, arena, group);
            if (r < 0)
                return r;
        }
        groups[n - 1].nodes += sorted[i]->count;
        fits[sorted[i] - list->items] = groups[n - 1].fit;
    }
    qsort(groups, n, sizeof *groups, group_compare);
    plan->groups = groups;
    plan->n_groups = n;
    return 0;
}

static void unknown_find(NodesPlan *plan)
{
    bool known[LIMIT_UNUSABLE] = {0};
    size_t n = 0;
    for (size_t i = 0; i < plan->list->n; i++) {
        const NodeRoom *room = &plan->list->items[i];
        known[LIMIT_SHM] |= room->shm_bytes != U64_UNKNOWN;
        known[LIMIT_MEMORY] |= room->memory_bytes != U64_UNKNOWN;
        known[LIMIT_CPUS] |= room->cpus != U64_UNKNOWN;
        known[LIMIT_GPUS] |= room->gpus != U64_UNKNOWN;
        known[LIMIT_OPEN_FILES] |= room->open_files != U64_UNKNOWN;
    }
    for (NodeLimit limit = LIMIT_SHM; limit < LIMIT_UNUSABLE; limit++)
        if (!known[limit])
            plan->unknown[n++] = node_limit_name(limit);
}

int plan_nodes_make(const PlanQuestion *question, const Plan *plan, const NodeList *list,
                    uint64_t process_bytes, Arena *arena, NodesPlan *ret)
{
    NodesPlan nodes = {.list = list};
    NodeFit *fits = arena_alloc(arena, list->n * sizeof *fits);
    int r = fits ? need_make(question, plan, process_bytes, &nodes.need) : -ENOMEM;
    if (r >= 0)
        r = groups_make(question, arena, &nodes, fits);
    for (size_t i = 0; r >= 0 && i < nodes.n_groups; i++) {
        const NodeGroup *group = &nodes.groups[i];
        uint64_t jobs = 0;
        uint64_t guarded = 0;
        r = product(group->nodes, group->fit.jobs, &jobs);
        if (r >= 0)
            r = product(group->nodes, group->fit.guarded_jobs, &guarded);
        if (r >= 0)
            r = sum(nodes.jobs, jobs, &nodes.jobs);
        if (r >= 0)
            r = sum(nodes.guarded_jobs, guarded, &nodes.guarded_jobs);
        nodes.nodes += group->nodes;
        nodes.nodes_used += group->fit.jobs > 0 ? group->nodes : 0;
    }
    if (r < 0)
        return r;
    unknown_find(&nodes);
    nodes.fits = fits;
    *ret = nodes;
    return 0;
}
