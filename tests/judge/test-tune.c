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

static void grid_open(Grid *grid, uint64_t ceiling)
{
    memset(grid, 0, sizeof *grid);
    assert_int_equal(tune_axis_make("batch", batches, ARRAY_SIZE(batches), &grid->arena, &grid->axes[0]), 0);
    assert_int_equal(tune_axis_make("workers", workers, ARRAY_SIZE(workers), &grid->arena, &grid->axes[1]),
                     0);
    grid->tune = (Tune){.axes = grid->axes, .n_axes = 2, .ceiling_bytes = ceiling};
    grid->tune.most = tune_trials_default(tune_settings(&grid->tune), 2);
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
    } cases[] = {
        {"decode", decode_bound},
        {"transport", transport_bound},
        {"trainer", trainer_bound},
        {"peak", one_peak},
    };
    static const double noises[] = {0.005, 0.02};
    enum { ROUNDS = 60 };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t k = 0; k < ARRAY_SIZE(noises); k++) {
            unsigned found = 0;
            double trials = 0;
            double worst = 1;
            for (unsigned round = 0; round < ROUNDS; round++) {
                Grid grid;
                Dice dice = {.state = round * 977 + 13};
                grid_open(&grid, U64_UNKNOWN);
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
            print_message("%s, noise %.1f%%: %u of %d within 5%%, worst %.3f, %.1f trials of 36\n",
                          cases[i].name, noises[k] * 100, found, ROUNDS, worst, trials);
            assert_true(found >= ROUNDS * 9 / 10);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
