/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "language.h"
#include "watch.h"

/* Pictures as they should be; UPDATE_PICTURES=1 in the environment rewrites them. */
static const char *pictures_path;

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

enum { LOOKS = 121 };

/* --- A machine that never was ------------------------------------------------------------------------- */

typedef struct Fixture {
    History history;
    Survey survey;
    WatchScene scene;
    WatchView view;
    Picture picture;
} Fixture;

typedef struct Cast {
    int pid;
    int ppid;
    Role role;
    int job;
    uint64_t uss;
    uint64_t uss_a_look;
    uint64_t shmem;
    uint64_t fds;
    int from; /* looks */
    int until;
    const char *command;
} Cast;

static const Cast casts[] = {
    {4000, 1, ROLE_OTHER, 0, 20 * MIB, 0, 0, 12, 0, LOOKS, "/usr/bin/python3 /usr/bin/torchrun train.py"},
    {4100, 4000, ROLE_TRAINER, 4100, 1800 * MIB, 2 * MIB, 640 * MIB, 61, 0, LOOKS,
     "/opt/venv/bin/python /home/ann/project/train.py --batch 64 --workers 3"},
    {4101, 4100, ROLE_WORKER, 4100, 300 * MIB, 0, 128 * MIB, 24, 0, LOOKS,
     "/opt/venv/bin/python /home/ann/project/train.py --batch 64 --workers 3"},
    {4102, 4100, ROLE_WORKER, 4100, 310 * MIB, 0, 128 * MIB, 24, 0, 110,
     "/opt/venv/bin/python /home/ann/project/train.py --batch 64 --workers 3"},
    {4103, 4100, ROLE_WORKER, 4100, 305 * MIB, 0, 128 * MIB, 25, 112, LOOKS,
     "/opt/venv/bin/python /home/ann/project/train.py --batch 64 --workers 3"},
    {4200, 4000, ROLE_TRAINER, 4200, 90 * MIB, 0, 4 * MIB, 120345, 0, LOOKS,
     "python 训练.py \x1b[2J\x1b[31m\xff --数据 /数据/图像"},
    /* Its parent has gone: it is still its trainer's. */
    {4201, 1, ROLE_WORKER, 4200, U64_UNKNOWN, 0, 4 * MIB, 9, 100, LOOKS, "python e\xcc\x81tude.py"},
    {9000, 1, ROLE_OTHER, 0, U64_UNKNOWN, 0, 900 * MIB, 5, 0, LOOKS, "ray::IDLE"},
};

static void moment_make(int look, Moment *moment, ProcessMoment *processes, Event *events)
{
    *moment = (Moment){.seconds = look, .processes = processes, .events = events};
    for (size_t i = 0; i < JOB_METRICS; i++)
        moment->values[i] = U64_UNKNOWN;
    moment->values[JOB_MEMORY_TOTAL] = 64 * GIB;
    moment->values[JOB_MEMORY_AVAILABLE] = 40 * GIB;
    moment->values[JOB_GROUP_LIMIT] = 32 * GIB;
    moment->values[JOB_GROUP_USED] = 30 * GIB;
    moment->values[JOB_GROUP_FILE] = 3 * GIB;
    moment->values[JOB_SHM_SIZE] = 2 * GIB;
    moment->values[JOB_SHM_USED] = 700 * MIB + (uint64_t)look * 10 * MIB;
    moment->values[JOB_GUARD_BYTES] = 950 * MIB;
    moment->values[JOB_GUARD_BUDGET] = GIB;
    moment->values[JOB_GUARD_WAITING] = 3;
    if (look % 10 == 0) {
        moment->values[JOB_KIND_BYTES + KIND_TORCH] = 600 * MIB;
        moment->values[JOB_KIND_BYTES + KIND_NCCL] = 74 * MIB;
        moment->values[JOB_KIND_BYTES + KIND_SHMGUARD] = 950 * MIB;
    }
    for (size_t i = 0; i < ARRAY_SIZE(casts); i++) {
        const Cast *cast = &casts[i];
        if (cast->from == look && look > 0)
            events[moment->n_events++] = (Event){look, EVENT_BORN, cast->pid, cast->role, ""};
        if (cast->until == look)
            events[moment->n_events++] = (Event){look, EVENT_ENDED, cast->pid, cast->role, "SIGKILL\n"};
        if (look < cast->from || look >= cast->until)
            continue;
        ProcessMoment *process = &processes[moment->n_processes++];
        *process = (ProcessMoment){.pid = cast->pid,
                                   .ppid = cast->ppid,
                                   .start_ticks = (uint64_t)cast->pid,
                                   .role = cast->role,
                                   .job = cast->job,
                                   .comm = "python",
                                   .command = cast->command};
        for (size_t m = 0; m < PROCESS_METRICS; m++)
            process->values[m] = U64_UNKNOWN;
        uint64_t uss = cast->uss == U64_UNKNOWN ? 50 * MIB : cast->uss + (uint64_t)look * cast->uss_a_look;
        process->values[PROCESS_ANON] = uss + 10 * MIB;
        process->values[PROCESS_FILE] = 40 * MIB;
        process->values[PROCESS_SHMEM] = cast->shmem;
        process->values[PROCESS_FDS] = cast->fds;
        process->values[PROCESS_THREADS] = 4;
        process->values[PROCESS_CPU_MSEC] = (uint64_t)look * 500;
        if (cast->uss != U64_UNKNOWN && (look + cast->pid) % 5 == 0) {
            process->values[PROCESS_USS] = uss;
            process->values[PROCESS_PSS] = uss + 20 * MIB;
            process->values[PROCESS_SHM] = cast->shmem;
        }
    }
}

