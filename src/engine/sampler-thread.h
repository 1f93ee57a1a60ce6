/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples the machine in a thread of its own: a process whose memory the kernel has locked (a huge one that
 * is dying, or one that waits for a disk during a page fault) delays a sample and nothing else.
 *
 * The two take turns: sampler_thread_ask hands the sampler to the thread, and when sampler_thread_fd is
 * readable, sampler_thread_take hands it back with what was seen. In between it is the thread's alone.
 */
#pragma once

#include "other-supervisors.h"
#include "proc-environ.h"
#include "sampler.h"

typedef struct SamplerThread SamplerThread;

/* A trainer, or the supervisor of a guarded run: what does not change while it runs. */
typedef struct JobFacts {
    int pid;
    uint64_t start_ticks;
    LauncherNames names;
    uint64_t open_files_soft; /* which its workers inherit; U64_UNKNOWN */
    bool there;               /* in this sample */
} JobFacts;

typedef struct SampleResult {
    Moment moment; /* with the guard's figures; valid until the next sampler_thread_ask */
    Survey survey; /* with the segments, if `surveyed`: the caller frees it */
    bool surveyed; /* there is a new survey */
    double survey_seconds;
    unsigned guards;        /* guarded runs that were found */
    const GuardedRun *runs; /* these runs, the totals and the facts are valid as long as the moment */
    const GuardTotals *totals;
    const JobFacts *facts;
    size_t n_facts;
    int guard_pid;      /* the supervisor whose budget is in the moment; 0: none */
    uint64_t own_bytes; /* resident, of this process */
} SampleResult;

/* pid: only this process and all below it; 0: all training on the machine. -ESRCH: the process does not
 * exist; -ENOENT: /proc is not mounted. */
int sampler_thread_open(int pid, double interval, SamplerThread **ret);

/* NULL is fine. A sample that hangs is not waited for: what it uses is kept until the program ends. */
void sampler_thread_close(SamplerThread *thread);

void sampler_thread_ask(SamplerThread *thread);

/* When it was asked, as now_seconds has it; negative: it has answered. */
double sampler_thread_asked(const SamplerThread *thread);
int sampler_thread_fd(const SamplerThread *thread);

/* Waits for the answer if necessary. As sampler_look: 0, -ESRCH, -ENOMEM. */
int sampler_thread_take(SamplerThread *thread, SampleResult *ret);
