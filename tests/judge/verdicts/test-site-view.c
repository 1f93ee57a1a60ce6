/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "site-view.h"

#define MIB_(n) ((uint64_t)(n) << 20)

static Site site_of(SiteKind kind, const char *file, uint32_t line, uint64_t bytes, uint64_t late)
{
    Site site = {.kind = kind, .line = line, .bytes = bytes, .late_bytes = late, .count = 10};
    strcpy(site.file, file);
    strcpy(site.what, kind == SITE_ATTRIBUTE ? "dataset.cache: dict" : "load");
    return site;
}

static SiteWindow window_of(SiteStage stage, int worker, int pid, int64_t growth)
{
    return (SiteWindow){.seconds = 50,
                        .duration = 30,
                        .pid = pid,
                        .worker = worker,
                        .stage = stage,
                        .growth = growth,
                        .late_growth = growth / 2};
}

static void window_add(SiteWindow *window, Site site)
{
    window->sites[window->n_sites++] = site;
}

static SiteView view_of(const SiteWindow *windows, size_t n, const Verdicts *verdicts, Arena *arena)
{
    SiteView view;
    assert_int_equal(site_view_make((SiteWindows){windows, n}, verdicts, arena, &view), 0);
    return view;
}

static bool has_note(const SiteView *view, const char *part)
{
    for (size_t i = 0; i < view->n_notes; i++)
        if (strstr(view->notes[i], part))
            return true;
    return false;
}

static void test_not_sought(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    SiteView view = view_of(NULL, 0, NULL, &arena);
    assert_false(view.sought);
    assert_int_equal(view.n + view.n_notes, 0);
}

/* Two workers, one after another: bytes and time add up. */
static void test_windows_are_merged(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    SiteWindow windows[] = {window_of(SITE_STAGE_PYTHON, 2, 11, 8 << 20),
                            window_of(SITE_STAGE_PYTHON, 1, 12, 8 << 20)};
    window_add(&windows[0], site_of(SITE_PYTHON, "dataset.py", 42, MIB_(8), MIB_(4)));
    window_add(&windows[1], site_of(SITE_PYTHON, "dataset.py", 42, MIB_(4), MIB_(2)));
    SiteView view = view_of(windows, 2, NULL, &arena);
    assert_int_equal(view.n, 1);
    assert_true(view.items[0].bytes_per_minute == (double)MIB_(12));
    assert_true(view.items[0].share == 0.75);
    assert_int_equal(view.items[0].pid, 11);
    assert_string_equal(view.items[0].words,
                        "dataset.py:42 in load: keeps 12.0 MiB/min (measured in worker 2 over "
                        "30 s); explains 75% of the growth.");
}

/* A path is shown by its end, as much of it as tells it from the others. */
static void test_files_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        const char *other;
        const char *shown;
    } cases[] = {
        {"/home/me/project/dataset.py", "/home/me/project/train.py", "dataset.py:42 in load"},
        {"/home/me/project/dataset.py", "/home/me/other/dataset.py", "project/dataset.py:42 in load"},
        {"/home/me/project/dataset.py", "/home/me/project/my_dataset.py", "dataset.py:42 in load"},
        {"/home/me/data/__init__.py", "/home/me/train.py", "data/__init__.py:42 in load"},
        {"dataset.py", "/a/dataset.py", "dataset.py:42 in load"},
        {"<string>", "/a/dataset.py", "<string>:42 in load"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        SiteWindow window = window_of(SITE_STAGE_PYTHON, 2, 11, 8 << 20);
        window_add(&window, site_of(SITE_PYTHON, cases[i].file, 42, MIB_(5), MIB_(4)));
        window_add(&window, site_of(SITE_PYTHON, cases[i].other, 42, MIB_(3), MIB_(2)));
        SiteView view = view_of(&window, 1, NULL, &arena);
        assert_int_equal(view.n, 2);
        assert_int_equal(strncmp(view.items[0].words, cases[i].shown, strlen(cases[i].shown)), 0);
        assert_string_equal(view.items[0].file, cases[i].file);
    }
}