static Segment *segment_add(Survey *survey, const char *name, SegmentKind kind, uint64_t bytes, int holder)
{
    Segment *segment =
        ARENA_PUSH(&survey->arena, survey->segments, survey->n_segments, survey->segments_capacity);
    *segment = (Segment){.name = text_of(name),
                         .inode = survey->n_segments,
                         .size_bytes = bytes,
                         .allocated_bytes = bytes,
                         .kind = kind,
                         .backing = kind == KIND_SHMGUARD ? BACKING_MEMFD : BACKING_SHM,
                         .on_mount = kind != KIND_SHMGUARD};
    if (holder > 0) {
        segment->holders = arena_alloc(&survey->arena, 2 * sizeof(int));
        segment->holders[0] = holder;
        segment->holders[1] = holder + 1;
        segment->n_holders = 2;
    }
    return segment;
}

static int fixture_open(void **state)
{
    Fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(history_init(&fixture->history, "", 0, 1.7e9, 1), 0);
    for (int look = 0; look < LOOKS; look++) {
        Moment moment;
        ProcessMoment processes[ARRAY_SIZE(casts)];
        Event events[2 * ARRAY_SIZE(casts)];
        moment_make(look, &moment, processes, events);
        assert_int_equal(history_add(&fixture->history, &moment), 0);
    }
    /* Long enough ago: what is not known of it will not be. */
    fixture->history.tracks[history_track(&fixture->history, 9000) - fixture->history.tracks].first_seconds =
        -300;
    segment_add(&fixture->survey, "torch_4101_1_0", KIND_TORCH, 600 * MIB, 4100);
    segment_add(&fixture->survey, "nccl-AbCdEf", KIND_NCCL, 74 * MIB, 4100);
    segment_add(&fixture->survey, "psm_\x1b[2J数据", KIND_PYTHON, 20 * MIB, 0);
    segment_add(&fixture->survey, "shmguard", KIND_SHMGUARD, 950 * MIB, 4100);
    fixture->scene = (WatchScene){
        .history = &fixture->history,
        .survey = &fixture->survey,
        .survey_seconds = 118,
        .guards = 1,
        .own_cpu = 0.0042,
        .own_bytes = 5 * MIB,
    };
    fixture->view.at = LOOKS - 1;
    *state = fixture;
    return 0;
}

static int fixture_close(void **state)
{
    Fixture *fixture = *state;
    history_free(&fixture->history);
    survey_free(&fixture->survey);
    picture_free(&fixture->picture);
    free(fixture);
    return 0;
}

static void draw(Fixture *fixture, unsigned columns, unsigned rows, bool utf8)
{
    assert_int_equal(watch_draw(&fixture->scene, &fixture->view, &fixture->picture, columns, rows, utf8), 0);
}

static void press(Fixture *fixture, uint32_t key)
{
    assert_int_equal(watch_press(&fixture->view, &fixture->scene, key), ACT_NONE);
    draw(fixture, 80, 24, true);
}

static void type(Fixture *fixture, const char *words)
{
    for (; *words; words++)
        press(fixture, (uint32_t)*words);
}

