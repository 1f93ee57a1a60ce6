/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pending.h"
#include "recording.h"
#include "schema.h"
#include "thin.h"

/* Workers that come and go every minute cause 20,000 births and ends per day; older ones are dropped, while
 * marks and attempts are kept. */
enum { EVENTS_MAX = 20000 };

#define OLD ".old"

/* How long we wait for other writers: inserting a mark takes no longer, and samples stay on schedule. At the
 * end of a recording there is more time. */
enum { BUSY_MSEC = 100, BUSY_LAST_MSEC = 3000 };

/* A process that has a row. */
typedef struct WrittenProcess {
    ProcessMoment last; /* its command is not kept, only the hash of it */
    uint64_t command_hash;
    sqlite3_int64 id;
    bool there; /* in this moment */
} WrittenProcess;

struct Recording {
    sqlite3 *db;
    char *path; /* never a name that is special to SQLite */
    dev_t device;
    ino_t inode;
    sqlite3_int64 moment; /* the newest */
    sqlite3_int64 process;
    sqlite3_int64 event;       /* the newest of ours */
    sqlite3_int64 events_kept; /* those up to here have been thinned */
    bool replaces;             /* an older recording, which is FILE.old now */
    int failed;                /* what stopped it; 0 */
    WrittenProcess *rows;      /* of those that live, in rising order of pid */
    size_t n_rows;
    size_t rows_capacity;
    int pid;
    bool pid_due; /* it is not in the file yet */
    uint64_t open_files;
    bool open_files_due;
    JobPlace place;
    bool place_due;
    unsigned python;
    bool python_due;
    PendingMoments pending;
    Buffer text;
    Thin thin;
    sqlite3_stmt *add_moment;
    sqlite3_stmt *add_sample;
    sqlite3_stmt *add_process;
    sqlite3_stmt *set_process;
    sqlite3_stmt *end_process;
    sqlite3_stmt *add_event;
    sqlite3_stmt *thin_events;
    sqlite3_stmt *add_meta;
    sqlite3_stmt *add_window;
    sqlite3_stmt *add_site;
};

/* --- Making the file ---------------------------------------------------------------------------------- */

/* Whether the file is a recording, judged by its first bytes. Negative errno if it cannot be read. */
static int is_recording(int fd)
{
    unsigned char head[100];
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0)
        return -errno;
    uint32_t application =
        (uint32_t)head[68] << 24 | (uint32_t)head[69] << 16 | (uint32_t)head[70] << 8 | (uint32_t)head[71];
    return n == sizeof head && memcmp(head, "SQLite format 3", 16) == 0 &&
           application == RECORDING_APPLICATION;
}

int recording_is(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd < 0 ? -errno : is_recording(fd);
}

/* Every process that has a database open in WAL mode holds a lock on these bytes. If one of them may write,
 * it would remove our -wal when it closes the database. */
static bool is_in_use(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000002, .l_len = 510};
    return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* The files of a database, with the main file last. */
static const char *const parts[] = {"-wal", "-shm", "-journal", ""};

static int parts_unlink(const char *path)
{
    _cleanup_buffer_ Buffer name = {0};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        buffer_clear(&name);
        int r = buffer_printf(&name, "%s%s", path, parts[i]);
        if (r < 0)
            return r;
        if (unlink(buffer_text(&name)) < 0 && errno != ENOENT)
            return -errno;
    }
    return 0;
}

/* The -wal is renamed, too: it holds the end of a recording whose writer was killed. The new names must be
 * free: SQLite takes any -wal for the file's own, and would write its content into the file. */
static int parts_move(const char *path, const char *from, const char *to)
{
    _cleanup_buffer_ Buffer old = {0};
    _cleanup_buffer_ Buffer new = {0};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        buffer_clear(&old);
        buffer_clear(&new);
        int r = buffer_printf(&old, "%s%s%s", path, from, parts[i]);
        if (r >= 0)
            r = buffer_printf(&new, "%s%s%s", path, to, parts[i]);
        if (r < 0)
            return r;
        if (rename(buffer_text(&old), buffer_text(&new)) < 0 && errno != ENOENT)
            return -errno;
    }
    return 0;
}

