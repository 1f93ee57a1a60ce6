/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the machine in a thread of its own: a process whose memory the kernel has locked (a giant that
 * dies, one that waits for a disk in the middle of a page fault) makes a look late, and nobody wait.
 *
 * The two take turns: sampler_thread_ask hands the sampler to the thread, and when sampler_thread_fd is
 * readable, sampler_thread_take hands it back with what was seen. In between it is the thread's alone.
 */
#pragma once

#include "sampler.h"

typedef struct SamplerThread SamplerThread;

typedef struct SampleResult {
    Moment moment; /* with the guard's figures; valid until the next sampler_thread_ask */
    Survey survey; /* its segments, when they were looked at: the caller frees it */
    bool surveyed; /* there is one, newer than the one before */
    double survey_seconds;
    unsigned guards;    /* that were found */
    int guard_pid;      /* whose budget it is; 0: none's */
    uint64_t own_bytes; /* resident, of this process */
} SampleResult;

/* pid: only this process and all below it; 0: all training on the machine. -ESRCH: there is no such process;
 * -ENOENT: there is no /proc. */
int sampler_thread_open(int pid, double interval, SamplerThread **ret);

/* NULL is fine. A look that hangs is not waited for: what it uses stays until the program ends. */
void sampler_thread_close(SamplerThread *thread);

void sampler_thread_ask(SamplerThread *thread);

/* When it was asked, of now_seconds, and has not answered yet; negative: it has. */
double sampler_thread_asked(const SamplerThread *thread);
int sampler_thread_fd(const SamplerThread *thread);

/* Waits for the answer where it is not there yet. As sampler_look: 0, -ESRCH, -ENOMEM. */
int sampler_thread_take(SamplerThread *thread, SampleResult *ret);
