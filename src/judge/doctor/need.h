/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much shared memory do the visible jobs need? Estimated from one survey: the segments that a job holds
 * now show the size of a batch, and its workers show how many batches may be in flight. Pure.
 *
 * A batch is made by one worker: PyTorch names each segment after the process that made it, so segments made
 * by the trainer (a model or a dataset in shared memory) are known not to be batches. Among the segments of
 * one worker each size counts once, because the same size again is the next batch. Sizes that occur only once
 * in the whole job and are similar (less than a factor of two apart) are taken for one tensor whose length
 * varies from batch to batch: the largest counts. The worker with the largest sum decides.
 */
#pragma once

#include "survey.h"

enum { PREFETCH_DEFAULT = 2, HELD_DEFAULT = 1 };
#define NEED_MARGIN 1.3

typedef struct JobNeed {
    int trainer;
    uint32_t workers;
    uint64_t held_bytes;  /* measured: allocated bytes of the segments that the job holds or has in a queue */
    uint64_t mount_bytes; /* measured: of these, what lies on our /dev/shm */
    uint64_t shared_bytes; /* measured: of held_bytes, what a job with a smaller pid holds too */
    uint64_t
        other_bytes; /* measured: of held_bytes, what is not a batch (NCCL, semaphores, a shared model) */
    uint64_t batch_bytes;      /* estimated; 0 when no batch was seen */
    uint64_t need_bytes;       /* estimated: the larger of held_bytes and
                                  other_bytes + batch_bytes x (workers x prefetch + held) */
    uint64_t mount_need_bytes; /* estimated: need_bytes, or mount_bytes when guarded or elsewhere */
    bool guarded;              /* its segments are the guard's memfds: the size of /dev/shm does not matter */
    bool elsewhere;            /* its batches lie on a /dev/shm that is not ours (another container's) */
} JobNeed;

void job_need(const Survey *survey, int trainer, JobNeed *ret);

/* How many batches of a job may be in memory at once. */
uint64_t batches_in_flight(uint64_t workers);

/* A need plus the margin: what must fit. */
uint64_t need_with_margin(uint64_t bytes, double margin);

/* Rounds up to a usual size: 512 MiB, then whole GiB. */
uint64_t shm_round_up(uint64_t bytes);

/* The size of /dev/shm for a need: the need plus the margin, at least 256 MiB more than the need because
 * other users of /dev/shm need room however small the job is, and at least least_bytes; rounded up. A margin
 * of 1 means no margin. */
uint64_t shm_recommend(uint64_t bytes, uint64_t least_bytes, double margin);

/* Arithmetic that does not wrap around: it saturates at the largest value that is not U64_UNKNOWN. */
uint64_t bytes_add(uint64_t a, uint64_t b);
uint64_t bytes_scale(uint64_t bytes, double factor);
