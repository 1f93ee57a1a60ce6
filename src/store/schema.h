/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: the tables of a recording, and the meaning of SQLite's errors. */
#pragma once

#include <sqlite3.h>

#include "buffer.h"

/* "shmg", in the header of the file. */
#define RECORDING_APPLICATION 0x73686D67

/* The version of the schema. It is raised if a reader of the previous version would misunderstand the file.
 */
enum { RECORDING_VERSION = 1 };

/* Bytes of one text: a command line may have megabytes. */
enum { TEXT_MOST = 1 << 16 };

typedef enum RecordingTable {
    TABLE_META,
    TABLE_PROCESS,
    TABLE_MOMENT,
    TABLE_SAMPLE,
    TABLE_EVENT,
    TABLE_MARK,        /* the user's own; older recordings have neither it nor those below */
    TABLE_SITE_WINDOW, /* of the search for the line that leaks */
    TABLE_SITE,        /* what was found in it */
    RECORDING_TABLES,
} RecordingTable;

const char *table_name(RecordingTable table);

/* Appends the CREATE TABLE, letter for letter as the file has it. -ENOMEM. */
int table_schema(RecordingTable table, Buffer *out);

/* Appends the names of all figures of a process or of a moment, with a comma before each. -ENOMEM. */
int columns_append(RecordingTable table, Buffer *out);

/* Appends ",?" n times. -ENOMEM. */
int marks_append(size_t n, Buffer *out);

/* The negative errno for SQLite's answer; 0 also for a row and for the last one. */
int sqlite_errno(sqlite3 *db, int answer);

int sqlite_run(sqlite3 *db, const char *sql);
int sqlite_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret);

/* Runs a statement that returns no rows, and resets it for the next time. */
int statement_run(sqlite3_stmt *statement);

void statement_finish(sqlite3_stmt **statement);
#define _cleanup_statement_ _cleanup_(statement_finish)

/* U64_UNKNOWN becomes NULL, and so do numbers that SQLite cannot hold. */
void bind_figure(sqlite3_stmt *statement, int place, uint64_t value);

/* False: it is not a figure. */
bool column_figure(sqlite3_stmt *statement, int place, uint64_t *ret);
