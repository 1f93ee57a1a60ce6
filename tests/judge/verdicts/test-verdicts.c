/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts about artificial histories: what each kind of growth is called, how often noise is taken for
 * growth and growth for noise (a thousand series of each kind, the same every time), and how long the
 * recording of a day takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "documents.h"
#include "statistics.h"
#include "verdict-table.h"
#include "verdicts-text.h"

#define MIB 0x1p20
#define GIB 0x1p30

enum { TRAINER, WORKER, OTHER_WORKER, PEOPLE, CROWD_MOST = 64 };
enum { MOMENTS_MOST = 600, TRAINER_PID = 1000, WORKER_PID = 2000 };

/* The same numbers every time. */
typedef struct Dice {
    uint64_t state;
} Dice;

static double dice_uniform(Dice *dice)
{
    uint64_t x = dice->state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (double)((x ^ (x >> 31)) >> 11) / 0x1p53;
}

static double dice_between(Dice *dice, double low, double high)
{
    return low + (high - low) * dice_uniform(dice);
}

/* Uniform on a logarithmic scale. */
static double dice_scale(Dice *dice, double low, double high)
{
    return low * pow(high / low, dice_uniform(dice));
}

static double dice_normal(Dice *dice)
{
    return sqrt(-2 * log(1 - dice_uniform(dice))) * cos(2 * M_PI * dice_uniform(dice));
}

/* --- Scenes ----------------------------------------------------------------------------------------------
 */

typedef struct Line {
    double own[MOMENTS_MOST];
    double shared_at_fork; /* for workers: the part of `own` that is shared when they start */
    double copied[MOMENTS_MOST];
    double file[MOMENTS_MOST];
    double shmem[MOMENTS_MOST];
    double fds[MOMENTS_MOST];
    double segments[MOMENTS_MOST]; /* 0: not known */
} Line;

typedef struct Scene {
    Dice dice;
    size_t n;
    double interval;
    double level;  /* of the trainer's private memory */
    size_t born;   /* when the first workers start */
    size_t epochs; /* 0: workers stay */
    double swap_from;
    double job[JOB_METRICS][MOMENTS_MOST]; /* 0: unknown */
    size_t marks_every;                    /* moments; 0: none */
    size_t crowd_every;                    /* moments after which one more process starts and stays */
    Line lines[PEOPLE];
} Scene;

typedef void (*Draw)(Scene *scene);

static double phase_of(const Scene *scene, size_t i)
{
    return (double)i / (double)scene->n;
}

static double scene_seconds(const Scene *scene)
{
    return scene->interval * (double)scene->n;
}

/* Everything stays constant. A trainer that is seen from its start imports first. */
static void scene_open(Scene *scene, uint64_t seed)
{
    memset(scene, 0, sizeof *scene);
    Dice *dice = &scene->dice;
    dice->state = seed << 32;
    scene->n = (size_t)dice_between(dice, 120, MOMENTS_MOST);
    scene->interval = dice_scale(dice, 0.1, 5);
    scene->level = dice_scale(dice, 100 * MIB, 4 * GIB);
    scene->swap_from = INFINITY;
    scene->born = dice_uniform(dice) < 0.5 ? 0 : (size_t)(dice_between(dice, 0.02, 0.2) * (double)scene->n);
    for (size_t who = 0; who < PEOPLE; who++) {
        Line *line = &scene->lines[who];
        line->shared_at_fork = who == TRAINER ? 0 : 0.9 * scene->level;
        for (size_t i = 0; i < scene->n; i++) {
            line->own[i] = scene->level;
            line->file[i] = 120 * MIB;
            line->fds[i] = who == TRAINER ? 14 : 11;
        }
    }
}

static void add_white(Scene *scene, size_t who, double sigma)
{
    for (size_t i = 0; i < scene->n; i++)
        scene->lines[who].own[i] += sigma * dice_normal(&scene->dice);
}

/* Correlated noise: each sample mostly repeats the one before. */
static void add_wander(Scene *scene, size_t who, double sigma, double memory_samples)
{
    double keep = exp(-1 / memory_samples);
    double value = dice_normal(&scene->dice);
    for (size_t i = 0; i < scene->n; i++) {
        value = keep * value + sqrt(1 - keep * keep) * dice_normal(&scene->dice);
        scene->lines[who].own[i] += sigma * value;
    }
}

/* One of the kinds of noise that trainings have, of this size. */
static void add_noise(Scene *scene, size_t who, double sigma)
{
    double which = dice_uniform(&scene->dice);
    if (which < 0.4)
        add_white(scene, who, sigma);
    else if (which < 0.7)
        add_wander(scene, who, sigma, dice_scale(&scene->dice, 1, (double)scene->n / 40));
    else
        for (size_t i = 0; i < scene->n; i++)
            scene->lines[who].own[i] +=
                dice_uniform(&scene->dice) < 0.05 ? sigma * 10 : sigma * 0.3 * dice_normal(&scene->dice);
}

static double some_noise(Scene *scene)
{
    return scene->level * dice_scale(&scene->dice, 0.0005, 0.03);
}

/* --- Steady ones -----------------------------------------------------------------------------------------
 */

static void draw_white(Scene *scene)
{
    for (size_t who = 0; who < PEOPLE; who++)
        add_white(scene, who, scene->level * dice_scale(&scene->dice, 0.0005, 0.2));
}

static void draw_wander(Scene *scene)
{
    for (size_t who = 0; who < PEOPLE; who++)
        add_wander(scene, who, scene->level * dice_scale(&scene->dice, 0.001, 0.1),
                   dice_scale(&scene->dice, 2, (double)scene->n / 15));
}

static void draw_spikes(Scene *scene)
{
    double share = dice_between(&scene->dice, 0.01, 0.2);
    double height = scene->level * dice_between(&scene->dice, 0.1, 2);
    for (size_t i = 0; i < scene->n; i++)
        if (dice_uniform(&scene->dice) < share)
            scene->lines[TRAINER].own[i] += height * dice_uniform(&scene->dice);
    add_white(scene, TRAINER, some_noise(scene));
}

/* Garbage that is collected every few samples. */
static void draw_garbage(Scene *scene)
{
    double every = dice_between(&scene->dice, 3, 12);
    double height = scene->level * dice_between(&scene->dice, 0.01, 0.09);
    for (size_t i = 0; i < scene->n; i++)
        scene->lines[TRAINER].own[i] += height * fmod((double)i, every) / every;
    add_white(scene, TRAINER, some_noise(scene) / 4);
}

