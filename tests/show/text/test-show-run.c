/* SPDX-License-Identifier: Apache-2.0 */
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

static char *text_shown(const RunAttempt *attempt, const char *path, bool color)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    Terminal terminal = {.out = out, .columns = 80, .color = color};
    RunAttempt only = *attempt;
    RunReport report = {.attempts = &only, .n_attempts = 1, .path = path};
    show_run(&terminal, &report, true);
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
        {{.pid = 0, .guarded = true}, ""},
        {{.pid = 7, .guarded = false}, ""},
        {{.pid = 7, .guarded = true}, "shmguard: the guard saw no shared tensors\n"},
        {{.pid = 7,
          .guarded = true,
          .guard = {.segments_created = 24,
                    .segments_reused = 1176,
                    .bytes_backed = UINT64_C(1200) << 25,
                    .bytes_peak = 24 << 25}},
         "shmguard: 37.5 GiB of shared tensors were kept out of /dev/shm, in at most 768.0 MiB of memory at "
         "a time.\n"
         "shmguard: segments issued: 1200 (24 created, 98% recycled)\n"},
        {{.pid = 7,
          .guarded = true,
          .strays = 1,
          .guard = {.segments_created = 1,
                    .segments_reused = 1,
                    .bytes_backed = 1 << 20,
                    .bytes_peak = 1 << 20,
                    .names_made = 1,
                    .names_served = 2,
                    .fallbacks = 3}},
         "shmguard: 1.0 MiB of shared tensors were kept out of /dev/shm, in at most 1.0 MiB of memory at a "
         "time.\n"
         "shmguard: tensors that went through /dev/shm instead: 3\n"
         "shmguard: segments issued: 2 (1 created, 50% recycled); names kept: 1 (opened: 2)\n"
         "shmguard: ended 1 process that the command had left running\n"},
        {{.pid = 7, .strays = 3, .work = {1, 4711, 2.5, "python train.py"}},
         "shmguard: The command returned, but process 4711 (python train.py), which it had\n"
         "  left running, was still working and was ended. A script that starts its\n"
         "  training in the background must wait for it: put \"wait\" on its last line. The\n"
         "  exit code is 1.\n"},
        {{.pid = 7, .strays = 3, .work = {2, 4711, 2.5, "a\033b"}},
         "shmguard: The command returned, but 2 processes that it had left running were\n"
         "  still working and were ended. The busiest was process 4711 (a\\x1bb). A script\n"
         "  that starts its training in the background must wait for it: put \"wait\" on its\n"
         "  last line. The exit code is 1.\n"},
        {{.pid = 7, .guarded = true, .guard = {.bytes_peak = 4096, .names_made = 2, .names_served = 1}},
         "shmguard: at most 4.0 KiB of shared memory was kept out of /dev/shm at a time.\n"
         "shmguard: names kept: 2 (opened: 1)\n"},
        {{.pid = 7, .guarded = true, .guard = {.small_backed = 1}}, "shmguard: small tensors: 1\n"},
        {{.pid = 7, .guarded = true, .guard.freeze = {1, 64, 0.01, 0, NULL}},
         "shmguard: 1 object of the dataset (64 B) made immortal in 0.0 s, so that workers do not copy "
         "it\n"},
        {{.pid = 7, .guarded = true, .guard.freeze = {1400002, 64 << 20, 1.25, 32 << 20, "dropped"}},
         "shmguard: 1400002 objects of the dataset (64.0 MiB) made immortal in 1.2 s, so that workers do not "
         "copy them\n"
         "shmguard: 32.0 MiB of a dataset stay in memory until the process ends: it was\n"
         "  made immortal, and then dropped or replaced. Use --freeze off if that is too\n"
         "  much.\n"},
        {{.pid = 7, .guarded = true, .guard.freeze = {0, 0, 0, 0, "python"}},
         "shmguard: the guard saw no shared tensors\n"},
        {{.pid = 7,
          .guarded = true,
          .guard = {.small_backed = 2,
                    .waits = 3,
                    .waited_seconds = 1.25,
                    .refused = 1,
                    .refused_bytes = 8 << 20,
                    .budget_bytes = 5 << 20}},
         "shmguard: 1 request for shared memory was refused; it was for 8.0 MiB. The\n"
         "  budget is 5.0 MiB. The command handled this and continued.\n"
         "shmguard: small tensors: 2; waits for room: 3 (1.2 s in total)\n"},
        {{.pid = 7,
          .guarded = true,
          .guard = {.segments_created = 60,
                    .bytes_backed = 60 << 20,
                    .bytes_peak = 60 << 20,
                    .refused = 2,
                    .refused_bytes = 1 << 20,
                    .refused_for_want = true,
                    .refusals = {{.pid = 8, .most_bytes = 9 << 20}},
                    .n_refusals = 1}},
         "shmguard: 2 requests for shared memory were refused; the largest was for 9.0\n"
         "  MiB. No memory was left. The command handled this and continued.\n"
         "shmguard: 60.0 MiB of shared tensors were kept out of /dev/shm, in at most 60.0 MiB of memory at a "
         "time.\n"
         "shmguard: segments issued: 60 (60 created, 0% recycled)\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        RunAttempt attempt = {.command = words, .result = cases[i].result};
        attempt.evidence.guarded = attempt.result.guarded;
        attempt.evidence.shared = guard_has_served(&attempt.result.guard);
        _cleanup_free_ char *text = text_shown(&attempt, "report.json", false);
        assert_string_equal(text, cases[i].text);
    }
}

