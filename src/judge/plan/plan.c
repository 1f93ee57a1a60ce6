/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "checked-arithmetic.h"
#include "need.h"
#include "plan-text.h"
#include "plan.h"
#include "text.h"
#include "units.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* The header that RefcountedMapAllocator puts before the data of a file_system segment, as large as its
 * alignment. */
enum { FILE_SYSTEM_HEADER = 64 };

/* A semaphore of Python's multiprocessing is a file of 32 bytes in /dev/shm. A queue has three of them. A
 * loader has a queue of indices for each worker, one queue for the results, and an event (a condition of four
 * and a flag). */
enum { SEMAPHORES_QUEUE = 3, SEMAPHORES_EVENT = 5, SEMAPHORE_BYTES = 32 };

/*
 * Estimated. Where GPUs cannot reach each other's memory, NCCL sends through segments that the receiver
 * makes, 9,637,888 bytes each with the default buffer sizes, two channels of them at least. Over NVLink or
 * PCIe peer access it makes none of this size.
 */
#define NCCL_SEGMENT_BYTES UINT64_C(9637888)
enum { NCCL_CHANNELS = 2 };

/* Estimated. Gloo talks over sockets, and was seen to make no segment in PyTorch 1.13 and 2.13. Where its
 * all-reduce through shared memory is switched on, each rank has two buffers of 1 MiB, two of 32 MiB, and a
 * page of states. */
#define GLOO_RANK_BYTES (66 * MIB + 4096)

const char *const plan_kind_names[] = {"image", "audio", "video", "multimodal", NULL};
const char *const plan_collectives_names[] = {"none", "nccl", "gloo", NULL};

/* A rule of thumb from practice. */
static const struct {
    uint64_t least_gibs;
    uint64_t most_gibs;
} kinds[PLAN_KINDS] = {
    [PLAN_IMAGE] = {2, 4},
    [PLAN_AUDIO] = {8, 16},
    [PLAN_VIDEO] = {16, 32},
    [PLAN_MULTIMODAL] = {32, 32},
};

static const struct {
    const char *name;
    double share; /* of the room; 0: all that the margin leaves */
} steps[PLAN_LADDER] = {{N_("cautious"), 0.25}, {N_("moderate"), 0.5}, {N_("bold"), 0}};

const char *plan_basis_name(PlanBasis basis)
{
    switch (basis) {
    case BASIS_LOADERS:
        return "loaders";
    case BASIS_PER_PROCESS:
        return "per-process";
    case BASIS_KIND:
        return "rule-of-thumb";
    case BASIS_COMMAND:
        return "command";
    case BASIS_PROCESS:
        return "process";
    }
    return "loaders";
}

static int pages_up(uint64_t bytes, uint64_t page_bytes, uint64_t *ret)
{
    uint64_t rest = bytes % page_bytes;
    return rest == 0 ? (*ret = bytes, 0) : sum(bytes, page_bytes - rest, ret);
}

/* *total += times x (bytes + header), rounded up to pages. */
static int segments_add(uint64_t bytes, uint64_t times, uint64_t header, uint64_t page_bytes, uint64_t *total)
{
    uint64_t segment = 0;
    int r = sum(bytes, header, &segment);
    if (r >= 0)
        r = pages_up(segment, page_bytes, &segment);
    if (r >= 0)
        r = product(segment, times, &segment);
    return r < 0 ? r : sum(*total, segment, total);
}

/* --- One loader ----------------------------------------------------------------------------------------- */

static int batch_need(const PlanLoader *loader, uint64_t header, uint64_t page_bytes, LoaderNeed *need)
{
    if (loader->n_fields == 0) {
        need->payload_bytes = loader->batch_bytes;
        need->segments = 1;
        return segments_add(loader->batch_bytes, 1, header, page_bytes, &need->batch_bytes);
    }
    uint64_t times = loader->list ? loader->batch : 1;
    int r = product(loader->n_fields, times, &need->segments);
    for (size_t i = 0; r >= 0 && i < loader->n_fields; i++) {
        uint64_t field = 0;
        r = product(loader->field_bytes[i], loader->batch, &field);
        if (r >= 0)
            r = sum(need->payload_bytes, field, &need->payload_bytes);
        if (r >= 0)
            r = segments_add(loader->list ? loader->field_bytes[i] : field, times, header, page_bytes,
                             &need->batch_bytes);
    }
    return r;
}