/* The picture as text, one line a row. */
static char *picture_all(const Picture *picture)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    Terminal terminal = {.out = out, .columns = picture->columns, .utf8 = picture->utf8};
    assert_non_null(out);
    picture_write(picture, &terminal);
    fclose(out);
    return text;
}

static bool shows(const Fixture *fixture, const char *words)
{
    _cleanup_free_ char *text = picture_all(&fixture->picture);
    return strstr(text, words) != NULL;
}

static char *row_text(const Fixture *fixture, unsigned row)
{
    char *text = picture_all(&fixture->picture);
    char *start = text;
    for (unsigned i = 0; i < row; i++)
        start = strchr(start, '\n') + 1;
    char *line = strndup(start, (size_t)(strchr(start, '\n') - start));
    free(text);
    return line;
}

/* --- Pictures ----------------------------------------------------------------------------------------- */

static void compare(const Fixture *fixture, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.txt", pictures_path, name);
    _cleanup_free_ char *text = picture_all(&fixture->picture);
    if (getenv("UPDATE_PICTURES")) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(text, out);
        fclose(out);
        return;
    }
    char wanted[65536] = {0};
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    size_t n = fread(wanted, 1, sizeof wanted - 1, in);
    fclose(in);
    wanted[n] = '\0';
    if (strcmp(text, wanted) != 0)
        fprintf(stderr, "%s is now\n%s", name, text);
    assert_string_equal(text, wanted);
}

static void test_pictures(void **state)
{
    Fixture *fixture = *state;
    static const struct {
        unsigned columns;
        unsigned rows;
    } sizes[] = {{80, 24}, {200, 50}, {40, 10}};
    static const struct {
        const char *name;
        WatchPage page;
        bool flat;
        WatchColumn sort;
        bool help;
    } views[] = {
        {"tree", PAGE_PROCESSES, false, WATCH_PID, false},
        {"flat", PAGE_PROCESSES, true, WATCH_RSS, false},
        {"segments", PAGE_SEGMENTS, false, WATCH_PID, false},
        {"events", PAGE_EVENTS, false, WATCH_PID, false},
        {"help", PAGE_PROCESSES, false, WATCH_PID, true},
    };
    fixture->view.help = true;
    draw(fixture, 200, 50, true);
    _cleanup_free_ char *help = picture_all(&fixture->picture);
    TEXT_FOR_EACH_LINE (line, text_of(help))
        assert_true(line.size <= 80);
    for (size_t s = 0; s < ARRAY_SIZE(sizes); s++)
        for (size_t v = 0; v < ARRAY_SIZE(views); v++)
            for (int utf8 = 0; utf8 < 2; utf8++) {
                char name[64];
                fixture->view = (WatchView){.page = views[v].page,
                                            .flat = views[v].flat,
                                            .sort = views[v].sort,
                                            .help = views[v].help,
                                            .at = LOOKS - 1};
                draw(fixture, sizes[s].columns, sizes[s].rows, utf8 != 0);
                snprintf(name, sizeof name, "%s-%ux%u-%s", views[v].name, sizes[s].columns, sizes[s].rows,
                         utf8 ? "utf8" : "plain");
                compare(fixture, name);
            }
}

/* Wide characters must neither move a column nor reach beyond the edge. */
static void test_chinese_pictures(void **state)
{
    Fixture *fixture = *state;
    static const struct {
        const char *name;
        WatchView view;
        unsigned columns;
        unsigned rows;
    } views[] = {
        {"tree-80x24-zh", {.at = LOOKS - 1}, 80, 24},
        {"tree-40x10-zh", {.at = LOOKS - 1}, 40, 10},
        {"tree-200x50-zh", {.at = LOOKS - 1}, 200, 50},
        {"flat-80x24-zh", {.at = LOOKS - 1, .flat = true, .sort = WATCH_RSS}, 80, 24},
        {"segments-80x24-zh", {.at = LOOKS - 1, .page = PAGE_SEGMENTS}, 80, 24},
        {"events-80x24-zh", {.at = LOOKS - 1, .page = PAGE_EVENTS}, 80, 24},
        {"help-80x24-zh", {.at = LOOKS - 1, .help = true}, 80, 24},
        {"search-80x24-zh", {.at = LOOKS - 1, .edit = EDIT_SEARCH, .search = "图像", .missed = true}, 80, 24},
    };
    Language former = language_switch(LANGUAGE_CHINESE);
    for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
        fixture->view = views[i].view;
        draw(fixture, views[i].columns, views[i].rows, true);
        compare(fixture, views[i].name);
    }
    fixture->scene.replay = "night.db";
    fixture->view = (WatchView){.at = 60, .playing = true, .speed = 2};
    draw(fixture, 80, 24, true);
    compare(fixture, "replay-80x24-zh");
    (void)language_switch(former);
}

