/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CUDA driver and runtime for machines without a GPU: "device" memory is ordinary memory, and a stream is a
 * thread that does its copies late. What a program must not do is counted as an offence.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* --- The runtime, as far as the guard stands in for it or the test needs it --- */

typedef struct FakeAttributes {
    int type; /* 0: not registered, 1: host */
    int device;
    void *device_address;
    void *host_address;
} FakeAttributes;

int cudaPointerGetAttributes(FakeAttributes *ret, const void *address);
int cudaMemcpyAsync(void *target, const void *source, size_t size, int kind, void *stream);
int cudaMemcpyAsync_ptsz(void *target, const void *source, size_t size, int kind, void *stream);
int cudaMemcpy2DAsync(void *target, size_t target_pitch, const void *source, size_t source_pitch,
                      size_t width, size_t height, int kind, void *stream);
int cudaMemcpyBatchAsync(void **targets, void **sources, const size_t *sizes, size_t n, void *attributes,
                         void *indices, size_t n_attributes, void *stream);

/* --- The driver, as far as the guard calls it --- */

int cuCtxGetCurrent(void **ret);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **ret);
int cuMemHostRegister_v2(void *address, size_t size, unsigned flags);
int cuMemHostUnregister(void *address);
int cuEventCreate(void **ret, unsigned flags);
int cuEventRecord(void *event, void *stream);
int cuEventQuery(void *event);
int cuStreamGetCtx(void *stream, void **ret);
int cuStreamIsCapturing(void *stream, int *ret);
int cuStreamSynchronize(void *stream);
int cuStreamGetId(void *stream, unsigned long long *ret);
int cuThreadExchangeStreamCaptureMode(int *mode);

/* --- The driver's side of the test --- */

void *fake_stream_make(void);
void fake_device(int number); /* of two, for this thread */
void fake_stream_wait(void *stream);
void fake_stream_destroy(void *stream); /* its copies go on, and its address is used again */
void fake_capture(void *stream, bool on);
void fake_stand(bool stands);      /* no stream does anything */
void fake_delay(unsigned msec);    /* before each copy */
void fake_fail_copies(int error);  /* 0: no more */
void fake_fail_queries(int error); /* 0: no more; once set it stays, like an error of CUDA that sticks */
void fake_fail_register(int error);
void fake_context(bool exists);
size_t fake_registered(void); /* ranges */
size_t fake_registrations(void);
size_t
fake_offences(void); /* calls in a forked child, in a capture, of unmapped memory, from within itself */

/* What no version of CUDA has. */
int cudaMemcpyOnceMoreAsync(void *target, const void *source, size_t size, void *stream);
