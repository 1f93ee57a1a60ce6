/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old samples are thinned while a recording is written. Kept are, by age in moments:
 *
 *   - the newest 3,600: all;
 *
 *   - up to 36,000: two of every 20;
 *
 *   - up to 172,800: two of every 120;
 *
 *   - beyond: two of every 1,200.
 *
 * The two are real moments with all of their processes: the one in which the job's memory was lowest and the
 * one in which it was highest, so that no peak is lost or invented. A figure that is read in turns and is
 * missing in both is taken from the nearest moment of the same group.
 *
 * Each moment thins at most one group, which bounds both the work and the size of the file.
 */
#pragma once

#include "schema.h"

enum { THIN_LEVELS = 3 };

typedef struct Thin {
    sqlite3 *db;
    sqlite3_int64 next[THIN_LEVELS]; /* the first moment of the next group */
    sqlite3_stmt *weights;
    sqlite3_stmt *turns;
    sqlite3_stmt *turns_set;
    sqlite3_stmt *job_turns;
    sqlite3_stmt *job_turns_set;
    sqlite3_stmt *delete_samples;
    sqlite3_stmt *delete_moments;
    sqlite3_stmt *delete_processes;
    struct Carried *carried;
    size_t n_carried;
    size_t carried_capacity;
} Thin;

/* In a new recording. */
int thin_open(sqlite3 *db, Thin *ret);
void thin_close(Thin *thin);

/* Within a transaction, after the newest moment was added. */
int thin_step(Thin *thin, sqlite3_int64 newest);
