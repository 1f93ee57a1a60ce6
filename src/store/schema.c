/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "history.h"
#include "schema.h"

/* The figures come between the two halves, each in a column without a type: INTEGER or NULL. */
static const struct {
    const char *name;
    const char *before;
    const char *after;
} tables[RECORDING_TABLES] = {
    [TABLE_META] = {"meta", "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID", ""},
    [TABLE_PROCESS] = {"process",
                       "CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER, start_ticks INTEGER, "
                       "ppid INTEGER, job INTEGER, role TEXT, start_method TEXT, comm TEXT, command TEXT, "
                       "started REAL, first REAL, ended REAL, first_moment INTEGER, last_moment INTEGER, "
                       "rank INTEGER, attempt INTEGER)",
                       ""},
    [TABLE_MOMENT] = {"moment", "CREATE TABLE moment(id INTEGER PRIMARY KEY, seconds REAL", ")"},
    [TABLE_SAMPLE] = {"sample", "CREATE TABLE sample(moment INTEGER, process INTEGER",
                      ", PRIMARY KEY(moment, process)) WITHOUT ROWID"},
    [TABLE_EVENT] = {"event",
                     "CREATE TABLE event(id INTEGER PRIMARY KEY, seconds REAL, kind TEXT, pid INTEGER, "
                     "role TEXT, text TEXT)",
                     ""},
    /* Every version of SQLite has this clock. */
    [TABLE_MARK] = {"mark",
                    "CREATE TABLE mark(id INTEGER PRIMARY KEY, time REAL DEFAULT ((julianday('now') - "
                    "2440587.5) * 86400.0), text TEXT)",
                    ""},
    [TABLE_SITE_WINDOW] = {"site_window",
                           "CREATE TABLE site_window(id INTEGER PRIMARY KEY, seconds REAL, duration REAL, "
                           "pid INTEGER, worker INTEGER, stage INTEGER, deep INTEGER, growth INTEGER, "
                           "late_growth INTEGER, descriptors INTEGER, cost REAL)",
                           ""},
    [TABLE_SITE] = {"site",
                    "CREATE TABLE site(id INTEGER PRIMARY KEY, site_window INTEGER, kind TEXT, file TEXT, "
                    "line INTEGER, what TEXT, bytes INTEGER, late_bytes INTEGER, count INTEGER)",
                    ""},
};

const char *table_name(RecordingTable table)
{
    return tables[table].name;
}

int columns_append(RecordingTable table, Buffer *out)
{
    int r = 0;
    if (table == TABLE_SAMPLE)
        for (unsigned i = 0; r >= 0 && i < PROCESS_METRICS; i++)
            r = buffer_printf(out, ", %s", process_metric_name(i));
    if (table == TABLE_MOMENT)
        for (unsigned i = 0; r >= 0 && i < JOB_METRICS; i++)
            r = buffer_printf(out, ", %s", job_metric_name(i));
    return r;
}

int marks_append(size_t n, Buffer *out)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = buffer_append_text(out, ",?");
    return r;
}

int table_schema(RecordingTable table, Buffer *out)
{
    int r = buffer_append_text(out, tables[table].before);
    if (r >= 0)
        r = columns_append(table, out);
    return r < 0 ? r : buffer_append_text(out, tables[table].after);
}

int sqlite_errno(sqlite3 *db, int answer)
{
    int system = db ? sqlite3_system_errno(db) : 0;
    switch (answer & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_ERROR: /* no such table or column: the SQL itself is tested */
    case SQLITE_SCHEMA:
        return -EBADMSG;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return -EACCES;
    case SQLITE_CANTOPEN:
        return system > 0 ? -system : -EACCES;
    default:
        return system > 0 ? -system : -EIO;
    }
}

int sqlite_run(sqlite3 *db, const char *sql)
{
    return sqlite_errno(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int sqlite_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
    return sqlite_errno(db, sqlite3_prepare_v2(db, sql, -1, ret, NULL));
}

int statement_run(sqlite3_stmt *statement)
{
    int answer = sqlite3_step(statement);
    int r = sqlite_errno(sqlite3_db_handle(statement), answer);
    (void)sqlite3_reset(statement);
    return r;
}

void statement_finish(sqlite3_stmt **statement)
{
    (void)sqlite3_finalize(TAKE_PTR(*statement));
}

void bind_figure(sqlite3_stmt *statement, int place, uint64_t value)
{
    if (value > INT64_MAX)
        (void)sqlite3_bind_null(statement, place);
    else
        (void)sqlite3_bind_int64(statement, place, (sqlite3_int64)value);
}

bool column_figure(sqlite3_stmt *statement, int place, uint64_t *ret)
{
    int type = sqlite3_column_type(statement, place);
    sqlite3_int64 value = type == SQLITE_INTEGER ? sqlite3_column_int64(statement, place) : 0;
    if ((type != SQLITE_INTEGER && type != SQLITE_NULL) || value < 0)
        return false;
    *ret = type == SQLITE_NULL ? U64_UNKNOWN : (uint64_t)value;
    return true;
}
