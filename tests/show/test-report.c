/* SPDX-License-Identifier: Apache-2.0 */
/* What report shows of a history: JSON, text, and the data of the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "made-job.h"
#include "page.h"
#include "show-report.h"

#define MIB (UINT64_C(1) << 20)

typedef struct Made {
    Arena arena;
    History history;
    Verdicts verdicts;
    ReportView view;
    FleetView fleet;
} Made;

static int moment_take(void *context, const Moment *moment)
{
    return history_add(context, moment);
}

/* Verdicts are made here, too: how they are judged is not this test's. */
static void made_open(Made *made, const MadeJob *job)
{
    *made = (Made){0};
    assert_int_equal(history_init(&made->history, MADE_COMMAND, MADE_TRAINER, MADE_BEGAN, job->interval), 0);
    assert_int_equal(made_job_play(job, moment_take, &made->history), 0);
    static const struct {
        VerdictId id;
        int pid;
        Role role;
        double rate;
        double exhausts_in;
    } cases[] = {
        {VERDICT_LEAK, 4101, ROLE_WORKER, 250000, 9000},
        {VERDICT_LEAK, 4102, ROLE_WORKER, 240000, 9100},
        {VERDICT_FD_LEAK, 4100, ROLE_TRAINER, 0.05, INFINITY},
        {VERDICT_PAGE_CACHE, 0, ROLE_OTHER, NAN, INFINITY},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Verdict *verdict =
            ARENA_PUSH(&made->arena, made->verdicts.items, made->verdicts.n, made->verdicts.capacity);
        *verdict = (Verdict){.id = cases[i].id,
                             .pid = cases[i].pid,
                             .role = cases[i].role,
                             .metric = cases[i].id == VERDICT_FD_LEAK ? "descriptors" : "private",
                             .rate = cases[i].rate,
                             .confidence = 0.9,
                             .evidence = "It grew, </script>.",
                             .exhausts_in = cases[i].exhausts_in};
        assert_int_equal(fix_add(&made->arena, &verdict->fixes, NEEDS_NOTHING, "Look for a list.", "grep x"),
                         0);
    }
    assert_int_equal(
        report_view_make("a\nrecording", &made->history, &made->verdicts, &made->arena, &made->view), 0);
    assert_int_equal(fleet_view_make(&made->view, 1, &made->arena, &made->fleet), 0);
}

static void made_close(Made *made)
{
    history_free(&made->history);
    arena_free(&made->arena);
}

static void test_view(void **state)
{
    (void)state;
    Made made;
    made_open(&made, &(MadeJob){60, 1, 3});
    const ReportView *view = &made.view;
    assert_int_equal(made.history.n_tracks, 1 + 3 * MADE_EPOCHS);
    assert_int_equal(view->sum_peaks[SUM_PROCESSES], 4);
    assert_true(view->seconds == 59);
    for (size_t i = 0; i < view->sums.n; i++) {
        uint64_t anon = 0;
        for (size_t t = 0; t < made.history.n_tracks; t++) {
            const Series *own = &made.history.tracks[t].series;
            for (size_t j = 0; j < own->n; j++)
                if (own->seconds[j] == view->sums.seconds[i])
                    anon += own->values[PROCESS_ANON][j];
        }
        assert_int_equal(view->sums.values[SUM_ANON][i], anon);
        assert_int_equal(view->sums.values[SUM_PROCESSES][i], 4);
    }
    assert_true(view->tracks[0].rss_peak > 2900000000 && view->tracks[0].rss_peak < 3400000000);
    made_close(&made);
}

static json_t *json_shown(const FleetView *fleet)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(json_report(out, false, fleet), 0);
    fclose(out);
    json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    assert_non_null(object);
    return object;
}

