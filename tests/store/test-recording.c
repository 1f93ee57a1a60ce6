/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pending.h"
#include "recording.h"
#include "schema.h"

static char folder[] = "/tmp/shmguard-recording-XXXXXX";
static char file[64];

static int folder_make(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(file, sizeof file, "%s/file.db", folder);
    return 0;
}

static void file_remove(void)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        char path[80];
        snprintf(path, sizeof path, "%s%s", file, endings[i]);
        unlink(path);
    }
}

static int folder_remove(void **state)
{
    (void)state;
    file_remove();
    return rmdir(folder);
}

static bool is_beside(const char *ending)
{
    char path[80];
    snprintf(path, sizeof path, "%s%s", file, ending);
    return access(path, F_OK) == 0;
}

static uint64_t file_bytes(void)
{
    struct stat st;
    return stat(file, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static ProcessMoment process(int pid, uint64_t start_ticks, uint64_t anon)
{
    ProcessMoment one = {
        .pid = pid, .ppid = 10, .start_ticks = start_ticks, .started = 1.5e9, .command = "python3 train.py"};
    strcpy(one.comm, "python3");
    for (size_t i = 0; i < PROCESS_METRICS; i++)
        one.values[i] = U64_UNKNOWN;
    one.values[PROCESS_ANON] = anon;
    return one;
}

static Moment moment_of(double seconds, const ProcessMoment *processes, size_t n)
{
    Moment moment = {.seconds = seconds, .processes = processes, .n_processes = n};
    for (size_t i = 0; i < JOB_METRICS; i++)
        moment.values[i] = U64_UNKNOWN;
    moment.values[JOB_SHM_USED] = 7;
    return moment;
}

static Recording *create(void)
{
    Recording *recording = NULL;
    History head = {.began = 1.7e9, .interval = 0.5, .command = (char[]){"python3 \xff train.py"}, .pid = 10};
    assert_int_equal(recording_create(file, &head, &recording), 0);
    return recording;
}

static void add(Recording *recording, double seconds, const ProcessMoment *processes, size_t n)
{
    Moment moment = moment_of(seconds, processes, n);
    assert_int_equal(recording_add(recording, &moment), 0);
}

static void test_what_was_written_is_read(void **state)
{
    (void)state;
    file_remove();
    Recording *recording = create();
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    ProcessMoment trainer = process(10, 1, 100);
    trainer.role = ROLE_TRAINER;
    trainer.job = 10;
    trainer.values[PROCESS_CPU_MSEC] = 0;
    ProcessMoment worker = process(11, 2, UINT64_C(1) << 40);
    Event events[] = {
        {.seconds = 1, .kind = EVENT_BORN, .pid = 11, .role = ROLE_WORKER},
        {.seconds = 1, .kind = EVENT_MARK, .text = "epoch 1 \xff"},
    };
    add(recording, 0, &trainer, 1);
    worker.role = ROLE_OTHER;
    ProcessMoment both[] = {trainer, worker};
    Moment moment = moment_of(1, both, 2);
    moment.events = events;
    moment.n_events = 2;
    assert_int_equal(recording_add(recording, &moment), 0);
    both[1].role = ROLE_WORKER; /* known only now */
    both[1].start = START_SPAWN;
    both[1].job = 10;
    both[1].command = "python3 worker \xc3\xa4";
    both[1].values[PROCESS_USS] = 77;
    add(recording, 2, both, 2);

    _cleanup_history_ History early = {0};
    assert_int_equal(recording_read(file, &early), 0); /* while it is still being written */
    assert_int_equal(early.series.n, 3);

    add(recording, 3, &trainer, 1);
    ProcessMoment again[] = {trainer, process(11, 9, 5)}; /* a new process with the same pid */
    recording_set_open_files(recording, 1024);
    recording_set_open_files(recording, 4096);
    recording_set_python(recording, 12);
    add(recording, 4, again, 2);
    recording_close(recording);
    assert_false(is_beside("-wal"));
    assert_false(is_beside("-shm"));
    assert_false(is_beside("-journal"));

    _cleanup_history_ History history = {0};
    assert_int_equal(recording_read(file, &history), 0);
    assert_true(history.began == 1.7e9);
    assert_true(history.interval == 0.5);
    assert_int_equal(history.pid, 10);
    assert_int_equal(history.open_files, 4096);
    assert_int_equal(history.python, 12);
    assert_string_equal(history.command, "python3 \xef\xbf\xbd train.py");
    assert_int_equal(history.series.n, 5);
    assert_true(history.series.seconds[4] == 4);
    assert_true(history.series.values[JOB_SHM_USED][4] == 7);
    assert_true(history.series.values[JOB_GROUP_LIMIT][4] == U64_UNKNOWN);
    assert_int_equal(history.n_tracks, 3);
    const ProcessTrack *track = &history.tracks[0];
    assert_int_equal(track->last.role, ROLE_TRAINER);
    assert_int_equal(track->series.n, 5);
    assert_true(track->series.values[PROCESS_CPU_MSEC][0] == 0);
    assert_true(isinf(track->ended_seconds));
    track = &history.tracks[1];
    assert_int_equal(track->last.pid, 11);
    assert_int_equal(track->last.role, ROLE_WORKER);
    assert_int_equal(track->last.start, START_SPAWN);
    assert_int_equal(track->last.job, 10);
    assert_string_equal(track->last.command, "python3 worker \xc3\xa4");
    assert_string_equal(track->last.comm, "python3");
    assert_true(track->series.values[PROCESS_ANON][1] == UINT64_C(1) << 40);
    assert_true(track->series.values[PROCESS_USS][0] == U64_UNKNOWN);
    assert_true(track->series.values[PROCESS_USS][1] == 77);
    assert_true(track->first_seconds == 1);
    assert_true(track->ended_seconds == 3);
    assert_true(history.tracks[2].last.start_ticks == 9);
    assert_int_equal(history.n_events, 2);
    assert_int_equal(history.events[0].kind, EVENT_BORN);
    assert_int_equal(history.events[0].role, ROLE_WORKER);
    assert_string_equal(history.events[1].text, "epoch 1 \xef\xbf\xbd");
}

static void test_one_that_a_look_missed_is_one_process(void **state)
{
    (void)state;
    file_remove();
    Recording *recording = create();
    ProcessMoment one = process(11, 2, 5);
    add(recording, 0, &one, 1);
    add(recording, 1, NULL, 0);
    add(recording, 2, &one, 1);
    recording_close(recording);
    _cleanup_history_ History history = {0};
    assert_int_equal(recording_read(file, &history), 0);
    assert_int_equal(history.n_tracks, 1);
    assert_int_equal(history.tracks[0].series.n, 2);
    assert_true(history.tracks[0].first_seconds == 0);
    assert_true(isinf(history.tracks[0].ended_seconds));
}

static void test_what_is_no_recording_stays(void **state)
{
    (void)state;
    file_remove();
    Recording *recording = NULL;
    History head = {.command = (char[]){""}, .interval = 1};
    FILE *out = fopen(file, "w");
    fputs("a checkpoint of three days", out);
    fclose(out);
    assert_int_equal(recording_create(file, &head, &recording), -EEXIST);
    assert_int_equal(file_bytes(), 26);
    _cleanup_history_ History history = {0};
    assert_int_equal(recording_read(file, &history), -EBADMSG);

    file_remove();
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK); /* a database of another program */
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(recording_create(file, &head, &recording), -EEXIST);
    assert_int_equal(recording_read(file, &history), -EBADMSG);

    file_remove();
    assert_int_equal(recording_create(folder, &head, &recording), -EISDIR);
    assert_int_equal(recording_read(folder, &history), -EISDIR);
    assert_int_equal(recording_create("/dev/null", &head, &recording), -EEXIST);
    assert_int_equal(recording_read("/dev/null", &history), -EBADMSG);
    assert_int_equal(recording_create("", &head, &recording), -ENOENT);
    assert_int_equal(recording_create("/nowhere/to/be/found", &head, &recording), -ENOENT);
    assert_int_equal(recording_read("/nowhere/to/be/found", &history), -ENOENT);
}

static size_t moments_of(const char *path)
{
    _cleanup_history_ History history = {0};
    assert_int_equal(recording_read(path, &history), 0);
    return history.series.n;
}

static void test_a_recording_is_kept_unless_it_is_written(void **state)
{
    (void)state;
    file_remove();
    ProcessMoment one = process(10, 1, 100);
    Recording *recording = create();
    add(recording, 0, &one, 1);
    /* A process does not conflict with its own locks, so another process must try. */
    pid_t pid = fork();
    if (pid == 0) {
        Recording *other = NULL;
        History head = {.command = (char[]){""}, .interval = 1};
        _exit(recording_create(file, &head, &other) == -EBUSY ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    add(recording, 1, &one, 1);
    recording_close(recording);
    recording = create();
    add(recording, 0, &one, 1);
    recording_close(recording);
    assert_int_equal(moments_of(file), 1);
    char old[sizeof file + 4];
    snprintf(old, sizeof old, "%s.old", file);
    assert_int_equal(moments_of(old), 2);
    recording_discard(create()); /* as when the command could not be started */
    assert_int_equal(moments_of(file), 1);
    unlink(old);
}

static void text_write(const char *path)
{
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    fputs("somebody's", out);
    fclose(out);
}

/* SQLite would apply a stale -wal of another file to this one. */
static void test_what_was_kept_before_is_not_mixed_with_it(void **state)
{
    (void)state;
    char old[sizeof file + 4];
    char wal[sizeof old + 4];
    struct stat st;
    ProcessMoment one = process(10, 1, 100);
    snprintf(old, sizeof old, "%s.old", file);
    snprintf(wal, sizeof wal, "%s-wal", old);
    file_remove();
    for (int i = 0; i < 2; i++) {
        Recording *recording = create();
        add(recording, 0, &one, 1);
        recording_close(recording);
    }
    text_write(wal);
    recording_close(create());
    assert_int_equal(stat(wal, &st), -1);
    assert_int_equal(moments_of(old), 1);

    text_write(old); /* not a recording, so it must not be removed */
    Recording *recording = NULL;
    History head = {.command = (char[]){""}, .interval = 1};
    assert_int_equal(recording_create(file, &head, &recording), -ENOTEMPTY);
    assert_int_equal(moments_of(file), 0);
    assert_int_equal(stat(old, &st), 0);
    assert_int_equal(st.st_size, 10);
    unlink(old);
}

static void execute(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

/* Another program has the file open in an editor, or keeps the transaction of a mark open. Samples taken
 * meanwhile wait, and none is missing afterwards. Rows that the other program adds to the events do no
 * harm. */
static void test_somebody_else_writes_into_it(void **state)
{
    (void)state;
    file_remove();
    Recording *recording = create();
    sqlite3 *db = NULL;
    recording_set_pid(recording, 12);
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    add(recording, 0, NULL, 0);
    execute(db, "BEGIN IMMEDIATE; INSERT INTO event(seconds, kind, pid, role, text) VALUES(0, 'mark', 0, "
                "'other', 'mine')");
    ProcessMoment worker = process(11, 2, 5);
    Event event = {.seconds = 2, .kind = EVENT_BORN, .pid = 11, .role = ROLE_WORKER};
    for (int i = 1; i < 5; i++) {
        Moment moment = moment_of(i, &worker, i > 1 ? 1 : 0);
        moment.events = &event;
        moment.n_events = i == 2;
        assert_int_equal(recording_add(recording, &moment), 0);
    }
    worker.pid = 0; /* the recording must have its own copy */
    event.pid = 0;
    execute(db, "COMMIT");
    add(recording, 5, NULL, 0);
    execute(db, "BEGIN IMMEDIATE");
    add(recording, 6, NULL, 0); /* written by the final flush */
    execute(db, "COMMIT");
    sqlite3_close(db);
    assert_int_equal(recording_flush(recording), 0);
    assert_true(recording_lost(recording) == 0);
    recording_close(recording);

    _cleanup_history_ History history = {0};
    assert_int_equal(recording_read(file, &history), 0);
    assert_int_equal(history.series.n, 7);
    assert_int_equal(history.pid, 12);
    assert_int_equal(history.n_tracks, 1);
    assert_int_equal(history.tracks[0].series.n, 3);
    assert_string_equal(history.tracks[0].last.command, "python3 train.py");
    assert_true(history.tracks[0].ended_seconds == 5);
    assert_int_equal(history.n_events, 2);
    assert_int_equal(history.events[1].pid, 11);
}

/* Even if the file stays locked for hours, memory use is bounded and no event is lost. */
static void test_somebody_never_lets_go(void **state)
{
    (void)state;
    enum { MOMENTS = 8000, PROCESSES = 16 };
    file_remove();
    Recording *recording = create();
    sqlite3 *db = NULL;
    ProcessMoment processes[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        processes[i] = process(100 + i, 2, 5);
    /* Tests the queue alone: the recorder would wait 0.1 s for each moment. */
    PendingMoments pending = {0};
    size_t most = 0;
    for (int i = 0; i < MOMENTS; i++) {
        Moment moment = moment_of(i, processes, PROCESSES);
        Event event = {.seconds = i, .kind = EVENT_MARK};
        moment.events = &event;
        moment.n_events = i % 10 == 0;
        pending_moments_add(&pending, &moment);
        most = MAX(most, pending.bytes);
    }
    assert_true(most < 10 << 20);
    assert_true(pending.lost > 0 && pending.lost + pending.n == MOMENTS);
    size_t events = 0;
    double before = -1;
    for (size_t i = 0; i < pending.n; i++) {
        assert_true(pending.items[i]->seconds > before);
        before = pending.items[i]->seconds;
        for (size_t k = 0; k < pending.items[i]->n_events; k++)
            assert_true(pending.items[i]->events[k].seconds == (double)(10 * events++));
    }
    assert_int_equal(events, MOMENTS / 10);
    assert_true(before == MOMENTS - 1);
    pending_moments_free(&pending);

    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    execute(db, "BEGIN IMMEDIATE");
    add(recording, 1, processes, PROCESSES);
    assert_int_equal(recording_flush(recording), 0);
    assert_true(recording_lost(recording) == 1);
    sqlite3_close(db);
    recording_close(recording);
}

/* Whatever people write there: valid marks are read, and invalid ones do not make the file unreadable. */
static void test_marks(void **state)
{
    (void)state;
    file_remove();
    Recording *recording = NULL;
    sqlite3 *db = NULL;
    History head = {.began = (double)time(NULL), .interval = 1, .command = (char[]){"python"}, .pid = 10};
    char sql[512];
    Event event = {.seconds = 50, .kind = EVENT_BORN, .pid = 11};
    Moment moment = moment_of(50, NULL, 0);
    assert_int_equal(recording_create(file, &head, &recording), 0);
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    add(recording, 0, NULL, 0);
    execute(db, "INSERT INTO mark(text) VALUES('epoch 1')");
    moment.events = &event;
    moment.n_events = 1;
    assert_int_equal(recording_add(recording, &moment), 0);
    add(recording, 100, NULL, 0);
    snprintf(sql, sizeof sql,
             "INSERT INTO mark(time, text) VALUES(%.3f, 'third'), (%.0f, x'fffe41'), ('%.1f', 7), "
             "(%.0f, NULL), (%.0f, 'late'), (%.0f, printf('%%.*c', 300, 'x') || 'end')",
             head.began + 30.25, head.began + 20, head.began + 40, head.began + 60, head.began + 110,
             head.began + 70);
    execute(db, sql);
    execute(db,
            "INSERT INTO mark(time, text) VALUES(NULL, 'never'), ('now', 'never'), (12.5, 'never'), (1e300, "
            "'never'), (-1e300, 'never'), (x'00', 'never'), (9e999, 'never')");
    snprintf(sql, sizeof sql,
             "INSERT INTO mark(time, text) VALUES(%.0f, char(27) || '[2J' || char(0) || 'x')",
             head.began + 80);
    execute(db, sql);
    snprintf(sql, sizeof sql, "INSERT INTO mark(time, text) VALUES(%.0f, zeroblob(20000000))",
             head.began + 90);
    execute(db, sql);
    snprintf(sql, sizeof sql,
             "INSERT INTO mark(time, text) VALUES(%.0f, printf('%%.*c', 94, 'x') || char(8364) || 'x')",
             head.began + 95);
    execute(db, sql);
    sqlite3_close(db);
    recording_close(recording);

    static const struct {
        double seconds; /* -1: any */
        const char *text;
    } expected[] = {
        {-1, "epoch 1"},
        {20, "\xef\xbf\xbd\xef\xbf\xbd"
             "A"},
        {30.25, "third"},
        {40, "7"},
        {50, ""}, /* not a mark: the event */
        {60, ""},
        {70, NULL},
        {80, "\033[2J"},
        {95, NULL},
        {100, "late"},
    };
    _cleanup_history_ History history = {0};
    assert_int_equal(recording_read(file, &history), 0);
    assert_int_equal(history.n_events, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        const Event *got = &history.events[i];
        assert_int_equal(got->kind, i == 4 ? EVENT_BORN : EVENT_MARK);
        if (expected[i].seconds >= 0)
            assert_true(fabs(got->seconds - expected[i].seconds) < 0.01);
        else
            assert_true(got->seconds >= 0 && got->seconds < 10);
        if (expected[i].text)
            assert_string_equal(got->text, expected[i].text);
        else
            assert_true(strspn(got->text, "x") == strlen(got->text) && strlen(got->text) >= 94);
    }

    /* A recording from before there were marks. */
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    execute(db, "DROP TABLE mark");
    _cleanup_history_ History old = {0};
    assert_int_equal(recording_read(file, &old), 0);
    assert_int_equal(old.n_events, 1);
    execute(db, "CREATE TABLE mark(id, time, text)"); /* a table of that name that is not ours */
    sqlite3_close(db);
    _cleanup_history_ History other = {0};
    assert_int_equal(recording_read(file, &other), -EBADMSG);
}

/* What was found is read as it was written, also where it is not known; and older recordings have no tables
 * for it. */
static void test_sites(void **state)
{
    (void)state;
    file_remove();
    Recording *recording = NULL;
    sqlite3 *db = NULL;
    History head = {.began = 1e9, .interval = 1, .command = (char[]){"python"}, .pid = 10};
    SiteWindow windows[] = {
        {.seconds = 20,
         .duration = 10,
         .pid = 11,
         .worker = -1,
         .stage = SITE_STAGE_CENSUS,
         .growth = -5,
         .late_growth = INT64_MIN,
         .descriptors = -3,
         .cost_seconds = 0.25},
        {.seconds = 30,
         .duration = 9.5,
         .pid = 12,
         .worker = 3,
         .stage = SITE_STAGE_PYTHON,
         .deep = true,
         .growth = 1 << 20,
         .late_growth = 7,
         .n_sites = 2,
         .sites = {{SITE_PYTHON, 42, 1000, 500, 10, "/a/dataset.py", "load"},
                   {SITE_ATTRIBUTE, 0, 900, U64_UNKNOWN, 9, "", "dataset.cache: dict"}}},
    };
    assert_int_equal(recording_create(file, &head, &recording), 0);
    add(recording, 0, NULL, 0);
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    execute(db, "BEGIN IMMEDIATE");
    assert_int_equal(recording_add_sites(recording, &windows[0]), -EBUSY);
    execute(db, "ROLLBACK");
    for (size_t i = 0; i < ARRAY_SIZE(windows); i++)
        assert_int_equal(recording_add_sites(recording, &windows[i]), 0);
    recording_close(recording);

    _cleanup_history_ History history = {0};
    assert_int_equal(recording_read(file, &history), 0);
    assert_int_equal(history.n_windows, ARRAY_SIZE(windows));
    for (size_t i = 0; i < ARRAY_SIZE(windows); i++)
        assert_memory_equal(&history.windows[i], &windows[i], sizeof windows[i]);

    static const char *const lies[] = {
        "UPDATE site SET kind = 'perl'",       "UPDATE site SET line = -1",
        "UPDATE site SET bytes = 1e300",       "UPDATE site_window SET stage = 9",
        "UPDATE site_window SET duration = 0", "UPDATE site_window SET growth = 'much'",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
        _cleanup_history_ History refused = {0};
        execute(db, "BEGIN");
        execute(db, lies[i]);
        execute(db, "COMMIT");
        assert_int_equal(recording_read(file, &refused), -EBADMSG);
        execute(db, "UPDATE site SET kind = 'python', line = 42, bytes = 1000");
        execute(db, "UPDATE site_window SET stage = 2, duration = 10, growth = 5");
    }
    execute(db, "DROP TABLE site; DROP TABLE site_window");
    sqlite3_close(db);
    _cleanup_history_ History older = {0};
    assert_int_equal(recording_read(file, &older), 0);
    assert_int_equal(older.n_windows, 0);
}

static void test_moved_meanwhile(void **state)
{
    (void)state;
    char moved[sizeof file + 6];
    snprintf(moved, sizeof moved, "%s.moved", file);
    file_remove();
    ProcessMoment one = process(10, 1, 100);
    Recording *recording = create();
    add(recording, 0, &one, 1);
    add(recording, 1, &one, 1);
    assert_int_equal(rename(file, moved), 0);
    Moment moment = moment_of(2, &one, 1);
    assert_int_equal(recording_add(recording, &moment), -ESTALE);
    recording_close(recording);
    file_remove(); /* removes its -wal */
    assert_int_equal(rename(moved, file), 0);
    assert_int_equal(moments_of(file), 2);
}

static void test_a_command_without_end_is_cut(void **state)
{
    (void)state;
    file_remove();
    char *command = malloc(400001);
    assert_non_null(command);
    command[400000] = '\0';
    for (int i = 0; i < 400000; i += 2)
        memcpy(command + i, i < 100 ? "\xff\xff" : "\xc3\xa9", 2);
    History head = {.command = command, .interval = 1};
    Recording *recording = NULL;
    assert_int_equal(recording_create(file, &head, &recording), 0);
    recording_close(recording);
    _cleanup_history_ History history = {0};
    assert_int_equal(recording_read(file, &history), 0);
    assert_in_range(strlen(history.command), 65534, 65536);
    free(command);
}

/* Writes as fast as it can, and reports each moment after adding it. */
static void writer_live(int told)
{
    ProcessMoment processes[8];
    for (int i = 0; i < 8; i++)
        processes[i] = process(10 + i, (uint64_t)i, 1000);
    Recording *recording = create();
    for (int i = 0;; i++) {
        Moment moment = moment_of(i, processes, 8);
        if (recording_add(recording, &moment) < 0 || write(told, &i, sizeof i) != sizeof i)
            _exit(1);
    }
}

static void test_killed_at_any_moment(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++) {
        int pipes[2];
        file_remove();
        assert_int_equal(pipe(pipes), 0);
        pid_t pid = fork();
        if (pid == 0) {
            close(pipes[0]);
            writer_live(pipes[1]);
        }
        close(pipes[1]);
        int last = -1;
        while (last < round * 37 && read(pipes[0], &last, sizeof last) == sizeof last)
            continue;
        usleep((unsigned)round * 431);
        kill(pid, SIGKILL);
        while (read(pipes[0], &last, sizeof last) == sizeof last)
            continue;
        close(pipes[0]);
        waitpid(pid, NULL, 0);

        _cleanup_history_ History history = {0};
        assert_int_equal(recording_read(file, &history), 0);
        assert_true(history.series.n >= (size_t)last + 1); /* every reported moment is there */
        assert_true(history.series.n <= (size_t)last + 2);
        assert_int_equal(history.n_tracks, 8);
        for (size_t i = 0; i < 8; i++)
            assert_int_equal(history.tracks[i].series.n, history.series.n);
    }
}

static void test_no_room_stops_it_once(void **state)
{
    (void)state;
    file_remove();
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {256 * 1024, 256 * 1024};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        ProcessMoment processes[8];
        for (int i = 0; i < 8; i++)
            processes[i] = process(10 + i, (uint64_t)i, 1000);
        Recording *recording = create();
        int r = 0;
        int n = 0;
        for (; r >= 0 && n < 100000; n++) {
            Moment moment = moment_of(n, processes, 8);
            r = recording_add(recording, &moment);
        }
        Moment moment = moment_of(n, processes, 8);
        bool stopped = r < 0 && recording_add(recording, &moment) == r;
        recording_close(recording);
        _exit(stopped && n > 10 ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    _cleanup_history_ History history = {0};
    assert_int_equal(recording_read(file, &history), 0);
    assert_true(history.series.n > 10);
}

static void test_a_file_that_was_taken_away(void **state)
{
    (void)state;
    file_remove();
    ProcessMoment one = process(10, 1, 100);
    Recording *recording = create();
    add(recording, 0, &one, 1);
    unlink(file);
    Moment moment = moment_of(1, &one, 1);
    assert_int_equal(recording_add(recording, &moment), -ESTALE);
    assert_int_equal(recording_add(recording, &moment), -ESTALE);
    recording_close(recording);
    assert_int_equal(access(file, F_OK), -1);
}

/* A day with one sample per second, one peak, and a worker that lives for ten seconds of each hour. */
static void test_old_samples_are_thinned(void **state)
{
    (void)state;
    enum { MOMENTS = 86400, PEAK = 12345, SHORT_EVERY = 3600 };
    file_remove();
    Recording *recording = create();
    for (int i = 0; i < MOMENTS; i++) {
        ProcessMoment three[] = {process(10, 1, 1000000 + (uint64_t)i), process(11, 2, 5000),
                                 process(12, (uint64_t)(i / SHORT_EVERY), 1)};
        three[0].values[PROCESS_ANON] += i == PEAK ? 500000000 : 0;
        three[0].values[PROCESS_USS] = i % 7 == 0 ? (uint64_t)i : U64_UNKNOWN;
        Event event = {.seconds = i, .kind = i % 1000 == 0 ? EVENT_MARK : EVENT_ENDED, .pid = 12};
        Moment moment = moment_of(i, three, i % SHORT_EVERY >= 105 && i % SHORT_EVERY < 115 ? 3 : 2);
        moment.values[JOB_KIND_BYTES + KIND_TORCH] = i % 5 == 0 ? (uint64_t)i : U64_UNKNOWN;
        moment.events = &event;
        moment.n_events = 1;
        assert_int_equal(recording_add(recording, &moment), 0);
    }
    recording_close(recording);

    _cleanup_history_ History history = {0};
    assert_int_equal(recording_read(file, &history), 0);
    /* 3,600, 32,400 / 10, 50,400 / 60, plus the rest of groups that are not full yet. */
    assert_in_range(history.series.n, 3600 + 3240 + 840, 3600 + 3240 + 840 + 40);
    const ProcessTrack *trainer = history_track(&history, 10);
    uint64_t most = 0;
    double before = -1;
    for (size_t i = 0; i < trainer->series.n; i++) {
        double seconds = trainer->series.seconds[i];
        uint64_t anon = trainer->series.values[PROCESS_ANON][i];
        uint64_t uss = trainer->series.values[PROCESS_USS][i];
        most = MAX(most, anon);
        assert_true(seconds > before);
        before = seconds;
        if (seconds < MOMENTS - 3600 - 20) {
            assert_true(uss != U64_UNKNOWN); /* carried over from a dropped sample */
            assert_true(fabs((double)uss - seconds) <= (seconds < 50000 ? 120 : 20));
        }
        if (seconds != PEAK)
            assert_true((double)anon == 1000000 + seconds); /* one real sample, not a mix */
    }
    assert_true(most == 1000000 + PEAK + 500000000);
    for (size_t i = 0; i + 3700 < history.series.n; i++)
        assert_true(history.series.values[JOB_KIND_BYTES + KIND_TORCH][i] != U64_UNKNOWN);
    assert_true(history.n_events <= 20000 + 86);
    assert_true(history.events[0].seconds == 0); /* marks are never dropped */
    assert_true(history.n_tracks <= 2 + 2);      /* processes that lived between two kept samples are gone */
    assert_true(file_bytes() < 4 << 20);
}

static void read_expect(int wanted)
{
    _cleanup_history_ History history = {0};
    assert_int_equal(recording_read(file, &history), wanted);
}

static void change(const char *sql)
{
    sqlite3 *db = NULL;
    char *error = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", sql, error);
    sqlite3_close(db);
}

static void small_write(void)
{
    file_remove();
    Recording *recording = create();
    ProcessMoment both[] = {process(10, 1, 100), process(11, 1, 100)};
    Event event = {.seconds = 1, .kind = EVENT_MARK, .text = "one"};
    for (int i = 0; i < 20; i++) {
        Moment moment = moment_of(i, both, 2);
        moment.events = &event;
        moment.n_events = 1;
        assert_int_equal(recording_add(recording, &moment), 0);
    }
    recording_close(recording);
}

/* The contents of the file, to restore them: creating a new file would wait for the disk. */
typedef struct Image {
    unsigned char *bytes;
    size_t size;
} Image;

static Image image_take(void)
{
    Image image = {.size = file_bytes()};
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    image.bytes = malloc(image.size);
    assert_int_equal(read(fd, image.bytes, image.size), image.size);
    close(fd);
    return image;
}

static void image_put(const Image *image)
{
    int fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_int_equal(write(fd, image->bytes, image->size), image->size);
    close(fd);
}

static void test_lies(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        int expected;
    } lies[] = {
        {"PRAGMA user_version = 2", -EPROTO},
        {"PRAGMA user_version = 0", -EBADMSG},
        {"PRAGMA application_id = 1", -EBADMSG},
        {"DROP TABLE event", -EBADMSG},
        {"DROP TABLE sample; CREATE VIEW sample AS SELECT 1 AS moment", -EBADMSG},
        {"ALTER TABLE moment ADD COLUMN more GENERATED ALWAYS AS (zeroblob(1000000000))", -EBADMSG},
        {"DROP TABLE meta; CREATE TABLE meta(key, value)", -EBADMSG},
        {"DELETE FROM meta WHERE key = 'began'", -EBADMSG},
        {"UPDATE meta SET value = 'x' WHERE key = 'interval'", -EBADMSG},
        {"UPDATE meta SET value = 0 WHERE key = 'interval'", -EBADMSG},
        {"UPDATE meta SET value = 1e30 WHERE key = 'pid'", -EBADMSG},
        {"UPDATE meta SET value = x'00' WHERE key = 'command'", -EBADMSG},
        {"UPDATE sample SET anon = -1", -EBADMSG},
        {"UPDATE sample SET anon = 'much'", -EBADMSG},
        {"UPDATE sample SET anon = 1.5", -EBADMSG},
        {"UPDATE moment SET seconds = 5", -EBADMSG},
        {"UPDATE moment SET seconds = 9e999", -EBADMSG},
        {"UPDATE moment SET seconds = -1e13 WHERE id = 1", -EBADMSG},
        {"UPDATE moment SET seconds = NULL", -EBADMSG},
        {"UPDATE process SET role = 'boss'", -EBADMSG},
        {"UPDATE process SET pid = 10", -EBADMSG}, /* twice in one moment */
        {"UPDATE process SET pid = 1e12", -EBADMSG},
        {"UPDATE process SET command = printf('%.*c', 100000, 'x')", -EBADMSG},
        {"UPDATE process SET command = 'a' || char(0) || 'b'", -EBADMSG},
        {"DELETE FROM process", -EBADMSG},
        {"DELETE FROM moment WHERE id = 3", -EBADMSG},
        {"DELETE FROM moment WHERE id = 20", -EBADMSG},
        {"UPDATE event SET kind = 'party'", -EBADMSG},
        {"UPDATE event SET seconds = -id", -EBADMSG},
        {"UPDATE event SET text = printf('%.*c', 1000, 'x')", 0}, /* truncated */
        {"DELETE FROM sample", 0},
        {"DELETE FROM event", 0},
        {"DELETE FROM sample; DELETE FROM moment; DELETE FROM process; DELETE FROM event", 0},
        {"CREATE TABLE notes(text)", 0}, /* not ours, so it is ignored */
    };
    small_write();
    Image image = image_take();
    for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
        image_put(&image);
        change(lies[i].sql);
        _cleanup_history_ History history = {0};
        int r = recording_read(file, &history);
        if (r != lies[i].expected)
            fail_msg("%s: %d", lies[i].sql, r);
    }
    free(image.bytes);
}

static void test_broken_files(void **state)
{
    (void)state;
    small_write();
    Image image = image_take();
    unsigned random = 1;
    for (unsigned round = 0; round < 1000; round++) {
        Image broken = {malloc(image.size), image.size};
        memcpy(broken.bytes, image.bytes, image.size);
        for (unsigned n = 1 + round % 4; n > 0; n--) {
            random = random * 1103515245 + 12345;
            unsigned place = (random >> 4) % (unsigned)image.size;
            random = random * 1103515245 + 12345;
            broken.bytes[place] = (unsigned char)(random >> 16);
        }
        image_put(&broken);
        free(broken.bytes);
        _cleanup_history_ History history = {0};
        int r = recording_read(file, &history);
        assert_true(r == 0 || r == -EBADMSG || r == -EPROTO || r == -EACCES);
    }
    for (size_t n = image.size; n > 0; n -= MIN(n, (size_t)1021)) {
        image_put(&(Image){image.bytes, n});
        _cleanup_history_ History history = {0};
        int r = recording_read(file, &history);
        assert_true(r == -EBADMSG || (r == 0 && history.series.n == 20)); /* the last page is only an index */
    }
    image_put(&(Image){image.bytes, 0});
    read_expect(-EBADMSG);
    free(image.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_written_is_read),
        cmocka_unit_test(test_one_that_a_look_missed_is_one_process),
        cmocka_unit_test(test_what_is_no_recording_stays),
        cmocka_unit_test(test_a_recording_is_kept_unless_it_is_written),
        cmocka_unit_test(test_somebody_else_writes_into_it),
        cmocka_unit_test(test_somebody_never_lets_go),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_moved_meanwhile),
        cmocka_unit_test(test_a_command_without_end_is_cut),
        cmocka_unit_test(test_what_was_kept_before_is_not_mixed_with_it),
        cmocka_unit_test(test_killed_at_any_moment),
        cmocka_unit_test(test_no_room_stops_it_once),
        cmocka_unit_test(test_a_file_that_was_taken_away),
        cmocka_unit_test(test_old_samples_are_thinned),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_broken_files),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
