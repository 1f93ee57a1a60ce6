/* SPDX-License-Identifier: Apache-2.0 */
/* What cuda.c finds in a process, for a program in which the guard, its test and the made-up CUDA are linked
 * together (scripts/test-threads). */
#include <stdatomic.h>

#include "cuda.h"
#include "fake-cuda.h"

static const Cuda driver = {
    .context_now = cuCtxGetCurrent,
    .context_push = cuCtxPushCurrent_v2,
    .context_pop = cuCtxPopCurrent_v2,
    .host_register = cuMemHostRegister_v2,
    .host_unregister = cuMemHostUnregister,
    .event_create = cuEventCreate,
    .event_record = cuEventRecord,
    .event_query = cuEventQuery,
    .stream_context = cuStreamGetCtx,
    .stream_capturing = cuStreamIsCapturing,
    .stream_wait = cuStreamSynchronize,
    .capture_mode = cuThreadExchangeStreamCaptureMode,
    .stream_id = cuStreamGetId,
};

static void *const calls[CUDA_CALLS] = {
    [CUDA_ATTRIBUTES] = cudaPointerGetAttributes, [CUDA_COPY] = cudaMemcpyAsync,
    [CUDA_COPY_PTSZ] = cudaMemcpyAsync_ptsz,      [CUDA_COPY_2D] = cudaMemcpy2DAsync,
    [CUDA_COPY_BATCH] = cudaMemcpyBatchAsync,
};

static atomic_bool asked;

void cuda_look(void) {}

bool cuda_is_near(void)
{
    return true;
}

void *cuda_real(CudaCall call, const void *caller)
{
    (void)caller;
    return calls[call];
}

bool cuda_is_ours(const void *caller)
{
    (void)caller;
    atomic_store(&asked, true);
    return true;
}

const Cuda *cuda_driver(void)
{
    return atomic_load(&asked) ? &driver : NULL;
}
