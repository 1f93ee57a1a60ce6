/* SPDX-License-Identifier: Apache-2.0 */
/* What tune shows, and the file it goes on from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "show-tune.h"

#define MIB (UINT64_C(1) << 20)

static const char *const batches[] = {"8", "16", "32"};
static const char *const modes[] = {"fork", "sp\nawn"};
static char *const command[] = {(char[]){"train\xff"}, (char[]){"{batch}"}, (char[]){"{mode}"}, NULL};

typedef struct Made {
    Arena arena;
    TuneAxis axes[2];
    TuneReport report;
} Made;

static void made_open(Made *made)
{
    memset(made, 0, sizeof *made);
    assert_int_equal(tune_axis_make("batch", batches, ARRAY_SIZE(batches), &made->arena, &made->axes[0]), 0);
    assert_int_equal(tune_axis_make("mode", modes, ARRAY_SIZE(modes), &made->arena, &made->axes[1]), 0);
    made->report = (TuneReport){
        .tune = {.axes = made->axes, .n_axes = 2, .ceiling_bytes = 1024 * MIB, .most = 6},
        .command = command,
        .trial_seconds = 30,
    };
}

static TuneTrial *trial_add(Made *made, size_t setting, double rate, uint64_t mib)
{
    Tune *tune = &made->report.tune;
    TuneTrial *trial = ARENA_PUSH(&made->arena, tune->trials, tune->n, tune->capacity);
    *trial = (TuneTrial){
        .setting = setting,
        .measured = rate > 0,
        .rate = rate,
        .error = rate / 100,
        .seconds = 31.5,
        .cause = {.confidence = 1, .summary = "It ran for the full trial time."},
        .shm_bytes = mib * MIB / 2,
        .own_bytes = mib * MIB / 2,
        .rss_bytes = U64_UNKNOWN,
        .fds = 7,
        .processes = 3,
    };
    return trial;
}

/* Two of "fork" are measured, one failed, one is too large. */
static void made_fill(Made *made)
{
    static const char *evidence[] = {"a line", "an\x01other"};
    made_open(made);
    trial_add(made, 0, 100, 300);
    trial_add(made, 2, 190, 500);
    TuneTrial *died = trial_add(made, 1, 0, 100);
    died->cause =
        (Cause){CAUSE_SEGFAULT, 0.9, "A worker died of a \033[31m.", evidence, ARRAY_SIZE(evidence), 2, 41};
    trial_add(made, 4, 200, 1200);
    made->report.verdict = tune_verdict(&made->report.tune);
}

static char *text_shown(const TuneReport *report, bool utf8)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    Terminal terminal = {.out = out, .columns = 80, .utf8 = utf8};
    show_tune(&terminal, report);
    fclose(out);
    return text;
}

static void test_text(void **state)
{
    (void)state;
    Made made;
    _cleanup_buffer_ Buffer why = {0};
    made_fill(&made);
    assert_int_equal(tune_why(&made.report, &why), 0);
    made.report.why = buffer_text(&why);
    assert_string_equal(
        buffer_text(&why),
        "batch=16 mode=fork gave 190.0 samples/s (give or take 2.0%), measured in 1 trial. It took at most "
        "500.0 MiB of memory; the ceiling is 1.0 GiB. It is 90.0% faster than the next, batch=8 mode=fork. "
        "Settings tried: 4 of 6, in 4 trials. Settings that failed: 1. Settings skipped because they would "
        "not fit (estimated): 1. The first was batch=8 mode=fork, which needs least, because no setting is "
        "known to be safe for samples of 32.0 MiB (assumed).");
    _cleanup_free_ char *plain = text_shown(&made.report, false);
    _cleanup_free_ char *rich = text_shown(&made.report, true);
    for (const char *c = plain; *c; c++)
        assert_true((*c >= 0x20 && *c < 0x7F) || *c == '\n');
    TEXT_FOR_EACH_LINE (line, text_of(rich))
        assert_true(text_columns(line) <= 80);
    TEXT_FOR_EACH_LINE (line, text_of(plain))
        assert_true(line.size <= 80);
    assert_non_null(strstr(rich, "█"));
    assert_non_null(strstr(plain, "####"));
    assert_non_null(strstr(plain, "failed: segfault"));
    assert_non_null(strstr(plain, "over the ceiling"));
    assert_non_null(strstr(plain, "sp\\nawn"));
    arena_free(&made.arena);
}