static void test_replay_picture(void **state)
{
    Fixture *fixture = *state;
    fixture->scene.replay = "night.db";
    fixture->scene.survey = NULL;
    fixture->scene.job = true;
    fixture->view = (WatchView){.at = 60, .playing = true, .speed = 2};
    draw(fixture, 80, 24, true);
    compare(fixture, "replay-80x24-utf8");
    assert_int_equal(watch_draw_whole(&fixture->scene, &fixture->view, &fixture->picture, 80, true), 0);
    compare(fixture, "once-80-utf8");
}

/* Every size, every page: nothing beyond the edge (the sanitizers would say so), nothing that steers. */
static void test_all_sizes(void **state)
{
    Fixture *fixture = *state;
    for (unsigned columns = 1; columns < 130; columns += columns < 12 ? 1 : 7)
        for (unsigned rows = 1; rows < 40; rows += rows < 12 ? 1 : 5)
            for (unsigned i = 0; i < 40; i++) {
                fixture->scene.replay = i & 1 ? "a.db" : NULL;
                fixture->view.page = (WatchPage)(i / 2 % PAGES);
                fixture->view.edit = i % 5 == 1 ? EDIT_SEARCH : i % 5 == 2 ? EDIT_FILTER : EDIT_NONE;
                fixture->view.help = i == 39;
                (void)language_switch(i % 8 < 4 ? LANGUAGE_ENGLISH : LANGUAGE_CHINESE);
                draw(fixture, columns, rows, i % 4 < 2);
                assert_int_equal(fixture->picture.columns, columns);
                _cleanup_free_ char *text = picture_all(&fixture->picture);
                for (const char *c = text; *c; c++)
                    assert_true((unsigned char)*c >= 0x20 || *c == '\n');
                Text rest = text_of(text);
                Text line;
                while (text_line(&rest, &line))
                    assert_true(text_columns(line) <= columns);
                watch_click(&fixture->view, rows - 1, columns - 1);
                watch_click(&fixture->view, rows / 2, columns / 2);
            }
    (void)language_switch(LANGUAGES);
}

static void test_nothing(void **state)
{
    (void)state;
    Fixture fixture = {0};
    assert_int_equal(history_init(&fixture.history, "", 0, 1.7e9, 1), 0);
    Moment moment = {.seconds = 0};
    for (size_t i = 0; i < JOB_METRICS; i++)
        moment.values[i] = U64_UNKNOWN;
    assert_int_equal(history_add(&fixture.history, &moment), 0);
    fixture.scene = (WatchScene){.history = &fixture.history, .own_cpu = -1, .own_bytes = U64_UNKNOWN};
    for (WatchPage page = 0; page < PAGES; page++) {
        fixture.view.page = page;
        draw(&fixture, 80, 24, true);
        draw(&fixture, 10, 3, false);
    }
    fixture.view.page = PAGE_PROCESSES;
    draw(&fixture, 80, 24, true);
    assert_true(shows(&fixture, "No training processes"));
    press(&fixture, WATCH_KEY_DOWN);
    press(&fixture, WATCH_KEY_END);
    press(&fixture, '/');
    type(&fixture, "x");
    history_free(&fixture.history);
    picture_free(&fixture.picture);
}

/* --- Keys --------------------------------------------------------------------------------------------- */

static void expect_order(const Fixture *fixture, const int *pids)
{
    for (unsigned i = 0; pids[i]; i++) {
        _cleanup_free_ char *line = row_text(fixture, fixture->view.layout.list_row + i);
        assert_int_equal(atoi(line), pids[i]);
    }
}

