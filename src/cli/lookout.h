/*
 * Looks at the machine in a thread of its own: a process whose memory the kernel has locked (a giant that
 * dies, one that waits for a disk in the middle of a page fault) makes a look late, and nobody wait.
 *
 * The two take turns: lookout_ask hands the sampler to the thread, and when lookout_fd is readable,
 * lookout_take hands it back with what was seen. In between it is the thread's alone.
 */
#pragma once

#include "sampler.h"

typedef struct Lookout Lookout;

typedef struct Sight {
    Moment moment; /* with the guard's figures; valid until the next lookout_ask */
    Survey survey; /* its segments, when they were looked at: the caller frees it */
    bool surveyed; /* there is one, newer than the one before */
    double survey_seconds;
    unsigned guards;    /* that were found */
    int guard_pid;      /* whose budget it is; 0: none's */
    uint64_t own_bytes; /* resident, of this process */
} Sight;

/* pid: only this process and all below it; 0: all training on the machine. -ESRCH: there is no such process;
 * -ENOENT: there is no /proc. */
int lookout_open(int pid, double interval, Lookout **ret);

/* NULL is fine. A look that hangs is not waited for: what it uses stays until the program ends. */
void lookout_close(Lookout *lookout);

void lookout_ask(Lookout *lookout);

/* When it was asked, of now_seconds, and has not answered yet; negative: it has. */
double lookout_asked(const Lookout *lookout);
int lookout_fd(const Lookout *lookout);

/* Waits for the answer where it is not there yet. As sampler_look: 0, -ESRCH, -ENOMEM. */
int lookout_take(Lookout *lookout, Sight *ret);
