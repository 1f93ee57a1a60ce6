/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "root.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TEXT_FOR_EACH_LINE (line, ((Text){(const char *)data, size})) {
        _cleanup_free_ char *path = malloc(line.size + 1);
        Text found;
        FileStat stat;
        FsStat fs;
        if (path && capture_stat_parse(line, path, &found, &stat) >= 0 && found.size > line.size)
            __builtin_trap();
        if (path && capture_statfs_parse(line, path, &found, &fs) >= 0 && found.size > line.size)
            __builtin_trap();
    }
    return 0;
}
