/* SPDX-License-Identifier: Apache-2.0 */
/* What one attempt changes compared to the one before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attempts.h"

enum { MOST = 6 };

static Knobs knobs_of(const char *const *texts, Arena *arena)
{
    _cleanup_buffer_ Buffer error = {0};
    Knobs knobs = {0};
    for (; *texts; texts++)
        assert_int_equal(knobs_add(&knobs, *texts, arena, &error), 0);
    assert_int_equal(error.size, 0);
    return knobs;
}

static void test_degrade(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Knobs knobs = knobs_of((const char *[]){"batch=64,32,16", "_w0=8", "lr=a=b,{batch}", NULL}, &arena);
    static const char *const values[][3] = {
        {"64", "8", "a=b"}, {"32", "8", "{batch}"}, {"16", "8", "{batch}"}, {"16", "8", "{batch}"}};
    for (unsigned level = 0; level < ARRAY_SIZE(values); level++)
        for (size_t i = 0; i < 3; i++)
            assert_string_equal(knob_value(&knobs.items[i], level), values[level][i]);
    assert_string_equal(knob_value(&knobs.items[0], UINT32_MAX), "16");
    assert_true(knobs_have_less(&knobs, 0));
    assert_true(knobs_have_less(&knobs, 1));
    assert_false(knobs_have_less(&knobs, 2));
    assert_false(knobs_have_less(&(Knobs){0}, 0));
}

static void test_degrade_wrong(void **state)
{
    (void)state;
#define BAD_NAME " is not a name; use letters, digits and underscores, and begin with a letter"
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"", "\"\" has no values; write NAME=64,32,16"},
        {"batch", "\"batch\" has no values; write NAME=64,32,16"},
        {"batch=", "one of the values \"\" is empty; write NAME=64,32,16"},
        {"batch=,", "one of the values \",\" is empty; write NAME=64,32,16"},
        {"batch=64,", "one of the values \"64,\" is empty; write NAME=64,32,16"},
        {"batch=,64", "one of the values \",64\" is empty; write NAME=64,32,16"},
        {"batch=64,,32", "one of the values \"64,,32\" is empty; write NAME=64,32,16"},
        {"=64", "\"\"" BAD_NAME},
        {"batch-size=64", "\"batch-size\"" BAD_NAME},
        {"0batch=64", "\"0batch\"" BAD_NAME},
        {" batch=64", "\" batch\"" BAD_NAME},
        {"b\033[0m=64", "\"b\\x1b[0m\"" BAD_NAME},
        {"\xc3\xa9=64", "\"\xc3\xa9\"" BAD_NAME},
        {"{a}=64", "\"{a}\"" BAD_NAME},
        {"taken=1", "\"taken\" was given before; upper and lower case make no difference"},
        {"TAKEN=1", "\"TAKEN\" was given before; upper and lower case make no difference"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        _cleanup_buffer_ Buffer error = {0};
        Knobs knobs = knobs_of((const char *[]){"taken=5", NULL}, &arena);
        assert_int_equal(knobs_add(&knobs, cases[i].text, &arena, &error), -EINVAL);
        assert_string_equal(buffer_text(&error), cases[i].error);
        assert_int_equal(knobs.n, 1);
    }
}

static void test_effective(void **state)
{
    (void)state;
    static const struct {
        const char *knobs[MOST];
        unsigned level;
        EffectiveBatch effective;
    } cases[] = {
        {{NULL}, 0, {0}},
        {{"workers=4"}, 0, {0}},
        {{"batch=64,32", "accum=1,2"}, 0, {true, true, 64}},
        {{"batch=64,32", "accum=1,2"}, 1, {true, true, 64}},
        {{"batch=64,32,16", "accum=1,2"}, 2, {true, true, 32}},
        {{"Batch_Size=64,32"}, 1, {true, false, 32}},
        {{"per_device_train_batch_size=8", "gradient_accumulation_steps=4", "workers=2"},
         0,
         {true, true, 32}},
        {{"bs=sixty"}, 0, {0}},
        {{"bs=0"}, 0, {0}},
        {{"bs=-4"}, 0, {0}},
        {{"bs=4.0"}, 0, {0}},
        {{"bs=64", "accum=x"}, 0, {.accumulated = false}},
        {{"bs=64", "accum=0"}, 0, {0}},
        {{"bs=64", "batch=32"}, 0, {0}},                /* ambiguous */
        {{"bs=64", "accum=2", "grad_accum=3"}, 0, {0}}, /* ambiguous */
        {{"accum=2"}, 0, {0}},
        {{"bs=18446744073709551615", "accum=2"}, 0, {.accumulated = true, .known = false}},
        {{"bs=99999999999999999999"}, 0, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Knobs knobs = knobs_of(cases[i].knobs, &arena);
        EffectiveBatch effective = effective_batch(&knobs, cases[i].level);
        assert_int_equal(effective.known, cases[i].effective.known);
        if (!effective.known)
            continue;
        assert_int_equal(effective.accumulated, cases[i].effective.accumulated);
        assert_int_equal(effective.samples, cases[i].effective.samples);
    }
}