/* 0: it does not exist; -EISDIR, -EEXIST: it is something else. */
static int recording_find(const char *path, int *ret_fd)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return -EEXIST;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    int r = is_recording(fd);
    if (r <= 0)
        return r < 0 ? r : -EEXIST;
    *ret_fd = TAKE(fd, -1);
    return 1;
}

static int old_unlink(const char *path)
{
    _cleanup_buffer_ Buffer old = {0};
    _cleanup_close_ int fd = -1;
    int r = buffer_printf(&old, "%s" OLD, path);
    if (r >= 0)
        r = recording_find(buffer_text(&old), &fd);
    if (r == -EISDIR || r == -EEXIST)
        return -ENOTEMPTY;
    return r < 0 ? r : parts_unlink(buffer_text(&old));
}

/* An existing recording is kept as FILE.old. Any other file is left alone. 1: there was a recording. */
static int old_keep(const char *path)
{
    _cleanup_close_ int fd = -1;
    int r = recording_find(path, &fd);
    if (r <= 0)
        return r;
    if (is_in_use(fd))
        return -EBUSY;
    r = old_unlink(path);
    if (r >= 0)
        r = parts_move(path, "", OLD);
    return r < 0 ? r : 1;
}

static int file_make(Recording *recording)
{
    int r = old_keep(recording->path);
    if (r < 0)
        return r;
    recording->replaces = r > 0;
    _cleanup_close_ int fd =
        open(recording->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    recording->device = st.st_dev;
    recording->inode = st.st_ino;
    return 0;
}

static int database_open(Recording *recording)
{
    int answer =
        sqlite3_open_v2(recording->path, &recording->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    int r = sqlite_errno(recording->db, answer);
    if (r < 0)
        return r;
    (void)sqlite3_busy_timeout(recording->db, BUSY_MSEC);
    /* There is nothing to lose yet. */
    return sqlite_run(recording->db,
                      "PRAGMA page_size = 4096; PRAGMA cache_size = -1024; PRAGMA synchronous = OFF");
}

/*
 * After the tables and the head are written, so that the file itself says what it is from the start.
 *
 * NORMAL: a commit is one write into the -wal, which a SIGKILL cannot undo; the disk is waited for only when
 * the -wal is copied into the file, every few minutes. After a power failure the file is intact, and may lack
 * what came after the last such copy.
 */
static int wal_begin(Recording *recording)
{
    _cleanup_statement_ sqlite3_stmt *mode = NULL;
    int r = sqlite_prepare(recording->db, "PRAGMA journal_mode = WAL", &mode);
    if (r < 0)
        return r;
    bool wal =
        sqlite3_step(mode) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(mode, 0), "wal") == 0;
    return wal ? sqlite_run(recording->db, "PRAGMA synchronous = NORMAL") : -EOPNOTSUPP;
}

static int tables_make(Recording *recording)
{
    Buffer *sql = &recording->text;
    buffer_clear(sql);
    int r = buffer_printf(sql, "BEGIN; PRAGMA application_id = %d; PRAGMA user_version = %d;",
                          RECORDING_APPLICATION, RECORDING_VERSION);
    for (unsigned i = 0; r >= 0 && i < RECORDING_TABLES; i++) {
        r = table_schema(i, sql);
        if (r >= 0)
            r = buffer_append_text(sql, ";");
    }
    if (r >= 0)
        r = buffer_append_text(sql, "CREATE INDEX process_last ON process(last_moment) WHERE last_moment IS "
                                    "NOT NULL; CREATE VIEW samples AS SELECT seconds, pid, role, command");
    if (r >= 0)
        r = columns_append(TABLE_SAMPLE, sql);
    if (r >= 0)
        r = buffer_append_text(sql, " FROM sample JOIN process ON process.id = sample.process JOIN moment ON "
                                    "moment.id = sample.moment; COMMIT");
    return r < 0 ? r : sqlite_run(recording->db, buffer_text(sql));
}

static int figures_prepare(Recording *recording, RecordingTable table, size_t n, sqlite3_stmt **ret)
{
    Buffer *sql = &recording->text;
    buffer_clear(sql);
    int r = buffer_printf(sql, "INSERT INTO %s VALUES(?,?", table_name(table));
    if (r >= 0)
        r = marks_append(n, sql);
    if (r >= 0)
        r = buffer_append_text(sql, ")");
    return r < 0 ? r : sqlite_prepare(recording->db, buffer_text(sql), ret);
}

static int statements_prepare(Recording *recording)
{
    const struct {
        const char *sql;
        sqlite3_stmt **statement;
    } statements[] = {
        {"INSERT INTO process(ppid, job, role, start_method, comm, command, rank, attempt, pid, start_ticks, "
         "started, first, first_moment, id) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
         &recording->add_process},
        {"UPDATE process SET ppid = ?, job = ?, role = ?, start_method = ?, comm = ?, command = ?, rank = ?, "
         "attempt = ?, ended = NULL, last_moment = NULL WHERE id = ?",
         &recording->set_process},
        {"UPDATE process SET ended = ?, last_moment = ? WHERE id = ?", &recording->end_process},
        {"INSERT INTO event(seconds, kind, pid, role, text) VALUES(?,?,?,?,?)", &recording->add_event},
        {"DELETE FROM event WHERE id BETWEEN ? AND ? AND kind IN ('born', 'ended')", &recording->thin_events},
        {"INSERT OR REPLACE INTO meta VALUES(?,?)", &recording->add_meta},
        {"INSERT INTO site_window VALUES(NULL,?,?,?,?,?,?,?,?,?,?)", &recording->add_window},
        {"INSERT INTO site VALUES(NULL,?,?,?,?,?,?,?,?)", &recording->add_site},
    };
    int r = figures_prepare(recording, TABLE_MOMENT, JOB_METRICS, &recording->add_moment);
    if (r >= 0)
        r = figures_prepare(recording, TABLE_SAMPLE, PROCESS_METRICS, &recording->add_sample);
    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(statements); i++)
        r = sqlite_prepare(recording->db, statements[i].sql, statements[i].statement);
    return r < 0 ? r : thin_open(recording->db, &recording->thin);
}

