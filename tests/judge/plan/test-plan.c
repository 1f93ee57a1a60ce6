/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of plan, and what people write about a job. */
#include "fixture.h"

#include "plan-parse.h"
#include "units.h"

enum { PAGE = 4096 };

static PlanQuestion question_of(const PlanLoader *loaders, size_t n)
{
    return (PlanQuestion){.loaders = loaders,
                          .n_loaders = n,
                          .page_bytes = PAGE,
                          .ranks = 1,
                          .jobs = 1,
                          .per_gpu_last = 1,
                          .margin = 1.3,
                          .shm_bytes = U64_UNKNOWN,
                          .memory_bytes = U64_UNKNOWN,
                          .memory_room_bytes = U64_UNKNOWN};
}

static Plan plan_of(const PlanQuestion *question, Arena *arena)
{
    Plan plan;
    assert_int_equal(plan_make(question, arena, &plan), 0);
    return plan;
}

static bool has_note(const Plan *plan, const char *words)
{
    for (size_t i = 0; i < plan->n_notes; i++)
        if (strstr(plan->notes[i], words))
            return true;
    return false;
}

/* Peaks of real loaders, byte for byte: PyTorch 1.13 and 2.13, the trainer pausing. */
static void test_measured(void **state)
{
    (void)state;
    uint64_t image[] = {3 * 64 * 64 * 4, 8};
    uint64_t large[] = {3 * 224 * 224 * 4, 8};
    uint64_t small[] = {3 * 16 * 16, 8};
    const struct {
        uint64_t *fields;
        uint64_t batch;
        uint64_t workers;
        uint64_t prefetch;
        bool list;
        bool file_system;
        uint64_t peak;
    } cases[] = {
        {image, 16, 1, 2, false, false, 2416640}, {image, 16, 2, 2, false, false, 4009984},
        {image, 16, 2, 2, true, false, 4317184},  {image, 16, 3, 1, false, false, 3231744},
        {image, 16, 2, 4, false, false, 7172096}, {large, 16, 1, 2, false, false, 28958720},
        {large, 16, 2, 2, true, false, 48553984}, {large, 16, 2, 4, false, false, 86798336},
        {small, 4, 1, 2, false, false, 69632},    {small, 4, 2, 2, true, false, 221184},
        {image, 16, 1, 2, false, true, 2428928},  {image, 16, 2, 2, true, true, 4644864},
        {large, 16, 3, 1, false, true, 38637568}, {large, 16, 2, 2, true, true, 48881664},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        PlanLoader loader = {.field_bytes = cases[i].fields,
                             .n_fields = 2,
                             .batch = cases[i].batch,
                             .workers = cases[i].workers,
                             .prefetch = cases[i].prefetch,
                             .held = 1,
                             .list = cases[i].list};
        LoaderNeed need;
        assert_int_equal(plan_loader_need(&loader, cases[i].file_system, PAGE, &need), 0);
        assert_int_equal(need.bytes, cases[i].peak);
        assert_int_equal(need.in_flight, cases[i].workers * cases[i].prefetch + 1);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    PlanLoader loader = {.batch_bytes = 32 * MIB, .workers = 4, .prefetch = 2, .held = 1};
    PlanQuestion question = question_of(&loader, 1);
    question.ranks = 2;
    question.jobs = 3;
    question.collectives = COLLECTIVES_NCCL;
    Plan plan = plan_of(&question, &arena);
    assert_int_equal(plan.batch_bytes, 32 * MIB);
    assert_int_equal(plan.in_flight, 9);
    assert_int_equal(plan.per_trainer_bytes, 9 * 32 * MIB + 20 * PAGE);
    assert_int_equal(plan.trainers, 6);
    assert_int_equal(plan.base_bytes, 6 * plan.per_trainer_bytes);
    assert_int_equal(plan.collective_bytes, 6 * 2 * 9637888);
    assert_int_equal(plan.guard_bytes, 6 * 12 * 32 * MIB);
    assert_int_equal(plan.recommended_bytes, 3 * GIB);
    assert_true(plan.fits); /* no limit is known */
    assert_false(plan.has_largest);
    assert_true(has_note(&plan, "NCCL"));

    question.collectives = COLLECTIVES_GLOO;
    plan = plan_of(&question, &arena);
    assert_int_equal(plan.collective_bytes, 6 * (66 * MIB + PAGE));
    question.ranks = 1; /* nobody to talk to */
    plan = plan_of(&question, &arena);
    assert_int_equal(plan.collective_bytes, 0);
}

/* The field notes' table: 5.75 MiB a process, 8 GPUs. */
static void test_table(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    PlanQuestion question = question_of(NULL, 0);
    question.basis = BASIS_PER_PROCESS;
    question.per_process_bytes = 23 * MIB / 4;
    question.gpus = 8;
    question.per_gpu_first = 1;
    question.per_gpu_last = 12;
    question.table = true;
    Plan plan = plan_of(&question, &arena);
    assert_int_equal(plan.n_table, 12);
    for (uint64_t i = 0; i < 12; i++) {
        assert_int_equal(plan.table[i].per_gpu, i + 1);
        assert_int_equal(plan.table[i].processes, 8 * (i + 1));
        assert_int_equal(plan.table[i].base_bytes, 46 * MIB * (i + 1));
        assert_int_equal(plan.table[i].recommended_bytes, i < 5 ? 512 * MIB : GIB);
    }
    assert_int_equal(plan.base_bytes, 552 * MIB);
    assert_int_equal(plan.trainers, 96);
    assert_int_equal(plan.batch_bytes, U64_UNKNOWN);
    assert_int_equal(plan.guard_bytes, plan.base_bytes);
    assert_int_equal(plan.bound_bytes, plan.base_bytes);
}

/* What is said to fit fits, and one more does not. */
static void test_inverse(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    uint64_t fields[] = {3 * 224 * 224, 8};
    static const uint64_t rooms[] = {PAGE, 64 * MIB, 100 * MIB, GIB, 32 * GIB};
    for (size_t i = 0; i < ARRAY_SIZE(rooms); i++)
        for (uint64_t workers = 1; workers <= 16; workers *= 4) {
            PlanLoader loaders[] = {
                {.field_bytes = fields,
                 .n_fields = 2,
                 .batch = 64,
                 .workers = workers,
                 .prefetch = 2,
                 .held = 1},
                {.batch_bytes = PAGE, .workers = 1, .prefetch = 1, .held = 1},
            };
            PlanQuestion question = question_of(loaders, 2);
            question.shm_bytes = rooms[i];
            Plan plan = plan_of(&question, &arena);
            assert_int_equal(plan.fits, plan.tight_bytes <= rooms[i]);
            if (!plan.has_largest) {
                assert_int_equal(rooms[i], PAGE);
                continue;
            }
            assert_int_equal(plan.largest_loader, 0);
            loaders[0].batch = plan.largest_batch;
            loaders[0].workers = plan.largest_workers;
            Plan largest = plan_of(&question, &arena);
            assert_true(largest.fits);
            loaders[0].batch++;
            largest = plan_of(&question, &arena);
            assert_false(largest.fits);
            loaders[0].batch--;

            assert_int_equal(plan.n_ladder, PLAN_LADDER);
            for (size_t step = 1; step < plan.n_ladder; step++) {
                assert_true(plan.ladder[step].batch >= plan.ladder[step - 1].batch);
                assert_true(plan.ladder[step].workers >= plan.ladder[step - 1].workers);
            }
            loaders[0].batch = 64;
            loaders[0].workers = plan.ladder[2].workers ? plan.ladder[2].workers : 1;
            largest = plan_of(&question, &arena);
            assert_int_equal(largest.fits, plan.ladder[2].workers > 0);
        }

    /* Of a batch whose samples are not counted only the workers can follow. */
    PlanLoader loader = {.batch_bytes = 10 * MIB, .workers = 100, .prefetch = 2, .held = 1};
    PlanQuestion question = question_of(&loader, 1);
    question.shm_bytes = 64 * MIB;
    Plan plan = plan_of(&question, &arena);
    assert_false(plan.fits);
    assert_true(plan.has_largest);
    assert_int_equal(plan.largest_batch, 0);
    assert_int_equal(plan.largest_workers, 1);
    loader.batch = 10;
    plan = plan_of(&question, &arena);
    assert_int_equal(plan.largest_workers, 23); /* not even one sample goes with 100 */
    assert_int_equal(plan.largest_batch, 1);
}

/* One worker with prefetch 1 has two batches, and a third for a moment: more than 30%. */
static void test_handover(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    PlanLoader loader = {.batch_bytes = GIB, .workers = 1, .prefetch = 1, .held = 1};
    PlanQuestion question = question_of(&loader, 1);
    Plan plan = plan_of(&question, &arena);
    assert_true(plan.tight_bytes >= 3 * GIB);
    assert_int_equal(plan.recommended_bytes, 4 * GIB);
    loader.workers = 100;
    plan = plan_of(&question, &arena);
    assert_true(plan.tight_bytes > 131 * GIB && plan.tight_bytes < 132 * GIB);
}

static void test_notes(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    PlanLoader loader = {.batch_bytes = GIB, .workers = 2, .prefetch = 2, .held = 1};
    PlanQuestion question = question_of(&loader, 1);
    question.memory_bytes = question.memory_room_bytes = 16 * GIB;
    Plan plan = plan_of(&question, &arena);
    assert_true(has_note(&plan, "above a quarter"));
    question.memory_bytes = question.memory_room_bytes = 64 * GIB;
    plan = plan_of(&question, &arena);
    assert_false(has_note(&plan, "above a quarter"));
    question.shm_bytes = 6 * GIB;
    plan = plan_of(&question, &arena);
    assert_false(plan.fits);
    assert_true(has_note(&plan, "without the margin"));
    question.page_bytes = 2 * MIB;
    plan = plan_of(&question, &arena);
    assert_true(has_note(&plan, "pages of 2.0 MiB"));

    static const uint64_t bounds[PLAN_KINDS][2] = {{2, 4}, {8, 16}, {16, 32}, {32, 32}};
    for (size_t i = 0; i < PLAN_KINDS; i++) {
        question = question_of(NULL, 0);
        question.basis = BASIS_KIND;
        question.kind = (PlanKind)i;
        plan = plan_of(&question, &arena);
        assert_int_equal(plan.base_bytes, bounds[i][0] * GIB);
        assert_int_equal(plan.recommended_bytes, bounds[i][1] * GIB);
        assert_true(has_note(&plan, "rule of thumb"));
    }
}

static void test_overflow(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    uint64_t fields[] = {INT64_MAX};
    static const uint64_t most = PLAN_COUNT_MOST;
    const PlanLoader loaders[] = {
        {.field_bytes = fields, .n_fields = 1, .batch = 2, .workers = 1, .prefetch = 1, .held = 1},
        {.field_bytes = fields, .n_fields = 1, .batch = 1, .workers = 1, .prefetch = 1, .held = 1},
        {.field_bytes = fields,
         .n_fields = 1,
         .batch = 2,
         .workers = 1,
         .prefetch = 1,
         .held = 1,
         .list = true},
        {.batch_bytes = INT64_MAX, .workers = 1, .prefetch = 1, .held = 1},
        {.batch_bytes = 16 * MIB, .workers = most, .prefetch = most, .held = most},
        {.batch_bytes = GIB, .workers = UINT64_MAX / 2, .prefetch = 3, .held = 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(loaders); i++) {
        PlanQuestion question = question_of(&loaders[i], 1);
        Plan plan;
        assert_int_equal(plan_make(&question, &arena, &plan), -EOVERFLOW);
    }
    PlanLoader good = {.batch_bytes = GIB, .workers = 4, .prefetch = 2, .held = 1};
    PlanQuestion question = question_of(&good, 1);
    question.ranks = question.jobs = most;
    Plan plan;
    assert_int_equal(plan_make(&question, &arena, &plan), -EOVERFLOW);
    question.ranks = question.jobs = 1;
    question.margin = PLAN_MARGIN_MOST;
    assert_int_equal(plan_make(&question, &arena, &plan), 0);
}

static void test_scale(void **state)
{
    (void)state;
    static const struct {
        PlanSetting from;
        PlanSetting to;
        int r;
        uint64_t bytes;
    } cases[] = {
        {{0, 4, 2, 1}, {0, 4, 2, 1}, 0, 900},
        {{0, 4, 2, 1}, {0, 8, 2, 1}, 0, 1700},
        {{0, 4, 2, 1}, {32, 4, 2, 1}, 0, 900},
        {{16, 4, 2, 1}, {32, 4, 2, 1}, 0, 1800},
        {{16, 4, 2, 1}, {32, 2, 2, 1}, 0, 1000},
        {{16, 4, 2, 1}, {1, 4, 2, 1}, 0, 57},
        {{1, 1, 1, 0}, {UINT64_C(1) << 62, 1, 1, 0}, -EOVERFLOW, 0},
        {{1, 1, 1, 0}, {1, UINT64_MAX, 2, 0}, -EOVERFLOW, 0},
        {{1, 2, 2, 1, true}, {1, 2, 2, 1, false}, 0, 750}, /* 6 batches in the pools, 5 in flight */
        {{1, 2, 2, 1, true}, {2, 3, 2, 1, true}, 0, 2700},
        {{1, 2, 2, 1}, {1, 0, 2, 1}, 0, 0},
        {{1, 0, 2, 1}, {1, 2, 2, 1}, -ENODATA, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t bytes = 0;
        assert_int_equal(plan_scale(900, &cases[i].from, &cases[i].to, &bytes), cases[i].r);
        assert_int_equal(bytes, cases[i].bytes);
    }

    static const uint64_t pools[][4] = {
        {1, 2, 1, 4}, {2, 2, 1, 6}, {3, 2, 1, 9}, {2, 2, 5, 10}, {4, 1, 1, 8}};
    for (size_t i = 0; i < ARRAY_SIZE(pools); i++) {
        uint64_t batches = 0;
        assert_int_equal(plan_guard_batches(pools[i][0], pools[i][1], pools[i][2], &batches), 0);
        assert_int_equal(batches, pools[i][3]);
    }
}

static void test_samples(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;    /* 0: refused */
        const char *error; /* part of it */
    } cases[] = {
        {"float32[3,224,224]", 602112, NULL},
        {"int64", 8, NULL},
        {"int64[]", 8, NULL},
        {" torch.bfloat16 [ 3 , 2 ] ", 12, NULL},
        {"bool[7]", 7, NULL},
        {"complex128[2]", 32, NULL},
        {"float8_e4m3fn[1024]", 1024, NULL},
        {"float8_e8m0fnu", 1, NULL},
        {"half[2]", 4, NULL},
        {"chalf", 4, NULL},
        {"uint8[9223372036854775807]", INT64_MAX, NULL},
        {"", 0, "names no dtype"},
        {"[3]", 0, "names no dtype"},
        {"float", 4, NULL},
        {"float31[3]", 0, "unknown dtype \"float31\""},
        {"Float32[3]", 0, "unknown dtype"},
        {"float32[3", 0, "no ] at its end"},
        {"float32[", 0, "no ] at its end"},
        {"float32[3]x", 0, "no ] at its end"},
        {"float32[3,,4]", 0, "whole numbers"},
        {"float32[3,]", 0, "comma"},
        {"float32[,3]", 0, "whole numbers"},
        {"float32[-3]", 0, "whole numbers"},
        {"float32[1.5]", 0, "whole numbers"},
        {"float32[0x3]", 0, "whole numbers"},
        {"float32[3,0]", 0, "dimension of 0"},
        {"float32[[3]]", 0, "whole numbers"},
        {"uint8[9223372036854775808]", 0, "larger than any memory"},
        {"uint8[99999999999999999999999]", 0, "larger than any memory"},
        {"float64[4294967296,4294967296]", 0, "larger than any memory"},
        {"uint8[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
         "1,1,1,1,"
         "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
         0, "more dimensions"},
        {"\033[31m", 0, "\\x1b"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buffer_ Buffer error = {0};
        uint64_t bytes = 0;
        int r = plan_sample_parse(text_of(cases[i].text), &bytes, &error);
        assert_int_equal(bytes, cases[i].bytes);
        assert_int_equal(r < 0, cases[i].bytes == 0);
        if (cases[i].error)
            assert_non_null(strstr(buffer_text(&error), cases[i].error));
        else
            assert_int_equal(error.size, 0);
    }
}

static void test_loaders(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    _cleanup_buffer_ Buffer error = {0};
    PlanLoader usual = {.batch = 8, .workers = 3, .prefetch = 2, .held = 1};
    PlanLoader loader;
    Text text =
        TEXT("sample=float32[3,2]; sample = int64;batch=64;workers=4;prefetch=5;held=2;collate=list;");
    assert_int_equal(plan_loader_add(&usual, TEXT("uint8"), &arena, &error), 0);
    assert_int_equal(plan_loader_parse(text, &usual, &arena, &loader, &error), 0);
    assert_int_equal(loader.n_fields, 2);
    assert_int_equal(loader.field_bytes[0], 24);
    assert_int_equal(loader.batch, 64);
    assert_int_equal(loader.workers, 4);
    assert_int_equal(loader.prefetch, 5);
    assert_int_equal(loader.held, 2);
    assert_true(loader.list);

    assert_int_equal(plan_loader_parse(TEXT("bytes=3M"), &usual, &arena, &loader, &error), 0);
    assert_int_equal(loader.n_fields, 0);
    assert_int_equal(loader.batch_bytes, 3 * MIB);
    assert_int_equal(loader.workers, 3);
    assert_int_equal(plan_loader_parse(TEXT("workers=9"), &usual, &arena, &loader, &error), 0);
    assert_int_equal(loader.n_fields, 1);
    assert_int_equal(usual.n_fields, 1);

    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"workers", "not a setting"},
        {"=3", "unknown setting"},
        {"worker=3", "unknown setting \"worker\""},
        {"workers=", "workers takes a whole number from 1"},
        {"workers=0", "workers takes a whole number from 1"},
        {"workers=-1", "workers takes a whole number from 1"},
        {"batch=1073741825", "batch takes a whole number from 1 to 1073741824"},
        {"bytes=0", "bytes takes a size above 0"},
        {"bytes=3X", "bytes takes a size"},
        {"bytes=16E", "larger than any memory"},
        {"collate=heap", "stack or list"},
        {"sample=int64;bytes=3M", "both sample= and bytes="},
        {"sample=int65", "unknown dtype"},
        {"\001=2", "\\x01"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        buffer_clear(&error);
        assert_int_equal(plan_loader_parse(text_of(cases[i].text), &usual, &arena, &loader, &error) < 0,
                         true);
        assert_non_null(strstr(buffer_text(&error), cases[i].error));
    }
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t first; /* 0: refused */
        uint64_t last;
    } ranges[] = {
        {"6", 6, 6},
        {"1..12", 1, 12},
        {" 1 .. 12 ", 1, 12},
        {"3..3", 3, 3},
        {"1..1024", 1, 1024},
        {"1..1025", 0},
        {"12..1", 0},
        {"0..3", 0},
        {"..", 0},
        {"1..", 0},
        {"..3", 0},
        {"1...3", 0},
        {"1-3", 0},
        {"-1..3", 0},
        {"", 0},
        {"1..99999999999999999999", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
        _cleanup_buffer_ Buffer error = {0};
        uint64_t first = 0;
        uint64_t last = 0;
        int r = plan_range_parse(text_of(ranges[i].text), &first, &last, &error);
        assert_int_equal(r < 0, ranges[i].first == 0);
        assert_int_equal(first, ranges[i].first);
        assert_int_equal(last, ranges[i].last);
        assert_int_equal(error.size > 0, r < 0);
    }
    static const struct {
        const char *text;
        double margin;
    } margins[] = {{"1", 1},     {"1.3", 1.3}, {"100", 100}, {"0.9", 0},
                   {"100.1", 0}, {"nan", 0},   {"-2", 0},    {"", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(margins); i++) {
        _cleanup_buffer_ Buffer error = {0};
        double margin = 0;
        int r = plan_margin_parse(text_of(margins[i].text), &margin, &error);
        assert_int_equal(r < 0, margins[i].margin == 0);
        assert_true(margin == margins[i].margin);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured), cmocka_unit_test(test_bytes),    cmocka_unit_test(test_table),
        cmocka_unit_test(test_inverse),  cmocka_unit_test(test_handover), cmocka_unit_test(test_notes),
        cmocka_unit_test(test_overflow), cmocka_unit_test(test_scale),    cmocka_unit_test(test_samples),
        cmocka_unit_test(test_loaders),  cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
