/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line at the bottom of a terminal while a job runs: how fast batches come, how much shared memory they
 * take, who waits. It is drawn over itself once a second, and erased before anything else is printed.
 *
 * The terminal is the command's, too. The line keeps out of its way: it is not drawn while the command writes
 * there, nor when the job does not have the terminal (it was stopped, or put into the background), and a
 * terminal that takes nothing (Ctrl-S) never makes us wait: whoever draws also serves the job.
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
    uint32_t waiting;      /* workers that wait for room */
} ProgressFigures;

/*
 * Appends the line, shorter than `columns` so that it never wraps; parts that do not fit are left out, the
 * rates first. Nothing while there is nothing to tell: no tensor was served yet. Rates are of the time
 * between `last` and `now`; counters that were set back in between count from zero. 0 or -ENOMEM.
 */
int progress_format(const ProgressFigures *now, const ProgressFigures *last, unsigned columns, Buffer *out);

typedef struct Progress {
    int fd; /* negative: no progress is shown */
    bool drawn;
    ProgressFigures last;
    Buffer line;
} Progress;

#define PROGRESS_NONE ((Progress){.fd = -EBADF})

/* Shows nothing when `quiet`, when `terminal` is none or cannot move its cursor, and when `output`, where the
 * command's output goes, is a pipe: whoever reads it (a pager, tee) has the terminal with us. */
Progress progress_open(const Terminal *terminal, int output, bool quiet);
void progress_close(Progress *progress);
#define _cleanup_progress_ _cleanup_(progress_close)

/*
 * Once a second. `job` is the process group that has the terminal while the command runs in the foreground.
 * `wrote`: the command has written to the terminal within the last second, or left a line unfinished there.
 */
void progress_draw(Progress *progress, const ProgressFigures *now, pid_t job, bool wrote);

/* The same with a line of the caller's own, without newline, while the command's output goes elsewhere; cut
 * to fit. */
void progress_say(Progress *progress, const char *text, pid_t job);

/* Its st_rdev; 0 without progress. */
uint64_t progress_terminal(const Progress *progress);

/* Before anything is printed, and at the end. What the command wrote over the line is left alone. */
void progress_erase(Progress *progress, bool wrote);
