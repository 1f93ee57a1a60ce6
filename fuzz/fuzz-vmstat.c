/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "vmstat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    uint64_t kills = 0;
    (void)vmstat_parse_oom_kills(text, &kills);
    return 0;
}
