/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples a job and writes what it sees into a recording, in a thread of its own: a disk that is slow, full
 * or gone, and a process that hangs in the kernel, delay the recording and nothing else.
 *
 * The order is recorder_open, then recorder_begin and recorder_end for each attempt, then perhaps
 * recorder_save, and recorder_close.
 */
#pragma once

#include "figures.h"
#include "moment-relay.h"
#include "recording.h"

typedef struct Recorder Recorder;

typedef struct RecorderStatus {
    uint64_t samples;
    uint64_t processes; /* that were seen */
    uint64_t lost;      /* samples, because another program kept the file locked for too long */
    int error;          /* negative errno of what stopped the recording; 0: nothing did */
    bool over;          /* the job has ended, or the recording has */
} RecorderStatus;

/* Creates the file, as recording_create. `command` is the job's. Processes that are started after this find
 * the path of the file in SHMGUARD_RECORDING. */
int recorder_open(const char *path, const char *command, double interval, Recorder **ret);

/* The job runs, as process pid. attempt: its description in the recording; NULL: none. Negative errno:
 * nothing of it is recorded. */
int recorder_begin(Recorder *recorder, int pid, const char *attempt);

/* What the guard has done so far, for the next sample. */
void recorder_guard(Recorder *recorder, const GuardFigures *figures);

/* What the search for the line that leaks has found; its time is CLOCK_MONOTONIC. */
void recorder_sites(Recorder *recorder, const SiteWindow *window);

/* What each sample has seen, for the supervisor of the same job; valid until recorder_close. */
MomentRelay *recorder_relay(const Recorder *recorder);

RecorderStatus recorder_status(Recorder *recorder);

/* The error that stopped the recording, the first time that it is asked for; afterwards 0. */
int recorder_take_error(Recorder *recorder);

/* Becomes readable when the status is `over`. */
int recorder_fd(const Recorder *recorder);

/* Takes a last sample, unless the job is over. A sample that hangs is given up after a few seconds. */
void recorder_end(Recorder *recorder);

/*
 * After the last recorder_end: completes the file, so that its size is final. -ETIMEDOUT: the disk does not
 * answer, and the end of the recording may be missing. -EIO: it was given up before, with an error that
 * recorder_take_error returns.
 */
int recorder_save(Recorder *recorder);

/* Closes the file. With `discard`, the directory is left as it was before recorder_open: the job could not be
 * started. NULL is fine. */
void recorder_close(Recorder *recorder, bool discard);
