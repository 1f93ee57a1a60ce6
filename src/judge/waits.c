/* SPDX-License-Identifier: Apache-2.0 */
#include "waits.h"
#include "macro.h"

#define SHARE_LEAST   0.1
#define SECONDS_LEAST 5.0

double waits_share(const Waits *waits)
{
    return waits->run_seconds > 0 ? MIN(waits->waited_seconds / waits->run_seconds, 1) : 0;
}

bool waits_matter(const Waits *waits)
{
    return waits->rescues > 0 && waits_share(waits) >= SHARE_LEAST && waits->waited_seconds >= SECONDS_LEAST;
}

uint64_t budget_suggest(uint64_t bytes)
{
    uint64_t step = UINT64_C(1) << 20;
    while (step * 16 < bytes)
        step *= 2;
    return (bytes + step - 1) / step * step;
}