/* At most that many bytes, without a partial character at the end. */
static size_t text_cut(const Buffer *text, size_t most)
{
    size_t n = MIN(text->size, most);
    while (n > 0 && n < text->size && ((unsigned char)text->data[n] & 0xc0) == 0x80)
        n--;
    return n;
}

/* Any SQLite tool must be able to show it, and our own reader must accept it. */
static void bind_text(Recording *recording, sqlite3_stmt *statement, int place, const char *text)
{
    buffer_clear(&recording->text);
    (void)text_repair(text_of(text), &recording->text);
    (void)sqlite3_bind_text(statement, place, buffer_text(&recording->text),
                            (int)text_cut(&recording->text, TEXT_MOST), SQLITE_TRANSIENT);
}

static int head_write(Recording *recording, const History *head)
{
    const struct {
        const char *key;
        double number;
        const char *text; /* NULL: a number */
    } items[] = {
        {"began", head->began, NULL}, {"command", 0, head->command},     {"interval", head->interval, NULL},
        {"pid", head->pid, NULL},     {"shmguard", 0, SHMGUARD_VERSION},
    };
    int r = sqlite_run(recording->db, "BEGIN");
    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(items); i++) {
        (void)sqlite3_bind_text(recording->add_meta, 1, items[i].key, -1, SQLITE_STATIC);
        if (items[i].text)
            bind_text(recording, recording->add_meta, 2, items[i].text);
        else
            (void)sqlite3_bind_double(recording->add_meta, 2, items[i].number);
        r = statement_run(recording->add_meta);
    }
    return r < 0 ? r : sqlite_run(recording->db, "COMMIT");
}

void recording_set_pid(Recording *recording, int pid)
{
    recording->pid = pid;
    recording->pid_due = true;
}

void recording_set_open_files(Recording *recording, uint64_t limit)
{
    recording->open_files = limit;
    recording->open_files_due = true;
}

void recording_set_place(Recording *recording, const JobPlace *place)
{
    recording->place = *place;
    recording->place_due = true;
}

