/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "macro.h"
#include "options.h"

typedef struct Values {
    bool all;
    bool dry_run;
    int pid;
    int color;
    const char *sort;
    int retry;
    double wait;
    SizeWish shm;
    OptionList degrade;
} Values;

static const char *const colors[] = {"auto", "always", "never", NULL};

static const Option options[] = {
    {OPTION_FLAG, 'a', "all", offsetof(Values, all), .help = "all"},
    {OPTION_FLAG, 'n', "dry-run", offsetof(Values, dry_run),
     .help = "a text that is longer than the line of eighty columns has room for"},
    {OPTION_PID, 'p', "pid", offsetof(Values, pid), "PID", .help = "a process"},
    {OPTION_CHOICE, 0, "color", offsetof(Values, color), "WHEN", colors, "colours"},
    {OPTION_TEXT, 0, "sort", offsetof(Values, sort), "KEY", .help = "the key"},
    {OPTION_COUNT, 0, "retry", offsetof(Values, retry), "N", .help = "times"},
    {OPTION_SECONDS, 0, "wait", offsetof(Values, wait), "SECONDS", .help = "how long"},
    {OPTION_WISH, 0, "shm", offsetof(Values, shm), "SIZE", .help = "how much"},
    {OPTION_LIST, 0, "degrade", offsetof(Values, degrade), "NAME", .help = "what"},
    {OPTION_END},
};

enum { WORDS_MAX = 6 };

static void test_good(void **state)
{
    (void)state;
    static const struct {
        const char *words[WORDS_MAX];
        Values values;
        const char *operands[WORDS_MAX];
    } cases[] = {
        {{NULL}, {0}, {NULL}},
        {{"--all"}, {.all = true}, {NULL}},
        {{"-an"}, {.all = true, .dry_run = true}, {NULL}},
        {{"--pid", "12"}, {.pid = 12}, {NULL}},
        {{"--pid=12"}, {.pid = 12}, {NULL}},
        {{"-p12"}, {.pid = 12}, {NULL}},
        {{"-ap", "12"}, {.all = true, .pid = 12}, {NULL}},
        {{"--pid", "1", "--pid", "2"}, {.pid = 2}, {NULL}},
        {{"--color=never"}, {.color = 2}, {NULL}},
        {{"--sort", "--all"}, {.sort = "--all"}, {NULL}},
        {{"--sort="}, {.sort = ""}, {NULL}},
        {{"--sort=a=b"}, {.sort = "a=b"}, {NULL}},
        {{"file", "--all", "-"}, {.all = true}, {"file", "-"}},
        {{"--retry=3", "--wait", "1.5min"}, {.retry = 3, .wait = 90}, {NULL}},
        {{"--shm", "64M"}, {.shm = {WISH_SIZE, 64 << 20}}, {NULL}},
        {{"--shm", "off"}, {.shm = {WISH_OFF, 0}}, {NULL}},
        {{"--degrade", "a=1", "--degrade=b=2"}, {.degrade = {{"a=1", "b=2"}, 2}}, {NULL}},
        {{"--", "--all", "-n"}, {0}, {"--all", "-n"}},
        {{"-a", "--", "--"}, {.all = true}, {"--"}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *argv[WORDS_MAX + 1] = {0};
        int argc = 0;
        while (argc < WORDS_MAX && cases[i].words[argc]) {
            argv[argc] = (char *)cases[i].words[argc];
            argc++;
        }
        _cleanup_buffer_ Buffer error = {0};
        Values values = {0};
        Operands operands = {0};
        assert_int_equal(options_parse(options, argc, argv, &values, &operands, &error), PARSED_GO);
        assert_int_equal(error.size, 0);
        assert_int_equal(values.all, cases[i].values.all);
        assert_int_equal(values.dry_run, cases[i].values.dry_run);
        assert_int_equal(values.pid, cases[i].values.pid);
        assert_int_equal(values.color, cases[i].values.color);
        assert_int_equal(values.retry, cases[i].values.retry);
        assert_true(values.wait == cases[i].values.wait);
        assert_int_equal(values.shm.kind, cases[i].values.shm.kind);
        assert_int_equal(values.shm.bytes, cases[i].values.shm.bytes);
        assert_int_equal(values.degrade.n, cases[i].values.degrade.n);
        for (size_t k = 0; k < values.degrade.n; k++)
            assert_string_equal(values.degrade.items[k], cases[i].values.degrade.items[k]);
        assert_int_equal(!values.sort, !cases[i].values.sort);
        if (values.sort)
            assert_string_equal(values.sort, cases[i].values.sort);
        int n = 0;
        for (; n < WORDS_MAX && cases[i].operands[n]; n++) {
            assert_true(n < operands.n);
            assert_string_equal(operands.items[n], cases[i].operands[n]);
        }
        assert_int_equal(operands.n, n);
    }
}

static void test_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *words[2];
        const char *error;
    } cases[] = {
        {{"--al"}, "unknown option --al; did you mean --all?"},
        {{"--dryrun"}, "unknown option --dryrun; did you mean --dry-run?"},
        {{"--dry_run=yes"}, "unknown option --dry_run; did you mean --dry-run?"},
        {{"--hepl"}, "unknown option --hepl; did you mean --help?"},
        {{"--xyzzy"}, "unknown option --xyzzy; --help lists the options"},
        {{"--=x"}, "unknown option --; --help lists the options"},
        {{"--\033[31m"}, "unknown option --\\x1b[31m; --help lists the options"},
        {{"-x"}, "unknown option -x; --help lists the options"},
        {{"-a\xff"}, "unknown option -\\xff; --help lists the options"},
        {{"--pid"}, "--pid needs a value: --pid PID"},
        {{"-p"}, "--pid needs a value: --pid PID"},
        {{"--pid", "x"}, "--pid takes a process id, not \"x\""},
        {{"--pid="}, "--pid takes a process id, not \"\""},
        {{"--pid=-1"}, "--pid takes a process id, not \"-1\""},
        {{"--pid=0"}, "--pid takes a process id, not \"0\""},
        {{"--pid=99999999999999999999"}, "--pid takes a process id, not \"99999999999999999999\""},
        {{"--color", "blue\n"}, "--color takes auto, always or never, not \"blue\\n\""},
        {{"--all=yes"}, "--all takes no value"},
        {{"--retry=-1"}, "--retry takes a whole number, not \"-1\""},
        {{"--retry="}, "--retry takes a whole number, not \"\""},
        {{"--retry", "2147483648"}, "--retry takes a whole number, not \"2147483648\""},
        {{"--wait", "soon"}, "--wait takes a time in seconds (30, 1.5s, 2min), not \"soon\""},
        {{"--shm", "on"}, "--shm takes a size of at least 1 MiB (64M, 1.5GiB), auto or off, not \"on\""},
        {{"--shm=64"}, "--shm takes a size of at least 1 MiB (64M, 1.5GiB), auto or off, not \"64\""},
        {{"--degrade"}, "--degrade needs a value: --degrade NAME"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *argv[3] = {(char *)cases[i].words[0], (char *)cases[i].words[1]};
        _cleanup_buffer_ Buffer error = {0};
        Values values = {0};
        Operands operands = {0};
        assert_int_equal(options_parse(options, argv[1] ? 2 : 1, argv, &values, &operands, &error),
                         PARSED_WRONG);
        assert_string_equal(buffer_text(&error), cases[i].error);
    }
}