/* Why the guard did nothing, and what to do. */
static void test_idle(void **state)
{
    (void)state;
    static Unguarded python[] = {{.pid = 5, .comm = "python3", .role = ROLE_TRAINER, .why = ABSENCE_STATIC}};
    static Unguarded user[] = {{.pid = 5, .comm = "py\033", .uid = 1000, .why = ABSENCE_UNREADABLE_LIBRARY},
                               {.pid = 6, .comm = "python3", .uid = 1000, .why = ABSENCE_UNREADABLE_LIBRARY}};
    static Unguarded within[] = {{.pid = 5, .comm = "python3", .why = ABSENCE_INNER_RUN}};
    static Unguarded hidden[] = {
        {.pid = 5, .comm = "python3", .uid = 1000, .role = ROLE_TRAINER, .why = ABSENCE_UNREADABLE_PROCESS}};
    static const struct {
        Coverage coverage;
        uint64_t turned_away;
        bool shared;
        const char *text;
    } cases[] = {
        {{.guarded = 2},
         0,
         false,
         "shmguard: no shared tensors were made, so the guard had nothing to do. A\n"
         "  DataLoader shares tensors when it has num_workers > 0.\n"},
        {{.unguarded = python, .n_unguarded = 1},
         0,
         false,
         "shmguard: python3 (pid 5) ran without the guard. It is a static program, which\n"
         "  loads no libraries. Use a Python that is linked dynamically.\n"},
        {{.unguarded = user, .n_unguarded = 2},
         0,
         false,
         "shmguard: py\\x1b (pid 5) and 1 other process ran without the guard. It ran as\n"
         "  user 1000. Its user cannot read the guard's library. Install shmguard where\n"
         "  every user can read it.\n"},
        {{.guarded = 2},
         3,
         false,
         "shmguard: processes of another user asked for the guard and were refused: it\n"
         "  could not be shown that they belong to this job. Start shmguard after the\n"
         "  change of user.\n"},
        {{.unguarded = within, .n_unguarded = 1},
         0,
         false,
         "shmguard: another shmguard within this one served the training; its own summary\n"
         "  has the figures. One of the two is enough.\n"},
        {{.unguarded = hidden, .n_unguarded = 1},
         0,
         false,
         "shmguard: the guard saw no shared tensors\n"
         "shmguard: shmguard is not allowed to inspect python3 (pid 5), which ran as user\n"
         "  1000, so it is unknown whether the guard was loaded in it. Inspecting it\n"
         "  requires CAP_SYS_PTRACE: docker run --cap-add=SYS_PTRACE\n"},
        /* It had something to do, and still was not everywhere. */
        {{.guarded = 2, .unguarded = python, .n_unguarded = 1},
         0,
         true,
         "shmguard: small tensors: 1\n"
         "shmguard: python3 (pid 5) ran without the guard. It is a static program, which\n"
         "  loads no libraries. Use a Python that is linked dynamically.\n"},
        {{.guarded = 2, .unguarded = user, .n_unguarded = 2}, 0, true, "shmguard: small tensors: 1\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        RunAttempt attempt = {.command = words,
                              .result = {.pid = 7, .guarded = true, .guard.small_backed = cases[i].shared},
                              .evidence = {.guarded = true,
                                           .shared = cases[i].shared,
                                           .turned_away = cases[i].turned_away,
                                           .coverage = cases[i].coverage}};
        _cleanup_free_ char *text = text_shown(&attempt, NULL, false);
        assert_string_equal(text, cases[i].text);
    }
}

