/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA, if the process has it: we find it among the loaded libraries, and never link or load it. Functions of
 * the driver are called without the guard's lock: CUDA has locks of its own, and calls mmap and close while
 * it holds them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interposed.h"

/* What the library interposes in the CUDA runtime. */
#define CALL(type, name, parameters, call) call,
typedef enum CudaCall { INTERPOSED_CUDA(CALL) CUDA_CALLS } CudaCall;
#undef CALL

enum { CUDA_SUCCESS = 0, CUDA_RUNTIME_MISSING = 3 /* cudaErrorInitializationError */ };

/* The stream that 0 stands for in a call whose name ends in _ptsz. */
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

/* Looks for a loaded CUDA runtime: once per process, and again in a forked child if the parent had none.
 * Takes neither the guard's lock nor the loader's: in a forked child that may belong to a thread that does
 * not exist. */
void cuda_look(void);
bool cuda_is_near(void); /* lock-free: the result of cuda_look */

/* What the code at `caller` would have called without us. NULL: not found. */
void *cuda_real(CudaCall call, const void *caller);

/* Whether the copies of the PyTorch that `caller` is part of provably go through us. Decided once. Without
 * the lock. */
bool cuda_is_ours(const void *caller);

/* NULL unless cuda_is_ours has said yes. */
const Cuda *cuda_driver(void);

/* symbols.c: our own definition of the call, whatever its name is bound to. */
const void *cuda_symbol(CudaCall call);