static void test_tree_and_sort(void **state)
{
    Fixture *fixture = *state;
    draw(fixture, 80, 24, true);
    expect_order(fixture, (int[]){4000, 4100, 4101, 4103, 4200, 4201, 9000, 0});
    assert_true(shows(fixture, "│ ├─worker"));
    assert_true(shows(fixture, "  └─worker"));
    press(fixture, 't');
    assert_true(fixture->view.flat);
    expect_order(fixture, (int[]){4000, 4100, 4101, 4103, 4200, 4201, 9000, 0});
    press(fixture, 'I');
    expect_order(fixture, (int[]){9000, 4201, 4200, 4103, 4101, 4100, 4000, 0});
    press(fixture, '>'); /* role, and the order as it should be */
    assert_int_equal(fixture->view.sort, WATCH_ROLE);
    press(fixture, '>');
    assert_int_equal(fixture->view.sort, WATCH_USS);
    expect_order(fixture, (int[]){4100, 4103, 4101, 4200, 4000, 4201, 9000, 0}); /* the unknown last */
    press(fixture, 'I');
    expect_order(fixture, (int[]){4000, 4200, 4101, 4103, 4100, 0});
    press(fixture, '<');
    press(fixture, '<');
    assert_int_equal(fixture->view.sort, WATCH_PID);
    press(fixture, '<');
    assert_int_equal(fixture->view.sort, WATCH_COMMAND);
}

static void test_cursor_follows(void **state)
{
    Fixture *fixture = *state;
    draw(fixture, 80, 24, true);
    press(fixture, WATCH_KEY_DOWN);
    press(fixture, WATCH_KEY_DOWN);
    assert_int_equal(fixture->view.chosen, 4101);
    press(fixture, 't');
    press(fixture, 'I');
    assert_int_equal(fixture->view.chosen, 4101);
    assert_int_equal(fixture->view.cursor, 4);
    press(fixture, WATCH_KEY_END);
    assert_int_equal(fixture->view.chosen, 4000);
    press(fixture, WATCH_KEY_HOME);
    assert_int_equal(fixture->view.chosen, 9000);
    press(fixture, WATCH_KEY_PAGE_DOWN);
    assert_int_equal(fixture->view.chosen, 4000);
    draw(fixture, 80, 8, true); /* scrolls so that it is seen */
    assert_true(fixture->view.top > 0);
    assert_true(fixture->view.cursor < fixture->view.top + fixture->view.layout.list_rows);
}

static void test_filter_and_search(void **state)
{
    Fixture *fixture = *state;
    draw(fixture, 80, 24, true);
    press(fixture, WATCH_KEY_F0 + 4);
    type(fixture, "WORKERQ"); /* keys of the list are letters here */
    assert_int_equal(fixture->view.layout.n_items, 0);
    assert_true(shows(fixture, "Nothing matches"));
    press(fixture, WATCH_KEY_BACKSPACE);
    assert_true(shows(fixture, "Filter: WORKER"));
    expect_order(fixture, (int[]){4100, 4101, 4103, 4201, 0}); /* a word of its command counts */
    press(fixture, WATCH_KEY_ENTER);
    assert_true(shows(fixture, "FILTER"));
    press(fixture, WATCH_KEY_F0 + 4);
    press(fixture, WATCH_KEY_ESCAPE);
    assert_int_equal(fixture->view.layout.n_items, 7);

    press(fixture, '/');
    type(fixture, "ray");
    assert_int_equal(fixture->view.chosen, 9000);
    type(fixture, "?");
    assert_true(shows(fixture, "not found"));
    press(fixture, WATCH_KEY_ESCAPE);
    press(fixture, WATCH_KEY_HOME);
    press(fixture, '/');
    type(fixture, "train.py");
    press(fixture, WATCH_KEY_ENTER);
    assert_int_equal(fixture->view.chosen, 4000);
    press(fixture, 'n');
    assert_int_equal(fixture->view.chosen, 4100);
    press(fixture, WATCH_KEY_F0 + 3);
    assert_int_equal(fixture->view.chosen, 4101);
    press(fixture, 'N');
    assert_int_equal(fixture->view.chosen, 4100);
    press(fixture, 'N');
    press(fixture, 'N'); /* round the edge */
    assert_int_equal(fixture->view.chosen, 4103);

    /* Characters beyond ASCII are typed whole and taken back whole. */
    press(fixture, WATCH_KEY_F0 + 4);
    press(fixture, 0x8BAD);
    press(fixture, 0x7EC3);
    expect_order(fixture, (int[]){4200, 0});
    press(fixture, WATCH_KEY_BACKSPACE);
    assert_string_equal(fixture->view.filter, "训");
    press(fixture, WATCH_KEY_BACKSPACE);
    press(fixture, WATCH_KEY_BACKSPACE);
    assert_string_equal(fixture->view.filter, "");
    for (int i = 0; i < 300; i++)
        press(fixture, 0x8BAD);
    assert_true(strlen(fixture->view.filter) < WATCH_WORDS_MAX);
}

