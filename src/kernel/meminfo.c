/* SPDX-License-Identifier: Apache-2.0 */
#include "meminfo.h"

int meminfo_parse(Text text, MemInfo *ret)
{
    MemInfo info = {
        .total_bytes = U64_UNKNOWN,
        .free_bytes = U64_UNKNOWN,
        .available_bytes = U64_UNKNOWN,
        .cached_bytes = U64_UNKNOWN,
        .shmem_bytes = U64_UNKNOWN,
        .swap_total_bytes = U64_UNKNOWN,
        .swap_free_bytes = U64_UNKNOWN,
    };
    const struct {
        const char *key;
        uint64_t *bytes;
    } fields[] = {
        {"MemTotal", &info.total_bytes},
        {"MemFree", &info.free_bytes},
        {"MemAvailable", &info.available_bytes},
        {"Cached", &info.cached_bytes},
        {"Shmem", &info.shmem_bytes},
        {"SwapTotal", &info.swap_total_bytes},
        {"SwapFree", &info.swap_free_bytes},
    };
    TEXT_FOR_EACH_LINE (line, text)
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
            Text value;
            if (text_key(line, fields[i].key, &value)) {
                (void)text_kib(value, fields[i].bytes);
                break;
            }
        }
    if (info.total_bytes == U64_UNKNOWN)
        return -EBADMSG;
    if (info.available_bytes == U64_UNKNOWN && info.free_bytes != U64_UNKNOWN &&
        info.cached_bytes != U64_UNKNOWN &&
        __builtin_add_overflow(info.free_bytes, info.cached_bytes, &info.available_bytes))
        info.available_bytes = U64_UNKNOWN;
    *ret = info;
    return 0;
}

int meminfo_read(const Root *root, MemInfo *ret)
{
    _cleanup_buffer_ Buffer buffer = {0};
    int r = root_read(root, "proc/meminfo", ROOT_FILE_MAX, &buffer);
    return r < 0 ? r : meminfo_parse((Text){buffer.data, buffer.size}, ret);
}
