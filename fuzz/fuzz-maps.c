/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    TEXT_FOR_EACH_LINE (line, text) {
        MapEntry entry;
        if (maps_parse_line(line, &entry) < 0)
            continue;
        if (entry.start >= entry.end || entry.path.data < line.data ||
            entry.path.data + entry.path.size > line.data + line.size)
            __builtin_trap();
    }
    return 0;
}
