/* SPDX-License-Identifier: Apache-2.0 */
/* Cleanup by attribute, ownership transfer, and the few macros that every file needs. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "fd.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))

/* A size or count that is unknown. It is never printed as a number: JSON has null, text has "?". */
#define U64_UNKNOWN UINT64_MAX

/* The maximum of what is known. For the minimum, use MIN: unknown is the largest number. */
static inline void u64_raise(uint64_t *most, uint64_t value)
{
    if (value != U64_UNKNOWN && (*most == U64_UNKNOWN || value > *most))
        *most = value;
}

static inline void free_pointer(void *p)
{
    free(*(void **)p);
}

#define _cleanup_(f)    __attribute__((cleanup(f)))
#define _cleanup_free_  _cleanup_(free_pointer)
#define _cleanup_close_ _cleanup_(fd_close_pointer)
#define _printf_(a, b)  __attribute__((format(printf, a, b)))

#define TAKE(value, empty)                                                                                   \
    ({                                                                                                       \
        __typeof__(value) *_slot = &(value);                                                                 \
        __typeof__(value) _taken = *_slot;                                                                   \
        *_slot = (empty);                                                                                    \
        _taken;                                                                                              \
    })
#define TAKE_FD(fd)   TAKE(fd, -EBADF)
#define TAKE_PTR(ptr) TAKE(ptr, NULL)

/* The number of the n sorted items for which `before`, an expression in i, holds: the index of the first
 * other item. */
#define LOWER_BOUND(i, n, before)                                                                            \
    ({                                                                                                       \
        size_t _low = 0;                                                                                     \
        size_t _high = (n);                                                                                  \
        while (_low < _high) {                                                                               \
            size_t i = _low + (_high - _low) / 2;                                                            \
            if (before)                                                                                      \
                _low = i + 1;                                                                                \
            else                                                                                             \
                _high = i;                                                                                   \
        }                                                                                                    \
        _low;                                                                                                \
    })