static const char *string_at(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static void test_json(void **state)
{
    (void)state;
    Made made;
    made_open(&made, &(MadeJob){60, 1, 3});
    json_t *report = json_shown(&made.fleet);
    assert_string_equal(string_at(report, "schema"), "shmguard.report/1");
    assert_string_equal(string_at(report, "overall"), "leak");
    const json_t *verdicts = json_object_get(report, "verdicts");
    assert_int_equal(json_array_size(verdicts), 4);
    const json_t *leak = json_array_get(verdicts, 0);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(leak, "subject"), "pid")), 4101);
    assert_string_equal(string_at(json_object_get(leak, "subject"), "role"), "worker");
    assert_string_equal(string_at(leak, "rate_words"), "14.3 MiB/min");
    assert_true(json_real_value(json_object_get(leak, "exhausts_in")) == 9000);
    assert_string_equal(string_at(json_array_get(verdicts, 2), "rate_words"), "3.0 descriptors/min");
    const json_t *job = json_array_get(verdicts, 3);
    assert_string_equal(string_at(json_object_get(job, "subject"), "role"), "job");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(job, "subject"), "pid")),
                     MADE_TRAINER);
    assert_true(json_is_null(json_object_get(job, "exhausts_in")) &&
                json_is_null(json_object_get(job, "rate")));
    const json_t *recording = json_object_get(report, "recording");
    assert_string_equal(string_at(recording, "file"), "a\\nrecording");
    assert_string_equal(string_at(recording, "began"), "2026-03-01T10:00:00Z");
    assert_int_equal(json_integer_value(json_object_get(recording, "samples")), 60);
    assert_int_equal(json_array_size(json_object_get(report, "processes")), 1 + 3 * MADE_EPOCHS);
    assert_int_equal(json_array_size(json_object_get(report, "events")), made.history.n_events);
    json_decref(report);
    made_close(&made);
}

static char *text_shown(const FleetView *fleet, unsigned columns, bool utf8, bool color)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    show_report(&(Terminal){.out = out, .columns = columns, .utf8 = utf8, .color = color}, fleet);
    fclose(out);
    return text;
}

static void test_text(void **state)
{
    (void)state;
    Made made;
    made_open(&made, &(MadeJob){60, 1, 8});
    static const unsigned widths[] = {40, 80, 200};
    for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
        _cleanup_free_ char *plain = text_shown(&made.fleet, widths[i], false, false);
        _cleanup_free_ char *rich = text_shown(&made.fleet, widths[i], true, false);
        for (const char *c = plain; *c; c++)
            assert_true((*c >= 0x20 && *c < 0x7F) || *c == '\n');
        for (size_t at = 0; widths[i] >= 80 && at < 2; at++)
            TEXT_FOR_EACH_LINE (line, text_of(at ? rich : plain))
                assert_true(text_columns(line) <= widths[i]);
        assert_non_null(strstr(rich, "█"));
        assert_null(strstr(rich, "\033"));
    }
    _cleanup_free_ char *text = text_shown(&made.fleet, 80, true, false);
    assert_ptr_equal(strstr(text, "✗ leak: worker 4101"), text); /* what matters first comes first */
    assert_non_null(strstr(text, "14.3 MiB/min"));
    assert_non_null(strstr(text, "(estimated)"));
    assert_non_null(strstr(text, "Also in process 4102 ("));
    assert_null(strstr(text, "leak: worker 4102"));
    assert_non_null(strstr(text, "3.0 descriptors/min"));
    assert_non_null(strstr(text, "processes started: 40, ended: 40, OOM kills: 1, epochs: 5\n"));
    assert_non_null(strstr(text, "PSS, estimated"));
    assert_non_null(strstr(text, "29 more processes are listed by --json.\n"));
    _cleanup_free_ char *colored = text_shown(&made.fleet, 80, true, true);
    assert_non_null(strstr(colored, "\033[1;31m"));
    made_close(&made);
}

/* What was never read is a question mark, and nothing divides by it. */
static void test_unknown(void **state)
{
    (void)state;
    Made made = {0};
    assert_int_equal(history_init(&made.history, "", 0, NAN, 1), 0);
    ProcessMoment process = {.pid = 7, .command = "x"};
    memset(process.values, 0xFF, sizeof process.values);
    Moment moment = {.processes = &process, .n_processes = 1};
    memset(moment.values, 0xFF, sizeof moment.values);
    assert_int_equal(history_add(&made.history, &moment), 0);
    Verdict short_one = {.id = VERDICT_TOO_SHORT, .metric = "private", .exhausts_in = INFINITY};
    made.verdicts = (Verdicts){&short_one, 1, 1};
    assert_int_equal(report_view_make("f", &made.history, &made.verdicts, &made.arena, &made.view), 0);
    assert_int_equal(fleet_view_make(&made.view, 1, &made.arena, &made.fleet), 0);
    _cleanup_free_ char *text = text_shown(&made.fleet, 80, false, false);
    assert_non_null(strstr(text, "i too-short\n"));
    assert_non_null(strstr(text, "? (PSS could not be read)"));
    json_t *report = json_shown(&made.fleet);
    assert_true(json_is_null(json_object_get(json_object_get(report, "peaks"), "shm")));
    json_decref(report);
    _cleanup_buffer_ Buffer data = {0};
    assert_int_equal(page_data(&made.view, 100, &data), 0);
    json_t *page = json_loadb(buffer_text(&data), data.size, 0, NULL);
    assert_non_null(page);
    json_decref(page);
    made_close(&made);
}