/* Only the guard could look at what is left. */
static void test_without_the_guard_it_is_the_remedy(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    SiteView view;
    SiteWindow window = window_of(SITE_STAGE_PYTHON, 0, 11, 8 << 20);
    SiteWindows windows = {&window, 1, .unguarded = true};
    assert_int_equal(site_view_make(windows, NULL, &arena, &view), 0);
    assert_true(has_note(&view, "Without the guard only Python objects"));
}

static void test_less_than_half_is_said(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    SiteWindow window = window_of(SITE_STAGE_NATIVE, -1, 10, 100 << 20);
    window_add(&window, site_of(SITE_NATIVE, "train.py", 7, MIB_(30), MIB_(15)));
    SiteView view = view_of(&window, 1, NULL, &arena);
    assert_int_equal(view.n, 1);
    assert_non_null(strstr(view.items[0].words, "estimated"));
    assert_true(has_note(&view, "30% of the growth"));
    assert_true(has_note(&view, "shmguard where"));
}

/* Ten samples may be a third too many. */
static void test_few_samples_have_no_share(void **state)
{
    (void)state;
    for (uint64_t n = 9; n <= 10; n++) {
        _cleanup_arena_ Arena arena = {0};
        SiteWindow window = window_of(SITE_STAGE_NATIVE, -1, 10, 10 << 20);
        window_add(&window, site_of(SITE_NATIVE, "train.py", 7, MIB_(8), MIB_(4)));
        window.sites[0].count = n;
        SiteView view = view_of(&window, 1, NULL, &arena);
        assert_int_equal(view.n, 1);
        assert_int_equal(strstr(view.items[0].words, "about 16.0 MiB/min") != NULL, n < 10);
        assert_int_equal(strstr(view.items[0].words, "explains 80%") != NULL, n >= 10);
    }
}

/* A buffer that turns over keeps more than memory grows by. */
static void test_what_replaces_has_no_share(void **state)
{
    (void)state;
    for (uint64_t mib = 4; mib <= 8; mib += 4) {
        _cleanup_arena_ Arena arena = {0};
        SiteWindow window = window_of(SITE_STAGE_PYTHON, 0, 11, 8 << 20);
        window_add(&window, site_of(SITE_PYTHON, "dataset.py", 42, MIB_(mib), MIB_(2)));
        window_add(&window, site_of(SITE_PYTHON, "dataset.py", 50, MIB_(4), MIB_(2)));
        SiteView view = view_of(&window, 1, NULL, &arena);
        assert_int_equal(view.n, 2);
        assert_true(view.items[0].share <= 1 && view.explained <= 1);
        assert_int_equal(strstr(view.items[0].words, "%") != NULL, mib == 4);
        assert_int_equal(has_note(&view, "takes the place of what was freed"), mib == 8);
    }
}

static void test_what_has_ended_is_no_line(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    SiteWindow window = window_of(SITE_STAGE_PYTHON, 0, 11, 8 << 20);
    window_add(&window, site_of(SITE_PYTHON, "dataset.py", 42, MIB_(7), 0));
    SiteView view = view_of(&window, 1, NULL, &arena);
    assert_int_equal(view.n, 0);
    assert_true(has_note(&view, "no line was found"));
}

static void test_steady_windows_name_nothing(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    SiteWindow window = window_of(SITE_STAGE_CENSUS, 0, 11, 1 << 18);
    window_add(&window, site_of(SITE_ATTRIBUTE, "dataset.py", 0, MIB_(1), MIB_(1)));
    SiteView view = view_of(&window, 1, NULL, &arena);
    assert_int_equal(view.n, 0);
    assert_true(has_note(&view, "Nothing was found"));
}

