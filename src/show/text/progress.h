/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line at the bottom of a terminal while a job runs: how fast batches come, how much shared memory they
 * take, how many workers wait. It is redrawn in place once a second, and erased before anything else is
 * printed.
 *
 * The command uses the terminal, too, and the line keeps out of its way: it is not drawn while the command
 * writes there, nor when the job does not have the terminal (it was stopped, or put into the background). A
 * terminal that accepts nothing (Ctrl-S) never makes us wait, because the thread that draws also serves the
 * job.
 */
#pragma once

#include <sys/types.h>

#include "terminal.h"

typedef struct ProgressFigures {
    double seconds;        /* since the command was started */
    uint64_t tensors;      /* that the guard has served so far */
    uint64_t batches;      /* that workers have sent; 0: the number is not known, and tensors are shown */
    uint64_t bytes_backed; /* their bytes */
    uint64_t bytes_now;    /* of shared memory; U64_UNKNOWN */
    uint64_t budget_bytes; /* U64_UNKNOWN: none */
    uint32_t waiting;      /* workers that wait for memory */
    uint64_t freezing; /* objects made immortal by a process that has been doing that for a second; 0: none */
} ProgressFigures;

/*
 * Appends the line, shorter than `columns` so that it never wraps; parts that do not fit are left out, the
 * rates first. Appends nothing before the first tensor was served, unless a dataset is being frozen. Rates
 * are those between `last` and `now`; a counter that was reset in between counts from zero. 0 or -ENOMEM.
 */
int progress_format(const ProgressFigures *now, const ProgressFigures *last, unsigned columns, Buffer *out);

typedef struct Progress {
    int fd; /* negative: no progress is shown */
    bool drawn;
    ProgressFigures last;
    Buffer line;
} Progress;

#define PROGRESS_NONE ((Progress){.fd = -EBADF})

/* Shows nothing when `quiet`, when `terminal` is not a terminal or cannot move its cursor, and when `output`,
 * where the command's output goes, is a pipe: its reader (a pager, tee) shares the terminal with us. */
Progress progress_open(const Terminal *terminal, int output, bool quiet);
void progress_close(Progress *progress);
#define _cleanup_progress_ _cleanup_(progress_close)

/*
 * Once a second. `job` is the process group that has the terminal while the command runs in the foreground.
 * `wrote`: the command has written to the terminal within the last second, or left a line unfinished there.
 */
void progress_draw(Progress *progress, const ProgressFigures *now, pid_t job, bool wrote);

/* Draws a line of the caller's own, without newline and truncated to fit. For commands whose output does not
 * go to the terminal. */
void progress_say(Progress *progress, const char *text, pid_t job);

/* The st_rdev of the terminal; 0 when no progress is shown. */
uint64_t progress_terminal(const Progress *progress);

/* Call before anything else is printed, and at the end. What the command wrote over the line stays. */
void progress_erase(Progress *progress, bool wrote);
