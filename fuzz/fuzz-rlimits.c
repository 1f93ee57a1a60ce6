/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "rlimits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    RLimits limits;
    if (rlimits_parse(text, &limits) == 0 && limits.open_files_hard == U64_UNKNOWN)
        __builtin_trap();
    return 0;
}
