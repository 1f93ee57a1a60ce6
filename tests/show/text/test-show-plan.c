/* SPDX-License-Identifier: Apache-2.0 */
/* A plan for people and for scripts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "show-plan.h"

#define MIB (UINT64_C(1) << 20)

static const ShmFlags flags = {"--shm-size=512m", "shm_size: 512m", "sizeLimit: 512Mi",
                               "mount -o remount,size=512m /dev/shm", "tmpfs /dev/shm"};
static const GuardOffer guard_ready = {.ready = true};
static const GuardOffer guard_missing = {.why_not = "it was not built"};

static PlanQuestion question_of(const PlanLoader *loader)
{
    return (PlanQuestion){.loaders = loader,
                          .n_loaders = 1,
                          .page_bytes = 4096,
                          .ranks = 1,
                          .jobs = 1,
                          .per_gpu_last = 1,
                          .margin = 1.3,
                          .shm_bytes = 64 * MIB,
                          .memory_bytes = 1024 * MIB,
                          .memory_room_bytes = 1024 * MIB};
}

static char *shown(const PlanView *view, bool json)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    Terminal terminal = {.out = out, .columns = 80};
    if (json)
        assert_int_equal(json_plan(out, false, view), 0);
    else
        show_plan(&terminal, view);
    fclose(out);
    return text;
}

static void test_text(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    uint64_t fields[] = {3 * 224 * 224, 8};
    PlanLoader loader = {
        .field_bytes = fields, .n_fields = 2, .batch = 128, .workers = 4, .prefetch = 2, .held = 1};
    PlanQuestion question = question_of(&loader);
    Plan plan;
    assert_int_equal(plan_make(&question, &arena, &plan), 0);
    PlanView view = {&question, &plan, &flags, &guard_ready, NULL};
    _cleanup_free_ char *text = shown(&view, false);
    assert_non_null(strstr(text,
                           "one batch     18.4 MiB in 2 tensors\n"
                           "in flight     9 batches (workers x prefetch + kept by the trainer: 4 x 2 + 1)\n"
                           "needed        165.5 MiB (computed): 1 trainer x 165.5 MiB\n"
                           "short peaks   up to 183.9 MiB, when samples take no time to make\n"
                           "recommended   512.0 MiB for /dev/shm (margin 1.3, then rounded up)\n"
                           "available     /dev/shm: 64.0 MiB, memory: 1.0 GiB\n"));
    assert_non_null(strstr(text, "does not fit (215.1 MiB with the margin)\n"
                                 "largest fit   batch size 38 with 4 workers\n"));
    assert_non_null(strstr(text, "\nSafe settings (change one of the two at a time):\n"
                                 "setting   of the room  workers with batch 128  batch with 4 workers\n"
                                 "cautious          25%                       -                    12\n"));
    assert_non_null(strstr(text, "    --shm-size=512m\n"));
    assert_non_null(strstr(text, "RAM needed then: 220.5 MiB"));

    view.guard = &guard_missing;
    free(TAKE_PTR(text));
    text = shown(&view, false);
    assert_null(strstr(text, "shmguard run"));
}

static void test_measured(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    PlanQuestion question = question_of(NULL);
    question.n_loaders = 0;
    question.basis = BASIS_COMMAND;
    question.per_process_bytes = 10 * MIB;
    question.gpus = 2;
    question.per_gpu_first = 1;
    question.per_gpu_last = 2;
    question.table = true;
    Plan plan;
    assert_int_equal(plan_make(&question, &arena, &plan), 0);
    PlanMeasured measured = {
        .peak_bytes = 12 * MIB, .guarded = true, .seconds = 60, .trainers = 1, .workers = 2, .scaled = true};
    ProcessPeak processes[] = {
        {.pid = 7, .role = ROLE_WORKER, .comm = "py\n", .rss_bytes = 90 * MIB, .shm_bytes = 6 * MIB},
        {.pid = 5, .role = ROLE_TRAINER, .rss_bytes = 300 * MIB, .shm_bytes = 12 * MIB, .own_bytes = MIB},
        {.pid = 8,
         .role = ROLE_WORKER,
         .rss_bytes = 80 * MIB,
         .shm_bytes = 7 * MIB,
         .own_bytes = U64_UNKNOWN},
    };
    measured.processes = processes;
    measured.n_processes = ARRAY_SIZE(processes);
    PlanView view = {&question, &plan, NULL, &guard_missing, &measured};
    _cleanup_free_ char *text = shown(&view, false);
    assert_non_null(strstr(text,
                           "measured      12.0 MiB at most in 60 s, trainers: 1, workers per trainer: 2\n"
                           "\nMeasured peaks, the largest of each role:\n"
                           "role     processes     memory    shared  private\n"
                           "trainer          1  300.0 MiB  12.0 MiB  1.0 MiB\n"
                           "worker           2   90.0 MiB   7.0 MiB      0 B\n"
                           "\nneeded        40.0 MiB (measured, then scaled): 4 trainers x 10.0 MiB\n"));
    assert_non_null(strstr(text, "room for      4 trainers like this\n"
                                 "\nper GPU  processes    needed  recommended\n"
                                 "      1          2  20.0 MiB    512.0 MiB\n"
                                 "      2          4  40.0 MiB    512.0 MiB\n"));
    assert_null(strstr(text, "To get"));

    _cleanup_free_ char *json = shown(&view, true);
    json_t *answer = json_loads(json, 0, NULL);
    assert_non_null(answer);
    assert_string_equal(json_string_value(json_object_get(answer, "source")), "measured");
    assert_string_equal(json_string_value(json_object_get(answer, "basis")), "command");
    assert_true(json_is_null(json_object_get(answer, "batch_bytes")));
    assert_true(json_is_null(json_object_get(answer, "largest_fit")));
    assert_true(json_is_null(json_object_get(answer, "flags")));
    assert_int_equal(json_array_size(json_object_get(answer, "table")), 2);
    const json_t *list = json_object_get(answer, "processes");
    assert_int_equal(json_array_size(list), 3);
    const json_t *first = json_array_get(list, 0);
    assert_string_equal(json_string_value(json_object_get(first, "role")), "worker");
    assert_int_equal(json_integer_value(json_object_get(first, "rss_peak")), 90 * MIB);
    assert_int_equal(json_integer_value(json_object_get(first, "shm_peak")), 6 * MIB);
    assert_int_equal(json_integer_value(json_object_get(answer, "base")), 40 * MIB);
    json_decref(answer);
}

static void test_unknown_room(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    PlanLoader loader = {.batch_bytes = MIB, .workers = 1, .prefetch = 2, .held = 1};
    PlanQuestion question = question_of(&loader);
    question.shm_bytes = question.memory_bytes = question.memory_room_bytes = U64_UNKNOWN;
    Plan plan;
    assert_int_equal(plan_make(&question, &arena, &plan), 0);
    PlanView view = {&question, &plan, &flags, &guard_missing, NULL};
    _cleanup_free_ char *text = shown(&view, false);
    assert_non_null(strstr(text, "verdict       unknown"));
    assert_null(strstr(text, "Safe settings"));
    _cleanup_free_ char *json = shown(&view, true);
    assert_non_null(strstr(json, "\"available\":null"));
    assert_null(strstr(json, "\"table\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_unknown_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