/* What is not known has no row. */
static int place_write(Recording *recording, const JobPlace *place)
{
    const struct {
        const char *key;
        const char *text; /* NULL: a number */
        int number;
        bool known;
    } items[] = {
        {"job", place->job, 0, place->job[0] != '\0'},
        {"node", place->node, 0, place->node[0] != '\0'},
        {"node_number", NULL, place->node_number, place->node_number != RANK_UNKNOWN},
        {"rank", NULL, place->rank, place->rank != RANK_UNKNOWN},
        {"ranks", NULL, place->ranks, place->ranks > 0},
        {"attempt", NULL, place->attempt, place->attempt > 0},
    };
    int r = 0;
    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(items); i++) {
        if (!items[i].known)
            continue;
        (void)sqlite3_bind_text(recording->add_meta, 1, items[i].key, -1, SQLITE_STATIC);
        if (items[i].text)
            bind_text(recording, recording->add_meta, 2, items[i].text);
        else
            (void)sqlite3_bind_int(recording->add_meta, 2, items[i].number);
        r = statement_run(recording->add_meta);
    }
    return r;
}

void recording_set_python(Recording *recording, unsigned minor)
{
    recording->python = minor;
    recording->python_due = true;
}

const char *recording_library(void)
{
    return sqlite3_libversion();
}

int recording_create(const char *path, const History *head, Recording **ret)
{
    if (path[0] == '\0')
        return -ENOENT;
    Recording *recording = calloc(1, sizeof *recording);
    if (!recording)
        return -ENOMEM;
    int r = asprintf(&recording->path, "%s%s", path[0] == '/' ? "" : "./", path) < 0 ? -ENOMEM : 0;
    bool made = false;
    if (r >= 0) {
        r = file_make(recording);
        made = r >= 0;
    } else
        recording->path = NULL;
    if (r >= 0)
        r = database_open(recording);
    if (r >= 0)
        r = tables_make(recording);
    if (r >= 0)
        r = statements_prepare(recording);
    if (r >= 0)
        r = head_write(recording, head);
    recording_set_place(recording, &head->place);
    if (r >= 0)
        r = wal_begin(recording);
    if (r < 0) {
        recording->failed = r;
        if (made)
            recording_discard(recording);
        else
            recording_close(recording);
        return r;
    }
    *ret = recording;
    return 0;
}

/* --- A moment ----------------------------------------------------------------------------------------- */

static void bind_known(sqlite3_stmt *statement, int place, int number, int unknown)
{
    bind_figure(statement, place, number == unknown ? U64_UNKNOWN : (uint64_t)number);
}

static void bind_process(Recording *recording, sqlite3_stmt *statement, const ProcessMoment *process)
{
    (void)sqlite3_bind_int(statement, 1, process->ppid);
    (void)sqlite3_bind_int(statement, 2, process->job);
    (void)sqlite3_bind_text(statement, 3, role_name(process->role), -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, 4, start_method_name(process->start), -1, SQLITE_STATIC);
    bind_text(recording, statement, 5, process->comm);
    bind_text(recording, statement, 6, process->command);
    bind_known(statement, 7, process->rank, RANK_UNKNOWN);
    bind_known(statement, 8, process->attempt, 0);
}

static int process_insert(Recording *recording, const ProcessMoment *process, double seconds,
                          sqlite3_int64 id)
{
    sqlite3_stmt *statement = recording->add_process;
    bind_process(recording, statement, process);
    (void)sqlite3_bind_int(statement, 9, process->pid);
    bind_figure(statement, 10, process->start_ticks);
    (void)sqlite3_bind_double(statement, 11, process->started);
    (void)sqlite3_bind_double(statement, 12, seconds);
    (void)sqlite3_bind_int64(statement, 13, recording->moment);
    (void)sqlite3_bind_int64(statement, 14, id);
    return statement_run(statement);
}

static int process_update(Recording *recording, const ProcessMoment *process, sqlite3_int64 id)
{
    bind_process(recording, recording->set_process, process);
    (void)sqlite3_bind_int64(recording->set_process, 9, id);
    return statement_run(recording->set_process);
}