static void test_pages_help_and_quit(void **state)
{
    Fixture *fixture = *state;
    draw(fixture, 80, 24, true);
    press(fixture, WATCH_KEY_F0 + 2);
    assert_true(shows(fixture, "torch_4101_1_0"));
    assert_true(shows(fixture, "psm_\\x1b[2J数据"));
    assert_true(shows(fixture, "none seen"));
    press(fixture, '>'); /* by name: the order of bytes */
    assert_int_equal(fixture->view.segment_sort, PS_SORT_NAME);
    assert_int_equal(fixture->view.chosen, 4);
    press(fixture, '\t');
    assert_true(shows(fixture, "worker 4102 ended: SIGKILL\\n"));
    press(fixture, '\t');
    assert_int_equal(fixture->view.page, PAGE_PROCESSES);
    press(fixture, 'h');
    assert_true(shows(fixture, "private memory"));
    assert_int_equal(watch_press(&fixture->view, &fixture->scene, 'q'), ACT_NONE);
    assert_false(fixture->view.help);
    assert_int_equal(watch_press(&fixture->view, &fixture->scene, 'q'), ACT_QUIT);
    assert_int_equal(watch_press(&fixture->view, &fixture->scene, WATCH_KEY_F0 + 10), ACT_QUIT);
    assert_int_equal(watch_press(&fixture->view, &fixture->scene, 3), ACT_INTERRUPT);
    assert_int_equal(watch_press(&fixture->view, &fixture->scene, 26), ACT_SUSPEND);
    for (uint32_t key = 0; key < 300; key++)
        (void)watch_press(&fixture->view, &fixture->scene, key);
}

static void test_time(void **state)
{
    Fixture *fixture = *state;
    draw(fixture, 80, 24, true);
    press(fixture, WATCH_KEY_LEFT); /* live: there is nowhere to go */
    assert_true(fixture->view.at == LOOKS - 1);
    press(fixture, 'Z');
    assert_true(shows(fixture, "PAUSED"));
    for (int i = 0; i < 12; i++)
        press(fixture, WATCH_KEY_LEFT);
    assert_true(shows(fixture, "4102")); /* who has ended is there again */
    assert_false(shows(fixture, "4103"));
    press(fixture, 'Z');
    assert_false(fixture->view.paused);

    fixture->scene.replay = "night.db";
    press(fixture, 'b');
    assert_true(fixture->view.at == 0);
    press(fixture, WATCH_KEY_LEFT);
    assert_true(fixture->view.at == 0);
    press(fixture, ']');
    assert_true(fixture->view.at == 60);
    press(fixture, '[');
    press(fixture, WATCH_KEY_RIGHT);
    assert_true(fixture->view.at == 1);
    assert_false(watch_play(&fixture->view, &fixture->history, 5));
    press(fixture, ' ');
    press(fixture, '+');
    assert_true(watch_play(&fixture->view, &fixture->history, 5));
    assert_true(fixture->view.at == 11);
    press(fixture, '-');
    press(fixture, '-');
    assert_true(watch_play(&fixture->view, &fixture->history, 2));
    assert_true(fixture->view.at == 12);
    assert_true(shows(fixture, "x1/2 playing"));
    assert_true(watch_play(&fixture->view, &fixture->history, 1e9));
    assert_false(fixture->view.playing);
    assert_true(fixture->view.at == LOOKS - 1);
    press(fixture, ' '); /* at the end: from the beginning */
    assert_true(fixture->view.playing && fixture->view.at == 0);
    for (int i = 0; i < 99; i++)
        press(fixture, '+');
    assert_int_equal(fixture->view.speed, WATCH_SPEED_MOST);
    for (int i = 0; i < 99; i++)
        press(fixture, '-');
    assert_int_equal(fixture->view.speed, WATCH_SPEED_LEAST);
}

