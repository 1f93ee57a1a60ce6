/* SPDX-License-Identifier: Apache-2.0 */
#include "need.h"

#define MIB       (UINT64_C(1) << 20)
#define GIB       (UINT64_C(1) << 30)
#define BYTES_MAX (U64_UNKNOWN - 1)

#define MARGIN_LEAST_BYTES (256 * MIB)

/* Enough for any realistic batch; what does not fit is left out of the estimate. Both bound the work and keep
 * it on the stack: a job in trouble may hold tens of thousands of segments. */
enum { MAKERS_MAX = 64, SIZES_MAX = 32 };

typedef struct Maker {
    uint64_t
        id; /* the pid in the segments' names, in the maker's own namespace; 0 when the names have none */
    uint32_t n_sizes;
    struct {
        uint64_t bytes;
        uint64_t seen;
    } sizes[SIZES_MAX];
} Maker;

typedef struct Makers {
    size_t n;
    Maker items[MAKERS_MAX];
} Makers;

uint64_t bytes_add(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? BYTES_MAX : MIN(sum, BYTES_MAX);
}

uint64_t bytes_scale(uint64_t bytes, double factor)
{
    double scaled = (double)bytes * factor;
    return scaled >= 0x1p64 ? BYTES_MAX : MIN((uint64_t)scaled, BYTES_MAX);
}

uint64_t shm_round_up(uint64_t bytes)
{
    if (bytes == 0 || bytes == U64_UNKNOWN)
        return bytes;
    if (bytes <= 512 * MIB)
        return 512 * MIB;
    uint64_t gibs = MIN(bytes / GIB + (bytes % GIB != 0), BYTES_MAX / GIB);
    return gibs * GIB;
}

/* A large number converted to double may become smaller. */
uint64_t need_with_margin(uint64_t bytes, double margin)
{
    return MAX(bytes, bytes_scale(bytes, margin));
}

uint64_t shm_recommend(uint64_t bytes, uint64_t least_bytes, double margin)
{
    if (bytes == 0)
        return 0;
    uint64_t tight = MAX(need_with_margin(bytes, margin), least_bytes);
    if (margin > 1)
        tight = MAX(tight, bytes_add(bytes, MARGIN_LEAST_BYTES));
    return shm_round_up(tight);
}

uint64_t batches_in_flight(uint64_t workers)
{
    return workers * PREFETCH_DEFAULT + HELD_DEFAULT;
}

/* "torch_1234_567_0" → 1234. 0 when the name does not say. */
static uint64_t segment_maker(const Segment *segment)
{
    Text name = segment->name;
    Text part;
    uint64_t pid = 0;
    if (!text_until(&name, '_', &part) || !text_equal(part, "torch") || !text_until(&name, '_', &part) ||
        text_u64(part, 10, &pid) < 0)
        return 0;
    return pid;
}

/* NULL when it has exited, or when its pid belongs to a namespace that is not ours. */
static const Process *maker_process(const Survey *survey, const Segment *segment)
{
    uint64_t pid = segment->kind == KIND_TORCH ? segment_maker(segment) : 0;
    return pid > 0 && pid <= INT32_MAX ? survey_process(survey, (int)pid) : NULL;
}

/* Whether it may be a tensor of a batch. A trainer's segments are not: workers make batches. */
static bool is_batch(const Survey *survey, const Segment *segment)
{
    const Process *maker = maker_process(survey, segment);
    return segment->kind == KIND_TORCH && segment->size_bytes != U64_UNKNOWN &&
           (!maker || maker->role != ROLE_TRAINER);
}

static void maker_count(Maker *maker, uint64_t bytes)
{
    for (uint32_t i = 0; i < maker->n_sizes; i++)
        if (maker->sizes[i].bytes == bytes) {
            maker->sizes[i].seen++;
            return;
        }
    if (maker->n_sizes == SIZES_MAX)
        return;
    maker->sizes[maker->n_sizes].bytes = bytes;
    maker->sizes[maker->n_sizes].seen = 1;
    maker->n_sizes++;
}

static void makers_count(Makers *makers, uint64_t id, uint64_t bytes)
{
    size_t i = 0;
    while (i < makers->n && makers->items[i].id != id)
        i++;
    if (i == MAKERS_MAX)
        return;
    if (i == makers->n) {
        makers->items[i].id = id;
        makers->items[i].n_sizes = 0;
        makers->n++;
    }
    maker_count(&makers->items[i], bytes);
}

