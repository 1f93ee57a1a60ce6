/* SPDX-License-Identifier: Apache-2.0 */
/* The search over simulated trainings: what it finds, with how many trials, and what it says about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tune.h"

#define GIB (UINT64_C(1) << 30)

static const char *const batches[] = {"8", "16", "32", "64", "128", "256"};
static const char *const workers[] = {"1", "2", "3", "4", "6", "8"};
static const char *const few_batches[] = {"1", "2", "4", "8", "16", "32"};
static const char *const few_workers[] = {"1", "2", "3", "4"};

/* The same numbers every time. */
typedef struct Dice {
    uint64_t state;
} Dice;

static double dice_uniform(Dice *dice)
{
    dice->state = dice->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(dice->state >> 11) / 0x1p53;
}

static double dice_normal(Dice *dice)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += dice_uniform(dice);
    return sum - 6;
}

/* Samples a second of trainings with different bottlenecks, on 4 cores. */
static double decode_bound(double batch, double n)
{
    double busy = MIN(n, 4.0) / (1 + 0.06 * MAX(n - 4, 0.0));
    return 300 * busy * batch / (batch + 6);
}

static double transport_bound(double batch, double n)
{
    double queue = 1 / (1 + n * batch / 700); /* caches overflow */
    return 900 * sqrt(MIN(n, 3.0)) * batch / (batch + 12) * (0.4 + 0.6 * queue);
}

static double trainer_bound(double batch, double n)
{
    double step = 1000 * batch / (batch + 40);
    return MIN(step, 400 * n) / (1 + 0.01 * n);
}

static double one_peak(double batch, double n)
{
    double x = log2(batch / 32);
    double y = log2(n / 3);
    return 500 * exp(-0.15 * x * x - 0.4 * y * y);
}

/* On two cores, where a third worker takes turns with the other two and the trainer. An edge, as real
 * machines have it: the neighbours of the best are no stairs up to it. */
static double decode_two_cores(double batch, double n)
{
    static const double parts[] = {0.53, 1, 0.92, 0.9};
    return 3300 * parts[(size_t)n - 1] * batch / (batch + 1.3);
}

/* The same with a fixed cost for each batch, so that small ones are far slower. */
static double decode_two_cores_steep(double batch, double n)
{
    static const double parts[] = {0.6, 1, 0.93, 0.85};
    return 3300 * parts[(size_t)n - 1] * batch / (batch + 4);
}

/* Workers get in each other's way, and large batches fall out of the caches. */
static double transport_two_cores(double batch, double n)
{
    static const double parts[] = {0.85, 1, 0.9, 0.8};
    return 2000 * parts[(size_t)n - 1] * batch / (batch + 6) / (1 + batch / 60);
}

typedef double (*Training)(double batch, double workers);

static uint64_t shm_of(double batch, double n)
{
    return (uint64_t)(batch * (2 * n + 1) * 0x1p20);
}

static uint64_t own_of(double n)
{
    return (uint64_t)((n + 1) * 0x1p28);
}

typedef struct Grid {
    Arena arena;
    TuneAxis axes[2];
    Tune tune;
} Grid;

static void grid_open_small(Grid *grid, bool small, uint64_t ceiling)
{
    memset(grid, 0, sizeof *grid);
    assert_int_equal(tune_axis_make("batch", small ? few_batches : batches, ARRAY_SIZE(batches), &grid->arena,
                                    &grid->axes[0]),
                     0);
    assert_int_equal(tune_axis_make("workers", small ? few_workers : workers,
                                    small ? ARRAY_SIZE(few_workers) : ARRAY_SIZE(workers), &grid->arena,
                                    &grid->axes[1]),
                     0);
    grid->tune = (Tune){.axes = grid->axes, .n_axes = 2, .ceiling_bytes = ceiling};
    grid->tune.most = tune_trials_default(tune_settings(&grid->tune), 2);
}

static void grid_open(Grid *grid, uint64_t ceiling)
{
    grid_open_small(grid, false, ceiling);
}

static void numbers_of(const Grid *grid, size_t setting, double *ret_batch, double *ret_workers)
{
    *ret_batch = grid->axes[0].numbers[tune_value(&grid->tune, setting, 0)];
    *ret_workers = grid->axes[1].numbers[tune_value(&grid->tune, setting, 1)];
}