static const char *evidence[] = {
    "DataLoader worker 77 got SIGBUS at address 0x7f0000001000, at offset 4096 of /dev/shm/torch_77_1_2, "
    "which "
    "has 8388608 bytes",
    "/dev/shm had 0 B free of 64.0 MiB at that moment",
    "third",
    "fourth is one too many",
};
static Fix fixes[] = {
    {"Run it without --no-guard.", NULL, NEEDS_NOTHING},
    {"Restart the container.", "docker run --shm-size=8g IMAGE COMMAND", NEEDS_RESTART},
    {"Third is one too many.", NULL, NEEDS_ADMIN},
};
static const RunAttempt bad = {
    .command = words,
    .result = {.pid = 70, .code = 1, .seconds = 1.5},
    .judged = {.cause = {.id = CAUSE_SHM_EXHAUSTED,
                         .confidence = 0.98,
                         .summary =
                             "DataLoader worker 77 died of a bus error: /dev/shm was full when it wrote "
                             "there.",
                         .evidence = evidence,
                         .n_evidence = ARRAY_SIZE(evidence),
                         .pid = 77},
               .frame = "load.py line 9, in read",
               .stack = "Stack (most recent call first):\n  File \"load.py\", line 9 in read\n",
               .fixes = {.items = fixes, .n = ARRAY_SIZE(fixes)}},
};

static char *crawl_shown(const RunTick *tick)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    Terminal terminal = {.out = out, .columns = 80};
    show_crawl(&terminal, tick);
    fclose(out);
    return text;
}