static void test_resume(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *words[MOST];
        const char *globs[MOST];
    } cases[] = {
        {"a", {"a"}, {NULL}},
        {" --resume  x\t\n", {"--resume", "x"}, {NULL}},
        {"--from={latest:c/*.pt}", {"--from={latest:c/*.pt}"}, {"c/*.pt"}},
        {"'a b' \"c d\" e\\ f", {"a b", "c d", "e f"}, {NULL}},
        {"a'b'\"c\"d", {"abcd"}, {NULL}},
        {"'' \"\"", {"", ""}, {NULL}},
        {"'\\n$x`y`'", {"\\n$x`y`"}, {NULL}},
        {"\"\\n\\\"\\\\\\$\\`\"", {"\\n\"\\$`"}, {NULL}},
        {"\\$HOME \\'", {"$HOME", "'"}, {NULL}},
        {"a\\\nb \"c\\\nd\"", {"ab", "cd"}, {NULL}},
        {"'it'\\''s'", {"it's"}, {NULL}},
        {"'{latest:my dir/*}'", {"{latest:my dir/*}"}, {"my dir/*"}},
        {"{latest:'my dir'/*}", {"{latest:my dir/*}"}, {"my dir/*"}},
        {"{latest:{a,b}/*.pt}", {"{latest:{a,b}/*.pt}"}, {"{a,b}/*.pt"}},
        {"{latest:a}:{latest:b} {latest:c}", {"{latest:a}:{latest:b}", "{latest:c}"}, {"a", "b", "c"}},
        {"{latest} {Latest:x} {other:{latest:x}}", {"{latest}", "{Latest:x}", "{other:{latest:x}}"}, {"x"}},
        {"{latest:{latest:x}}", {"{latest:{latest:x}}"}, {"{latest:x}"}},
        {"a;b|c&d>e #f", {"a;b|c&d>e", "#f"}, {NULL}},
        {"\xff\x01", {"\xff\x01"}, {NULL}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        _cleanup_buffer_ Buffer error = {0};
        Resume resume = {0};
        assert_int_equal(resume_parse(cases[i].text, &arena, &resume, &error), 0);
        size_t n = 0;
        for (; n < MOST && cases[i].words[n]; n++) {
            assert_true(n < resume.n_words);
            assert_string_equal(resume.words[n], cases[i].words[n]);
        }
        assert_int_equal(resume.n_words, n);
        for (n = 0; n < MOST && cases[i].globs[n]; n++) {
            assert_true(n < resume.n_globs);
            assert_string_equal(resume.globs[n], cases[i].globs[n]);
        }
        assert_int_equal(resume.n_globs, n);
    }
}

