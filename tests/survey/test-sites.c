/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "macro.h"
#include "sites.h"

#define HEAD "window\t2\t0\t10000\t4194304\t2097152\t0\t40\n"

static void test_window_is_read(void **state)
{
    (void)state;
    SiteWindow window;
    assert_int_equal(site_window_parse(TEXT(HEAD "site\tpython\t42\t4000000\t2000000\t70\t/a b/t.py\tload\n"
                                                 "site\tnative\t0\t9\t?\t1\t\t\n"),
                                       &window),
                     0);
    assert_int_equal(window.stage, SITE_STAGE_PYTHON);
    assert_int_equal(window.worker, 0);
    assert_true(window.duration == 10 && window.cost_seconds == 0.04);
    assert_int_equal(window.growth, 4194304);
    assert_int_equal(window.late_growth, 2097152);
    assert_int_equal(window.n_sites, 2);
    assert_int_equal(window.sites[0].line, 42);
    assert_string_equal(window.sites[0].file, "/a b/t.py");
    assert_string_equal(window.sites[0].what, "load");
    assert_true(window.sites[1].late_bytes == U64_UNKNOWN);
    assert_true(site_window_grows(&window));
    assert_int_equal(site_window_explained(&window), 4000009);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "window",
        "windows\t2\t0\t10000\t1\t1\t0\t0\n",
        "window\t0\t0\t10000\t1\t1\t0\t0\n", /* no such stage */
        "window\t5\t0\t10000\t1\t1\t0\t0\n",
        "window\t2\t-2\t10000\t1\t1\t0\t0\n", /* no such worker */
        "window\t2\t0\t0\t1\t1\t0\t0\n",      /* no time */
        "window\t2\t0\t10000\t999999999999999999\t1\t0\t0\n",
        "window\t2\t0\t10000\t1\t1\t0\n",
        HEAD "place\tpython\t1\t1\t1\t1\tf\tg\n",
        HEAD "site\tperl\t1\t1\t1\t1\tf\tg\n",
        HEAD "site\tpython\t-1\t1\t1\t1\tf\tg\n",
        HEAD "site\tpython\t4294967296\t1\t1\t1\tf\tg\n",
        HEAD "site\tpython\t1\t1\t1\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        SiteWindow window;
        assert_int_equal(site_window_parse(text_of(texts[i]), &window), -EBADMSG);
    }
}

/* How many of a few samples are in the second half is chance. */
static void test_few_samples_need_one_in_the_second_half(void **state)
{
    (void)state;
    static const struct {
        Site site;
        bool goes_on;
    } cases[] = {
        {{.kind = SITE_NATIVE, .count = 7, .bytes = 7 << 19, .late_bytes = 1 << 19}, true},
        {{.kind = SITE_NATIVE, .count = 7, .bytes = 7 << 19, .late_bytes = 0}, false},
        {{.kind = SITE_NATIVE, .count = 20, .bytes = 20 << 19, .late_bytes = 1 << 19}, false},
        {{.kind = SITE_PYTHON, .count = 7, .bytes = 7 << 19, .late_bytes = 1 << 19}, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(site_goes_on(&cases[i].site), cases[i].goes_on);
}

static void test_texts_are_made_harmless(void **state)
{
    (void)state;
    SiteWindow window;
    char text[1024] = HEAD "site\tpython\t1\t1\t1\t1\t";
    memset(text + strlen(text), 'x', 600);
    strcat(text, "\t\033[2J\n");
    assert_int_equal(site_window_parse(text_of(text), &window), 0);
    assert_int_equal(strlen(window.sites[0].file), sizeof window.sites[0].file - 1);
    assert_null(strchr(window.sites[0].what, '\033'));
}

/* The end of a path says which file it is. No character is broken. */
static void test_long_paths_keep_their_end(void **state)
{
    (void)state;
    for (int n = 190; n < 200; n++) {
        SiteWindow window;
        char text[1024];
        snprintf(text, sizeof text, HEAD "site\tpython\t1\t1\t1\t1\t/%*s\xc3\xa4\xc3\xa4/dataset.py\tload\n",
                 n, "x");
        assert_int_equal(site_window_parse(text_of(text), &window), 0);
        assert_true(text_ends(text_of(window.sites[0].file), "/dataset.py"));
        assert_true(((unsigned char)window.sites[0].file[0] & 0xc0) != 0x80);
    }
}

static void test_growth_must_go_on(void **state)
{
    (void)state;
    static const struct {
        int64_t growth;
        int64_t late;
        int64_t descriptors;
        bool grows;
    } cases[] = {
        {0, 0, 0, false},
        {1 << 19, 1 << 18, 0, false}, /* too little */
        {8 << 20, 4 << 20, 0, true},
        {8 << 20, 1 << 20, 0, false},  /* it has ended */
        {8 << 20, INT64_MIN, 0, true}, /* not known */
        {-(8 << 20), -(4 << 20), 0, false},
        {0, 0, 12, true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        SiteWindow window = {
            .growth = cases[i].growth, .late_growth = cases[i].late, .descriptors = cases[i].descriptors};
        assert_int_equal(site_window_grows(&window), cases[i].grows);
    }
}

static void test_libraries_are_told_from_the_program(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        bool library;
    } cases[] = {
        {"/home/me/train.py", false},
        {"train.py", false},
        {"/usr/lib/python3.11/logging/__init__.py", true},
        {"/home/me/.venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", true},
        {"/usr/lib/python3/dist-packages/numpy/core/numeric.py", true},
        {"<frozen importlib._bootstrap>", true},
        {"", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Site site = {0};
        strcpy(site.file, cases[i].file);
        assert_int_equal(site_is_library(&site), cases[i].library);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window_is_read),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
        cmocka_unit_test(test_few_samples_need_one_in_the_second_half),
        cmocka_unit_test(test_texts_are_made_harmless),
        cmocka_unit_test(test_long_paths_keep_their_end),
        cmocka_unit_test(test_growth_must_go_on),
        cmocka_unit_test(test_libraries_are_told_from_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