static void draw_batches(Scene *scene)
{
    for (size_t who = 0; who < PEOPLE; who++) {
        double batch = scene->level * dice_scale(&scene->dice, 0.01, 1);
        for (size_t i = 0; i < scene->n; i++) {
            scene->lines[who].own[i] += batch * dice_uniform(&scene->dice);
            scene->lines[who].shmem[i] += batch * dice_uniform(&scene->dice);
            scene->lines[who].fds[i] += floor(8 * dice_uniform(&scene->dice));
        }
    }
}

/* An allocator that keeps what the largest batch so far needed. */
static void draw_largest(Scene *scene)
{
    double batch = scene->level * dice_between(&scene->dice, 0.05, 0.5);
    double most = 0;
    for (size_t i = scene->born; i < scene->n; i++) {
        double size = fabs(dice_normal(&scene->dice));
        most = MAX(most, size);
        scene->lines[TRAINER].own[i] += batch * most;
    }
    add_white(scene, TRAINER, some_noise(scene) / 10);
}

static void draw_step(Scene *scene)
{
    double at = dice_between(&scene->dice, 0.05, 0.95);
    double height = scene->level * dice_between(&scene->dice, 0.05, 1);
    size_t who = (size_t)dice_between(&scene->dice, 0, PEOPLE);
    for (size_t i = 0; i < scene->n; i++)
        if (phase_of(scene, i) > at)
            scene->lines[who].own[i] += height;
    add_noise(scene, who, some_noise(scene) / 2);
}

static void draw_warm_up(Scene *scene)
{
    double height = scene->level * dice_between(&scene->dice, 0.1, 1);
    double lasts = dice_between(&scene->dice, 0.02, 0.25);
    for (size_t i = 0; i < scene->n; i++)
        scene->lines[TRAINER].own[i] += height * (1 - exp(-phase_of(scene, i) / lasts));
    add_noise(scene, TRAINER, some_noise(scene) / 2);
}

/* A dataset that is read into memory, and then used. */
static void draw_loading(Scene *scene)
{
    double height = scene->level * dice_between(&scene->dice, 0.5, 4);
    double until = dice_between(&scene->dice, 0.1, 0.7);
    for (size_t i = 0; i < scene->n; i++)
        scene->lines[TRAINER].own[i] += height * MIN(phase_of(scene, i) / until, 1.0);
    scene->born = (size_t)(until * (double)scene->n);
    add_noise(scene, TRAINER, some_noise(scene) / 2);
}

/* More memory during validation. */
static void draw_validation(Scene *scene)
{
    double every = dice_between(&scene->dice, 0.1, 0.4);
    double part = dice_between(&scene->dice, 0.1, 0.6);
    double height = scene->level * dice_between(&scene->dice, 0.05, 1);
    for (size_t i = 0; i < scene->n; i++)
        if (fmod(phase_of(scene, i), every) > every * (1 - part))
            scene->lines[TRAINER].own[i] += height;
    add_noise(scene, TRAINER, some_noise(scene) / 2);
}

/* Non-persistent workers that are as large at their end as at their beginning. */
static void draw_epochs(Scene *scene)
{
    scene->epochs = (size_t)dice_between(&scene->dice, 2, 7);
    scene->born = 0;
    for (size_t who = 0; who < PEOPLE; who++)
        add_noise(scene, who, some_noise(scene));
}

/* --- Growing ones ----------------------------------------------------------------------------------------
 */

/* The total growth: worth a verdict, and not hidden in the noise. */
static double some_growth(Scene *scene, double noise)
{
    double least = MAX(MAX(0.05 * scene->level, 10 * MIB), 6 * noise);
    return dice_scale(&scene->dice, least, 20 * least);
}

static void add_growth(Scene *scene, size_t who, double growth)
{
    for (size_t i = scene->born; i < scene->n; i++)
        scene->lines[who].own[i] += growth * (double)(i - scene->born) / (double)(scene->n - scene->born);
}

static void draw_leak(Scene *scene)
{
    double noise = some_noise(scene);
    add_growth(scene, TRAINER, some_growth(scene, noise));
    add_noise(scene, TRAINER, noise);
}

static void draw_worker_leak(Scene *scene)
{
    double noise = some_noise(scene);
    double growth = some_growth(scene, noise);
    for (size_t who = WORKER; who < PEOPLE; who++) {
        add_growth(scene, who, growth);
        add_noise(scene, who, noise);
    }
}

static void draw_leak_after_warm_up(Scene *scene)
{
    double noise = some_noise(scene) / 2;
    double growth = some_growth(scene, noise);
    double height = growth * dice_between(&scene->dice, 0.2, 2);
    double lasts = dice_between(&scene->dice, 0.005, 0.04);
    scene->born = 1;
    for (size_t i = 0; i < scene->n; i++)
        scene->lines[TRAINER].own[i] += height * (1 - exp(-phase_of(scene, i) / lasts));
    add_growth(scene, TRAINER, growth);
    add_noise(scene, TRAINER, noise);
}

/* A little more at the end of each epoch. */
static void draw_stairs(Scene *scene)
{
    double noise = some_noise(scene) / 4;
    double growth = some_growth(scene, noise);
    double steps = floor(dice_between(&scene->dice, 8, 30));
    for (size_t i = 0; i < scene->n; i++)
        scene->lines[TRAINER].own[i] += growth * floor(phase_of(scene, i) * steps) / steps;
    add_noise(scene, TRAINER, noise);
}

/* A leak that the kernel has mostly swapped out. */
static void draw_swapped(Scene *scene)
{
    draw_leak(scene);
    scene->swap_from = scene->level * 1.02;
}

/* At a varying speed, between half and full, as on a busy machine. */
static void draw_uneven_leak(Scene *scene)
{
    double noise = some_noise(scene) / 2;
    double growth = some_growth(scene, noise);
    double speed = 1;
    double sum = 0;
    for (size_t i = scene->born; i < scene->n; i++) {
        if (dice_uniform(&scene->dice) < 0.02)
            speed = dice_between(&scene->dice, 0.5, 1);
        sum += speed * growth / (double)(scene->n - scene->born);
        scene->lines[TRAINER].own[i] += sum;
    }
    add_noise(scene, TRAINER, noise);
}

static void draw_copies(Scene *scene)
{
    double part = dice_between(&scene->dice, 0.3, 1);
    bool random = dice_uniform(&scene->dice) < 0.5; /* samples with replacement: fewer and fewer are new */
    scene->level = MAX(scene->level, 200 * MIB);
    if (dice_uniform(&scene->dice) < 0.4) {
        scene->epochs = (size_t)dice_between(&scene->dice, 2, 6);
        scene->born = 0;
    }
    for (size_t who = WORKER; who < PEOPLE; who++) {
        Line *line = &scene->lines[who];
        line->shared_at_fork = 0.9 * scene->level;
        for (size_t i = scene->born; i < scene->n; i++) {
            double age = (double)(i - scene->born) / (double)(scene->n - scene->born);
            if (scene->epochs)
                age = fmod(phase_of(scene, i) * (double)scene->epochs, 1);
            line->copied[i] = part * line->shared_at_fork * (random ? 1 - exp(-2 * age) : age);
        }
        for (size_t i = 0; i < scene->n; i++)
            line->own[i] = scene->level;
        add_white(scene, who, 0.002 * scene->level);
    }
}

