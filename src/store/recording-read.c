/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording.h"
#include "schema.h"

/*
 * A recording may come from anywhere. SQLite executes what a file's schema says (views, computed columns), so
 * its tables must match ours letter for letter, and their content is used only as far as it makes sense.
 */
enum { PROCESSES_MOST = 1 << 20, MARKS_MOST = 1 << 17, WINDOWS_MOST = 1 << 14 }; /* rows */

/* Sums of them fit in an int64_t. */
#define SIGNED_MOST (INT64_C(1) << 48)

/* How far marks may lie outside the moments: up to an interval passes before the first one, and clocks are
 * adjusted slightly. */
#define MARK_SLACK 60.0

/* 30,000 years, so that no computation with times can overflow. */
#define SECONDS_MOST 1e12

typedef struct ProcessRow {
    sqlite3_int64 id;
    ProcessMoment process; /* its command lives in the reader's arena */
    double first;
    double ended;            /* INFINITY: it was there at the end */
    struct ProcessRow *same; /* the first row of the same process */
    double seconds;          /* of the last moment that contains it; -INFINITY: none */
} ProcessRow;

typedef struct Reader {
    sqlite3 *db;
    Arena arena;
    ProcessRow *rows; /* in rising order of id */
    size_t n_rows;
    size_t rows_capacity;
    ProcessRow **by_pid;      /* in rising order of pid, start and id */
    ProcessMoment *processes; /* of one moment */
    size_t processes_capacity;
    sqlite3_stmt *moments;
    sqlite3_stmt *samples;
    History history;
} Reader;

static void reader_free(Reader *reader)
{
    statement_finish(&reader->moments);
    statement_finish(&reader->samples);
    (void)sqlite3_close(reader->db);
    arena_free(&reader->arena);
    free(reader->processes);
    free(reader->by_pid);
    history_free(&reader->history);
}

