/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings: a history in an SQLite file that any SQLite tool opens. docs/recording.md has the schema.
 *
 * Whatever happens to the writer, what it wrote up to a second before is in the file: each moment is one
 * transaction, in WAL mode. Only the owner may read the file (0600). Old samples are thinned while it is
 * written, so that a week stays small.
 *
 * A writer that cannot continue (the disk is full, the file was removed) says so once, and then does nothing:
 * the training matters more than its recording.
 */
#pragma once

#include "history.h"

typedef struct Recording Recording;

/* The version of SQLite. */
const char *recording_library(void);

/*
 * Creates the file. An existing recording becomes FILE.old; any other existing file is -EEXIST, and stays; so
 * does a recording that another process has open (-EBUSY), or if FILE.old is not a recording (-ENOTEMPTY).
 * The head comes from the history (command, pid, began, interval, place). Errors are negative errno;
 * -EOPNOTSUPP: the file system cannot share memory between processes.
 */
int recording_create(const char *path, const History *head, Recording **ret);

/* The job's first process, which did not exist when the file was created; of several attempts, that of the
 * last one. It is written with the next moment. */
void recording_set_pid(Recording *recording, int pid);

/* Where in a distributed job it is; of an outer job, known only when a trainer is seen. It is written with
 * the next moment. */
void recording_set_place(Recording *recording, const JobPlace *place);

/* The limit of open files of the trainer, which may become known later. It is written with the next moment.
 */
void recording_set_open_files(Recording *recording, uint64_t limit);
void recording_set_python(Recording *recording, unsigned minor);

/*
 * After an error it only returns that error again. While another program writes into the file (a mark whose
 * transaction was not ended), moments wait in memory; a call never blocks longer than a tenth of a second.
 */
int recording_add(Recording *recording, const Moment *moment);

/* What the search for the line that leaks has found. -EBUSY: another program writes into the file; try again
 * later. Other errors are as in recording_add. */
int recording_add_sites(Recording *recording, const SiteWindow *window);

/* Writes waiting moments, after the last one was added. What cannot be written within a few seconds is lost.
 */
int recording_flush(Recording *recording);

/* Moments that are missing in the file because another program wrote into it for too long. */
uint64_t recording_lost(const Recording *recording);

/* NULL is fine. Leaves one file, without -wal and -shm beside it, unless another program reads it or there is
 * no room: then they stay, and are part of the recording. */
void recording_close(Recording *recording);

/* Undoes recording_create: FILE.old is FILE again. */
void recording_discard(Recording *recording);

/* Whether the file is one, by its first bytes. Negative errno if it cannot be read. */
int recording_is(const char *path);

/*
 * Reads all of it, even while it is being written, and after its writer was killed. -EBADMSG: it is not a
 * recording, or is damaged; -EPROTO: a later version made it; -EROFS: its writer was killed, and SQLite may
 * not write the files beside it that it then needs.
 */
int recording_read(const char *path, History *ret);