static void draw_worker_teeth(Scene *scene)
{
    double noise = some_noise(scene) / 2;
    double growth = some_growth(scene, noise);
    scene->epochs = (size_t)dice_between(&scene->dice, 2, 7);
    scene->born = 0;
    for (size_t who = WORKER; who < PEOPLE; who++) {
        for (size_t i = 0; i < scene->n; i++)
            scene->lines[who].own[i] += growth * fmod(phase_of(scene, i) * (double)scene->epochs, 1);
        add_noise(scene, who, noise);
    }
}

static void draw_trainer_teeth(Scene *scene)
{
    double epochs = dice_between(&scene->dice, 4, 12);
    double noise = some_noise(scene) / 4;
    double growth = some_growth(scene, noise);
    /* Large enough for the observed time. */
    double times = MAX(375 / scene_seconds(scene), 1.0);
    growth = MAX(growth, MAX((times > 1 ? 0.7 : 0.2) * scene->level, 20 * MIB * times));
    scene->born = 0;
    for (size_t i = 0; i < scene->n; i++)
        scene->lines[TRAINER].own[i] += growth * fmod(phase_of(scene, i) * epochs, 1);
    add_noise(scene, TRAINER, noise);
}

static void draw_backlog(Scene *scene)
{
    double batch = dice_scale(&scene->dice, 0.2 * MIB, 8 * MIB);
    double growth = MAX(batch * 20, 20 * MIB) * dice_scale(&scene->dice, 1, 20);
    bool by_descriptor = dice_uniform(&scene->dice) < 0.5;
    Line *line = &scene->lines[TRAINER];
    double kept = 0;
    for (size_t i = scene->born; i < scene->n; i++) {
        kept += growth / batch / (double)(scene->n - scene->born);
        line->shmem[i] = batch * (floor(kept) + floor(3 * dice_uniform(&scene->dice)));
        if (by_descriptor)
            line->fds[i] += floor(kept);
        line->own[i] += 2048 * kept;
    }
    add_noise(scene, TRAINER, some_noise(scene) / 4);
}

static void draw_descriptors(Scene *scene)
{
    double growth = dice_scale(&scene->dice, 30, 3000);
    size_t who = (size_t)dice_between(&scene->dice, 0, 2);
    Line *line = &scene->lines[who];
    for (size_t i = scene->born; i < scene->n; i++) {
        double open = floor(growth * (double)(i - scene->born) / (double)(scene->n - scene->born));
        line->fds[i] += open + floor(3 * dice_uniform(&scene->dice));
        line->own[i] += 9000 * open;
    }
    add_noise(scene, who, some_noise(scene) / 4);
}

static void draw_cache(Scene *scene)
{
    double growth = dice_scale(&scene->dice, 60 * MIB, 20 * GIB);
    bool random = dice_uniform(&scene->dice) < 0.5;
    for (size_t who = WORKER; who < PEOPLE; who++) {
        for (size_t i = scene->born; i < scene->n; i++) {
            double age = (double)(i - scene->born) / (double)(scene->n - scene->born);
            scene->lines[who].file[i] += growth * (random ? 1 - exp(-2 * age) : age);
        }
        add_noise(scene, who, some_noise(scene) / 4);
    }
}

/* --- From a scene to a history ----------------------------------------------------------------------------
 */

static uint64_t bytes_of(double x)
{
    return x > 4096 ? (uint64_t)(x / 4096) * 4096 : 4096;
}

static void process_draw(const Scene *scene, size_t who, size_t i, ProcessMoment *ret)
{
    const Line *line = &scene->lines[who];
    size_t epoch = scene->epochs ? i * scene->epochs / scene->n : 0;
    size_t born = scene->epochs ? (epoch * scene->n + scene->epochs - 1) / scene->epochs : scene->born;
    bool trainer = who == TRAINER;
    int pid = trainer ? TRAINER_PID : WORKER_PID + (int)(epoch * PEOPLE + who);
    *ret = (ProcessMoment){
        .pid = pid,
        .ppid = trainer ? 1 : TRAINER_PID,
        .start_ticks = (uint64_t)pid,
        .started = 1e9 + (trainer ? 0 : (double)born * scene->interval),
        .role = trainer ? ROLE_TRAINER : ROLE_WORKER,
        .start = trainer ? START_UNKNOWN : START_FORK,
        .job = TRAINER_PID,
        .command = "python train.py",
    };
    if (trainer && scene->born == 0)
        ret->started = 1e9 - 1e6; /* it was there long before */
    for (size_t k = 0; k < PROCESS_METRICS; k++)
        ret->values[k] = U64_UNKNOWN;
    double own = line->own[i];
    if (trainer && i < scene->born)
        own *= (double)(i + 1) / (double)scene->born;
    ret->values[PROCESS_ANON] = bytes_of(MIN(own, scene->swap_from));
    ret->values[PROCESS_SWAP] = own > scene->swap_from ? bytes_of(own - scene->swap_from) : 0;
    ret->values[PROCESS_FILE] = bytes_of(line->file[i]);
    ret->values[PROCESS_SHMEM] = line->shmem[i] > 0 ? bytes_of(line->shmem[i]) : 0;
    ret->values[PROCESS_FDS] = (uint64_t)line->fds[i];
    if (line->segments[i] > 0)
        ret->values[PROCESS_SEGMENTS] = (uint64_t)line->segments[i];
    if ((i + who) % 5 == 0)
        ret->values[PROCESS_USS] = bytes_of(own - line->shared_at_fork + line->copied[i]);
}

static void crowd_draw(ProcessMoment *ret, int number)
{
    *ret = (ProcessMoment){.pid = 2 * WORKER_PID + number,
                           .ppid = TRAINER_PID,
                           .start_ticks = 1,
                           .role = ROLE_WORKER,
                           .job = TRAINER_PID,
                           .command = "python train.py"};
    for (size_t k = 0; k < PROCESS_METRICS; k++)
        ret->values[k] = U64_UNKNOWN;
    ret->values[PROCESS_ANON] = bytes_of(200 * MIB);
    ret->values[PROCESS_PSS] = bytes_of(40 * MIB);
}