static int database_open(Reader *reader, const char *path)
{
    _cleanup_free_ char *name = NULL;
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EBADMSG;
    if (access(path, R_OK) < 0)
        return -errno;
    if (asprintf(&name, "%s%s", path[0] == '/' ? "" : "./", path) < 0) {
        name = NULL;
        return -ENOMEM;
    }
    int answer = sqlite3_open_v2(name, &reader->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    int r = sqlite_errno(reader->db, answer);
    if (r < 0)
        return r;
    (void)sqlite3_busy_timeout(reader->db, 2000);
    (void)sqlite3_limit(reader->db, SQLITE_LIMIT_LENGTH, 1 << 24);
    (void)sqlite3_db_config(reader->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(reader->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return sqlite_run(reader->db, "PRAGMA cell_size_check = 1; BEGIN");
}

static int number_ask(Reader *reader, const char *sql, sqlite3_int64 *ret)
{
    _cleanup_statement_ sqlite3_stmt *statement = NULL;
    int r = sqlite_prepare(reader->db, sql, &statement);
    if (r < 0)
        return r;
    int answer = sqlite3_step(statement);
    if (answer != SQLITE_ROW)
        return answer == SQLITE_DONE ? -EBADMSG : sqlite_errno(reader->db, answer);
    *ret = sqlite3_column_int64(statement, 0);
    return 0;
}

static int schema_check(Reader *reader)
{
    sqlite3_int64 application = 0;
    sqlite3_int64 version = 0;
    int r = number_ask(reader, "PRAGMA application_id", &application);
    if (r >= 0)
        r = number_ask(reader, "PRAGMA user_version", &version);
    if (r < 0)
        return r;
    if (application != RECORDING_APPLICATION || version < 1)
        return -EBADMSG;
    if (version > RECORDING_VERSION)
        return -EPROTO;

    _cleanup_statement_ sqlite3_stmt *statement = NULL;
    _cleanup_buffer_ Buffer expected = {0};
    r = sqlite_prepare(reader->db, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?",
                       &statement);
    for (unsigned i = 0; r >= 0 && i < RECORDING_TABLES; i++) {
        buffer_clear(&expected);
        r = table_schema(i, &expected);
        (void)sqlite3_bind_text(statement, 1, table_name(i), -1, SQLITE_STATIC);
        int answer = sqlite3_step(statement);
        const char *sql = answer == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
        bool may_lack = i >= TABLE_MARK && answer == SQLITE_DONE;
        if (r >= 0 && !may_lack && (!sql || strcmp(sql, buffer_text(&expected)) != 0))
            r = answer == SQLITE_ROW || answer == SQLITE_DONE ? -EBADMSG : sqlite_errno(reader->db, answer);
        (void)sqlite3_reset(statement);
    }
    return r;
}

/* The file exists: what SQLite does not find are the files beside it, which it may not create. */
static int wal_check(int r)
{
    return r == -ENOENT ? -EROFS : r;
}

/* --- Values ------------------------------------------------------------------------------------------- */

static bool column_seconds(sqlite3_stmt *statement, int place, double *ret)
{
    int type = sqlite3_column_type(statement, place);
    double value =
        type == SQLITE_FLOAT || type == SQLITE_INTEGER ? sqlite3_column_double(statement, place) : NAN;
    if (!(fabs(value) <= SECONDS_MOST))
        return false;
    *ret = value;
    return true;
}

static bool column_pid(sqlite3_stmt *statement, int place, int *ret)
{
    uint64_t value = 0;
    if (!column_figure(statement, place, &value) || value > INT32_MAX)
        return false;
    *ret = (int)value;
    return true;
}

/* Text without NULs. */
static bool column_text(sqlite3_stmt *statement, int place, const char **ret)
{
    if (sqlite3_column_type(statement, place) != SQLITE_TEXT)
        return false;
    const char *text = (const char *)sqlite3_column_text(statement, place);
    int n = sqlite3_column_bytes(statement, place);
    if (!text || n > TEXT_MOST || strlen(text) != (size_t)n)
        return false;
    *ret = text;
    return true;
}

static bool column_name(sqlite3_stmt *statement, int place, const char *(*name)(unsigned), unsigned n,
                        unsigned *ret)
{
    const char *text = NULL;
    if (!column_text(statement, place, &text))
        return false;
    for (unsigned i = 0; i < n; i++)
        if (strcmp(name(i), text) == 0) {
            *ret = i;
            return true;
        }
    return false;
}

static const char *role_by(unsigned i)
{
    return role_name(i);
}

static const char *start_by(unsigned i)
{
    return start_method_name(i);
}

static const char *kind_by(unsigned i)
{
    return event_kind_name(i);
}

/* --- Tables ------------------------------------------------------------------------------------------- */

/* NULL is what is not known. */
static bool column_known(sqlite3_stmt *statement, int place, int *ret)
{
    return sqlite3_column_type(statement, place) == SQLITE_NULL || column_pid(statement, place, ret);
}

static bool column_label(sqlite3_stmt *statement, int place, char *ret, size_t size)
{
    const char *text = "";
    if (sqlite3_column_type(statement, place) != SQLITE_NULL && !column_text(statement, place, &text))
        return false;
    snprintf(ret, size, "%s", text);
    return true;
}

/* Older recordings have none of it. */
static bool place_read(sqlite3_stmt *statement, int first, JobPlace *ret)
{
    return column_label(statement, first, ret->job, sizeof ret->job) &&
           column_label(statement, first + 1, ret->node, sizeof ret->node) &&
           column_known(statement, first + 2, &ret->node_number) &&
           column_known(statement, first + 3, &ret->rank) &&
           column_known(statement, first + 4, &ret->ranks) &&
           column_known(statement, first + 5, &ret->attempt);
}

static int meta_read(Reader *reader)
{
    _cleanup_statement_ sqlite3_stmt *statement = NULL;
    int r = sqlite_prepare(reader->db,
                           "SELECT (SELECT value FROM meta WHERE key = 'began'), (SELECT value FROM meta "
                           "WHERE key = 'interval'), (SELECT value FROM meta WHERE key = 'pid'), (SELECT "
                           "value FROM meta WHERE key = 'command'), (SELECT value FROM meta WHERE key = "
                           "'open_files'), (SELECT value FROM meta WHERE key = 'job'), (SELECT value FROM "
                           "meta WHERE key = 'node'), (SELECT value FROM meta WHERE key = 'node_number'), "
                           "(SELECT value FROM meta WHERE key = 'rank'), (SELECT value FROM meta WHERE key "
                           "= 'ranks'), (SELECT value FROM meta WHERE key = 'attempt')",
                           &statement);
    if (r < 0)
        return r;
    double began = 0;
    double interval = 0;
    double pid = 0;
    const char *command = NULL;
    uint64_t open_files = 0;
    JobPlace place = JOB_PLACE_UNKNOWN;
    int answer = sqlite3_step(statement);
    if (answer != SQLITE_ROW)
        return sqlite_errno(reader->db, answer);
    if (!column_seconds(statement, 0, &began) || !column_seconds(statement, 1, &interval) || interval <= 0 ||
        !column_seconds(statement, 2, &pid) || pid < 0 || pid > INT32_MAX ||
        !column_text(statement, 3, &command) || !column_figure(statement, 4, &open_files) ||
        !place_read(statement, 5, &place))
        return -EBADMSG;
    int made = history_init(&reader->history, command, (int)pid, began, interval);
    /* Older recordings have none. */
    reader->history.place = place;
    reader->history.open_files = open_files == U64_UNKNOWN ? 0 : open_files;
    return made;
}

static int row_read(Reader *reader, sqlite3_stmt *statement)
{
    ProcessRow row = {.ended = INFINITY, .seconds = -INFINITY};
    ProcessMoment *process = &row.process;
    process->rank = RANK_UNKNOWN;
    unsigned role = 0;
    unsigned start = 0;
    const char *comm = NULL;
    const char *command = NULL;
    bool ended = sqlite3_column_type(statement, 11) != SQLITE_NULL;
    row.id = sqlite3_column_int64(statement, 0);
    if (!column_pid(statement, 1, &process->pid) || !column_figure(statement, 2, &process->start_ticks) ||
        !column_pid(statement, 3, &process->ppid) || !column_pid(statement, 4, &process->job) ||
        !column_name(statement, 5, role_by, ROLE_MANAGER + 1, &role) ||
        !column_name(statement, 6, start_by, START_FORKSERVER + 1, &start) ||
        !column_text(statement, 7, &comm) || !column_text(statement, 8, &command) ||
        !column_seconds(statement, 9, &process->started) || !column_seconds(statement, 10, &row.first) ||
        (ended && !column_seconds(statement, 11, &row.ended)) ||
        !column_known(statement, 12, &process->rank) || !column_known(statement, 13, &process->attempt) ||
        reader->n_rows >= PROCESSES_MOST)
        return -EBADMSG;
    process->role = role;
    process->start = start;
    snprintf(process->comm, sizeof process->comm, "%s", comm);
    process->command = arena_copy(&reader->arena, command, strlen(command));
    ProcessRow *slot = ARENA_PUSH(&reader->arena, reader->rows, reader->n_rows, reader->rows_capacity);
    if (!process->command || !slot)
        return -ENOMEM;
    *slot = row;
    return 0;
}

static int by_pid_order(const void *a, const void *b)
{
    const ProcessRow *left = *(ProcessRow *const *)a;
    const ProcessRow *right = *(ProcessRow *const *)b;
    if (left->process.pid != right->process.pid)
        return left->process.pid < right->process.pid ? -1 : 1;
    if (left->process.start_ticks != right->process.start_ticks)
        return left->process.start_ticks < right->process.start_ticks ? -1 : 1;
    return (left->id > right->id) - (left->id < right->id);
}

static bool is_same(const ProcessRow *a, const ProcessRow *b)
{
    return a->process.pid == b->process.pid && a->process.start_ticks == b->process.start_ticks;
}

/* A process that a look had missed has several rows: the last one tells its end. */
static int rows_sort(Reader *reader)
{
    reader->by_pid = calloc(MAX(reader->n_rows, (size_t)1), sizeof(ProcessRow *));
    if (!reader->by_pid)
        return -ENOMEM;
    for (size_t i = 0; i < reader->n_rows; i++)
        reader->by_pid[i] = &reader->rows[i];
    qsort(reader->by_pid, reader->n_rows, sizeof(ProcessRow *), by_pid_order);
    for (size_t i = 0; i < reader->n_rows; i++) {
        ProcessRow *row = reader->by_pid[i];
        ProcessRow *before = i > 0 && is_same(reader->by_pid[i - 1], row) ? reader->by_pid[i - 1] : NULL;
        row->same = before ? before->same : row;
        row->same->ended = row->ended;
    }
    return 0;
}

static int processes_read(Reader *reader)
{
    _cleanup_statement_ sqlite3_stmt *statement = NULL;
    int r = sqlite_prepare(reader->db,
                           "SELECT id, pid, start_ticks, ppid, job, role, start_method, comm, command, "
                           "started, first, ended, rank, attempt FROM process ORDER BY id",
                           &statement);
    int answer = SQLITE_DONE;
    sqlite3_int64 last = INT64_MIN;
    while (r >= 0 && (answer = sqlite3_step(statement)) == SQLITE_ROW) {
        sqlite3_int64 id = sqlite3_column_int64(statement, 0);
        r = id > last ? row_read(reader, statement) : -EBADMSG;
        last = id;
    }
    if (r >= 0)
        r = sqlite_errno(reader->db, answer);
    return r < 0 ? r : rows_sort(reader);
}

static ProcessRow *row_find(const Reader *reader, sqlite3_int64 id)
{
    size_t low = LOWER_BOUND(i, reader->n_rows, reader->rows[i].id < id);
    return low < reader->n_rows && reader->rows[low].id == id ? &reader->rows[low] : NULL;
}

static int sample_read(Reader *reader, Moment *moment)
{
    ProcessRow *row = row_find(reader, sqlite3_column_int64(reader->samples, 1));
    if (!row || row->same->seconds >= moment->seconds)
        return -EBADMSG;
    row->same->seconds = moment->seconds;
    if (moment->n_processes == reader->processes_capacity) {
        size_t wanted = MAX(reader->processes_capacity * 2, (size_t)64);
        ProcessMoment *larger = reallocarray(reader->processes, wanted, sizeof *larger);
        if (!larger)
            return -ENOMEM;
        reader->processes = larger;
        reader->processes_capacity = wanted;
    }
    ProcessMoment *process = &reader->processes[moment->n_processes++];
    *process = row->process;
    for (unsigned i = 0; i < PROCESS_METRICS; i++)
        if (!column_figure(reader->samples, (int)i + 2, &process->values[i]))
            return -EBADMSG;
    return 0;
}

static int process_order(const void *a, const void *b)
{
    const ProcessMoment *left = a;
    const ProcessMoment *right = b;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

/* *answer: of the samples' statement, which is one row ahead. */
static int moment_read(Reader *reader, int *answer)
{
    Moment moment = {0};
    sqlite3_int64 id = sqlite3_column_int64(reader->moments, 0);
    const Series *before = &reader->history.series;
    if (!column_seconds(reader->moments, 1, &moment.seconds) ||
        (before->n > 0 && moment.seconds <= before->seconds[before->n - 1]))
        return -EBADMSG;
    for (unsigned i = 0; i < JOB_METRICS; i++)
        if (!column_figure(reader->moments, (int)i + 2, &moment.values[i]))
            return -EBADMSG;
    int r = 0;
    while (r >= 0 && *answer == SQLITE_ROW && sqlite3_column_int64(reader->samples, 0) <= id) {
        /* Samples of a moment that does not exist are invalid. */
        r = sqlite3_column_int64(reader->samples, 0) == id ? sample_read(reader, &moment) : -EBADMSG;
        if (r >= 0)
            *answer = sqlite3_step(reader->samples);
    }
    if (r < 0)
        return r;
    if (moment.n_processes > 1)
        qsort(reader->processes, moment.n_processes, sizeof *reader->processes, process_order);
    moment.processes = reader->processes;
    return history_add(&reader->history, &moment);
}

static int moments_prepare(Reader *reader)
{
    _cleanup_buffer_ Buffer sql = {0};
    int r = buffer_append_text(&sql, "SELECT id, seconds");
    if (r >= 0)
        r = columns_append(TABLE_MOMENT, &sql);
    if (r >= 0)
        r = buffer_append_text(&sql, " FROM moment ORDER BY id");
    if (r >= 0)
        r = sqlite_prepare(reader->db, buffer_text(&sql), &reader->moments);
    buffer_clear(&sql);
    if (r >= 0)
        r = buffer_append_text(&sql, "SELECT moment, process");
    if (r >= 0)
        r = columns_append(TABLE_SAMPLE, &sql);
    if (r >= 0)
        r = buffer_append_text(&sql, " FROM sample ORDER BY moment, process");
    return r < 0 ? r : sqlite_prepare(reader->db, buffer_text(&sql), &reader->samples);
}

static int moments_read(Reader *reader)
{
    int r = moments_prepare(reader);
    if (r < 0)
        return r;
    int moments = SQLITE_DONE;
    int samples = sqlite3_step(reader->samples);
    while (r >= 0 && (moments = sqlite3_step(reader->moments)) == SQLITE_ROW)
        r = moment_read(reader, &samples);
    if (r >= 0)
        r = sqlite_errno(reader->db, moments);
    if (r >= 0)
        r = sqlite_errno(reader->db, samples);
    return r < 0 ? r : samples == SQLITE_ROW ? -EBADMSG : 0;
}

/* Any program may have written them, in any form: only what makes sense is taken. */
static bool mark_read(const Reader *reader, sqlite3_stmt *statement, Event *ret)
{
    const Series *series = &reader->history.series;
    double time = 0;
    double slack = MAX(MARK_SLACK, 3 * reader->history.interval);
    if (series->n == 0 || !column_seconds(statement, 0, &time))
        return false;
    double first = series->seconds[0];
    double last = series->seconds[series->n - 1];
    double seconds = time - reader->history.began;
    if (seconds < first - slack || seconds > last + slack)
        return false;
    _cleanup_buffer_ Buffer text = {0};
    const char *words = (const char *)sqlite3_column_text(statement, 1);
    *ret = (Event){.seconds = MIN(MAX(seconds, first), last), .kind = EVENT_MARK};
    if (words && text_repair(text_of(words), &text) >= 0) {
        size_t n = MIN(text.size, sizeof ret->text - 1);
        while (n > 0 && n < text.size && ((unsigned char)text.data[n] & 0xc0) == 0x80)
            n--; /* not a partial character */
        memcpy(ret->text, buffer_text(&text), n);
    }
    return true;
}

typedef struct Marks {
    Event *items;
    size_t n;
    size_t capacity;
} Marks;

static int mark_order(const void *a, const void *b)
{
    const Event *left = a;
    const Event *right = b;
    if (left->seconds != right->seconds)
        return left->seconds < right->seconds ? -1 : 1;
    return (left > right) - (left < right);
}

/* Row by row: one that is too long for us is left out, and no others. */
static int marks_read(Reader *reader, Marks *ret)
{
    sqlite3_int64 there = 0;
    int r = number_ask(reader, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'mark'",
                       &there);
    if (r < 0 || there == 0)
        return r;
    _cleanup_statement_ sqlite3_stmt *ids = NULL;
    _cleanup_statement_ sqlite3_stmt *row = NULL;
    r = sqlite_prepare(reader->db, "SELECT id FROM mark ORDER BY id", &ids);
    if (r >= 0)
        r = sqlite_prepare(reader->db,
                           "SELECT time, substr(CAST(text AS TEXT), 1, 100) FROM mark WHERE id = ?", &row);
    int answer = SQLITE_DONE;
    while (r >= 0 && ret->n < MARKS_MOST && (answer = sqlite3_step(ids)) == SQLITE_ROW) {
        Event event;
        (void)sqlite3_bind_int64(row, 1, sqlite3_column_int64(ids, 0));
        int found = sqlite3_step(row);
        if (found == SQLITE_ROW && mark_read(reader, row, &event)) {
            Event *mark = ARENA_PUSH(&reader->arena, ret->items, ret->n, ret->capacity);
            if (!mark)
                return -ENOMEM;
            *mark = event;
        } else if (found != SQLITE_ROW && found != SQLITE_DONE && found != SQLITE_TOOBIG)
            r = sqlite_errno(reader->db, found);
        (void)sqlite3_reset(row);
    }
    if (r >= 0 && ret->n < MARKS_MOST)
        r = sqlite_errno(reader->db, answer);
    if (ret->n > 1)
        qsort(ret->items, ret->n, sizeof *ret->items, mark_order);
    return r;
}

static int event_read(sqlite3_stmt *statement, double before, Event *ret)
{
    unsigned kind = 0;
    unsigned role = 0;
    const char *text = NULL;
    if (!column_seconds(statement, 0, &ret->seconds) || ret->seconds < before ||
        !column_name(statement, 1, kind_by, EVENT_EPOCH, &kind) || !column_pid(statement, 2, &ret->pid) ||
        !column_name(statement, 3, role_by, ROLE_MANAGER + 1, &role) || !column_text(statement, 4, &text))
        return -EBADMSG;
    ret->kind = kind;
    ret->role = role;
    snprintf(ret->text, sizeof ret->text, "%s", text);
    return 0;
}

static int events_read(Reader *reader)
{
    Marks marks = {0};
    _cleanup_statement_ sqlite3_stmt *statement = NULL;
    int r = marks_read(reader, &marks);
    if (r >= 0)
        r = sqlite_prepare(reader->db, "SELECT seconds, kind, pid, role, text FROM event ORDER BY id",
                           &statement);
    int answer = SQLITE_DONE;
    size_t next = 0;
    double before = -INFINITY;
    while (r >= 0 && (answer = sqlite3_step(statement)) == SQLITE_ROW) {
        Event event = {0};
        r = event_read(statement, before, &event);
        for (; r >= 0 && next < marks.n && marks.items[next].seconds < event.seconds; next++)
            r = history_add_event(&reader->history, &marks.items[next]);
        if (r >= 0)
            r = history_add_event(&reader->history, &event);
        before = event.seconds;
    }
    if (r >= 0)
        r = sqlite_errno(reader->db, answer);
    for (; r >= 0 && next < marks.n; next++)
        r = history_add_event(&reader->history, &marks.items[next]);
    return r;
}

/* --- What was found in the search for the line that leaks ---------------------------------------------- */

static bool column_signed(sqlite3_stmt *statement, int place, int64_t *ret)
{
    if (sqlite3_column_type(statement, place) != SQLITE_INTEGER)
        return false;
    int64_t value = sqlite3_column_int64(statement, place);
    if (value > SIGNED_MOST || value < -SIGNED_MOST)
        return false;
    *ret = value;
    return true;
}

static bool site_window_row(sqlite3_stmt *statement, SiteWindow *ret)
{
    int64_t worker = 0;
    int64_t stage = 0;
    int64_t deep = 0;
    *ret = (SiteWindow){.late_growth = INT64_MIN};
    bool late = sqlite3_column_type(statement, 8) != SQLITE_NULL;
    if (!column_seconds(statement, 1, &ret->seconds) || !column_seconds(statement, 2, &ret->duration) ||
        !column_pid(statement, 3, &ret->pid) || !column_signed(statement, 4, &worker) ||
        !column_signed(statement, 5, &stage) || !column_signed(statement, 6, &deep) ||
        !column_signed(statement, 7, &ret->growth) ||
        (late && !column_signed(statement, 8, &ret->late_growth)) ||
        !column_signed(statement, 9, &ret->descriptors) || !column_seconds(statement, 10, &ret->cost_seconds))
        return false;
    ret->worker = (int)worker;
    ret->stage = (SiteStage)stage;
    ret->deep = deep != 0;
    return ret->duration > 0 && worker >= -1 && worker <= INT32_MAX && stage >= SITE_STAGE_CENSUS &&
           stage < SITE_STAGES_END;
}

static const char *site_kind_by(unsigned i)
{
    return site_kind_name(i);
}

static bool site_row(sqlite3_stmt *statement, Site *ret)
{
    unsigned kind = 0;
    uint64_t line = 0;
    const char *file = NULL;
    const char *what = NULL;
    if (!column_name(statement, 0, site_kind_by, SITE_KINDS, &kind) || !column_text(statement, 1, &file) ||
        !column_figure(statement, 2, &line) || line > UINT32_MAX || !column_text(statement, 3, &what) ||
        !column_figure(statement, 4, &ret->bytes) || ret->bytes > SIGNED_MOST ||
        !column_figure(statement, 5, &ret->late_bytes) || !column_figure(statement, 6, &ret->count) ||
        ret->count > SIGNED_MOST)
        return false;
    ret->kind = kind;
    ret->line = (uint32_t)line;
    snprintf(ret->file, sizeof ret->file, "%s", file);
    snprintf(ret->what, sizeof ret->what, "%s", what);
    return true;
}

static int sites_of_window(sqlite3_stmt *statement, sqlite3_int64 id, SiteWindow *window)
{
    int answer = SQLITE_DONE;
    (void)sqlite3_bind_int64(statement, 1, id);
    while (window->n_sites < SITES_MOST && (answer = sqlite3_step(statement)) == SQLITE_ROW) {
        Site site = {0};
        if (!site_row(statement, &site))
            return -EBADMSG;
        window->sites[window->n_sites++] = site;
    }
    (void)sqlite3_reset(statement);
    return sqlite_errno(sqlite3_db_handle(statement), answer);
}

static int sites_read(Reader *reader)
{
    sqlite3_int64 there = 0;
    int r = number_ask(reader,
                       "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN "
                       "('site_window', 'site')",
                       &there);
    if (r < 0 || there < 2)
        return r;
    _cleanup_statement_ sqlite3_stmt *windows = NULL;
    _cleanup_statement_ sqlite3_stmt *sites = NULL;
    r = sqlite_prepare(reader->db, "SELECT * FROM site_window ORDER BY id", &windows);
    if (r >= 0)
        r = sqlite_prepare(reader->db,
                           "SELECT kind, file, line, what, bytes, late_bytes, count FROM site WHERE "
                           "site_window = ? ORDER BY id",
                           &sites);
    int answer = SQLITE_DONE;
    while (r >= 0 && reader->history.n_windows < WINDOWS_MOST &&
           (answer = sqlite3_step(windows)) == SQLITE_ROW) {
        SiteWindow window;
        r = site_window_row(windows, &window)
                ? sites_of_window(sites, sqlite3_column_int64(windows, 0), &window)
                : -EBADMSG;
        if (r >= 0)
            r = history_add_site_window(&reader->history, &window);
    }
    return r < 0 ? r : sqlite_errno(reader->db, answer);
}

/* The first and last moment are not always among the samples that were kept. */
static void tracks_finish(Reader *reader)
{
    for (size_t i = 0; i < reader->history.n_tracks; i++) {
        ProcessTrack *track = &reader->history.tracks[i];
        ProcessRow key = {.process = track->last, .id = INT64_MIN};
        const ProcessRow *wanted = &key;
        size_t low = LOWER_BOUND(k, reader->n_rows, by_pid_order(&reader->by_pid[k], &wanted) < 0);
        const ProcessRow *row = reader->by_pid[low]; /* the first of them: all tracks come from rows */
        track->first_seconds = row->first;
        track->ended_seconds = row->ended;
    }
}

int recording_read(const char *path, History *ret)
{
    _cleanup_(reader_free) Reader reader = {0};
    int r = database_open(&reader, path);
    if (r >= 0)
        r = wal_check(schema_check(&reader));
    if (r >= 0)
        r = meta_read(&reader);
    if (r >= 0)
        r = processes_read(&reader);
    if (r >= 0)
        r = moments_read(&reader);
    if (r >= 0)
        r = events_read(&reader);
    if (r >= 0)
        r = sites_read(&reader);
    if (r < 0)
        return r;
    tracks_finish(&reader);
    *ret = TAKE(reader.history, (History){0});
    return 0;
}
