/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old samples are thinned while a recording is written. In moments, which are seconds when it looks once a
 * second:
 *
 *   - the newest 3,600 are all there;
 *
 *   - up to 36,000 there are two of each 20;
 *
 *   - up to 172,800 two of each 120;
 *
 *   - beyond two of each 1,200.
 *
 * The two are true moments of their time, whole, with all of their processes: the one when the job's memory
 * was the lowest and the one when it was the highest, so that no peak is lost and none is made up. What is
 * looked at in turns and was not in them is taken from the nearest moment of the same group.
 *
 * Each moment thins one group at most: the work is bounded, and the file, too.
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