static void test_too_many(void **state)
{
    (void)state;
    char *argv[OPTION_LIST_MAX + 2] = {0};
    for (int i = 0; i <= OPTION_LIST_MAX; i++)
        argv[i] = (char *)"--degrade=a";
    _cleanup_buffer_ Buffer error = {0};
    Values values = {0};
    Operands operands = {0};
    assert_int_equal(options_parse(options, OPTION_LIST_MAX + 1, argv, &values, &operands, &error),
                     PARSED_WRONG);
    assert_string_equal(buffer_text(&error), "--degrade can be given at most 32 times");
}

static void test_help(void **state)
{
    (void)state;
    static const char *const words[] = {"--help", "-h", "-ah"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        char *argv[2] = {(char *)words[i]};
        _cleanup_buffer_ Buffer error = {0};
        Values values = {0};
        Operands operands = {0};
        assert_int_equal(options_parse(options, 1, argv, &values, &operands, &error), PARSED_HELP);
    }
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    options_help(options, out);
    fclose(out);
    assert_string_equal(text,
                        "Options:\n"
                        "  -a, --all           all\n"
                        "  -n, --dry-run       a text that is longer than the line of eighty columns has\n"
                        "                      room for\n"
                        "  -p, --pid PID       a process\n"
                        "      --color WHEN    colours\n"
                        "      --sort KEY      the key\n"
                        "      --retry N       times\n"
                        "      --wait SECONDS  how long\n"
                        "      --shm SIZE      how much\n"
                        "      --degrade NAME  what\n"
                        "      --lang LANG     language of what people read: en or zh_CN (default: that\n"
                        "                      of LC_ALL, LC_MESSAGES or LANG)\n"
                        "  -h, --help          show this help\n");
    free(text);
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"doctor", "ps", "clean", "explain", NULL};
    static const struct {
        const char *wrong;
        const char *nearest;
    } cases[] = {
        {"docter", "doctor"},
        {"doc", "doctor"},
        {"dcotor", "doctor"},
        {"pss", "ps"},
        {"sp", "ps"},
        {"claen", "clean"},
        {"expalin", "explain"},
        {"train", NULL},
        {"", NULL},
        {"x", NULL},
        {"a-very-long-word-that-is-near-nothing-in-the-table-of-commands", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *nearest = nearest_name(cases[i].wrong, names);
        assert_int_equal(!nearest, !cases[i].nearest);
        if (nearest)
            assert_string_equal(nearest, cases[i].nearest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good), cmocka_unit_test(test_wrong),   cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_help), cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