static int in_flight_of(uint64_t workers, uint64_t prefetch, uint64_t held, uint64_t *ret)
{
    uint64_t ordered = 0;
    int r = product(workers, prefetch, &ordered);
    return r < 0 ? r : sum(ordered, held, ret);
}

int plan_guard_batches(uint64_t workers, uint64_t prefetch, uint64_t held, uint64_t *ret)
{
    uint64_t each = 0;
    int r = sum(prefetch, held / workers + 1, &each); /* (held + 1) / workers, rounded up */
    return r < 0 ? r : product(workers, each, ret);
}

int plan_loader_need(const PlanLoader *loader, bool file_system, uint64_t page_bytes, LoaderNeed *ret)
{
    LoaderNeed need = {0};
    uint64_t semaphores = 0;
    int r = batch_need(loader, file_system ? FILE_SYSTEM_HEADER : 0, page_bytes, &need);
    if (r >= 0)
        r = in_flight_of(loader->workers, loader->prefetch, loader->held, &need.in_flight);
    if (r >= 0)
        r = product(need.batch_bytes, need.in_flight, &need.bytes);
    if (r >= 0)
        r = product(SEMAPHORES_QUEUE, loader->workers + 1, &semaphores);
    if (r >= 0)
        r = segments_add(SEMAPHORE_BYTES, semaphores + SEMAPHORES_EVENT, 0, page_bytes,
                         &need.semaphore_bytes);
    if (r >= 0)
        r = sum(need.bytes, need.semaphore_bytes, &need.bytes);
    uint64_t pooled = 0;
    if (r >= 0)
        r = plan_guard_batches(loader->workers, loader->prefetch, loader->held, &pooled);
    if (r >= 0)
        r = product(need.batch_bytes, pooled, &need.guard_bytes);
    if (r >= 0)
        *ret = need;
    return r;
}

/* --- A whole node --------------------------------------------------------------------------------------- */

static int trainers_count(const PlanQuestion *question, uint64_t per_gpu, uint64_t *ret)
{
    uint64_t jobs = question->jobs;
    int r = question->gpus ? product(question->gpus, per_gpu, &jobs) : 0;
    return r < 0 ? r : product(question->ranks, jobs, ret);
}

/* Only trainers of a job with several ranks talk to each other. */
static int collectives_need(const PlanQuestion *question, uint64_t trainers, uint64_t *ret)
{
    if (question->ranks < 2) {
        *ret = 0;
        return 0;
    }
    switch (question->collectives) {
    case COLLECTIVES_NCCL:
        return product(trainers, NCCL_CHANNELS * NCCL_SEGMENT_BYTES, ret);
    case COLLECTIVES_GLOO:
        return product(trainers, GLOO_RANK_BYTES, ret);
    case COLLECTIVES_NONE:
        break;
    }
    *ret = 0;
    return 0;
}

/* What a number of trainers take together. */
typedef struct NodeNeed {
    uint64_t base_bytes;
    uint64_t bound_bytes; /* with the handover */
    uint64_t collective_bytes;
    uint64_t tight_bytes;       /* all of it with the margin: what must fit */
    uint64_t recommended_bytes; /* a round figure */
} NodeNeed;

static int node_need(const PlanQuestion *question, uint64_t per_trainer, uint64_t handover, uint64_t trainers,
                     NodeNeed *ret)
{
    NodeNeed need = {0};
    uint64_t bytes = 0;
    uint64_t least = 0;
    int r = product(per_trainer, trainers, &need.base_bytes);
    if (r >= 0)
        r = collectives_need(question, trainers, &need.collective_bytes);
    if (r >= 0)
        r = sum(need.base_bytes, need.collective_bytes, &bytes);
    if (r >= 0)
        r = product(handover, trainers, &least);
    if (r >= 0)
        r = sum(need.base_bytes, least, &need.bound_bytes);
    if (r >= 0)
        r = sum(bytes, least, &least);
    if (r < 0)
        return r;
    need.tight_bytes = MAX(need_with_margin(bytes, question->margin), least);
    need.recommended_bytes = shm_recommend(bytes, least, question->margin);
    if (question->basis == BASIS_KIND) {
        r = product(kinds[question->kind].most_gibs * GIB, trainers, &need.recommended_bytes);
        need.tight_bytes = need.recommended_bytes;
    }
    if (r < 0 || need.tight_bytes > INT64_MAX || need.recommended_bytes > INT64_MAX)
        return -EOVERFLOW;
    *ret = need;
    return 0;
}

/* --- The inverse ---------------------------------------------------------------------------------------- */