static void test_words(void **state)
{
    (void)state;
    Made made;
    made_fill(&made);
    static const struct {
        bool by_bytes;
        double rate;
        const char *words;
    } cases[] = {
        {false, 0.1234, "0.12 samples/s"},   {false, 99.96, "100.0 samples/s"},
        {false, 123456, "123456 samples/s"}, {true, 1536, "1.5 KiB/s"},
        {true, 0x1p80, "4.0 EiB/s"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buffer_ Buffer words = {0};
        made.report.by_bytes = cases[i].by_bytes;
        assert_int_equal(tune_rate_words(&made.report, cases[i].rate, &words), 0);
        if (cases[i].rate < 0x1p70)
            assert_string_equal(buffer_text(&words), cases[i].words);
    }
    made.report.by_bytes = false;
    _cleanup_buffer_ Buffer words = {0};
    assert_int_equal(tune_trial_words(&made.report, &made.report.tune.trials[2], &words), 0);
    assert_string_equal(buffer_text(&words),
                        "batch=8 mode=sp\\nawn: segfault. A worker died of a \\x1b[31m.");
    arena_free(&made.arena);
}

static char *state_of(const TuneReport *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(tune_state_write(out, report), 0);
    fclose(out);
    return text;
}

static void test_state(void **state)
{
    (void)state;
    Made made;
    Made again;
    _cleanup_buffer_ Buffer error = {0};
    made_fill(&made);
    made_open(&again);
    _cleanup_free_ char *text = state_of(&made.report);
    assert_int_equal(tune_state_parse(text_of(text), &again.report, &again.arena, &error), 0);
    again.report.tune.trials[2].cause.pid = 41; /* of a process that is gone: not kept */
    _cleanup_free_ char *text_again = state_of(&again.report);
    assert_string_equal(text, text_again);
    assert_int_equal(again.report.tune.n, 4);
    const TuneTrial *died = &again.report.tune.trials[2];
    assert_true(!died->measured && died->cause.id == CAUSE_SEGFAULT && died->cause.n_evidence == 2);
    assert_true(died->rss_bytes == U64_UNKNOWN && died->shm_bytes == 50 * MIB);
    assert_int_equal(tune_verdict(&again.report.tune).best, 2);

    /* It is of this command, these values and this kind of rate, or it is none. */
    arena_free(&again.arena);
    made_open(&again);
    again.report.by_bytes = true;
    assert_int_equal(tune_state_parse(text_of(text), &again.report, &again.arena, &error), -EINVAL);
    assert_non_null(strstr(buffer_text(&error), "--rate"));
    again.report.by_bytes = false;
    again.axes[0].n = 2;
    assert_int_equal(tune_state_parse(text_of(text), &again.report, &again.arena, &error), -EINVAL);
    assert_non_null(strstr(buffer_text(&error), "--vary"));
    again.axes[0].n = 3;
    again.report.command = command + 1;
    assert_int_equal(tune_state_parse(text_of(text), &again.report, &again.arena, &error), -EINVAL);
    assert_non_null(strstr(buffer_text(&error), "another command"));
    assert_int_equal(again.report.tune.n, 0);
    arena_free(&again.arena);
    arena_free(&made.arena);
}

/* One thing wrong at a time. */
static void test_state_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        const char *to;
    } cases[] = {
        {"tune-state/1", "tune-state/2"},
        {"100.0", "-100.0"},
        {"100.0", "0"},
        {"100.0", "\"fast\""},
        {"\"segfault\"", "\"\""},
        {"\"segfault\"", "\"tired\""},
        {"\"confidence\": 0.9", "\"confidence\": 7"},
        {"\"a line\"", "null"},
        {"\"a line\"", "{}"},
        {"\"fds\": 7", "\"fds\": -7"},
        {"\"fds\": 7", "\"fds\": 7.5"},
        {"\"stopped_early\": false", "\"stopped_early\": 0"},
        {"\"mode\": \"fork\"", "\"mode\": \"thread\""},
        {"\"mode\": \"fork\"", "\"mood\": \"fork\""},
        {"\"batch\": \"8\"", "\"batch\": 8"},
        {"\"trials\": [", "\"trials\": [[], "},
        {"\"trials\": [", "\"trials\": 5, \"x\": ["},
        {"\"trials\": [", "\"trials\": [], \"trials\": ["},
        {"\"seconds\": 31.5", "\"seconds\": 1e999"},
        {"\"summary\": \"It", "\"summary\": 5, \"x\": \"It"},
    };
    Made made;
    made_fill(&made);
    _cleanup_free_ char *text = state_of(&made.report);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *place = strstr(text, cases[i].from);
        _cleanup_buffer_ Buffer wrong = {0};
        _cleanup_buffer_ Buffer error = {0};
        Made again;
        made_open(&again);
        if (!place)
            fail_msg("case %zu: no %s in %s", i, cases[i].from, text);
        assert_int_equal(buffer_append(&wrong, text, (size_t)(place - text)), 0);
        assert_int_equal(buffer_append_text(&wrong, cases[i].to), 0);
        assert_int_equal(buffer_append_text(&wrong, place + strlen(cases[i].from)), 0);
        int r =
            tune_state_parse((Text){buffer_text(&wrong), wrong.size}, &again.report, &again.arena, &error);
        if (r != -EINVAL || error.size == 0 || again.report.tune.n != 0)
            fail_msg("case %zu is taken: %s", i, cases[i].to);
        arena_free(&again.arena);
    }
    for (size_t n = 0; n < strlen(text) - 1; n += 7) { /* truncated */
        _cleanup_buffer_ Buffer error = {0};
        Made again;
        made_open(&again);
        assert_int_equal(tune_state_parse((Text){text, n}, &again.report, &again.arena, &error), -EINVAL);
        arena_free(&again.arena);
    }
    arena_free(&made.arena);
}

static void test_json(void **state)
{
    (void)state;
    Made made;
    made_fill(&made);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    made.report.why = "so";
    assert_int_equal(json_tune(out, false, &made.report), 0);
    fclose(out);
    json_t *root = json_loadb(text, size, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "shmguard.tune/1");
    assert_int_equal(json_array_size(json_object_get(root, "trials")), 4);
    assert_true(json_is_true(json_object_get(root, "safe")));
    json_t *best = json_object_get(root, "best");
    assert_true(json_real_value(json_object_get(best, "rate")) == 190);
    assert_string_equal(json_string_value(json_object_get(json_object_get(best, "values"), "batch")), "16");
    json_decref(root);
    free(text);
    arena_free(&made.arena);

    /* Nothing yet. */
    made_open(&made);
    text = NULL;
    out = open_memstream(&text, &size);
    assert_int_equal(json_tune(out, true, &made.report), 0);
    fclose(out);
    root = json_loadb(text, size, 0, NULL);
    assert_true(json_is_null(json_object_get(root, "best")) && json_is_false(json_object_get(root, "safe")));
    json_decref(root);
    free(text);
    arena_free(&made.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),          cmocka_unit_test(test_words), cmocka_unit_test(test_state),
        cmocka_unit_test(test_state_hostile), cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