static TuneTrial *trial_add(Grid *grid, size_t setting, double rate)
{
    double batch = 0;
    double n = 0;
    numbers_of(grid, setting, &batch, &n);
    Tune *tune = &grid->tune;
    TuneTrial *trial = ARENA_PUSH(&grid->arena, tune->trials, tune->n, tune->capacity);
    *trial = (TuneTrial){.setting = setting,
                         .measured = true,
                         .rate = rate,
                         .error = 0.01 * rate,
                         .shm_bytes = shm_of(batch, n),
                         .own_bytes = own_of(n)};
    return trial;
}

static double truth(const Grid *grid, size_t setting, Training training)
{
    double batch = 0;
    double n = 0;
    numbers_of(grid, setting, &batch, &n);
    return training(batch, n);
}

static double best_of_grid(const Grid *grid, Training training)
{
    double best = 0;
    for (size_t i = 0; i < tune_settings(&grid->tune); i++)
        best = MAX(best, truth(grid, i, training));
    return best;
}

static void search(Grid *grid, Training training, double noise, Dice *dice)
{
    TuneStep step;
    while (tune_next(&grid->tune, &step) == 0 && step.move != TUNE_DONE)
        trial_add(grid, step.setting, truth(grid, step.setting, training) * (1 + noise * dice_normal(dice)));
}

static void test_finds(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        Training training;
        bool small;
    } cases[] = {
        {"decode", decode_bound, false},
        {"decode, 2 cores", decode_two_cores, true},
        {"decode, 2 cores, steep", decode_two_cores_steep, true},
        {"transport", transport_bound, false},
        {"transport, 2 cores", transport_two_cores, true},
        {"trainer", trainer_bound, false},
        {"peak", one_peak, false},
    };
    static const double noises[] = {0.005, 0.016};
    enum { ROUNDS = 100 };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t k = 0; k < ARRAY_SIZE(noises); k++) {
            unsigned found = 0;
            double trials = 0;
            double worst = 1;
            for (unsigned round = 0; round < ROUNDS; round++) {
                Grid grid;
                Dice dice = {.state = round * 977 + 13};
                grid_open_small(&grid, cases[i].small, U64_UNKNOWN);
                search(&grid, cases[i].training, noises[k], &dice);
                TuneVerdict verdict = tune_verdict(&grid.tune);
                double part =
                    truth(&grid, verdict.best, cases[i].training) / best_of_grid(&grid, cases[i].training);
                assert_true(grid.tune.n * 3 <= tune_settings(&grid.tune));
                found += part >= 0.95;
                worst = MIN(worst, part);
                trials += (double)grid.tune.n / ROUNDS;
                arena_free(&grid.arena);
            }
            print_message("%s, noise %.1f%%: %u of %d within 5%%, worst %.3f, %.1f trials of %d\n",
                          cases[i].name, noises[k] * 100, found, ROUNDS, worst, trials,
                          cases[i].small ? 24 : 36);
            assert_true(found >= ROUNDS * 95 / 100);
        }
}

static size_t setting_of(size_t batch, size_t n)
{
    return batch * ARRAY_SIZE(workers) + n;
}

static void test_grid(void **state)
{
    (void)state;
    Grid grid;
    grid_open(&grid, U64_UNKNOWN);
    assert_int_equal(tune_settings(&grid.tune), 36);
    assert_int_equal(grid.tune.most, 12);
    _cleanup_buffer_ Buffer words = {0};
    assert_int_equal(tune_setting_words(&grid.tune, setting_of(3, 4), &words), 0);
    assert_string_equal(buffer_text(&words), "batch=64 workers=6");
    assert_true(grid.axes[1].counts == COUNTS_WORKERS && grid.axes[0].counts == COUNTS_SAMPLES);

    static const char *const names[] = {"b\n", "a"};
    static const char *const falling[] = {"8", "1", "2"};
    TuneAxis axis;
    assert_int_equal(tune_axis_make("policy", names, 2, &grid.arena, &axis), 0);
    assert_null(axis.numbers);
    assert_int_equal(tune_axis_make("n", falling, 3, &grid.arena, &axis), 0);
    assert_true(axis.places[0] == 1 && axis.places[1] == 0 && axis.places[2] == 0.5);

    static const struct {
        size_t settings;
        size_t axes;
        size_t trials;
    } trials[] = {{2, 1, 4}, {3, 1, 4}, {12, 1, 4}, {30, 2, 10}, {6, 2, 6}, {4096, 6, 512}, {1, 1, 3}};
    for (size_t i = 0; i < ARRAY_SIZE(trials); i++)
        assert_int_equal(tune_trials_default(trials[i].settings, trials[i].axes), trials[i].trials);
    arena_free(&grid.arena);
}