/* Who keeps what, and what to change: while it runs, and at its end. */
static void test_crawl(void **state)
{
    (void)state;
    Crawl crawl = {.seconds = 10.6, .keeper = {.pid = 7, .role = ROLE_TRAINER, .bytes = 232 << 20}};
    RunTick tick = {
        .pid = 7, .crawl = &crawl, .guard = {.waiting = 2, .budget_bytes = 200 << 20, .wanted_exists = true}};
    _cleanup_free_ char *command = crawl_shown(&tick);
    assert_string_equal(command,
                        "shmguard: 2 workers are waiting, and no memory was released for 11 s. Most of the "
                        "shared memory is kept by the command (pid 7): 232.0 MiB. The budget is 200.0 MiB. "
                        "Raise --budget, or keep copies (clone) instead of the batches.\n");
    crawl.keeper = (Keeper){.pid = 9, .role = ROLE_OTHER, .comm = "ca\033che", .bytes = 1 << 20};
    tick.guard = (GuardFigures){.waiting = 1, .budget_bytes = U64_UNKNOWN};
    _cleanup_free_ char *other = crawl_shown(&tick);
    assert_non_null(strstr(other, "1 worker is waiting"));
    assert_non_null(strstr(other, "kept by process 9 (ca\\x1bche): 1.0 MiB."));
    assert_non_null(strstr(other, "No more memory is available."));

    RunAttempt attempt = {.command = words,
                          .result = {.pid = 7,
                                     .seconds = 100,
                                     .guarded = true,
                                     .keeper = {.pid = 8, .role = ROLE_TRAINER, .bytes = 456 << 20},
                                     .guard = {.queued_seconds = 99,
                                               .rescues = 35,
                                               .small_backed = 1,
                                               .budget_bytes = 200 << 20,
                                               .wanted_bytes = (470 << 20) + 1,
                                               .wanted_exists = true}}};
    _cleanup_free_ char *end = text_shown(&attempt, NULL, false);
    assert_string_equal(end,
                        "shmguard: small tensors: 1\n"
                        "shmguard: workers waited for room during 99% of the run, and 35 batches passed\n"
                        "  the budget of 200.0 MiB because no memory was released. Most of the shared\n"
                        "  memory was kept by trainer 8: 456.0 MiB. Keep copies (clone) of what you need\n"
                        "  instead of the batches, or use --budget 480m (estimated).\n");
    attempt.result.guard.queued_seconds = 4; /* as a budget is meant to work */
    _cleanup_free_ char *fine = text_shown(&attempt, NULL, false);
    assert_string_equal(fine, "shmguard: small tensors: 1\n");
}

/* What was refused comes first, and what to do about it. */
static void test_lost(void **state)
{
    (void)state;
    RunAttempt attempt = bad;
    attempt.result = (RunResult){.pid = 70,
                                 .guarded = true,
                                 .strays = 1,
                                 .guard = {.refused = 3, .segments_created = 3, .small_backed = 4}};
    attempt.judged.cause.id = CAUSE_BUDGET_EXCEEDED;
    attempt.judged.cause.summary = "Batches were lost.";
    attempt.judged.cause.n_evidence = 0;
    attempt.judged.frame = NULL;
    attempt.judged.fixes.n = 1;
    _cleanup_free_ char *text = text_shown(&attempt, NULL, false);
    assert_string_equal(text, "shmguard: Batches were lost.\n"
                              "  What to do:\n"
                              "  1. Run it without --no-guard.\n"
                              "  cause: budget-exceeded (certain)\n"
                              "shmguard: small tensors: 4\n"
                              "shmguard: ended 1 process that the command had left running\n");
    RunReport report = {.attempts = &attempt, .n_attempts = 1};
    assert_int_equal(report_exit_code(&report), 1);
    attempt.result.code = 3;
    assert_int_equal(report_exit_code(&report), 3);
    attempt.result.code = 0;
    attempt.judged.cause.id = CAUSE_OK;
    assert_int_equal(report_exit_code(&report), 0);
}

static void test_end(void **state)
{
    (void)state;
    _cleanup_free_ char *text = text_shown(&bad, "out/\033report.json", false);
    assert_string_equal(text,
                        "shmguard: DataLoader worker 77 died of a bus error: /dev/shm was full when it\n"
                        "  wrote there.\n"
                        "  - DataLoader worker 77 got SIGBUS at address 0x7f0000001000, at offset 4096 of\n"
                        "    /dev/shm/torch_77_1_2, which has 8388608 bytes\n"
                        "  - /dev/shm had 0 B free of 64.0 MiB at that moment\n"
                        "  - third\n"
                        "  - Python was at load.py line 9, in read\n"
                        "  What to do:\n"
                        "  1. Run it without --no-guard.\n"
                        "  2. Restart the container. (needs a restart)\n"
                        "         docker run --shm-size=8g IMAGE COMMAND\n"
                        "  cause: shm-exhausted (certain); report: out/\\x1breport.json\n");
    _cleanup_free_ char *colored = text_shown(&bad, NULL, true);
    assert_non_null(strstr(colored, "\033["));
    assert_null(strstr(colored, "more in"));
}

