/* SPDX-License-Identifier: Apache-2.0 */
/* The line before each further attempt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "show-attempt.h"

enum { MOST = 3 };

static char *text_shown(const NextAttempt *next, bool utf8)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    Terminal terminal = {.out = out, .columns = 80, .utf8 = utf8};
    show_attempt(&terminal, next);
    fclose(out);
    return text;
}

static void test_attempt(void **state)
{
    (void)state;
    static const struct {
        const char *knobs[MOST + 1];
        unsigned level_before;
        unsigned level;
        Checkpoint items[MOST];
        size_t n_items; /* of the one glob; 0 with globs 1: nothing matches */
        size_t n_globs;
        const char *text;
    } cases[] = {
        {{NULL}, 0, 0, {{0}}, 0, 0, ""},
        {{"batch=32,16", "accum=1,2"},
         0,
         1,
         {{"ckpt-0400.pt", {1000, 0}, CHECKPOINT_WHOLE}},
         1,
         1,
         " Changed: batch=32 → 16, accum=1 → 2. The effective batch stays 32. Continuing from ckpt-0400.pt."},
        {{"batch=64,16", "accum=1,2"},
         0,
         1,
         {{0}},
         0,
         0,
         " Changed: batch=64 → 16, accum=1 → 2. The effective batch changes: 64 → 32."},
        {{"batch=64,16"},
         0,
         1,
         {{0}},
         0,
         0,
         " Changed: batch=64 → 16. The effective batch becomes 0.25 times as large, because gradients are "
         "not "
         "accumulated."},
        {{"batch=64,64", "workers=4,2"}, 0, 1, {{0}}, 0, 0, " Changed: workers=4 → 2."},
        {{"workers=4,2"}, 0, 1, {{0}}, 0, 0, " Changed: workers=4 → 2."},
        {{"workers=4,2"}, 1, 1, {{0}}, 0, 0, " The values stay the same."},
        {{"workers=4,2"}, 1, 2, {{0}}, 0, 0, " There are no smaller values left to try."},
        {{"x=\033[0m,\xff"}, 0, 1, {{0}}, 0, 0, " Changed: x=\\x1b[0m → \\xff."},
        {{NULL},
         0,
         0,
         {{0}},
         0,
         1,
         " Starting from the beginning, because no complete checkpoint matches c/*.pt."},
        {{NULL},
         0,
         0,
         {{"c/2.pt", {1002, 0}, CHECKPOINT_CUT}, {"c/1.pt", {1001, 0}, CHECKPOINT_EMPTY}},
         2,
         1,
         " Starting from the beginning, because no complete checkpoint matches c/*.pt. Skipped: c/2.pt "
         "(truncated). Skipped 1 more incomplete checkpoint."},
        {{NULL},
         0,
         0,
         {{"c/3\n.pt", {1003, 0}, CHECKPOINT_CUT},
          {"c/2.pt", {1002, 0}, CHECKPOINT_WRITTEN},
          {"c/1.pt", {700, 0}, CHECKPOINT_WHOLE}},
         3,
         1,
         " Continuing from c/1.pt, which is 5 min older than this run. Skipped: c/3\\n.pt (truncated). "
         "Skipped 1 more incomplete checkpoint."},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        _cleanup_buffer_ Buffer error = {0};
        Knobs knobs = {0};
        for (size_t k = 0; cases[i].knobs[k]; k++)
            assert_int_equal(knobs_add(&knobs, cases[i].knobs[k], &arena, &error), 0);
        Checkpoints found = {(Checkpoint *)cases[i].items, cases[i].n_items, MOST};
        char glob[] = "c/*.pt";
        char *globs[] = {glob};
        NextAttempt next = {.attempt = 2,
                            .of = 4,
                            .pause_seconds = 1,
                            .cause = CAUSE_SHM_EXHAUSTED,
                            .knobs = &knobs,
                            .level_before = cases[i].level_before,
                            .level = cases[i].level,
                            .found = &found,
                            .globs = globs,
                            .n_found = cases[i].n_globs,
                            .run_began = {1000, 0}};
        _cleanup_free_ char *text = text_shown(&next, true);
        _cleanup_buffer_ Buffer expected = {0};
        (void)buffer_printf(
            &expected,
            "shmguard: attempt 2 of 4 starts in 1 s, because the last one failed: shm-exhausted.%s\n",
            cases[i].text);
        assert_string_equal(text, buffer_text(&expected));
        _cleanup_free_ char *plain = text_shown(&next, false);
        for (const char *c = plain; *c; c++)
            assert_true((unsigned char)*c < 0x80);
    }
}

static void test_none(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    show_no_attempt(&(Terminal){.out = out, .columns = 80}, "that was the last attempt");
    fclose(out);
    assert_string_equal(text, "shmguard: not tried again: that was the last attempt\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attempt),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