static void scene_play(const Scene *scene, History *ret)
{
    assert_int_equal(history_init(ret, "python train.py", TRAINER_PID, 1e9, scene->interval), 0);
    for (size_t i = 0; i < scene->n; i++) {
        ProcessMoment people[PEOPLE + CROWD_MOST];
        Event events[2 * PEOPLE + 1];
        Moment moment = {.seconds = (double)i * scene->interval, .processes = people, .events = events};
        for (size_t k = 0; k < JOB_METRICS; k++)
            moment.values[k] = scene->job[k][i] > 0 ? (uint64_t)scene->job[k][i] : U64_UNKNOWN;
        moment.values[JOB_MEMORY_AVAILABLE] = 64 * (uint64_t)GIB;
        moment.values[JOB_SHM_SIZE] = 32 * (uint64_t)GIB;
        moment.values[JOB_SHM_USED] = (uint64_t)GIB;
        for (size_t who = 0; who < PEOPLE; who++) {
            if (who != TRAINER && i < scene->born)
                continue;
            ProcessMoment *now = &people[moment.n_processes++];
            process_draw(scene, who, i, now);
            ProcessMoment before;
            if (who == TRAINER || i <= scene->born)
                continue;
            process_draw(scene, who, i - 1, &before);
            if (before.pid != now->pid)
                events[moment.n_events++] = (Event){moment.seconds, EVENT_ENDED, before.pid, ROLE_WORKER, ""};
        }
        for (size_t k = 0; scene->crowd_every && k < MIN(i / scene->crowd_every, (size_t)CROWD_MOST); k++)
            crowd_draw(&people[moment.n_processes++], (int)k);
        if (scene->marks_every && i % scene->marks_every == 0)
            events[moment.n_events++] = (Event){moment.seconds, EVENT_MARK, 0, ROLE_OTHER, "epoch"};
        assert_int_equal(history_add(ret, &moment), 0);
    }
}

/* --- A thousand of each -----------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    Draw draw;
    VerdictId id;
    double most_wrong; /* of a thousand */
} kinds[] = {
    {"steady: white noise", draw_white, VERDICT_STEADY, 5},
    {"steady: noise with a memory", draw_wander, VERDICT_STEADY, 20},
    {"steady: spikes", draw_spikes, VERDICT_STEADY, 5},
    {"steady: garbage, collected", draw_garbage, VERDICT_STEADY, 5},
    {"steady: batches of any size", draw_batches, VERDICT_STEADY, 5},
    {"steady: the largest batch so far", draw_largest, VERDICT_STEADY, 20},
    {"steady: one step", draw_step, VERDICT_STEADY, 5},
    {"steady: a warm-up", draw_warm_up, VERDICT_STEADY, 20},
    {"steady: a dataset is loaded", draw_loading, VERDICT_STEADY, 5},
    {"steady: validation", draw_validation, VERDICT_STEADY, 10},
    {"steady: workers of each epoch", draw_epochs, VERDICT_STEADY, 10},
    {"leak in the trainer", draw_leak, VERDICT_LEAK, 50},
    {"leak in the workers", draw_worker_leak, VERDICT_LEAK, 50},
    {"leak after a warm-up", draw_leak_after_warm_up, VERDICT_LEAK, 50},
    {"leak in stairs", draw_stairs, VERDICT_LEAK, 50},
    {"leak, swapped out", draw_swapped, VERDICT_LEAK, 50},
    {"leak, uneven", draw_uneven_leak, VERDICT_LEAK, 50},
    {"copy-on-write", draw_copies, VERDICT_COPY_ON_WRITE, 50},
    {"sawtooth of workers", draw_worker_teeth, VERDICT_SAWTOOTH, 50},
    {"sawtooth of the trainer", draw_trainer_teeth, VERDICT_SAWTOOTH, 50},
    {"backlog", draw_backlog, VERDICT_BACKLOG, 50},
    {"descriptors", draw_descriptors, VERDICT_FD_LEAK, 50},
    {"page cache", draw_cache, VERDICT_PAGE_CACHE, 50},
};

#ifdef __SANITIZE_ADDRESS__
enum { ROUNDS = 200 }; /* the sanitizer is slow */
#else
enum { ROUNDS = 1000 };
#endif
enum { BINS = 5 };

static size_t bin_of(double confidence)
{
    static const double edges[BINS - 1] = {0.6, 0.8, 0.9, 0.95};
    size_t bin = 0;
    while (bin < BINS - 1 && confidence >= edges[bin])
        bin++;
    return bin;
}

/* For longer recordings, "too-short" is as wrong as any other verdict. */
#define DECIDED_SECONDS 600

static void test_rates(void **state)
{
    (void)state;
    size_t said[BINS] = {0};
    size_t right[BINS] = {0};
    size_t failed = 0;
    static Scene scene;
    const char *only = getenv("ONLY");
    for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
        if (only && !strstr(kinds[k].name, only))
            continue;
        size_t counts[VERDICT_IDS] = {0};
        size_t undecided = 0;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            scene_open(&scene, k * ROUNDS + round);
            kinds[k].draw(&scene);
            _cleanup_history_ History history = {0};
            _cleanup_arena_ Arena arena = {0};
            Verdicts verdicts = {0};
            scene_play(&scene, &history);
            assert_int_equal(verdicts_judge(&history, &arena, &verdicts), 0);
            VerdictId overall = verdicts.items[0].id;
            if (overall == VERDICT_TOO_SHORT && scene_seconds(&scene) < DECIDED_SECONDS) {
                undecided++;
                continue;
            }
            counts[overall]++;
            if (overall != VERDICT_STEADY) {
                said[bin_of(verdicts.items[0].confidence)]++;
                right[bin_of(verdicts.items[0].confidence)] += overall == kinds[k].id;
            }
            if (only && overall != kinds[k].id)
                print_message("  %u: %s %.2f: %s\n", (unsigned)round, verdict_name(overall),
                              verdicts.items[0].confidence, verdicts.items[0].evidence);
        }
        size_t wrong = ROUNDS - counts[kinds[k].id] - undecided;
        print_message("%-34s %s %5.1f%%  too short %5.1f%%", kinds[k].name,
                      kinds[k].id == VERDICT_STEADY ? "false alarms" : "missed      ",
                      (double)wrong * 100 / ROUNDS, (double)undecided * 100 / ROUNDS);
        for (VerdictId id = 0; id < VERDICT_IDS; id++)
            if (counts[id] > 0 && id != kinds[k].id)
                print_message("  %s %zu", verdict_name(id), counts[id]);
        print_message("\n");
        failed += (double)wrong * 1000 / ROUNDS > kinds[k].most_wrong;
        failed += (double)undecided * 1000 / ROUNDS > (kinds[k].id == VERDICT_STEADY ? 50 : 300);
    }
    for (size_t bin = 0; bin < BINS; bin++)
        print_message("confidence from %.2f: right %zu of %zu\n", (double[BINS]){0, 0.6, 0.8, 0.9, 0.95}[bin],
                      right[bin], said[bin]);
    assert_int_equal(failed, 0);
}