/* Who ended it himself needs no lecture; where nothing is known, nothing is named. */
static void test_end_short(void **state)
{
    (void)state;
    RunAttempt attempt = bad;
    attempt.result.passed_on = 2;
    attempt.judged.cause.id = CAUSE_UNKNOWN;
    attempt.judged.cause.summary = "The command was interrupted.";
    _cleanup_free_ char *text = text_shown(&attempt, "report.json", false);
    assert_string_equal(text, "shmguard: The command was interrupted.\n");

    attempt.result.passed_on = 0;
    attempt.judged = (Diagnosis){.cause = {.id = CAUSE_UNKNOWN,
                                           .summary = "python3 exited with code 3.",
                                           .evidence = evidence,
                                           .n_evidence = 1}};
    _cleanup_free_ char *bare = text_shown(&attempt, "report.json", false);
    assert_string_equal(bare, "shmguard: python3 exited with code 3.\n");
}

static json_t *json_of(const RunReport *report, bool indented)
{
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(json_run(out, indented, report), 0);
    fclose(out);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    return json;
}

static void test_json(void **state)
{
    (void)state;
    RunAttempt attempt = bad;
    attempt.result.code = 139;
    attempt.result.signal = 11;
    attempt.result.guard = (GuardFigures){.segments_created = 5,
                                          .names_served = 6,
                                          .bytes_peak = 7,
                                          .fallbacks = 8,
                                          .waits = 9,
                                          .waited_seconds = 0.5,
                                          .refused = 10,
                                          .lane = {.batches = 11, .by_value_bytes = 4096}};
    RunReport report = {.attempts = &attempt, .n_attempts = 1, .peaks = {7, U64_UNKNOWN, 20, 3}};
    Unguarded without_guard[] = {
        {.pid = 5, .comm = "py\033", .uid = 1000, .role = ROLE_WORKER, .why = ABSENCE_SECURE}};
    attempt.evidence.coverage = (Coverage){.guarded = 4, .unguarded = without_guard, .n_unguarded = 1};
    for (int guarded = 0; guarded < 2; guarded++) {
        attempt.result.guarded = guarded;
        attempt.evidence.guarded = guarded;
        json_t *json = json_of(&report, guarded);
        assert_string_equal(json_string_value(json_object_get(json, "schema")), "shmguard.run/1");
        json_t *only = json_array_get(json_object_get(json, "attempts"), 0);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "exit"), "code")), 139);
        assert_true(json_equal(json_object_get(json, "exit"), json_object_get(only, "exit")));
        json_t *cause = json_object_get(json, "cause");
        assert_true(json_equal(cause, json_object_get(only, "cause")));
        assert_string_equal(json_string_value(json_object_get(cause, "id")), "shm-exhausted");
        assert_int_equal(json_array_size(json_object_get(cause, "evidence")), ARRAY_SIZE(evidence));
        assert_int_equal(json_integer_value(json_object_get(cause, "pid")), 77);
        assert_int_equal(json_array_size(json_object_get(cause, "stack")), 2);
        assert_true(json_is_null(json_object_get(cause, "detail")));
        assert_int_equal(json_array_size(json_object_get(json, "fixes")), ARRAY_SIZE(fixes));
        assert_true(json_is_object(json_object_get(only, "values")));
        json_t *command = json_object_get(only, "command");
        assert_int_equal(json_array_size(command), 3);
        assert_string_equal(json_string_value(json_array_get(command, 1)), "tr\\x1bain.py");
        json_t *peaks = json_object_get(json, "peaks");
        assert_true(json_is_null(json_object_get(peaks, "rss")));
        assert_int_equal(json_integer_value(json_object_get(peaks, "shm")), 7);
        assert_int_equal(json_integer_value(json_object_get(peaks, "fds")), 20);
        assert_int_equal(json_integer_value(json_object_get(peaks, "processes")), 3);
        json_t *guard = json_object_get(json, "guard");
        assert_int_equal(json_is_true(json_object_get(guard, "active")), guarded);
        static const char *const fields[] = {
            "segments_created", "segments_reused", "bytes_peak",   "waits",
            "refused",          "names_served",    "pinned_bytes", "fallbacks"};
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
            assert_true(json_is_integer(json_object_get(guard, fields[i])));
        assert_int_equal(json_integer_value(json_object_get(guard, "waits")), 9);
        assert_int_equal(json_integer_value(json_object_get(guard, "refused")), 10);
        assert_true(json_real_value(json_object_get(guard, "waited_seconds")) == 0.5);
        assert_false(json_is_true(json_object_get(guard, "joined")));
        assert_int_equal(json_integer_value(json_object_get(guard, "processes")), 4);
        json_t *idle = json_object_get(guard, "idle");
        assert_true(guarded ? strcmp(json_string_value(idle), "not-loaded") == 0 : json_is_null(idle));
        json_t *lane = json_object_get(json, "lane");
        assert_int_equal(json_is_true(json_object_get(lane, "active")), guarded);
        assert_int_equal(json_integer_value(json_object_get(lane, "by_value_bytes")), 4096);
        json_t *why = json_object_get(lane, "why");
        assert_true(guarded ? json_is_null(why) : strcmp(json_string_value(why), "no-guard") == 0);
        json_t *without = json_array_get(json_object_get(guard, "unguarded"), 0);
        assert_int_equal(json_integer_value(json_object_get(without, "pid")), 5);
        assert_int_equal(json_integer_value(json_object_get(without, "uid")), 1000);
        assert_string_equal(json_string_value(json_object_get(without, "name")), "py\\x1b");
        assert_string_equal(json_string_value(json_object_get(without, "role")), "worker");
        assert_string_equal(json_string_value(json_object_get(without, "why")), "set-user-id");
        json_decref(json);
    }
}