static void test_resume_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"", "no arguments"},
        {" \t\n", "no arguments"},
        {"'a", "\"'a\" has a quote that is not closed"},
        {"a \"b", "\"\"b\" has a quote that is not closed"},
        {"a'", "has a quote that is not closed"},
        {"a\\", "ends with a backslash that nothing follows"},
        {"\"a\\", "has a quote that is not closed"},
        {"\"a\\\"", "has a quote that is not closed"},
        {"$HOME/x", "no shell expands \"$HOME/x\""},
        {"\"$HOME\"", "no shell expands"},
        {"a`b`", "no shell expands \"a`b`\""},
        {"{latest:}", "\"{latest:}\" names no files"},
        {"{latest:", "\"{latest:\" has no closing brace"},
        {"{latest:{a}", "no closing brace"},
        {"{latest:a b}", "\"{latest:a\" has no closing brace"},
        {"x {latest:a} {latest:\033", "\"{latest:\\x1b\" has no closing brace"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        _cleanup_buffer_ Buffer error = {0};
        Resume resume = {.n_words = 77};
        assert_int_equal(resume_parse(cases[i].text, &arena, &resume, &error), -EINVAL);
        assert_int_equal(resume.n_words, 77);
        if (!strstr(buffer_text(&error), cases[i].said))
            fail_msg("%s: %s", cases[i].text, buffer_text(&error));
        assert_null(strchr(buffer_text(&error), '\033'));
    }
}

static void test_command(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        const char *expanded;
    } cases[] = {
        {"", ""},
        {"{batch}", "32"},
        {"--batch={batch},{batch}", "--batch=32,32"},
        {"{{batch}}", "{32}"},
        {"{batch", "{batch"},
        {"batch}", "batch}"},
        {"{}", "{}"},
        {"{Batch}", "{Batch}"},
        {"{batch }", "{batch }"},
        {"{batch:1}", "{batch:1}"},
        {"{a:1, b:{c:2}}", "{a:1, b:{c:2}}"},
        {"{\"batch\": {batch}, \"x\": {}}", "{\"batch\": 32, \"x\": {}}"},
        {"${batch}", "$32"},
        {"model={name:x}{batch}", "model={name:x}32"},
        {"{self}", "{batch}"}, /* not expanded twice */
        {"{", "{"},
        {"}{", "}{"},
        {"{latest:*}", "{latest:*}"},
        {"\xff{batch}\xff", "\xff"
                            "32\xff"},
    };
    _cleanup_arena_ Arena arena = {0};
    Knobs knobs = knobs_of((const char *[]){"batch=64,32", "self={batch}", NULL}, &arena);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *command[] = {(char *)"python", (char *)cases[i].word, NULL};
        char **made = NULL;
        assert_int_equal(attempt_command(command, &knobs, 1, NULL, NULL, &arena, &made), 0);
        assert_string_equal(made[0], "python");
        assert_string_equal(made[1], cases[i].expanded);
        assert_null(made[2]);
    }

    _cleanup_buffer_ Buffer error = {0};
    Resume resume;
    assert_int_equal(
        resume_parse("--from {latest:a*}:{batch}:{latest:b*} '{x}' {latest:c}", &arena, &resume, &error), 0);
    char *command[] = {(char *)"{batch}", NULL};
    char **made = NULL;
    const char *const found[] = {"a {batch}", "{latest:x}", ""};
    assert_int_equal(attempt_command(command, &knobs, 0, &resume, found, &arena, &made), 0);
    static const char *const expected[] = {"64", "--from", "a {batch}:64:{latest:x}", "{x}", ""};
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_string_equal(made[i], expected[i]);
    assert_null(made[ARRAY_SIZE(expected)]);
}

static void test_settings(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Knobs knobs = knobs_of((const char *[]){"batch_size=64,a b=c", "I1=x", NULL}, &arena);
    char **settings = NULL;
    assert_int_equal(attempt_settings(&knobs, 1, 3, &arena, &settings), 0);
    assert_string_equal(settings[0], "SHMGUARD_ATTEMPT=3");
    assert_string_equal(settings[1], "SHMGUARD_VALUE_BATCH_SIZE=a b=c");
    assert_string_equal(settings[2], "SHMGUARD_VALUE_I1=x");
    assert_null(settings[3]);
}

static void test_pause(void **state)
{
    (void)state;
    static const unsigned seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};
    for (unsigned i = 0; i < ARRAY_SIZE(seconds); i++)
        assert_int_equal(attempt_pause_seconds(i + 1), seconds[i]);
    assert_int_equal(attempt_pause_seconds(UINT32_MAX), 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_degrade),      cmocka_unit_test(test_degrade_wrong),
        cmocka_unit_test(test_effective),    cmocka_unit_test(test_resume),
        cmocka_unit_test(test_resume_wrong), cmocka_unit_test(test_command),
        cmocka_unit_test(test_settings),     cmocka_unit_test(test_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