/* --- One by one -------------------------------------------------------------------------------------------
 */

typedef struct Judged {
    Scene scene;
    History history;
    Arena arena;
    Verdicts verdicts;
    uint64_t open_files; /* the limit; 0 unknown */
} Judged;

static Judged *judged_open(uint64_t seed)
{
    Judged *judged = calloc(1, sizeof *judged);
    assert_non_null(judged);
    Scene *scene = &judged->scene;
    scene_open(scene, seed);
    scene->n = 300;
    scene->interval = 1;
    scene->level = 500 * MIB;
    scene->born = 0;
    for (size_t who = 0; who < PEOPLE; who++) {
        for (size_t i = 0; i < MOMENTS_MOST; i++) {
            scene->lines[who].own[i] = scene->level;
            scene->lines[who].file[i] = 120 * MIB;
            scene->lines[who].fds[i] = 14;
        }
        scene->lines[who].shared_at_fork = who == TRAINER ? 0 : 0.9 * scene->level;
        add_white(scene, who, 0.001 * scene->level);
    }
    return judged;
}

static const Verdict *judged_first(Judged *judged)
{
    scene_play(&judged->scene, &judged->history);
    judged->history.open_files = judged->open_files;
    assert_int_equal(verdicts_judge(&judged->history, &judged->arena, &judged->verdicts), 0);
    assert_true(judged->verdicts.n > 0);
    return &judged->verdicts.items[0];
}

static void judged_close(Judged *judged)
{
    history_free(&judged->history);
    arena_free(&judged->arena);
    free(judged);
}

static void assert_near(double is, double should, double part)
{
    if (fabs(is - should) > part * fabs(should))
        fail_msg("%g is not near %g", is, should);
}

/* The figures and the evidence of a verdict. */
static void test_leak(void **state)
{
    (void)state;
    Judged *judged = judged_open(1);
    add_growth(&judged->scene, WORKER, 600 * MIB);
    const Verdict *verdict = judged_first(judged);
    assert_int_equal(verdict->id, VERDICT_LEAK);
    assert_int_equal(verdict->pid, WORKER_PID + WORKER);
    assert_int_equal(verdict->role, ROLE_WORKER);
    assert_string_equal(verdict->metric, "private");
    assert_near(verdict->rate, 2 * MIB, 0.02);
    assert_near(verdict->exhausts_in, 64 * GIB / (2 * MIB), 0.05);
    assert_true(verdict->confidence > 0.95);
    assert_non_null(strstr(verdict->evidence, "Private memory of pid 2001 (worker) grew from"));
    assert_true(verdict->fixes.n >= 2);
    assert_int_equal(judged->verdicts.n, 1);
    judged_close(judged);
}

/* Several processes that do the same are one verdict, and exhaust memory together. */
static void test_group(void **state)
{
    (void)state;
    Judged *judged = judged_open(2);
    add_growth(&judged->scene, WORKER, 300 * MIB);
    add_growth(&judged->scene, OTHER_WORKER, 600 * MIB);
    const Verdict *verdict = judged_first(judged);
    assert_int_equal(verdict->id, VERDICT_LEAK);
    assert_int_equal(verdict->pid, WORKER_PID + OTHER_WORKER);
    assert_near(verdict->exhausts_in, 64 * GIB / (3 * MIB), 0.05);
    assert_non_null(strstr(verdict->evidence, " 1 more process does the same."));
    assert_int_equal(judged->verdicts.n, 1);
    judged_close(judged);
}

/* What is exhausted first comes first; what never is comes last. */
static void test_order(void **state)
{
    (void)state;
    Judged *judged = judged_open(3);
    Scene *scene = &judged->scene;
    add_growth(scene, TRAINER, 200 * MIB);
    for (size_t i = 0; i < scene->n; i++) {
        scene->lines[TRAINER].shmem[i] = (double)i * 4 * MIB;
        scene->lines[WORKER].file[i] += (double)i * 50 * MIB;
        scene->lines[OTHER_WORKER].fds[i] += (double)i;
    }
    const Verdict *verdict = judged_first(judged);
    assert_int_equal(judged->verdicts.n, 4);
    assert_int_equal(verdict[0].id, VERDICT_BACKLOG); /* 31 GiB of /dev/shm is left */
    assert_int_equal(verdict[1].id, VERDICT_LEAK);
    assert_near(verdict[0].exhausts_in, 31 * GIB / (4 * MIB), 0.05);
    assert_true(isinf(verdict[2].exhausts_in) && isinf(verdict[3].exhausts_in));
    assert_true(verdict[2].confidence >= verdict[3].confidence);
    judged_close(judged);
}

/* Descriptors of kept batches belong to the backlog. */
static void test_backlog_with_descriptors(void **state)
{
    (void)state;
    Judged *judged = judged_open(4);
    Scene *scene = &judged->scene;
    for (size_t i = 0; i < scene->n; i++) {
        scene->lines[TRAINER].shmem[i] = (double)i * MIB;
        scene->lines[TRAINER].fds[i] += (double)i;
    }
    const Verdict *verdict = judged_first(judged);
    assert_int_equal(judged->verdicts.n, 1);
    assert_int_equal(verdict->id, VERDICT_BACKLOG);
    assert_non_null(strstr(verdict->evidence, "The open descriptors of this process grew with it, from"));
    judged_close(judged);
}