static TuneStart start_of(uint64_t ceiling, const PlanLoader *loader)
{
    Grid grid;
    TuneStep step;
    grid_open(&grid, ceiling);
    grid.tune.loader = loader;
    TuneStart start = tune_start(&grid.tune);
    assert_int_equal(tune_next(&grid.tune, &step), 0);
    assert_int_equal(step.setting, start.setting);
    assert_int_equal(step.move, start.fits || !loader ? TUNE_TRY : TUNE_DONE);
    arena_free(&grid.arena);
    return start;
}

/* The first trial is of a setting that plan's arithmetic calls safe, as near to the middle as that allows. */
static void test_start(void **state)
{
    (void)state;
    uint64_t fields[] = {UINT64_C(3) << 20, 8};
    PlanLoader loader = {.field_bytes = fields, .n_fields = 2};
    TuneStart start = start_of(U64_UNKNOWN, NULL);
    assert_true(start.setting == setting_of(2, 2) && start.fits && start.assumed);
    assert_int_equal(start.sample_bytes, 32 << 20);

    start = start_of(1024 * GIB, NULL);
    assert_true(start.setting == setting_of(2, 2) && start.fits);
    start = start_of(4 * GIB, NULL); /* 8 samples of 32 MiB with 3 workers: 9 batches */
    assert_true(start.setting == setting_of(0, 2) && start.fits);
    assert_int_equal(start.need_bytes, UINT64_C(9) * 8 * (32 << 20));
    start = start_of(GIB, NULL); /* none, so the smallest */
    assert_true(start.setting == setting_of(0, 0) && !start.fits);

    start = start_of(4 * GIB, &loader); /* samples of 3 MiB that were told */
    assert_true(start.setting == setting_of(2, 2) && start.fits && !start.assumed);
    assert_int_equal(start.sample_bytes, (3 << 20) + 8);
    assert_int_equal(start.need_bytes, UINT64_C(9) * (32 * (3 << 20) + 4096));
    fields[0] = GIB;
    start = start_of(GIB, &loader);
    assert_true(start.setting == setting_of(0, 0) && !start.fits);
    fields[0] = UINT64_C(1) << 62; /* beyond all bounds */
    start = start_of(GIB, &loader);
    assert_true(!start.fits && start.need_bytes == INT64_MAX);

    /* What was told keeps settings out before anything was tried. */
    Grid grid;
    fields[0] = UINT64_C(3) << 20;
    grid_open(&grid, 4 * GIB);
    grid.tune.loader = &loader;
    assert_int_equal(tune_setting(&grid.tune, setting_of(5, 5)).fate, TUNE_SKIPPED_MEMORY);
    assert_int_equal(tune_setting(&grid.tune, setting_of(1, 1)).fate, TUNE_UNTRIED);
    assert_int_equal(tune_setting(&grid.tune, setting_of(1, 1)).memory_bytes,
                     UINT64_C(6) * (16 * (3 << 20) + 4096));
    arena_free(&grid.arena);
}

