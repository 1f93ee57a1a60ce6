/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA, where the process has it: found among what is loaded, never linked and never loaded by us. Functions
 * of the driver are called without the guard's lock: CUDA has locks of its own, and calls mmap and close
 * while it holds them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interposed.h"

/* What the library stands in for in the CUDA runtime. */
#define CALL(type, name, parameters, call) call,
typedef enum CudaCall { INTERPOSED_CUDA(CALL) CUDA_CALLS } CudaCall;
#undef CALL

enum { CUDA_SUCCESS = 0, CUDA_RUNTIME_MISSING = 3 /* cudaErrorInitializationError */ };

/* The stream that 0 means in a call of the _ptsz kind. */
#define CUDA_STREAM_OF_THREAD ((void *)2)

/* The driver's functions, by their meaning. Contexts, streams and events are its pointers. */
typedef struct Cuda {
    int (*context_now)(void **ret);
    int (*context_push)(void *context);
    int (*context_pop)(void **ret);
    int (*host_register)(void *address, size_t size, unsigned flags);
    int (*host_unregister)(void *address);
    int (*event_create)(void **ret, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*stream_context)(void *stream, void **ret);
    int (*stream_capturing)(void *stream, int *ret);
    int (*stream_wait)(void *stream);
    int (*capture_mode)(int *mode);
    int (*stream_id)(void *stream, unsigned long long *ret); /* since 12.0; NULL before */
} Cuda;

enum {
    CUDA_NOT_READY = 600,
    CUDA_REGISTER_PORTABLE = 1, /* pinned for all contexts */
    CUDA_EVENT_NO_TIMING = 2,
    CUDA_CAPTURE_RELAXED = 2,
};

/* Looks whether a CUDA runtime is loaded: once in a process, and again in a forked one that saw none. Without
 * the lock, or any of the loader's: in a forked child that may be nobody's. */
void cuda_look(void);
bool cuda_is_near(void); /* lock-free: what cuda_look saw */

/* What the code at `caller` would have called without us. NULL: there is nothing. */
void *cuda_real(CudaCall call, const void *caller);

/* Whether PyTorch's copies demonstrably come through us, for the PyTorch of which `caller` is a part. Decided
 * once. Without the lock. */
bool cuda_is_ours(const void *caller);

/* NULL unless cuda_is_ours has said yes. */
const Cuda *cuda_driver(void);

/* symbols.c: our own definition of it, whatever the name is bound to. */
const void *cuda_symbol(CudaCall call);
