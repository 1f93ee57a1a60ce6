/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "kmsg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_arena_ Arena arena = {0};
    OomKills kills;
    if (kmsg_parse((Text){(const char *)data, size}, &arena, &kills) < 0)
        return 0;
    if (kills.n > KMSG_KILLS_MAX)
        __builtin_trap();
    for (size_t i = 0; i < kills.n; i++) {
        const OomKill *kill = &kills.items[i];
        if (kill->pid <= 0 || strnlen(kill->comm, sizeof kill->comm) == sizeof kill->comm ||
            strnlen(kill->cgroup, sizeof kill->cgroup) == sizeof kill->cgroup ||
            (kill->cgroup[0] != '\0' && kill->scope != OOM_SCOPE_CGROUP))
            __builtin_trap();
    }
    return 0;
}