static int process_end(Recording *recording, const WrittenProcess *row, double seconds)
{
    (void)sqlite3_bind_double(recording->end_process, 1, seconds);
    (void)sqlite3_bind_int64(recording->end_process, 2, recording->moment - 1);
    (void)sqlite3_bind_int64(recording->end_process, 3, row->id);
    return statement_run(recording->end_process);
}

static bool process_changed(const WrittenProcess *row, const ProcessMoment *process, uint64_t hash)
{
    const ProcessMoment *last = &row->last;
    return row->command_hash != hash || last->ppid != process->ppid || last->job != process->job ||
           last->role != process->role || last->start != process->start || last->rank != process->rank ||
           last->attempt != process->attempt || strcmp(last->comm, process->comm) != 0;
}

/* Where pid is, or would be. */
static size_t row_place(const Recording *recording, int pid)
{
    return LOWER_BOUND(i, recording->n_rows, recording->rows[i].last.pid < pid);
}

static int row_insert(Recording *recording, size_t place)
{
    if (recording->n_rows == recording->rows_capacity) {
        size_t wanted = MAX(recording->rows_capacity * 2, (size_t)64);
        WrittenProcess *larger = reallocarray(recording->rows, wanted, sizeof *larger);
        if (!larger)
            return -ENOMEM;
        recording->rows = larger;
        recording->rows_capacity = wanted;
    }
    memmove(recording->rows + place + 1, recording->rows + place,
            (recording->n_rows - place) * sizeof *recording->rows);
    recording->n_rows++;
    recording->rows[place] = (WrittenProcess){0};
    return 0;
}

/* Its row in the table of processes, created or updated. */
static int process_row(Recording *recording, const ProcessMoment *process, double seconds,
                       sqlite3_int64 *ret_id)
{
    uint64_t hash = text_hash(text_of(process->command));
    size_t place = row_place(recording, process->pid);
    bool known = place < recording->n_rows && recording->rows[place].last.pid == process->pid;
    int r = 0;
    if (known && recording->rows[place].last.start_ticks != process->start_ticks)
        r = process_end(recording, &recording->rows[place], seconds); /* another process has its number */
    else if (!known)
        r = row_insert(recording, place);
    if (r < 0)
        return r;
    WrittenProcess *row = &recording->rows[place];
    if (!known || row->last.start_ticks != process->start_ticks) {
        row->id = ++recording->process;
        r = process_insert(recording, process, seconds, row->id);
    } else if (process_changed(row, process, hash))
        r = process_update(recording, process, row->id);
    row->last = *process;
    row->last.command = NULL;
    row->command_hash = hash;
    row->there = true;
    *ret_id = row->id;
    return r;
}

static int sample_add(Recording *recording, const ProcessMoment *process, double seconds)
{
    sqlite3_int64 id = 0;
    int r = process_row(recording, process, seconds, &id);
    if (r < 0)
        return r;
    sqlite3_stmt *statement = recording->add_sample;
    (void)sqlite3_bind_int64(statement, 1, recording->moment);
    (void)sqlite3_bind_int64(statement, 2, id);
    for (unsigned i = 0; i < PROCESS_METRICS; i++)
        bind_figure(statement, (int)i + 3, process->values[i]);
    return statement_run(statement);
}

/* A process that a look has missed gets a second row when it is seen again; pid and start tell that it is the
 * same. */
static int missing_end(Recording *recording, double seconds)
{
    int r = 0;
    size_t n = 0;
    for (size_t i = 0; r >= 0 && i < recording->n_rows; i++) {
        WrittenProcess *row = &recording->rows[i];
        if (!row->there) {
            r = process_end(recording, row, seconds);
            continue;
        }
        row->there = false;
        recording->rows[n++] = *row;
    }
    recording->n_rows = n;
    return r;
}

