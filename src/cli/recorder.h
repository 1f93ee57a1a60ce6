/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at a job and records what it sees, in a thread of its own: a disk that is slow, full or gone, and a
 * process that hangs in the kernel, keep nobody waiting but the recording.
 *
 * The order is recorder_open, then for each attempt recorder_begin and recorder_end, and recorder_close.
 */
#pragma once

#include "figures.h"
#include "moment-relay.h"
#include "recording.h"

typedef struct Recorder Recorder;

typedef struct RecorderStatus {
    uint64_t moments;
    uint64_t processes; /* that were met */
    uint64_t lost;      /* moments, because somebody else wrote into the file for too long */
    int error;          /* what stopped the recording; 0: nothing */
    bool over;          /* the job has ended, or the recording has */
} RecorderStatus;

/* Makes the file, as recording_create. `command` is the job's; what is started after this finds the file's
 * name in SHMGUARD_RECORDING. */
int recorder_open(const char *path, const char *command, double interval, Recorder **ret);

/* What recorder_open's error means to people, with its exit code; name: of the command or option. */
int recorder_complain(const char *name, const char *path, int error);

/* The job is there, as process pid. attempt: what to say of it in the recording; NULL: nothing. Negative
 * errno: nothing is recorded of it. */
int recorder_begin(Recorder *recorder, int pid, const char *attempt);

/* What the guard did so far, for the next look. */
void recorder_guard(Recorder *recorder, const GuardFigures *figures);

/* What each look sees, for the supervisor of the same job; valid until recorder_close. */
MomentRelay *recorder_relay(const Recorder *recorder);

RecorderStatus recorder_status(Recorder *recorder);

/* Becomes readable when the status is `over`. */
int recorder_fd(const Recorder *recorder);

/* A last look, unless it is over. What hangs is not waited for longer than a few seconds. */
void recorder_end(Recorder *recorder);

/* Closes the file. With `discard` it is as if it had not been opened: the job could not be started. NULL is
 * fine. */
void recorder_close(Recorder *recorder, bool discard);

/* One line: how much is where, and what to do with it. After the last recorder_end, before recorder_close. */
void recorder_say(Recorder *recorder);

/* Says once that the recording has stopped, when it has. True: it did so now. */
bool recorder_say_stopped(Recorder *recorder);
