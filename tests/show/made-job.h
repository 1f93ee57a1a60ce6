/* SPDX-License-Identifier: Apache-2.0 */
/* A made training, moment by moment: a trainer whose descriptors grow, workers that grow and end with each
 * epoch, one with a hostile name, a kill for want of memory. Always the same. */
#pragma once

#include "history.h"

#define MADE_COMMAND "python train.py --data /data/images --epochs 6 </script><script>alert(1)</script>"
#define MADE_HOSTILE                                                                                         \
    "pt_data_worker </script><script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31m\xff"
#define MADE_BEGAN 1772359200.0

enum { MADE_EPOCHS = 6, MADE_TRAINER = 4100 };

typedef struct MadeJob {
    double seconds;
    double interval;
    unsigned workers; /* at most 64 */
} MadeJob;

/* Gives each moment to `take` until it answers with a negative number, which is then returned. */
int made_job_play(const MadeJob *job, int (*take)(void *context, const Moment *moment), void *context);
