/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "plan-parse.h"

static void line_check(int r, const Buffer *error)
{
    if (r == -EINVAL || r == -ERANGE ? error->size == 0 : error->size != 0)
        __builtin_trap();
    for (size_t i = 0; i < error->size; i++)
        if ((unsigned char)error->data[i] < 0x20 || error->data[i] == 0x7F)
            __builtin_trap();
}

/* A loader that was parsed and is whole has a plan or is too large for one; what is refused is refused in one
 * harmless line. */
static void plan_check(const PlanLoader *loader)
{
    _cleanup_arena_ Arena arena = {0};
    PlanQuestion question = {.loaders = loader,
                             .n_loaders = 1,
                             .page_bytes = 4096,
                             .ranks = 2,
                             .jobs = 3,
                             .collectives = COLLECTIVES_NCCL,
                             .margin = 1.3,
                             .shm_bytes = UINT64_C(1) << 30,
                             .memory_bytes = UINT64_C(1) << 34,
                             .memory_room_bytes = UINT64_C(1) << 34};
    Plan plan;
    int r = plan_make(&question, &arena, &plan);
    if (r < 0) {
        if (r != -EOVERFLOW)
            __builtin_trap();
        return;
    }
    if (plan.base_bytes != plan.per_trainer_bytes * plan.trainers ||
        plan.recommended_bytes < plan.tight_bytes || plan.tight_bytes < plan.base_bytes ||
        plan.loaders[0].payload_bytes > plan.batch_bytes)
        __builtin_trap();
    if (plan.has_largest && loader->batch > 0 && plan.fits && plan.largest_batch < loader->batch &&
        loader->batch <= PLAN_BATCH_MOST)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_arena_ Arena arena = {0};
    _cleanup_buffer_ Buffer error = {0};
    Text text = {(const char *)data, size};
    uint64_t first = 0;
    uint64_t last = 0;
    double margin = 0;

    line_check(plan_sample_parse(text, &first, &error), &error);
    buffer_clear(&error);
    int r = plan_range_parse(text, &first, &last, &error);
    line_check(r, &error);
    if (r == 0 && (first == 0 || last < first || last - first >= PLAN_ROWS_MOST))
        __builtin_trap();
    buffer_clear(&error);
    line_check(plan_size_parse(text, &first, &error), &error);
    buffer_clear(&error);
    r = plan_margin_parse(text, &margin, &error);
    line_check(r, &error);
    if (r == 0 && !(margin >= 1))
        __builtin_trap();
    buffer_clear(&error);

    PlanLoader usual = {.prefetch = 2, .held = 1};
    PlanLoader loader;
    r = plan_loader_parse(text, &usual, &arena, &loader, &error);
    line_check(r, &error);
    if (r == 0 && loader.workers > 0 && (loader.n_fields > 0 ? loader.batch > 0 : loader.batch_bytes > 0))
        plan_check(&loader);
    return 0;
}
