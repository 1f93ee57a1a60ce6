/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fds.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    FdEntry entry = {0};
    fd_target_parse(text, &entry);
    if (entry.target.size + (entry.deleted ? strlen(" (deleted)") : 0) != size)
        __builtin_trap();
    return 0;
}