/* How often a size occurs, over all makers. */
static uint64_t makers_seen(const Makers *makers, uint64_t bytes)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < makers->n; i++)
        for (uint32_t j = 0; j < makers->items[i].n_sizes; j++)
            if (makers->items[i].sizes[j].bytes == bytes)
                seen += makers->items[i].sizes[j].seen;
    return seen;
}

static bool is_alike(uint64_t a, uint64_t b)
{
    return MAX(a, b) / 2 < MIN(a, b);
}

static uint64_t maker_batch_bytes(const Makers *makers, const Maker *maker)
{
    bool once[SIZES_MAX] = {0};
    for (uint32_t i = 0; i < maker->n_sizes; i++)
        once[i] = makers_seen(makers, maker->sizes[i].bytes) == 1;

    uint64_t sum = 0;
    for (uint32_t i = 0; i < maker->n_sizes; i++) {
        bool shorter = false; /* than the same tensor of another batch, which counts instead */
        for (uint32_t j = 0; j < maker->n_sizes && once[i]; j++)
            shorter = shorter || (once[j] && maker->sizes[j].bytes > maker->sizes[i].bytes &&
                                  is_alike(maker->sizes[i].bytes, maker->sizes[j].bytes));
        if (!shorter)
            sum = bytes_add(sum, maker->sizes[i].bytes);
    }
    return sum;
}

/* False when no process of the job holds it. ret_earlier: whether a job with a smaller pid holds it too. */
static bool is_held_by(const Survey *survey, const Segment *segment, int trainer, bool *ret_earlier)
{
    /* With the file_system strategy, a tensor that waits in a queue is a file that no process has open. */
    const Process *maker = segment->n_holders == 0 ? maker_process(survey, segment) : NULL;
    bool held = maker && maker->job == trainer;
    bool earlier = false;
    for (size_t i = 0; i < segment->n_holders; i++) {
        const Process *holder = survey_process(survey, segment->holders[i]);
        if (!holder || holder->job == 0)
            continue;
        held = held || holder->job == trainer;
        earlier = earlier || holder->job < trainer;
    }
    *ret_earlier = earlier;
    return held;
}

void job_need(const Survey *survey, int trainer, JobNeed *ret)
{
    JobNeed need = {.trainer = trainer};
    for (size_t i = 0; i < survey->n_processes; i++)
        if (survey->processes[i].job == trainer && survey->processes[i].role == ROLE_WORKER)
            need.workers++;

    Makers makers;
    makers.n = 0;
    uint64_t batches_here = 0;
    uint64_t batches_elsewhere = 0;
    for (size_t i = 0; i < survey->n_segments; i++) {
        const Segment *segment = &survey->segments[i];
        bool earlier = false;
        if (!is_held_by(survey, segment, trainer, &earlier))
            continue;
        uint64_t allocated = segment->allocated_bytes == U64_UNKNOWN ? 0 : segment->allocated_bytes;
        need.held_bytes = bytes_add(need.held_bytes, allocated);
        if (segment->on_mount)
            need.mount_bytes = bytes_add(need.mount_bytes, allocated);
        if (earlier)
            need.shared_bytes = bytes_add(need.shared_bytes, allocated);
        need.guarded = need.guarded || segment->kind == KIND_SHMGUARD;

        if (!is_batch(survey, segment)) {
            need.other_bytes = bytes_add(need.other_bytes, allocated);
            continue;
        }
        makers_count(&makers, segment_maker(segment), segment->size_bytes);
        if (segment->backing == BACKING_SHM && !segment->on_mount)
            batches_elsewhere = bytes_add(batches_elsewhere, segment->size_bytes);
        else
            batches_here = bytes_add(batches_here, segment->size_bytes);
    }

    for (size_t i = 0; i < makers.n; i++)
        need.batch_bytes = MAX(need.batch_bytes, maker_batch_bytes(&makers, &makers.items[i]));
    uint64_t in_flight = bytes_scale(need.batch_bytes, (double)batches_in_flight(need.workers));
    need.need_bytes = MAX(need.held_bytes, bytes_add(need.other_bytes, in_flight));
    need.elsewhere = batches_elsewhere > batches_here;
    need.mount_need_bytes = need.guarded || need.elsewhere ? need.mount_bytes : need.need_bytes;
    *ret = need;
}