static int events_add(Recording *recording, const Moment *moment)
{
    int r = 0;
    sqlite3_stmt *statement = recording->add_event;
    for (size_t i = 0; r >= 0 && i < moment->n_events; i++) {
        const Event *event = &moment->events[i];
        (void)sqlite3_bind_double(statement, 1, event->seconds);
        (void)sqlite3_bind_text(statement, 2, event_kind_name(event->kind), -1, SQLITE_STATIC);
        (void)sqlite3_bind_int(statement, 3, event->pid);
        (void)sqlite3_bind_text(statement, 4, role_name(event->role), -1, SQLITE_STATIC);
        bind_text(recording, statement, 5, event->text);
        r = statement_run(statement);
        /* Another program may have inserted rows: SQLite counts. */
        recording->event = sqlite3_last_insert_rowid(recording->db);
    }
    sqlite3_int64 old = recording->event - EVENTS_MAX;
    if (r < 0 || old <= recording->events_kept)
        return r;
    (void)sqlite3_bind_int64(recording->thin_events, 1, recording->events_kept + 1);
    (void)sqlite3_bind_int64(recording->thin_events, 2, old);
    recording->events_kept = old;
    return statement_run(recording->thin_events);
}

static int moment_add(Recording *recording, const Moment *moment)
{
    sqlite3_stmt *statement = recording->add_moment;
    (void)sqlite3_bind_int64(statement, 1, ++recording->moment);
    (void)sqlite3_bind_double(statement, 2, moment->seconds);
    for (unsigned i = 0; i < JOB_METRICS; i++)
        bind_figure(statement, (int)i + 3, moment->values[i]);
    int r = statement_run(statement);
    for (size_t i = 0; r >= 0 && i < moment->n_processes; i++)
        r = sample_add(recording, &moment->processes[i], moment->seconds);
    if (r >= 0)
        r = missing_end(recording, moment->seconds);
    if (r >= 0)
        r = events_add(recording, moment);
    return r < 0 ? r : thin_step(&recording->thin, recording->moment);
}

/* SQLite would go on writing into a file that has no name any more. */
static bool file_is_there(const Recording *recording)
{
    struct stat st;
    return stat(recording->path, &st) == 0 && st.st_dev == recording->device && st.st_ino == recording->inode;
}

static int meta_write(Recording *recording, const char *key, uint64_t value)
{
    char sql[96];
    snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO meta VALUES('%s', %llu)", key,
             (unsigned long long)value);
    return sqlite_run(recording->db, sql);
}

/* Writes all waiting moments, and then this one, which may be NULL. -EBUSY: nothing has changed. */
static int moments_write(Recording *recording, const Moment *moment)
{
    if (!file_is_there(recording))
        return -ESTALE;
    int r = sqlite_run(recording->db, "BEGIN IMMEDIATE");
    if (r < 0)
        return r;
    if (recording->pid_due)
        r = meta_write(recording, "pid", (uint64_t)recording->pid);
    if (r >= 0 && recording->open_files_due)
        r = meta_write(recording, "open_files", recording->open_files);
    if (r >= 0 && recording->place_due)
        r = place_write(recording, &recording->place);
    if (r >= 0 && recording->python_due)
        r = meta_write(recording, "python", recording->python);
    for (size_t i = 0; r >= 0 && i < recording->pending.n; i++)
        r = moment_add(recording, recording->pending.items[i]);
    if (r >= 0 && moment)
        r = moment_add(recording, moment);
    if (r >= 0)
        r = sqlite_run(recording->db, "COMMIT");
    if (r < 0) {
        (void)sqlite_run(recording->db, "ROLLBACK");
        return r == -EBUSY ? -EIO : r; /* once begun, a transaction waits for no other program */
    }
    recording->pid_due = false;
    recording->open_files_due = false;
    recording->place_due = false;
    recording->python_due = false;
    pending_moments_clear(&recording->pending);
    return 0;
}

int recording_add(Recording *recording, const Moment *moment)
{
    if (recording->failed < 0)
        return recording->failed;
    int r = moments_write(recording, moment);
    if (r == -EBUSY) {
        pending_moments_add(&recording->pending, moment);
        r = 0;
    }
    recording->failed = r;
    return r;
}

static int site_add(Recording *recording, sqlite3_int64 window, const Site *site)
{
    sqlite3_stmt *statement = recording->add_site;
    (void)sqlite3_bind_int64(statement, 1, window);
    (void)sqlite3_bind_text(statement, 2, site_kind_name(site->kind), -1, SQLITE_STATIC);
    bind_text(recording, statement, 3, site->file);
    (void)sqlite3_bind_int64(statement, 4, site->line);
    bind_text(recording, statement, 5, site->what);
    bind_figure(statement, 6, site->bytes);
    bind_figure(statement, 7, site->late_bytes);
    bind_figure(statement, 8, site->count);
    return statement_run(statement);
}

