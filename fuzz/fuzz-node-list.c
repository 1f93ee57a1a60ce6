/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "plan-nodes.h"

/* What is refused is refused in one harmless line; what is accepted has a plan, or is too much for one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_arena_ Arena arena = {0};
    _cleanup_buffer_ Buffer text = {0};
    _cleanup_buffer_ Buffer error = {0};
    NodeList list = {0};
    size_t line = 0;
    if (buffer_append(&text, (const char *)data, size) < 0)
        return 0;
    int r = node_list_parse((Text){buffer_text(&text), size}, &arena, &list, &line, &error);
    if ((r == -EINVAL) != (error.size > 0) || (r >= 0 && list.n == 0))
        __builtin_trap();
    for (size_t i = 0; i < error.size; i++)
        if ((unsigned char)error.data[i] < 0x20 || error.data[i] == 0x7F)
            __builtin_trap();
    if (r < 0)
        return 0;
    PlanLoader loader = {.batch_bytes = 1 << 20, .batch = 8, .workers = 3, .prefetch = 2, .held = 1};
    PlanQuestion question = {.loaders = &loader,
                             .n_loaders = 1,
                             .page_bytes = 4096,
                             .ranks = 2,
                             .jobs = 1,
                             .margin = 1.3,
                             .shm_bytes = U64_UNKNOWN,
                             .memory_bytes = U64_UNKNOWN,
                             .memory_room_bytes = U64_UNKNOWN};
    Plan plan;
    NodesPlan nodes;
    if (plan_make(&question, &arena, &plan) < 0)
        __builtin_trap();
    if (plan_nodes_make(&question, &plan, &list, 1 << 20, &arena, &nodes) < 0)
        return 0;
    for (size_t i = 0; i < list.n; i++)
        if (strlen(list.items[i].name) == 0 || (nodes.fits[i].jobs > 0 && !list.items[i].usable))
            __builtin_trap();
    return 0;
}
