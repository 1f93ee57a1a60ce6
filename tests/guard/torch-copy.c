/* A library by the name of PyTorch's that makes copies, for what the guard must find out about it. */
#include <stddef.h>

int cudaMemcpyAsync(void *target, const void *source, size_t size, int kind, void *stream);
int cudaMemcpyOnceMoreAsync(void *target, const void *source, size_t size, void *stream);
int torch_copy(void *target, const void *source, size_t size);

__attribute__((visibility("default"))) int torch_copy(void *target, const void *source, size_t size)
{
#ifdef UNKNOWN
    return cudaMemcpyOnceMoreAsync(target, source, size, NULL);
#else
    return cudaMemcpyAsync(target, source, size, 1, NULL);
#endif
}
