/* The end of a run, for people and for scripts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "show-run.h"

static char *words[] = {(char *)"python", (char *)"tr\033ain.py", (char *)"\xff", NULL};

static char *text_shown(const RunReport *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    Terminal terminal = {.out = out, .columns = 80};
    show_run(&terminal, report);
    fclose(out);
    return text;
}

static void test_text(void **state)
{
    (void)state;
    static const struct {
        RunResult result;
        const char *text;
    } cases[] = {
        {{.guarded = false}, ""},
        {{.guarded = true}, "shmguard: the guard saw no shared tensors\n"},
        {{.guarded = true,
          .guard = {.segments_created = 24,
                    .segments_reused = 1176,
                    .bytes_backed = UINT64_C(1200) << 25,
                    .bytes_peak = 24 << 25}},
         "shmguard: 37.5 GiB of shared tensors kept out of /dev/shm, at most 768.0 MiB at a time\n"
         "shmguard: 24 segments made and used again 1176 times (98% recycled)\n"},
        {{.guarded = true,
          .strays = 1,
          .guard = {.segments_created = 1,
                    .segments_reused = 1,
                    .bytes_backed = 1 << 20,
                    .bytes_peak = 1 << 20,
                    .names_made = 1,
                    .names_served = 2,
                    .fallbacks = 3}},
         "shmguard: 1.0 MiB of shared tensors kept out of /dev/shm, at most 1.0 MiB at a time\n"
         "shmguard: 1 segment made and used again 1 time (50% recycled); 1 name kept and opened 2 times; 3 "
         "tensors took "
         "the plain way through /dev/shm\n"
         "shmguard: ended 1 process that the command had left running\n"},
        {{.guarded = true, .guard = {.bytes_peak = 4096, .names_made = 2, .names_served = 1}},
         "shmguard: at most 4.0 KiB of shared memory kept out of /dev/shm at a time\n"
         "shmguard: 2 names kept and opened 1 time\n"},
        {{.guarded = true, .guard = {.small_backed = 1}}, "shmguard: 1 small tensor\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        RunAttempt attempt = {.command = words, .result = cases[i].result};
        RunReport report = {.attempts = &attempt, .n_attempts = 1};
        _cleanup_free_ char *text = text_shown(&report);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_json(void **state)
{
    (void)state;
    const char *evidence[] = {"ended by SIGSEGV"};
    const RunValue values[] = {{"batch", "32"}, {"accum", "\xff"}};
    RunAttempt attempts[2] = {{
        .command = words,
        .values = values,
        .n_values = 2,
        .result = {.pid = 77,
                   .code = 139,
                   .signal = 11,
                   .seconds = 1.5,
                   .guarded = true,
                   .guard = {.segments_created = 5, .names_served = 6, .bytes_peak = 7, .fallbacks = 8}},
        .cause =
            {.id = CAUSE_SEGFAULT, .confidence = 0.9, .summary = "s", .evidence = evidence, .n_evidence = 1},
    }};
    attempts[1] = attempts[0];
    attempts[0].result.code = 1;
    RunReport report = {.attempts = attempts, .n_attempts = 2};
    for (int guarded = 0; guarded < 2; guarded++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        attempts[1].result.guarded = guarded;
        assert_int_equal(json_run(out, guarded, &report), 0);
        fclose(out);
        json_t *json = json_loads(text, 0, NULL);
        assert_non_null(json);
        assert_string_equal(json_string_value(json_object_get(json, "schema")), "shmguard.run/1");
        json_t *first = json_array_get(json_object_get(json, "attempts"), 0);
        json_t *attempt = json_array_get(json_object_get(json, "attempts"), 1);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(first, "exit"), "code")), 1);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "exit"), "code")), 139);
        assert_true(json_equal(json_object_get(json, "exit"), json_object_get(attempt, "exit")));
        assert_true(json_equal(json_object_get(json, "cause"), json_object_get(attempt, "cause")));
        json_t *put = json_object_get(attempt, "values");
        assert_string_equal(json_string_value(json_object_get(put, "batch")), "32");
        assert_string_equal(json_string_value(json_object_get(put, "accum")), "\\xff");
        json_t *command = json_object_get(attempt, "command");
        assert_int_equal(json_array_size(command), 3);
        assert_string_equal(json_string_value(json_array_get(command, 1)), "tr\\x1bain.py");
        json_t *peaks = json_object_get(json, "peaks");
        assert_true(json_is_null(json_object_get(peaks, "rss")));
        assert_int_equal(json_is_null(json_object_get(peaks, "shm")), !guarded);
        json_t *guard = json_object_get(json, "guard");
        assert_int_equal(json_is_true(json_object_get(guard, "active")), guarded);
        static const char *const fields[] = {
            "segments_created", "segments_reused", "bytes_peak",   "waits",
            "refused",          "names_served",    "pinned_bytes", "fallbacks"};
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
            assert_true(json_is_integer(json_object_get(guard, fields[i])));
        assert_true(json_is_real(json_object_get(guard, "waited_seconds")));
        json_decref(json);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