static void test_mouse(void **state)
{
    Fixture *fixture = *state;
    draw(fixture, 80, 24, true);
    const WatchLayout *layout = &fixture->view.layout;
    watch_click(&fixture->view, layout->list_row + 3, 20);
    draw(fixture, 80, 24, true);
    assert_int_equal(fixture->view.chosen, 4103);
    watch_click(&fixture->view, layout->list_row + 12, 20); /* below the last */
    draw(fixture, 80, 24, true);
    assert_int_equal(fixture->view.chosen, 4103);
    for (size_t i = 0; i < layout->n_heads; i++)
        if (layout->heads[i].what == WATCH_RSS)
            watch_click(&fixture->view, layout->head_row, layout->heads[i].column);
    assert_int_equal(fixture->view.sort, WATCH_RSS);
    assert_false(fixture->view.inverted);
    for (size_t i = 0; i < layout->n_heads; i++)
        if (layout->heads[i].what == WATCH_RSS)
            watch_click(&fixture->view, layout->head_row, layout->heads[i].column);
    assert_true(fixture->view.inverted);
    watch_wheel(&fixture->view, -1);
    draw(fixture, 80, 24, true);
    assert_int_not_equal(fixture->view.chosen, 4103);
    press(fixture, '\t');
    watch_click(&fixture->view, layout->head_row, 0);
    assert_int_equal(fixture->view.segment_sort, PS_SORT_NAME);
}

/* --- What is said ------------------------------------------------------------------------------------- */

static void test_states_have_words(void **state)
{
    Fixture *fixture = *state;
    draw(fixture, 80, 24, false);
    assert_true(shows(fixture, "93% warning, 3 waiting")); /* the budget */
    assert_true(shows(fixture, "84% warning"));            /* the group without its cache */
    assert_true(shows(fixture, "93% critical"));           /* /dev/shm */
    assert_true(shows(fixture, "38% fine"));
    assert_true(shows(fixture, "T torch 600M  N nccl 74M"));
    assert_true(shows(fixture, "- no holder seen 20M"));
    draw(fixture, 40, 10, false);
    assert_true(shows(fixture, "shm 93%!!"));
    assert_true(shows(fixture, "cg 84%!"));
    assert_true(shows(fixture, "RAM 38% "));
}

/* A budget is meant to be full; what harms is that a worker is refused. */
static void test_budget(void **state)
{
    Fixture *fixture = *state;
    static const struct {
        uint64_t waiting;
        uint64_t refused;
        const char *shown;
    } looks[] = {
        {0, 2, "of 1.0G 100% fine"}, /* those were refused before anybody looked */
        {0, 2, "of 1.0G 100% fine"},
        {1, 2, "of 1.0G 100% warning, 1 waiting"},
        {1, 3, "of 1.0G 100% critical, 1 refused"},
        {0, 3, "of 1.0G 100% critical, 1 refused"},
        {0, 3, "of 1.0G 100% fine"}, /* minutes later */
    };
    for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
        Moment moment = {.seconds = i + 1 < ARRAY_SIZE(looks) ? 1000 + (double)i : 2000};
        for (size_t m = 0; m < JOB_METRICS; m++)
            moment.values[m] = U64_UNKNOWN;
        moment.values[JOB_GUARD_BYTES] = GIB;
        moment.values[JOB_GUARD_BUDGET] = GIB;
        moment.values[JOB_GUARD_WAITING] = looks[i].waiting;
        moment.values[JOB_GUARD_REFUSED] = looks[i].refused;
        assert_int_equal(history_add(&fixture->history, &moment), 0);
        fixture->view.at = moment.seconds;
        draw(fixture, 80, 24, false);
        assert_true(shows(fixture, looks[i].shown));
    }
}