/* Which loader is varied to find what fits, and within which room. */
typedef struct FitSearch {
    const PlanQuestion *question;
    const Plan *plan;
    size_t loader;
    uint64_t room_bytes;
} FitSearch;

typedef bool (*FitTest)(const FitSearch *search, uint64_t value);

/* The largest value from 1 to most that fits; 0: none. The need grows with the value. */
static uint64_t search_largest(const FitSearch *search, FitTest fits, uint64_t most)
{
    uint64_t good = 0;
    uint64_t bad = most + 1;
    while (bad - good > 1) {
        uint64_t middle = good + (bad - good) / 2;
        if (fits(search, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* A loader known by its batch's bytes alone grows with its samples, where their number is known. */
static int loader_with_batch(const PlanLoader *loader, uint64_t batch, PlanLoader *ret)
{
    PlanLoader changed = *loader;
    changed.batch = batch;
    if (loader->n_fields == 0 && loader->batch) {
        uint64_t sample = loader->batch_bytes / loader->batch + (loader->batch_bytes % loader->batch != 0);
        int r = batch == loader->batch ? 0 : product(sample, batch, &changed.batch_bytes);
        if (r < 0)
            return r;
    }
    *ret = changed;
    return 0;
}

static bool loader_fits(const FitSearch *search, const PlanLoader *loader)
{
    const PlanQuestion *question = search->question;
    const Plan *plan = search->plan;
    const LoaderNeed *asked = &plan->loaders[search->loader];
    LoaderNeed need;
    NodeNeed node;
    uint64_t bytes = 0;
    uint64_t handover = 0;
    int r = plan_loader_need(loader, question->file_system, question->page_bytes, &need);
    if (r >= 0)
        r = sum(plan->per_trainer_bytes - asked->bytes, need.bytes, &bytes);
    if (r >= 0)
        r = sum(plan->handover_bytes - asked->batch_bytes, need.batch_bytes, &handover);
    if (r >= 0)
        r = node_need(question, bytes, handover, plan->trainers, &node);
    return r >= 0 && node.tight_bytes <= search->room_bytes;
}

static bool batch_fits(const FitSearch *search, uint64_t batch)
{
    PlanLoader loader;
    return loader_with_batch(&search->question->loaders[search->loader], batch, &loader) >= 0 &&
           loader_fits(search, &loader);
}

static bool workers_fit(const FitSearch *search, uint64_t workers)
{
    PlanLoader loader = search->question->loaders[search->loader];
    loader.workers = workers;
    return loader_fits(search, &loader);
}

static bool workers_fit_one_sample(const FitSearch *search, uint64_t workers)
{
    PlanLoader loader;
    if (loader_with_batch(&search->question->loaders[search->loader], 1, &loader) < 0)
        return false;
    loader.workers = workers;
    return loader_fits(search, &loader);
}

static bool trainers_fit(const FitSearch *search, uint64_t trainers)
{
    NodeNeed node;
    return node_need(search->question, search->plan->per_trainer_bytes, search->plan->handover_bytes,
                     trainers, &node) >= 0 &&
           node.tight_bytes <= search->room_bytes;
}

/* The largest batch with the workers that were asked for; where not even one sample fits, fewer workers. */
static void largest_find(const FitSearch *search, Plan *plan)
{
    const PlanLoader *loader = &search->question->loaders[search->loader];
    uint64_t workers = loader->workers;
    uint64_t batch = 0;
    if (loader->batch == 0)
        workers = search_largest(search, workers_fit, PLAN_COUNT_MOST);
    else {
        batch = search_largest(search, batch_fits, PLAN_BATCH_MOST);
        if (batch == 0) {
            workers = search_largest(search, workers_fit_one_sample, loader->workers);
            batch = workers > 0;
        }
    }
    plan->has_largest = workers > 0 && (batch > 0 || loader->batch == 0);
    plan->largest_batch = batch;
    plan->largest_workers = workers;
}

static void ladder_find(const FitSearch *search, Plan *plan)
{
    const PlanLoader *loader = &search->question->loaders[search->loader];
    for (size_t i = 0; i < PLAN_LADDER; i++) {
        /* node_need adds the margin, which the smaller shares already leave. */
        double share = steps[i].share > 0 ? steps[i].share * search->question->margin : 1;
        if (share > 1)
            continue;
        FitSearch within = *search;
        within.room_bytes = bytes_scale(search->room_bytes, share);
        plan->ladder[plan->n_ladder++] = (PlanStep){
            .name = steps[i].name,
            .share = share / search->question->margin,
            .batch = loader->batch ? search_largest(&within, batch_fits, PLAN_BATCH_MOST) : 0,
            .workers = search_largest(&within, workers_fit, PLAN_COUNT_MOST),
        };
    }
}

static void inverse_find(const PlanQuestion *question, Plan *plan)
{
    plan->largest_trainers = U64_UNKNOWN;
    if (plan->room_bytes == U64_UNKNOWN || question->basis == BASIS_KIND)
        return;
    FitSearch search = {question, plan, 0, plan->room_bytes};
    if (plan->per_trainer_bytes > 0)
        plan->largest_trainers = search_largest(&search, trainers_fit, PLAN_BATCH_MOST);
    if (plan->n_loaders == 0)
        return;
    for (size_t i = 1; i < plan->n_loaders; i++)
        if (plan->loaders[i].bytes > plan->loaders[plan->largest_loader].bytes)
            plan->largest_loader = i;
    search.loader = plan->largest_loader;
    largest_find(&search, plan);
    ladder_find(&search, plan);
}

/* --- Notes ---------------------------------------------------------------------------------------------- */

int plan_note(Plan *plan, Arena *arena, const char *note)
{
    const char **slot = note ? ARENA_PUSH(arena, plan->notes, plan->n_notes, plan->notes_capacity) : NULL;
    if (!slot)
        return -ENOMEM;
    *slot = note;
    return 0;
}

typedef unsigned long long ull; /* what printf takes */

static int note_kind(const PlanQuestion *question, Arena *arena, Plan *plan)
{
    const char *kind = plan_kind_names[question->kind];
    ull least = kinds[question->kind].least_gibs;
    ull most = kinds[question->kind].most_gibs;
    return plan_note(plan, arena,
                     least == most ? arena_printf(arena, PLAN_NOTE_KIND_OVER, kind, least)
                                   : arena_printf(arena, PLAN_NOTE_KIND, kind, least, most));
}

static int notes_make(const PlanQuestion *question, Arena *arena, Plan *plan)
{
    int r = 0;
    if (question->basis == BASIS_KIND)
        r = note_kind(question, arena, plan);
    if (r >= 0 && question->table)
        r = plan_note(plan, arena,
                      arena_printf(arena,
                                   PLURAL(question->per_gpu_last, PLAN_NOTE_ROW_ONE, PLAN_NOTE_ROW_MANY),
                                   (ull)question->per_gpu_last));
    if (r >= 0 && plan->collective_bytes > 0)
        r = plan_note(
            plan, arena,
            arena_printf(arena, question->collectives == COLLECTIVES_NCCL ? PLAN_NOTE_NCCL : PLAN_NOTE_GLOO,
                         SIZE_TEXT(plan->collective_bytes)));
    if (r >= 0 && question->page_bytes > 4096 && question->basis == BASIS_LOADERS)
        r = plan_note(plan, arena, arena_printf(arena, PLAN_NOTE_PAGES, SIZE_TEXT(question->page_bytes)));
    if (r >= 0 && plan->memory_share > PLAN_SHARE_WARN)
        r = plan_note(plan, arena,
                      arena_printf(arena, PLAN_NOTE_SHARE, SIZE_TEXT(plan->tight_bytes),
                                   100 * plan->memory_share, SIZE_TEXT(question->memory_bytes)));
    if (r >= 0 && !plan->fits && question->basis != BASIS_KIND && plan->room_bytes != U64_UNKNOWN &&
        plan->base_bytes + plan->collective_bytes <= plan->room_bytes)
        r = plan_note(plan, arena, PLAN_NOTE_MARGIN);
    return r;
}

/* --- All of it ------------------------------------------------------------------------------------------ */

static int loaders_need(const PlanQuestion *question, Arena *arena, Plan *plan)
{
    plan->batch_bytes = plan->in_flight = 0;
    for (size_t i = 0; i < question->n_loaders; i++) {
        LoaderNeed *need = ARENA_PUSH(arena, plan->loaders, plan->n_loaders, plan->loaders_capacity);
        if (!need)
            return -ENOMEM;
        int r = plan_loader_need(&question->loaders[i], question->file_system, question->page_bytes, need);
        if (r >= 0)
            r = sum(plan->per_trainer_bytes, need->bytes, &plan->per_trainer_bytes);
        if (r >= 0)
            r = sum(plan->handover_bytes, need->batch_bytes, &plan->handover_bytes);
        if (r >= 0)
            r = sum(plan->in_flight, need->in_flight, &plan->in_flight);
        if (r < 0)
            return r;
        plan->batch_bytes = MAX(plan->batch_bytes, need->batch_bytes);
    }
    return 0;
}

static int table_make(const PlanQuestion *question, Arena *arena, Plan *plan)
{
    for (uint64_t per_gpu = question->per_gpu_first; question->table && per_gpu <= question->per_gpu_last;
         per_gpu++) {
        PlanRow *row = ARENA_PUSH(arena, plan->table, plan->n_table, plan->table_capacity);
        NodeNeed node;
        if (!row)
            return -ENOMEM;
        row->per_gpu = per_gpu;
        int r = trainers_count(question, per_gpu, &row->processes);
        if (r >= 0)
            r = node_need(question, plan->per_trainer_bytes, plan->handover_bytes, row->processes, &node);
        if (r < 0)
            return r;
        row->base_bytes = node.base_bytes;
        row->recommended_bytes = node.recommended_bytes;
    }
    return 0;
}

static int totals_make(const PlanQuestion *question, Plan *plan)
{
    NodeNeed node;
    int r = trainers_count(question, question->per_gpu_last, &plan->trainers);
    if (r >= 0)
        r = node_need(question, plan->per_trainer_bytes, plan->handover_bytes, plan->trainers, &node);
    if (r < 0)
        return r;
    uint64_t guard = plan->per_trainer_bytes;
    if (question->basis == BASIS_LOADERS)
        guard = 0;
    else if (question->per_process_guard_bytes)
        guard = question->per_process_guard_bytes;
    for (size_t i = 0; r >= 0 && i < plan->n_loaders; i++)
        r = sum(guard, plan->loaders[i].guard_bytes, &guard);
    if (r >= 0)
        r = product(guard, plan->trainers, &plan->guard_bytes);
    if (r < 0)
        return r;
    plan->base_bytes = node.base_bytes;
    plan->bound_bytes = node.bound_bytes;
    plan->collective_bytes = node.collective_bytes;
    plan->tight_bytes = node.tight_bytes;
    plan->recommended_bytes = node.recommended_bytes;
    return 0;
}

int plan_make(const PlanQuestion *question, Arena *arena, Plan *ret)
{
    Plan plan = {.batch_bytes = U64_UNKNOWN, .in_flight = U64_UNKNOWN};
    int r = 0;
    if (question->basis == BASIS_LOADERS)
        r = loaders_need(question, arena, &plan);
    else if (question->basis == BASIS_KIND)
        plan.per_trainer_bytes = kinds[question->kind].least_gibs * GIB;
    else
        plan.per_trainer_bytes = question->per_process_bytes;
    if (r >= 0)
        r = totals_make(question, &plan);
    if (r >= 0)
        r = table_make(question, arena, &plan);
    if (r < 0)
        return r;

    plan.room_bytes = MIN(question->shm_bytes, question->memory_room_bytes);
    plan.fits = plan.tight_bytes <= plan.room_bytes;
    if (question->memory_bytes != U64_UNKNOWN && question->memory_bytes > 0)
        plan.memory_share = (double)plan.tight_bytes / (double)question->memory_bytes;
    inverse_find(question, &plan);
    r = notes_make(question, arena, &plan);
    if (r >= 0)
        *ret = plan;
    return r;
}

static int batches_alive(const PlanSetting *setting, uint64_t *ret)
{
    if (setting->workers == 0) {
        *ret = 0;
        return 0;
    }
    return setting->guarded ? plan_guard_batches(setting->workers, setting->prefetch, setting->held, ret)
                            : in_flight_of(setting->workers, setting->prefetch, setting->held, ret);
}

int plan_scale(uint64_t bytes, const PlanSetting *from, const PlanSetting *to, uint64_t *ret_bytes)
{
    uint64_t before = 0;
    uint64_t after = 0;
    int r = batches_alive(from, &before);
    if (r >= 0)
        r = batches_alive(to, &after);
    if (r >= 0 && before == 0)
        r = -ENODATA;
    if (r < 0)
        return r;
    double factor = (double)after / (double)before;
    if (from->batch && to->batch)
        factor *= (double)to->batch / (double)from->batch;
    double scaled = ceil((double)bytes * factor);
    if (!(scaled <= 0x1p62))
        return -EOVERFLOW;
    *ret_bytes = factor == 1 ? bytes : (uint64_t)scaled;
    return 0;
}