/* From one trial to other settings, as plan scales it. */
static void test_memory(void **state)
{
    (void)state;
    static const char *const none[] = {"0", "1", "4"};
    static const char *const ahead[] = {"2", "4"};
    static const char *const sides[] = {"100", "300"};
    static const struct {
        size_t setting; /* of workers, prefetch, side */
        uint64_t shm;   /* of 100 with one worker, prefetch 2, side 100: 4 batches of 25 */
        uint64_t own;   /* of 2000, two processes */
    } cases[] = {
        {4, 100, 2000}, {0, 0, 2000}, {5, 300, 2000}, {6, 150, 2000}, {8, 300, 5000}, {11, 1500, 5000},
    };
    _cleanup_arena_ Arena arena = {0};
    TuneAxis axes[3];
    assert_int_equal(tune_axis_make("num_workers", none, 3, &arena, &axes[0]), 0);
    assert_int_equal(tune_axis_make("prefetch_factor", ahead, 2, &arena, &axes[1]), 0);
    assert_int_equal(tune_axis_make("side", sides, 2, &arena, &axes[2]), 0);
    assert_true(axes[1].counts == COUNTS_PREFETCH && axes[2].counts == COUNTS_OTHER);
    TuneTrial trial = {.setting = 4, .measured = true, .rate = 5, .shm_bytes = 100, .own_bytes = 2000};
    Tune tune = {
        .axes = axes, .n_axes = 3, .ceiling_bytes = U64_UNKNOWN, .most = 9, .trials = &trial, .n = 1};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(tune_setting(&tune, cases[i].setting).memory_bytes, cases[i].shm + cases[i].own);
    trial.setting = 0; /* without workers it tells nothing about workers */
    assert_int_equal(tune_setting(&tune, 4).memory_bytes, U64_UNKNOWN);
    assert_int_equal(tune_setting(&tune, 1).memory_bytes, 2000);
}

/* Nothing that cannot fit is tried, and the best is what fits. */
static void test_ceiling(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        Grid grid;
        Dice dice = {.state = round};
        grid_open(&grid, 2 * GIB);
        search(&grid, decode_bound, 0.01, &dice);
        TuneVerdict verdict = tune_verdict(&grid.tune);
        assert_true(verdict.found && verdict.safe && verdict.skipped > 0);
        assert_true(tune_setting(&grid.tune, verdict.best).memory_bytes <= 2 * GIB);
        for (size_t i = 0; i < grid.tune.n; i++) /* scaled from what was seen: at most a little beyond */
            assert_true(grid.tune.trials[i].shm_bytes + grid.tune.trials[i].own_bytes < 3 * GIB);
        TuneSetting largest = tune_setting(&grid.tune, setting_of(5, 5));
        assert_true(largest.fate == TUNE_SKIPPED_MEMORY || largest.fate == TUNE_SKIPPED_SMALLER);
        arena_free(&grid.arena);
    }
}

/* A setting that ran out of memory takes all larger ones with it, an exception only itself. */
static void test_failures(void **state)
{
    (void)state;
    Grid grid;
    TuneStep step;
    grid_open(&grid, U64_UNKNOWN);
    TuneTrial *trial = trial_add(&grid, setting_of(2, 2), 0);
    trial->measured = false;
    trial->cause.id = CAUSE_CGROUP_OOM;
    trial->less_helps = true;
    assert_int_equal(tune_setting(&grid.tune, setting_of(2, 2)).fate, TUNE_FAILED);
    assert_int_equal(tune_setting(&grid.tune, setting_of(2, 3)).fate, TUNE_SKIPPED_SMALLER);
    assert_int_equal(tune_setting(&grid.tune, setting_of(5, 5)).fate, TUNE_SKIPPED_SMALLER);
    assert_int_equal(tune_setting(&grid.tune, setting_of(5, 1)).fate, TUNE_UNTRIED);
    assert_false(tune_verdict(&grid.tune).found);
    assert_int_equal(tune_next(&grid.tune, &step), 0);
    assert_int_equal(step.move, TUNE_TRY);
    assert_int_equal(tune_setting(&grid.tune, step.setting).fate, TUNE_UNTRIED);

    trial->cause.id = CAUSE_PYTHON_ERROR;
    trial->less_helps = false;
    assert_int_equal(tune_setting(&grid.tune, setting_of(2, 3)).fate, TUNE_UNTRIED);
    arena_free(&grid.arena);

    /* All fail: each is tried once at most, and it ends. */
    grid_open(&grid, U64_UNKNOWN);
    grid.tune.most = 100;
    while (tune_next(&grid.tune, &step) == 0 && step.move != TUNE_DONE) {
        assert_int_equal(tune_setting(&grid.tune, step.setting).trials, 0);
        trial = trial_add(&grid, step.setting, 0);
        trial->measured = false;
        trial->cause.id = CAUSE_SEGFAULT;
    }
    assert_int_equal(grid.tune.n, 36);
    arena_free(&grid.arena);
}