static void test_forecast_and_events(void **state)
{
    Fixture *fixture = *state;
    draw(fixture, 120, 24, true);
    /* 148 MiB are left, 10 MiB a second go. */
    assert_true(
        shows(fixture, "/dev/shm full in about 15 s (estimated); 10 s ago: worker 4102 ended: SIGKILL\\n"));
    fixture->view.at = 30;
    draw(fixture, 120, 24, true);
    assert_true(shows(fixture, "/dev/shm full in about 105 s (estimated); no events yet"));
    fixture->view.at = 5;
    draw(fixture, 120, 24, true);
    assert_false(shows(fixture, "estimated")); /* too early to tell */
    fixture->view.at = 101;
    draw(fixture, 120, 24, true);
    assert_true(shows(fixture, "…")); /* its turn is to come */

    /* Many of a kind are told as one. */
    for (int i = 0; i < 8; i++) {
        Moment moment = {.seconds = 121 + i * 0.1, .n_events = 1};
        for (size_t m = 0; m < JOB_METRICS; m++)
            moment.values[m] = U64_UNKNOWN;
        Event event = {moment.seconds, EVENT_ENDED, 5000 + i, ROLE_WORKER, "SIGKILL"};
        moment.events = &event;
        assert_int_equal(history_add(&fixture->history, &moment), 0);
    }
    fixture->view.at = 122;
    draw(fixture, 120, 24, true);
    assert_true(shows(fixture, "8 workers ended"));
    Moment moment = {.seconds = 123, .n_events = 1};
    for (size_t m = 0; m < JOB_METRICS; m++)
        moment.values[m] = U64_UNKNOWN;
    Event event = {122.5, EVENT_OOM_KILL, 0, ROLE_OTHER, "python (pid 5000)"};
    moment.events = &event;
    assert_int_equal(history_add(&fixture->history, &moment), 0);
    fixture->view.at = 123;
    draw(fixture, 120, 24, true);
    assert_true(shows(fixture, "OOM kill: python (pid 5000)"));

    /* The user's words come as they are, and harmless. */
    moment.seconds = 300;
    event = (Event){299, EVENT_EPOCH, 0, ROLE_OTHER, "epoch 3\033[2J"};
    assert_int_equal(history_add(&fixture->history, &moment), 0);
    fixture->view.at = 300;
    draw(fixture, 120, 24, true);
    assert_true(shows(fixture, "ago: epoch 3\\x1b[2J"));
}

static void test_trends(void **state)
{
    Fixture *fixture = *state;
    draw(fixture, 120, 24, true);
    _cleanup_free_ char *trainer = row_text(fixture, fixture->view.layout.list_row + 1);
    assert_non_null(strstr(trainer, "↑"));
    assert_non_null(strstr(trainer, "+120M/min"));
    assert_non_null(strstr(trainer, "█"));
    _cleanup_free_ char *worker = row_text(fixture, fixture->view.layout.list_row + 2);
    assert_non_null(strstr(worker, "→ ▁▁▁▁▁▁▁▁"));
    assert_null(strstr(worker, "/min"));
    draw(fixture, 120, 24, false);
    _cleanup_free_ char *plain = row_text(fixture, fixture->view.layout.list_row + 1);
    assert_non_null(strstr(plain, "^ "));
}

/* A recording may say anything: parents in a circle, a process of no time, one pid twice. */
static void test_odd_families(void **state)
{
    (void)state;
    Fixture fixture = {0};
    assert_int_equal(history_init(&fixture.history, "", 0, 1.7e9, 1), 0);
    ProcessMoment processes[80];
    for (int i = 0; i < 80; i++)
        processes[i] = (ProcessMoment){.pid = i + 1,
                                       .ppid = i == 0 ? 80 : i,
                                       .start_ticks = i < 70 ? (uint64_t)i : 7,
                                       .job = i % 7,
                                       .command = ""};
    Moment moment = {.processes = processes, .n_processes = 80};
    assert_int_equal(history_add(&fixture.history, &moment), 0);
    fixture.scene = (WatchScene){.history = &fixture.history};
    draw(&fixture, 200, 120, true);
    assert_int_equal(fixture.view.layout.n_items, 80);
    history_free(&fixture.history);
    picture_free(&fixture.picture);
}

int main(int argc, char **argv)
{
    if (argc != 2 || !setlocale(LC_CTYPE, "C.UTF-8"))
        return 77;
    pictures_path = argv[1];
    setenv("TZ", "UTC", 1);
    tzset();
#define WITH_FIXTURE(f) cmocka_unit_test_setup_teardown(f, fixture_open, fixture_close)
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_pictures),
        WITH_FIXTURE(test_chinese_pictures),
        WITH_FIXTURE(test_replay_picture),
        WITH_FIXTURE(test_all_sizes),
        cmocka_unit_test(test_nothing),
        WITH_FIXTURE(test_tree_and_sort),
        WITH_FIXTURE(test_cursor_follows),
        WITH_FIXTURE(test_filter_and_search),
        WITH_FIXTURE(test_pages_help_and_quit),
        WITH_FIXTURE(test_time),
        WITH_FIXTURE(test_mouse),
        WITH_FIXTURE(test_states_have_words),
        WITH_FIXTURE(test_budget),
        WITH_FIXTURE(test_forecast_and_events),
        WITH_FIXTURE(test_trends),
        cmocka_unit_test(test_odd_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