/* Kept tensors take memory and descriptors: what ends first decides. 31 GiB of /dev/shm is left. */
static void test_what_ends_first(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint64_t open_files;
        double bytes; /* per tensor, of which one is kept every second */
        VerdictId id;
        double exhausts_in;
        size_t n;
    } cases[] = {
        {"tiny tensors", 1024, 4096, VERDICT_FD_LEAK, 1024 - 314, 1},
        {"tiny tensors, many descriptors", 1 << 20, 4096, VERDICT_FD_LEAK, (1 << 20) - 314, 1},
        {"tiny tensors, limit unknown", 0, 64 * 1024, VERDICT_BACKLOG, 31 * GIB / (64 * 1024), 1},
        {"batches, few descriptors", 1024, MIB, VERDICT_FD_LEAK, 1024 - 314, 2},
        {"batches, many descriptors", 1 << 20, MIB, VERDICT_BACKLOG, 31 * GIB / MIB, 1},
        {"at the limit", 300, MIB, VERDICT_FD_LEAK, 0, 2},
    };
    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        Judged *judged = judged_open(70 + k);
        Scene *scene = &judged->scene;
        judged->open_files = cases[k].open_files;
        for (size_t i = 0; i < scene->n; i++) {
            scene->lines[TRAINER].shmem[i] = (double)i * cases[k].bytes;
            scene->lines[TRAINER].segments[i] = (double)i;
            scene->lines[TRAINER].fds[i] += (double)i;
        }
        const Verdict *verdict = judged_first(judged);
        if (verdict->id != cases[k].id || judged->verdicts.n != cases[k].n)
            fail_msg("%s: %s", cases[k].what, verdict->evidence);
        assert_near(verdict->exhausts_in, cases[k].exhausts_in, 0.05);
        assert_true(verdict->of_tensors == (cases[k].id == VERDICT_FD_LEAK));
        bool tensors = strstr(verdict->evidence, "shared tensors that it keeps");
        assert_true(tensors == verdict->of_tensors);
        for (size_t i = 0; i < verdict->fixes.n; i++)
            assert_null(strstr(verdict->fixes.items[i].what, "h5py"));
        judged_close(judged);
    }
}

static void test_copies(void **state)
{
    (void)state;
    Judged *judged = judged_open(5);
    Scene *scene = &judged->scene;
    for (size_t i = 0; i < scene->n; i++)
        scene->lines[WORKER].copied[i] = 300 * MIB * phase_of(scene, i);
    const Verdict *verdict = judged_first(judged);
    assert_int_equal(verdict->id, VERDICT_COPY_ON_WRITE);
    assert_near(verdict->rate, MIB, 0.05);
    assert_true(isinf(verdict->exhausts_in)); /* it ends before memory does */
    assert_non_null(strstr(verdict->evidence, "it copies what it shared with the trainer at fork (4"));
    judged_close(judged);
}

/* Figures of the whole job. */
static void test_job(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t metric;
        double from;
        double until;
        VerdictId id;
    } cases[] = {
        {"guard", JOB_GUARD_BYTES, 100 * MIB, 900 * MIB, VERDICT_BACKLOG},
        {"torch", JOB_KIND_BYTES + KIND_TORCH, 100 * MIB, 900 * MIB, VERDICT_BACKLOG},
        {"guard, steady", JOB_GUARD_BYTES, 900 * MIB, 901 * MIB, VERDICT_STEADY},
        {"group, of files", JOB_GROUP_FILE, 1 * GIB, 6 * GIB, VERDICT_PAGE_CACHE},
    };
    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        Judged *judged = judged_open(20 + k);
        Scene *scene = &judged->scene;
        for (size_t i = 0; i < scene->n; i++) {
            double value = cases[k].from + (cases[k].until - cases[k].from) * phase_of(scene, i);
            scene->job[cases[k].metric][i] = value;
            if (cases[k].metric == JOB_GROUP_FILE) {
                scene->job[JOB_GROUP_USED][i] = value + GIB;
                scene->job[JOB_GROUP_LIMIT][i] = 8 * GIB;
            }
            if (cases[k].metric == JOB_GUARD_BYTES)
                scene->job[JOB_GUARD_BUDGET][i] = 1700 * MIB;
        }
        const Verdict *verdict = judged_first(judged);
        if (verdict->id != cases[k].id)
            fail_msg("%s: %s", cases[k].name, verdict->evidence);
        if (k == 0)
            assert_near(verdict->exhausts_in, 300, 0.02); /* the other half of the budget */
        judged_close(judged);
    }
}

/* No process grows, but their number does. */
static void test_crowd(void **state)
{
    (void)state;
    Judged *judged = judged_open(30);
    judged->scene.crowd_every = 12;
    const Verdict *verdict = judged_first(judged);
    assert_int_equal(verdict->id, VERDICT_LEAK);
    assert_int_equal(verdict->pid, 0);
    assert_non_null(strstr(verdict->evidence, "No single process grows, but their number went from"));
    assert_true(verdict->fixes.n > 0);
    judged_close(judged);
}

/* Growth of 6%: too little to find teeth, enough where epochs are known. */
static void test_marks(void **state)
{
    (void)state;
    for (int marked = 0; marked < 2; marked++) {
        Judged *judged = judged_open(31);
        Scene *scene = &judged->scene;
        scene->marks_every = marked ? 50 : 0;
        for (size_t i = 0; i < scene->n; i++)
            scene->lines[TRAINER].own[i] += 30 * MIB * (double)(i % 50) / 50;
        const Verdict *verdict = judged_first(judged);
        assert_int_equal(verdict->id, marked ? VERDICT_SAWTOOTH : VERDICT_STEADY);
        judged_close(judged);
    }
}

/* A limited number of batches that are kept. */
static void test_kept(void **state)
{
    (void)state;
    Judged *judged = judged_open(32);
    Scene *scene = &judged->scene;
    for (size_t i = 0; i < scene->n; i++)
        scene->lines[TRAINER].shmem[i] = 10 * MIB + 300 * MIB * MIN(phase_of(scene, i) / 0.5, 1.0);
    const Verdict *verdict = judged_first(judged);
    assert_int_equal(verdict->id, VERDICT_BACKLOG);
    assert_true(isinf(verdict->exhausts_in));
    judged_close(judged);
}

/* Sums that exceed any size must not break anything. */
static void test_absurd(void **state)
{
    (void)state;
    Judged *judged = judged_open(33);
    Scene *scene = &judged->scene;
    for (size_t i = 0; i < scene->n; i++) {
        scene->lines[TRAINER].own[i] = 1e19 * (0.5 + phase_of(scene, i));
        scene->lines[WORKER].fds[i] = 1e15 * (double)(i + 1);
    }
    scene->interval = 1e-9;
    judged_first(judged);
    judged_close(judged);

    judged = judged_open(34);
    judged->scene.interval = 1e300;
    add_growth(&judged->scene, WORKER, 600 * MIB);
    judged_first(judged);
    judged_close(judged);
}

