/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <time.h>

static inline double clock_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* For durations: this clock is never set. */
static inline double now_seconds(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}