/* Of settings that are equally fast, the one with least memory; and it is said that they cannot be told
 * apart.
 */
static void test_equals(void **state)
{
    (void)state;
    Grid grid;
    grid_open(&grid, U64_UNKNOWN);
    trial_add(&grid, setting_of(4, 4), 1005);
    trial_add(&grid, setting_of(1, 1), 1000);
    trial_add(&grid, setting_of(0, 0), 500);
    TuneVerdict verdict = tune_verdict(&grid.tune);
    assert_int_equal(verdict.best, setting_of(1, 1));
    assert_false(verdict.separated);
    assert_int_equal(verdict.rivals, 1);
    assert_int_equal(verdict.next, setting_of(4, 4));
    assert_true(tune_is_hopeless(&grid.tune, 500, 5));
    assert_false(tune_is_hopeless(&grid.tune, 900, 5));
    assert_false(tune_is_hopeless(&grid.tune, 700, 200)); /* not known well enough yet */
    arena_free(&grid.arena);

    grid_open(&grid, U64_UNKNOWN);
    trial_add(&grid, setting_of(4, 4), 1200);
    trial_add(&grid, setting_of(1, 1), 1000);
    verdict = tune_verdict(&grid.tune);
    assert_true(verdict.separated && verdict.best == setting_of(4, 4) && verdict.next == setting_of(1, 1));
    arena_free(&grid.arena);
}

/* Trials of one setting that differ widen all intervals. */
static void test_noise(void **state)
{
    (void)state;
    Grid grid;
    grid_open(&grid, U64_UNKNOWN);
    assert_true(tune_noise(&grid.tune) > 0.1);
    trial_add(&grid, 3, 1000);
    assert_true(fabs(tune_noise(&grid.tune) - 0.01) < 1e-9);
    trial_add(&grid, 3, 1300);
    assert_true(tune_noise(&grid.tune) > 0.08);
    TuneSetting known = tune_setting(&grid.tune, 3);
    assert_true(known.rate == 1150 && known.low < 1050 && known.high > 1250 && known.measured == 2);
    arena_free(&grid.arena);

    /* Noise that hides the difference: the leaders are repeated, in turn, and it ends all the same. */
    Dice dice = {.state = 5};
    grid_open(&grid, U64_UNKNOWN);
    grid.tune.most = 60;
    search(&grid, trainer_bound, 0.1, &dice);
    size_t most = 0;
    for (size_t i = 0; i < 36; i++)
        most = MAX(most, tune_setting(&grid.tune, i).trials);
    assert_true(most >= 2 && most <= 5);
    arena_free(&grid.arena);
}

/* One axis, of two values; of words; one that has no numbers. */
static void test_small(void **state)
{
    (void)state;
    static const char *const words[] = {"spawn", "fork", "forkserver"};
    static const double rates[] = {100, 130, 90};
    _cleanup_arena_ Arena arena = {0};
    TuneAxis axis;
    TuneStep step;
    assert_int_equal(tune_axis_make("method", words, 3, &arena, &axis), 0);
    Tune tune = {.axes = &axis, .n_axes = 1, .ceiling_bytes = GIB, .most = tune_trials_default(3, 1)};
    while (tune_next(&tune, &step) == 0 && step.move != TUNE_DONE) {
        TuneTrial *trial = ARENA_PUSH(&arena, tune.trials, tune.n, tune.capacity);
        *trial = (TuneTrial){.setting = step.setting,
                             .measured = true,
                             .rate = rates[step.setting],
                             .shm_bytes = U64_UNKNOWN,
                             .own_bytes = U64_UNKNOWN};
    }
    TuneVerdict verdict = tune_verdict(&tune);
    assert_true(verdict.found && verdict.safe && verdict.best == 1 && verdict.measured == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid),     cmocka_unit_test(test_finds),  cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_equals), cmocka_unit_test(test_noise),
        cmocka_unit_test(test_small),    cmocka_unit_test(test_start),  cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