static void test_json_attempts(void **state)
{
    (void)state;
    const char *good_evidence[] = {"exit code 0"};
    const AttemptValue first[] = {{"batch", "64"}, {"w\xff", "\xfe"}};
    const AttemptValue second[] = {{"batch", "32"}};
    RunAttempt attempts[] = {bad, bad};
    attempts[0].values = first;
    attempts[0].n_values = 2;
    attempts[1].values = second;
    attempts[1].n_values = 1;
    attempts[1].result = (RunResult){.pid = 90, .seconds = 2};
    attempts[1].judged = (Diagnosis){
        .cause = {
            .id = CAUSE_OK, .confidence = 1, .summary = "s", .evidence = good_evidence, .n_evidence = 1}};
    RunReport report = {.attempts = attempts, .n_attempts = 2};
    json_t *json = json_of(&report, false);
    assert_string_equal(json_string_value(json_object_get(json_object_get(json, "cause"), "id")), "ok");
    assert_int_equal(json_array_size(json_object_get(json, "fixes")), 0);
    json_t *list = json_object_get(json, "attempts");
    assert_int_equal(json_array_size(list), 2);
    json_t *values = json_object_get(json_array_get(list, 0), "values");
    assert_string_equal(json_string_value(json_object_get(values, "batch")), "64");
    assert_string_equal(json_string_value(json_object_get(values, "w\\xff")), "\\xfe");
    json_t *cause = json_object_get(json_array_get(list, 0), "cause");
    assert_string_equal(json_string_value(json_object_get(cause, "id")), "shm-exhausted");
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),  cmocka_unit_test(test_idle),          cmocka_unit_test(test_lost),
        cmocka_unit_test(test_crawl), cmocka_unit_test(test_end),           cmocka_unit_test(test_end_short),
        cmocka_unit_test(test_json),  cmocka_unit_test(test_json_attempts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