static int site_window_add(Recording *recording, const SiteWindow *window)
{
    sqlite3_stmt *statement = recording->add_window;
    (void)sqlite3_bind_double(statement, 1, window->seconds);
    (void)sqlite3_bind_double(statement, 2, window->duration);
    (void)sqlite3_bind_int(statement, 3, window->pid);
    (void)sqlite3_bind_int(statement, 4, window->worker);
    (void)sqlite3_bind_int(statement, 5, (int)window->stage);
    (void)sqlite3_bind_int(statement, 6, window->deep);
    (void)sqlite3_bind_int64(statement, 7, window->growth);
    if (window->late_growth == INT64_MIN)
        (void)sqlite3_bind_null(statement, 8);
    else
        (void)sqlite3_bind_int64(statement, 8, window->late_growth);
    (void)sqlite3_bind_int64(statement, 9, window->descriptors);
    (void)sqlite3_bind_double(statement, 10, window->cost_seconds);
    int r = statement_run(statement);
    sqlite3_int64 id = sqlite3_last_insert_rowid(recording->db);
    for (size_t i = 0; r >= 0 && i < window->n_sites; i++)
        r = site_add(recording, id, &window->sites[i]);
    return r;
}

int recording_add_sites(Recording *recording, const SiteWindow *window)
{
    if (recording->failed < 0)
        return recording->failed;
    int r = file_is_there(recording) ? sqlite_run(recording->db, "BEGIN IMMEDIATE") : -ESTALE;
    if (r == -EBUSY)
        return r;
    if (r >= 0)
        r = site_window_add(recording, window);
    if (r >= 0)
        r = sqlite_run(recording->db, "COMMIT");
    if (r < 0)
        (void)sqlite_run(recording->db, "ROLLBACK");
    recording->failed = r == -EBUSY ? -EIO : r;
    return recording->failed;
}

int recording_flush(Recording *recording)
{
    if (recording->failed < 0 || recording->pending.n == 0)
        return recording->failed;
    (void)sqlite3_busy_timeout(recording->db, BUSY_LAST_MSEC);
    int r = moments_write(recording, NULL);
    (void)sqlite3_busy_timeout(recording->db, BUSY_MSEC);
    if (r == -EBUSY) {
        recording->pending.lost += recording->pending.n;
        pending_moments_clear(&recording->pending);
        r = 0;
    }
    recording->failed = r;
    return r;
}

uint64_t recording_lost(const Recording *recording)
{
    return recording->pending.lost;
}

/* A file that is not in WAL mode can be read even where nothing may be written beside it. If another program
 * is reading it now, or the disk is full, the -wal stays and is part of the recording. */
void recording_close(Recording *recording)
{
    if (!recording)
        return;
    (void)recording_flush(recording);
    pending_moments_free(&recording->pending);
    thin_close(&recording->thin);
    statement_finish(&recording->add_moment);
    statement_finish(&recording->add_sample);
    statement_finish(&recording->add_process);
    statement_finish(&recording->set_process);
    statement_finish(&recording->end_process);
    statement_finish(&recording->add_event);
    statement_finish(&recording->thin_events);
    statement_finish(&recording->add_meta);
    statement_finish(&recording->add_window);
    statement_finish(&recording->add_site);
    /* A file that was renamed has a new name, but its -wal does not: its content goes into the file. */
    if (recording->db && recording->failed == -ESTALE)
        (void)sqlite3_wal_checkpoint_v2(recording->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    else if (recording->db)
        (void)sqlite_run(recording->db, "PRAGMA journal_mode = DELETE");
    (void)sqlite3_close(recording->db);
    buffer_free(&recording->text);
    free(recording->rows);
    free(recording->path);
    free(recording);
}

void recording_discard(Recording *recording)
{
    _cleanup_free_ char *path = TAKE_PTR(recording->path);
    bool replaces = recording->replaces;
    recording_close(recording);
    (void)parts_unlink(path);
    if (replaces)
        (void)parts_move(path, OLD, "");
}
