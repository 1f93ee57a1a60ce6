/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "fake-cuda.h"

#define EXPORT __attribute__((visibility("default")))

int fake_copy(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
              size_t height, void *stream);
bool fake_is_registered(const void *address);

EXPORT int cudaPointerGetAttributes(FakeAttributes *ret, const void *address)
{
    bool host = fake_is_registered(address);
    *ret = (FakeAttributes){host, host ? 0 : -2, host ? (void *)(uintptr_t)address : NULL,
                            (void *)(uintptr_t)address};
    return 0;
}

EXPORT int cudaMemcpyAsync(void *target, const void *source, size_t size, int kind, void *stream)
{
    (void)kind;
    return fake_copy(target, size, source, size, size, 1, stream);
}

EXPORT int cudaMemcpyAsync_ptsz(void *target, const void *source, size_t size, int kind, void *stream)
{
    (void)kind;
    return fake_copy(target, size, source, size, size, 1, stream ? stream : (void *)2);
}

EXPORT int cudaMemcpy2DAsync(void *target, size_t target_pitch, const void *source, size_t source_pitch,
                             size_t width, size_t height, int kind, void *stream)
{
    (void)kind;
    return fake_copy(target, target_pitch, source, source_pitch, width, height, stream);
}

EXPORT int cudaMemcpyBatchAsync(void **targets, void **sources, const size_t *sizes, size_t n,
                                void *attributes, void *indices, size_t n_attributes, void *stream)
{
    (void)attributes;
    (void)indices;
    (void)n_attributes;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = fake_copy(targets[i], sizes[i], sources[i], sizes[i], sizes[i], 1, stream);
    return r;
}

EXPORT int cudaMemcpyOnceMoreAsync(void *target, const void *source, size_t size, void *stream)
{
    return fake_copy(target, size, source, size, size, 1, stream);
}