/* The callers are known in the second window: the first one's lines would count the same bytes again. */
static void test_deep_windows_replace_others(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    SiteWindow windows[] = {window_of(SITE_STAGE_PYTHON, 0, 11, 8 << 20),
                            window_of(SITE_STAGE_PYTHON, 0, 11, 8 << 20)};
    windows[1].deep = true;
    window_add(&windows[0], site_of(SITE_PYTHON, "/usr/lib/python3.11/queue.py", 3, MIB_(8), MIB_(4)));
    window_add(&windows[1], site_of(SITE_PYTHON, "dataset.py", 42, MIB_(8), MIB_(4)));
    SiteView view = view_of(windows, 2, NULL, &arena);
    assert_int_equal(view.n, 1);
    assert_string_equal(view.items[0].file, "dataset.py");
}

/* numpy's memory is seen by both. */
static void test_a_line_is_named_once(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    SiteWindow windows[] = {window_of(SITE_STAGE_PYTHON, 0, 11, 8 << 20),
                            window_of(SITE_STAGE_NATIVE, 0, 11, 8 << 20)};
    window_add(&windows[0], site_of(SITE_PYTHON, "dataset.py", 42, MIB_(5), MIB_(2)));
    window_add(&windows[1], site_of(SITE_NATIVE, "dataset.py", 42, MIB_(5), MIB_(2)));
    window_add(&windows[1], site_of(SITE_NATIVE, "dataset.py", 50, MIB_(2), MIB_(1)));
    SiteView view = view_of(windows, 2, NULL, &arena);
    assert_int_equal(view.n, 2);
    assert_int_equal(view.items[0].line, 42);
    assert_int_equal(view.items[1].line, 50);
}

static void test_other_growth_is_no_line(void **state)
{
    (void)state;
    static const struct {
        VerdictId id;
        const char *words;
    } cases[] = {{VERDICT_COPY_ON_WRITE, "copy-on-write growth has no line"},
                 {VERDICT_BACKLOG, "piles up"},
                 {VERDICT_PAGE_CACHE, "page cache has no line"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Verdict verdict = {.id = cases[i].id, .confidence = 0.9};
        Verdicts verdicts = {.items = &verdict, .n = 1};
        SiteWindow window = window_of(SITE_STAGE_CENSUS, 0, 11, 0);
        SiteView view = view_of(&window, 1, &verdicts, &arena);
        assert_int_equal(view.n, 0);
        assert_true(has_note(&view, cases[i].words));
    }
}

/* Hours outweigh a minute; a verdict that is hardly more than a guess does not. */
static void test_a_steady_recording_outweighs_a_window(void **state)
{
    (void)state;
    SiteWindow window = window_of(SITE_STAGE_PYTHON, 0, 11, 8 << 20);
    window_add(&window, site_of(SITE_PYTHON, "dataset.py", 42, MIB_(8), MIB_(4)));
    for (int sure = 0; sure < 2; sure++) {
        _cleanup_arena_ Arena arena = {0};
        Verdict verdict = {.id = VERDICT_STEADY, .confidence = sure ? 0.95 : 0.5};
        Verdicts verdicts = {.items = &verdict, .n = 1};
        SiteView view = view_of(&window, 1, &verdicts, &arena);
        assert_int_equal(view.n, sure ? 0 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_sought),
        cmocka_unit_test(test_windows_are_merged),
        cmocka_unit_test(test_files_are_told_apart),
        cmocka_unit_test(test_without_the_guard_it_is_the_remedy),
        cmocka_unit_test(test_less_than_half_is_said),
        cmocka_unit_test(test_few_samples_have_no_share),
        cmocka_unit_test(test_what_replaces_has_no_share),
        cmocka_unit_test(test_what_has_ended_is_no_line),
        cmocka_unit_test(test_steady_windows_name_nothing),
        cmocka_unit_test(test_deep_windows_replace_others),
        cmocka_unit_test(test_a_line_is_named_once),
        cmocka_unit_test(test_other_growth_is_no_line),
        cmocka_unit_test(test_a_steady_recording_outweighs_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
