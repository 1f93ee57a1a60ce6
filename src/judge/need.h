/*
 * How much shared memory do the jobs that we see need? Estimated from one look: the segments that a job holds
 * now tell the size of a batch, its workers tell how many batches may be in flight. Pure.
 */
#pragma once

#include "survey.h"

enum { PREFETCH_DEFAULT = 2, HELD_DEFAULT = 1 };
#define NEED_MARGIN 1.3

typedef struct JobNeed {
    int trainer;
    uint32_t workers;
    uint64_t held_bytes;  /* measured: allocated bytes of the segments that the job holds now */
    uint64_t batch_bytes; /* estimated: each size of segment seen counts once */
    uint64_t
        need_bytes; /* estimated: the larger of held_bytes and batch_bytes x (workers x prefetch + held) */
} JobNeed;

void job_need(const Survey *survey, int trainer, JobNeed *ret);

/* All jobs together, with the margin, rounded up to a figure that people use (512 MiB, then whole GiB). 0
 * without jobs. */
uint64_t jobs_recommended_bytes(const Survey *survey);
uint64_t shm_round_up(uint64_t bytes);
