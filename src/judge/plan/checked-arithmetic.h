/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic that reports overflow: 0 or -EOVERFLOW. No size exceeds that of the largest file, so that every
 * sum can be printed and none equals U64_UNKNOWN. */
#pragma once

#include <errno.h>
#include <stdint.h>

static inline int product(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t c = 0;
    if (__builtin_mul_overflow(a, b, &c) || c > INT64_MAX)
        return -EOVERFLOW;
    *ret = c;
    return 0;
}

static inline int sum(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t c = 0;
    if (__builtin_add_overflow(a, b, &c) || c > INT64_MAX)
        return -EOVERFLOW;
    *ret = c;
    return 0;
}
