/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "task-options.h"

static void test_good(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *words; /* with blanks between them */
        bool off, no_report, record, quiet;
    } cases[] = {
        {"", "", .off = false},
        {"off", "", .off = true},
        {"budget=8G", "--budget=8G"},
        {"budget=off,wait=30,where", "--budget=off --wait=30 --where"},
        {"record,quiet,report=off", "", .record = true, .quiet = true, .no_report = true},
        {"pin=off,lane=off,freeze=off", "--pin=off --lane=off --freeze=off"},
        {"no-guard", "--no-guard"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buffer_ Buffer error = {0};
        _cleanup_buffer_ Buffer words = {0};
        TaskOptions options;
        assert_int_equal(task_options_parse(text_of(cases[i].text), &options, &error), 0);
        for (size_t k = 0; k < options.n; k++)
            assert_int_equal(buffer_printf(&words, "%s%s", k == 0 ? "" : " ", options.words[k]), 0);
        assert_string_equal(buffer_text(&words), cases[i].words);
        assert_int_equal(options.off, cases[i].off);
        assert_int_equal(options.no_report, cases[i].no_report);
        assert_int_equal(options.record, cases[i].record);
        assert_int_equal(options.quiet, cases[i].quiet);
    }
}

/* They become words of a command line, in every task. */
static void test_bad(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"nix", "unknown option 'nix'"},
        {"no-guard,budget=8G", "'budget=8G' needs the guard"},
        {"freeze=off,no-guard", "'freeze=off' needs the guard"},
        {",", "unknown option ''"},
        {"=", "unknown option ''"},
        {"--retry=3", "unknown option '--retry'"},
        {"report=/etc/passwd", "'report' can only be 'off'"},
        {"report", "'report' can only be 'off'"},
        {"pin", "'pin' can only be 'off'"},
        {"budget", "'' is not a size"},
        {"budget=8G G", "'8G G' is not a size"},
        {"budget=12", "'12' is not a size"},
        {"wait=soon", "'soon' is not a time"},
        {"where=yes", "'where' takes no value"},
        {"off=no", "'off' takes no value"},
        {"\x1b[31m", "unknown option '\\x1b[31m'"},
        {"budget=1.000000000000000000000000000000000000000000000000G", "too long"},
        {"where,where,where,where,where,where,where,where,where,where,where,where,where,where,where,where,"
         "where",
         "too many options"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buffer_ Buffer error = {0};
        TaskOptions options;
        if (task_options_parse(text_of(cases[i].text), &options, &error) != -EINVAL ||
            !strstr(buffer_text(&error), cases[i].error))
            fail_msg("%s: %s", cases[i].text, buffer_text(&error));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
