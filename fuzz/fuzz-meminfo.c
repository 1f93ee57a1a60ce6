/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "meminfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    MemInfo info;
    if (meminfo_parse(text, &info) == 0 && info.total_bytes == U64_UNKNOWN)
        __builtin_trap();
    return 0;
}
