/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings: a history in an SQLite file that any SQLite tool opens. docs/recording.md has the schema.
 *
 * Whatever happens to the writer, what it wrote up to a second before is in the file: each moment is one
 * transaction, in WAL mode. The file is its owner's alone (0600). Old samples are thinned while it is
 * written, so that a week stays small.
 *
 * A writer that cannot go on (the disk is full, the file was taken away) says so once, and then does nothing:
 * the training matters more than its recording.
 */
#pragma once

#include "history.h"

typedef struct Recording Recording;

/*
 * Makes the file; a recording that is there becomes FILE.old, anything else there is -EEXIST and stays, as
 * does one that somebody has open (-EBUSY), or when FILE.old is no recording (-ENOTEMPTY). Of the history its
 * head is taken (command, pid, began, interval). Errors are negative errno; -EOPNOTSUPP: the file system
 * cannot share memory between processes.
 */
int recording_create(const char *path, const History *head, Recording **ret);

/* The job's first process, which was not there when the file was made; of several attempts the last one's.
 * Goes into the file with the next moment. */
void recording_set_pid(Recording *recording, int pid);

/*
 * After an error it does nothing but say it again. While somebody else writes into the file (a mark whose
 * transaction was not ended), moments wait in memory, and nobody waits for them for longer than a tenth of a
 * second.
 */
int recording_add(Recording *recording, const Moment *moment);

/* Writes those that wait, after the last of them. What cannot be written for a few seconds is lost. */
int recording_flush(Recording *recording);

/* Moments that are not in the file because somebody else wrote into it for too long. */
uint64_t recording_lost(const Recording *recording);

/* NULL is fine. Leaves one file, without -wal and -shm beside it, unless somebody reads it or there is no
 * room: then they stay, and belong to it. */
void recording_close(Recording *recording);

/* As if it had never been created: what became FILE.old is FILE again. */
void recording_discard(Recording *recording);

/*
 * Reads all of it, also while it is being written, and after a writer that was killed. -EBADMSG: it is no
 * recording, or a broken one; -EPROTO: it was made by a later version; -EROFS: its writer was killed, and
 * nothing can be written beside it, as SQLite needs it then.
 */
int recording_read(const char *path, History *ret);
