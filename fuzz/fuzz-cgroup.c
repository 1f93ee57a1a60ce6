/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    uint64_t value = 0;
    double cpus = 0;
    if (cgroup_cpu_max_parse(text, &cpus) == 0 && !(cpus >= 0))
        __builtin_trap();
    (void)cgroup_limit_parse(text, &value);
    (void)cgroup_key_parse(text, "oom_kill", &value);
    TEXT_FOR_EACH_LINE (line, text) {
        CgroupLine found;
        if (cgroup_line_parse(line, &found) == 0 &&
            (found.path.size == 0 || found.path.data + found.path.size != line.data + line.size))
            __builtin_trap();
    }
    return 0;
}
