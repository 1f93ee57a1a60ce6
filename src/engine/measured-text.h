/* SPDX-License-Identifier: Apache-2.0 */
/* Notes about measured figures, for people. */
#pragma once

/* Sizes of a trainer and of a worker, numbers of trainers and of workers of each, and a size. */
#define MEASURED_OWN                                                                                         \
    "Apart from shared memory, a trainer used at most %s and a worker %s (measured). For the whole job "     \
    "(trainers: %llu, workers per trainer: %llu) that is up to %s of RAM (scaled; pages that processes "     \
    "share are counted in each)."
/* prefetch_factor, and a number of batches. */
#define MEASURED_GUARDED                                                                                     \
    "Measured under the guard, whose pools keep segments for the next batch. Scaled to what /dev/shm "       \
    "would hold without it, with prefetch_factor=%llu and batches kept by the trainer: %llu."
#define MEASURED_NOW                                                                                         \
    "The job holds this much now; the need is estimated from the size of its batches and the number of "     \
    "its workers."
#define MEASURED_WORKERS_ONE  "Measured with %llu worker, scaled to %llu."
#define MEASURED_WORKERS_MANY "Measured with %llu workers, scaled to %llu."
#define MEASURED_BATCH        "Measured with a batch size of %llu, scaled to %llu."
#define MEASURED_CODE                                                                                        \
    "The command ended by itself with exit code %d; what it would have used later is unknown."