/* The page's own reading of a column. */
static size_t column_read(const json_t *column, int64_t *values, size_t most)
{
    int64_t known = 0;
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(column); i++) {
        const json_t *item = json_array_get(column, i);
        int64_t number = json_integer_value(json_is_array(item) ? json_array_get(item, 0) : item);
        if (!json_is_array(item))
            known += number;
        for (int64_t run = json_is_array(item) ? llabs(number) : 1; run > 0; run--) {
            assert_true(n < most);
            values[n++] = json_is_array(item) && number > 0 ? -1 : known;
        }
    }
    return n;
}

static void test_page_data(void **state)
{
    (void)state;
    Made made;
    made_open(&made, &(MadeJob){60, 1, 3});
    made.view.events = (EventList){made.history.events, made.history.n_events}; /* marks that are none */
    _cleanup_buffer_ Buffer data = {0};
    assert_int_equal(page_data(&made.view, 1000, &data), 0);
    assert_null(
        memchr(buffer_text(&data), '<', data.size)); /* nothing in it ends the element that it stands in */
    json_t *page = json_loadb(buffer_text(&data), data.size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(page);

    int64_t values[64];
    assert_int_equal(column_read(json_object_get(page, "times"), values, 64), 60);
    assert_int_equal(values[59], 59000);
    const json_t *processes = json_object_get(page, "processes");
    assert_int_equal(json_array_size(processes), made.history.n_tracks);
    for (size_t i = 0; i < made.history.n_tracks; i++) {
        const Series *own = &made.history.tracks[i].series;
        const json_t *series = json_object_get(json_array_get(processes, i), "series");
        assert_int_equal(column_read(json_object_get(series, "anon"), values, 64), 60);
        for (size_t j = 0; j < own->n; j++)
            assert_int_equal(values[(size_t)own->seconds[j]], own->values[PROCESS_ANON][j] / 1024);
        assert_int_equal(column_read(json_object_get(series, "pss"), values, 64), 60);
        for (size_t j = 0; j < own->n; j++) {
            uint64_t pss = own->values[PROCESS_PSS][j];
            assert_int_equal(values[(size_t)own->seconds[j]],
                             pss == U64_UNKNOWN ? -1 : (int64_t)(pss / 1024));
        }
    }
    const json_t *hostile = json_object_get(json_array_get(processes, 2), "about");
    assert_non_null(strstr(string_at(hostile, "command"), "</script><script>alert(1)</script><img"));
    assert_non_null(strstr(string_at(hostile, "command"), "\\x1b[31m\\xff"));
    /* Births and ends at one time are one event with a number; marks and kills are never joined. */
    int64_t born = 0;
    int64_t marks = 0;
    const json_t *events = json_object_get(page, "events");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        int64_t count = json_integer_value(json_object_get(event, "count"));
        born += strcmp(string_at(event, "kind"), "born") == 0 ? count : 0;
        marks += strcmp(string_at(event, "kind"), "mark") == 0 ? count : 0;
    }
    assert_int_equal(born, 15);
    assert_int_equal(marks, 5);
    assert_true(json_array_size(events) < made.history.n_events);
    json_decref(page);
    made_close(&made);
}

/* However long and wide a recording is, the page stays below its size. */
static void test_page_fits(void **state)
{
    (void)state;
    if (page_template_size == 0)
        skip(); /* built without node and npm */
    Made made;
    made_open(&made, &(MadeJob){6 * 3600, 1, 64});
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(page_write(out, &made.fleet), 0);
    fclose(out);
    assert_true(size > PAGE_MOST_BYTES / 2 && size <= PAGE_MOST_BYTES);
    assert_non_null(strstr(text, "</html>"));
    assert_null(strstr(text, "<script>alert"));
    free(text);
    made_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view),    cmocka_unit_test(test_json),      cmocka_unit_test(test_text),
        cmocka_unit_test(test_unknown), cmocka_unit_test(test_page_data), cmocka_unit_test(test_page_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