/* The same rate, observed for longer and longer: too short at first. */
static void test_pending(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        double growth; /* over the whole time */
        VerdictId id;
    } cases[] = {
        {20, 3 * MIB, VERDICT_STEADY},     /* harmless after any time */
        {20, 40 * MIB, VERDICT_TOO_SHORT}, /* a filling pool looks the same */
        {20, 450 * MIB, VERDICT_LEAK},     {60, 40 * MIB, VERDICT_TOO_SHORT}, {60, 120 * MIB, VERDICT_LEAK},
        {400, 18 * MIB, VERDICT_LEAK},     {3600, 18 * MIB, VERDICT_LEAK},
    };
    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        Judged *judged = judged_open(50 + k);
        Scene *scene = &judged->scene;
        scene->interval = cases[k].seconds / (double)scene->n;
        for (size_t i = 0; i < scene->n; i++)
            scene->lines[WORKER].own[i] = scene->level + cases[k].growth * phase_of(scene, i);
        const Verdict *verdict = judged_first(judged);
        if (verdict->id != cases[k].id)
            fail_msg("%g s, %g MiB: %s", cases[k].seconds, cases[k].growth / MIB, verdict->evidence);
        if (verdict->id == VERDICT_TOO_SHORT) {
            assert_int_equal(verdict->pid, WORKER_PID + WORKER);
            assert_int_equal(verdict->role, ROLE_WORKER);
            assert_string_equal(verdict->metric, "private");
            assert_true(verdict->confidence == 0 && isinf(verdict->exhausts_in));
            assert_near(verdict->rate, cases[k].growth / cases[k].seconds, 0.05);
            assert_near(verdict->would_exhaust_in, 64 * GIB / verdict->rate, 0.05);
            assert_non_null(strstr(verdict->evidence, "; if it went on like this, the limit would be"));
            assert_non_null(strstr(verdict->evidence, "Private memory of pid 2001 (worker) grew by"));
            assert_non_null(strstr(verdict->evidence, "Record for 10 min"));
        }
        assert_int_equal(judged->verdicts.n, 1);
        judged_close(judged);
    }
}

/* A pool that is full after 40 s, in recordings of any length. */
static void test_pool(void **state)
{
    (void)state;
    for (double seconds = 10; seconds < 1000; seconds *= 1.25) {
        Judged *judged = judged_open(80);
        Scene *scene = &judged->scene;
        scene->interval = seconds / (double)scene->n;
        for (size_t who = WORKER; who < PEOPLE; who++)
            for (size_t i = 0; i < scene->n; i++)
                scene->lines[who].own[i] = scene->level / 4 + MIB * MIN((double)i * scene->interval, 40.0);
        VerdictId id = judged_first(judged)->id;
        assert_true(id == VERDICT_STEADY || id == VERDICT_TOO_SHORT);
        if (seconds > 120)
            assert_int_equal(id, VERDICT_STEADY);
        judged_close(judged);
    }
}

/* The command has the pid filled in. */
static void test_command(void **state)
{
    (void)state;
    Judged *judged = judged_open(6);
    for (size_t i = 0; i < judged->scene.n; i++)
        judged->scene.lines[OTHER_WORKER].fds[i] += (double)i;
    const Verdict *verdict = judged_first(judged);
    assert_int_equal(verdict->id, VERDICT_FD_LEAK);
    bool found = false;
    for (size_t i = 0; i < verdict->fixes.n; i++)
        found = found || (verdict->fixes.items[i].command &&
                          strcmp(verdict->fixes.items[i].command, "ls -l /proc/2002/fd") == 0);
    assert_true(found);
    judged_close(judged);
}

static void test_too_short(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        double interval;
        VerdictId id;
    } cases[] = {
        {1, 1, VERDICT_TOO_SHORT},    {10, 1, VERDICT_TOO_SHORT}, {14, 60, VERDICT_TOO_SHORT},
        {30, 0.1, VERDICT_TOO_SHORT}, {40, 1, VERDICT_STEADY},    {100, 0.1, VERDICT_STEADY},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Judged *judged = judged_open(10 + i);
        judged->scene.n = cases[i].n;
        judged->scene.interval = cases[i].interval;
        const Verdict *verdict = judged_first(judged);
        assert_int_equal(verdict->id, cases[i].id);
        assert_int_equal(judged->verdicts.n, 1);
        assert_int_equal(verdict->pid, TRAINER_PID);
        assert_int_equal(verdict->role, ROLE_TRAINER);
        assert_true(isinf(verdict->exhausts_in));
        judged_close(judged);
    }

    _cleanup_history_ History empty = {0};
    _cleanup_arena_ Arena arena = {0};
    Verdicts verdicts;
    assert_int_equal(history_init(&empty, "", 0, 1e9, 1), 0);
    assert_int_equal(verdicts_judge(&empty, &arena, &verdicts), 0);
    assert_int_equal(verdicts.items[0].id, VERDICT_TOO_SHORT);
}

/* A verdict is a row of the table with all that is said about it, is documented, and has series. */
static void test_table(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer page = {0};
    _cleanup_buffer_ Buffer manual = {0};
    document_read("docs/verdicts.md", &page);
    document_read("man/shmguard.1", &manual);
    for (VerdictId id = 0; id < VERDICT_IDS; id++) {
        const char *name = verdict_name(id);
        if (!name || !verdict_title(id) || !verdict_meaning(id))
            fail_msg("VerdictId %d lacks a row, a name, a title or a meaning in verdict-table.c", (int)id);
        bool advised = false;
        for (Role role = ROLE_OTHER; role <= ROLE_MANAGER; role++) {
            Verdict verdict = {.id = id, .pid = 1, .role = role};
            _cleanup_arena_ Arena arena = {0};
            assert_int_equal(verdict_advise(&verdict, &(AdvisedJob){0}, &arena), 0);
            advised = advised || verdict.fixes.n > 0;
        }
        if (advised == (verdict_severity(id) == SEVERITY_GOOD))
            fail_msg("%s: a severity above good and advice go together in verdict-table.c", name);
        char row[64];
        snprintf(row, sizeof row, "| `%s` | %s |", name, severity_name(verdict_severity(id)));
        if (!strstr(buffer_text(&page), row))
            fail_msg("docs/verdicts.md has no row that begins with %s", row);
        if (!manual_names(&manual, name))
            fail_msg("man/shmguard.1 does not mention %s", name);
        bool made = id == VERDICT_TOO_SHORT;
        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
            made = made || kinds[k].id == id;
        if (!made)
            fail_msg("no series above is made to be %s", name);
    }
}

