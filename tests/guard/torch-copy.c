/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library by the name of PyTorch's that asks and copies as PyTorch's own does, for what the guard must find
 * out about it, and for tests in Python.
 */
#include <stdbool.h>
#include <stddef.h>

#include "fake-cuda.h"

#define EXPORT __attribute__((visibility("default")))

bool torch_is_pinned(const void *address);
int torch_copy(void *target, const void *source, size_t size, void *stream);

EXPORT bool torch_is_pinned(const void *address)
{
    FakeAttributes attributes;
    return cudaPointerGetAttributes(&attributes, address) == 0 && attributes.type == 1;
}

EXPORT int torch_copy(void *target, const void *source, size_t size, void *stream)
{
#ifdef UNKNOWN
    return cudaMemcpyOnceMoreAsync(target, source, size, stream);
#else
    return cudaMemcpyAsync(target, source, size, 1, stream);
#endif
}
