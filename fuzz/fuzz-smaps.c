/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "smaps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    Smaps sizes;
    MapEntry entry;
    (void)smaps_rollup_parse(text, &sizes);
    for (Text rest = text; smaps_next(&rest, &entry, &sizes);)
        if (entry.start >= entry.end || sizes.private_bytes == U64_UNKNOWN)
            __builtin_trap();
    return 0;
}