/* What is advised against copies depends on what the guard has done. */
static void test_advice_against_copies(void **state)
{
    (void)state;
    static const struct {
        AdvisedJob job;
        const char *advice[2];
    } cases[] = {
        {{false, false, 0}, {VERDICT_COPY_ON_WRITE_PERHAPS, VERDICT_COPY_ON_WRITE_SHARED}},
        {{false, false, 12}, {VERDICT_COPY_ON_WRITE_FREEZE, VERDICT_COPY_ON_WRITE_SHARED}},
        {{false, false, 14}, {VERDICT_COPY_ON_WRITE_FREEZE, VERDICT_COPY_ON_WRITE_SHARED}},
        {{false, false, 11}, {VERDICT_COPY_ON_WRITE_SHARED, VERDICT_COPY_ON_WRITE_ARRAYS}},
        {{false, false, 15}, {VERDICT_COPY_ON_WRITE_SHARED, VERDICT_COPY_ON_WRITE_ARRAYS}},
        {{true, false, 0}, {VERDICT_COPY_ON_WRITE_UNFROZEN, VERDICT_COPY_ON_WRITE_SHARED}},
        {{true, false, 13}, {VERDICT_COPY_ON_WRITE_UNFROZEN, VERDICT_COPY_ON_WRITE_SHARED}},
        {{true, false, 8}, {VERDICT_COPY_ON_WRITE_SHARED, VERDICT_COPY_ON_WRITE_ARRAYS}},
        {{true, true, 13}, {VERDICT_COPY_ON_WRITE_FROZEN, VERDICT_COPY_ON_WRITE_SHARED}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Verdict verdict = {.id = VERDICT_COPY_ON_WRITE, .pid = 1, .role = ROLE_WORKER};
        _cleanup_arena_ Arena arena = {0};
        assert_int_equal(verdict_advise(&verdict, &cases[i].job, &arena), 0);
        assert_int_equal(verdict.fixes.n, 5);
        for (size_t k = 0; k < ARRAY_SIZE(cases[i].advice); k++)
            assert_string_equal(verdict.fixes.items[k].what, cases[i].advice[k]);
    }
}

/* --- Arithmetic -------------------------------------------------------------------------------------------
 */

static void test_median(void **state)
{
    (void)state;
    Dice dice = {7};
    for (size_t n = 1; n < 200; n++) {
        double values[200];
        for (size_t i = 0; i < n; i++)
            values[i] = floor(dice_between(&dice, 0, n % 7 == 0 ? 3 : 1000));
        double copy[200];
        memcpy(copy, values, n * sizeof *values);
        double median = median_of(copy, n);
        size_t below = 0;
        size_t above = 0;
        for (size_t i = 0; i < n; i++) {
            below += values[i] < median;
            above += values[i] > median;
        }
        assert_true(below <= n / 2 && above <= n / 2);
    }
}

static void test_slope(void **state)
{
    (void)state;
    enum { N = 200 };
    double seconds[N];
    uint64_t values[N];
    Dice dice = {3};
    static const double slopes[] = {0, 5, -5, 1000};
    for (size_t k = 0; k < ARRAY_SIZE(slopes); k++) {
        for (size_t i = 0; i < N; i++) {
            seconds[i] = (double)i;
            values[i] =
                i % 3 == 1 ? U64_UNKNOWN : (uint64_t)(1e5 + slopes[k] * (double)i + 20 * dice_normal(&dice));
        }
        double slope = trend_slope(seconds, values, N);
        if (slopes[k] == 0)
            assert_true(slope == 0);
        else
            assert_near(slope, slopes[k], 0.05);
    }
    assert_true(trend_slope(seconds, values, 0) == 0);
    assert_true(trend_slope(seconds, values, 3) == 0);
    for (size_t i = 0; i < N; i++)
        values[i] = U64_UNKNOWN;
    assert_true(trend_slope(seconds, values, N) == 0);
    for (size_t i = 0; i < N; i++)
        values[i] = 4096;
    assert_true(trend_slope(seconds, values, N) == 0);
}

/* --- Speed ------------------------------------------------------------------------------------------------
 */

static bool is_there(const Verdicts *verdicts, VerdictId id)
{
    for (size_t i = 0; i < verdicts->n; i++)
        if (verdicts->items[i].id == id)
            return true;
    return false;
}

/* A day of 64 processes, one sample per second. Only what is read has values; the rest is one array of
 * unknowns. */
static void test_day(void **state)
{
    (void)state;
    enum { SECONDS = 86400, PROCESSES = 64, DISTINCT = 8 };
    Dice dice = {1};
    double *seconds = malloc(SECONDS * sizeof *seconds);
    uint64_t *unknown = malloc(SECONDS * sizeof *unknown);
    uint64_t(*values)[SECONDS] = malloc(DISTINCT * sizeof *values);
    assert_true(seconds && unknown && values);
    for (size_t i = 0; i < SECONDS; i++) {
        seconds[i] = (double)i;
        unknown[i] = U64_UNKNOWN;
        for (size_t k = 0; k < DISTINCT; k++)
            values[k][i] = (uint64_t)(500 * MIB + (k == 0 ? 1e4 * (double)i : 0) + MIB * dice_uniform(&dice));
    }
    uint64_t *columns[PROCESSES][PROCESS_METRICS];
    uint64_t *job[JOB_METRICS];
    ProcessTrack *tracks = calloc(PROCESSES, sizeof *tracks);
    assert_non_null(tracks);
    for (size_t i = 0; i < JOB_METRICS; i++)
        job[i] = i == JOB_MEMORY_AVAILABLE ? values[1] : unknown;
    for (size_t i = 0; i < PROCESSES; i++) {
        for (size_t k = 0; k < PROCESS_METRICS; k++)
            columns[i][k] = values[(i + k) % DISTINCT];
        tracks[i] = (ProcessTrack){
            .last = {.pid = TRAINER_PID + (int)i,
                     .role = i % 8 ? ROLE_WORKER : ROLE_TRAINER,
                     .job = TRAINER_PID},
            .ended_seconds = INFINITY,
            .series = {SECONDS, SECONDS, PROCESS_METRICS, seconds, columns[i]},
        };
    }
    History day = {.interval = 1,
                   .pid = TRAINER_PID,
                   .series = {SECONDS, SECONDS, JOB_METRICS, seconds, job},
                   .tracks = tracks,
                   .n_tracks = PROCESSES};
    _cleanup_arena_ Arena arena = {0};
    Verdicts verdicts;
    clock_t begun = clock();
    assert_int_equal(verdicts_judge(&day, &arena, &verdicts), 0);
    double took = (double)(clock() - begun) / CLOCKS_PER_SEC;
    print_message("a day of %d processes: %.2f s\n", PROCESSES, took);
    assert_true(took < 5); /* sanitizers and old machines included */
    assert_true(is_there(&verdicts, VERDICT_LEAK));
    free(seconds);
    free(unknown);
    free(values);
    free(tracks);
}

int main(void)
{
    /* The memory of thousands of histories is not given back to the kernel between them. */
    mallopt(M_MMAP_THRESHOLD, INT_MAX);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, 64 << 20);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_leak),
        cmocka_unit_test(test_group),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_backlog_with_descriptors),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_job),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_absurd),
        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_what_ends_first),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_command),
        cmocka_unit_test(test_too_short),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_advice_against_copies),
        cmocka_unit_test(test_median),
        cmocka_unit_test(test_slope),
        cmocka_unit_test(test_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
