/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "tune-known.h"
#include "tune-rate.h"

/*
 * NOISE_LEAST, NOISE_MOST: of one trial, as a part of its rate. No machine is quieter than the first, and
 * beyond the second all settings would seem equal.
 */
#define NOISE_LEAST 0.005
#define NOISE_MOST  0.3

/* --- The grid ----------------------------------------------------------------------------------------- */

static bool name_has(const char *name, const char *part)
{
    return strcasestr(name, part) != NULL;
}

static TuneCounts name_counts(const char *name)
{
    if (name_has(name, "worker"))
        return COUNTS_WORKERS;
    if (name_has(name, "nproc") || name_has(name, "procs"))
        return COUNTS_TRAINERS;
    if (name_has(name, "prefetch"))
        return COUNTS_PREFETCH;
    bool samples = strncasecmp(name, "batch", strlen("batch")) == 0 || strcasecmp(name, "bs") == 0;
    return samples ? COUNTS_SAMPLES : COUNTS_OTHER;
}

bool tune_counts_processes(TuneCounts counts)
{
    return counts == COUNTS_WORKERS || counts == COUNTS_TRAINERS;
}

int tune_axis_make(const char *name, const char *const *values, size_t n, Arena *arena, TuneAxis *ret)
{
    double *numbers = arena_alloc(arena, n * sizeof *numbers);
    double *places = arena_alloc(arena, n * sizeof *places);
    if (!numbers || !places)
        return -ENOMEM;
    bool numeric = true;
    for (size_t i = 0; i < n; i++)
        numeric = numeric && rate_number_parse(text_of(values[i]), &numbers[i]) == 0;
    for (size_t i = 0; i < n; i++) {
        size_t below = i;
        if (numeric) {
            below = 0;
            for (size_t j = 0; j < n; j++)
                below += numbers[j] < numbers[i];
        }
        places[i] = n > 1 ? (double)below / (double)(n - 1) : 0.5;
    }
    *ret = (TuneAxis){
        .name = name,
        .values = values,
        .n = n,
        .numbers = numeric ? numbers : NULL,
        .places = places,
        .counts = name_counts(name),
    };
    return 0;
}

size_t tune_settings(const Tune *tune)
{
    size_t n = 1;
    for (size_t i = 0; i < tune->n_axes; i++)
        n *= tune->axes[i].n;
    return n;
}

size_t tune_value(const Tune *tune, size_t setting, size_t axis)
{
    for (size_t i = tune->n_axes - 1; i > axis; i--)
        setting /= tune->axes[i].n;
    return setting % tune->axes[axis].n;
}

double tune_place(const Tune *tune, size_t setting, size_t axis)
{
    return tune->axes[axis].places[tune_value(tune, setting, axis)];
}

size_t tune_trials_default(size_t n_settings, size_t n_axes)
{
    enum { REPEATS = 2 };
    size_t least = MIN(2 + 2 * n_axes, n_settings + REPEATS);
    return MIN(MAX(n_settings / 3, least), (size_t)TUNE_TRIALS_MAX);
}

int tune_setting_words(const Tune *tune, size_t setting, Buffer *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < tune->n_axes; i++) {
        const TuneAxis *axis = &tune->axes[i];
        r = buffer_printf(out, "%s%s=", i > 0 ? " " : "", axis->name);
        if (r == 0)
            r = text_escape(text_of(axis->values[tune_value(tune, setting, i)]), out);
    }
    return r;
}

/* Of /dev/shm, and of the guard's segments, which are whole pages, too. */
enum { PAGE_BYTES = 4096 };

/* --- Memory ------------------------------------------------------------------------------------------- */

static uint64_t trial_memory(const TuneTrial *trial)
{
    if (trial->shm_bytes == U64_UNKNOWN || trial->own_bytes == U64_UNKNOWN)
        return U64_UNKNOWN;
    return trial->shm_bytes + trial->own_bytes;
}

/* The value of a setting on the axis that counts this; `otherwise` if there is no such axis. */
static double number_of(const Tune *tune, size_t setting, TuneCounts counts, double otherwise)
{
    for (size_t i = 0; i < tune->n_axes; i++)
        if (tune->axes[i].counts == counts && tune->axes[i].numbers)
            return tune->axes[i].numbers[tune_value(tune, setting, i)];
    return otherwise;
}

/* Trials run under the guard. What is not varied gets its default, which matters little to a ratio. */
static PlanSetting plan_setting(const Tune *tune, size_t setting)
{
    enum { WORKERS_USUAL = 2 };
    return (PlanSetting){
        .batch = (uint64_t)MIN(number_of(tune, setting, COUNTS_SAMPLES, 0), (double)PLAN_BATCH_MOST),
        .workers =
            (uint64_t)MIN(number_of(tune, setting, COUNTS_WORKERS, WORKERS_USUAL), (double)PLAN_COUNT_MOST),
        .prefetch = (uint64_t)MIN(MAX(number_of(tune, setting, COUNTS_PREFETCH, PREFETCH_DEFAULT), 1.0),
                                  (double)PLAN_COUNT_MOST),
        .held = HELD_DEFAULT,
        .guarded = true,
    };
}

double tune_processes(const Tune *tune, size_t setting)
{
    return MAX(number_of(tune, setting, COUNTS_TRAINERS, 1), 1.0) *
           (number_of(tune, setting, COUNTS_WORKERS, 0) + 1);
}

uint64_t tune_shm_planned(const Tune *tune, size_t setting, const PlanLoader *loader)
{
    PlanSetting wanted = plan_setting(tune, setting);
    PlanLoader planned = *loader;
    LoaderNeed need;
    planned.batch = wanted.batch ? wanted.batch : loader->batch;
    planned.workers = wanted.workers;
    planned.prefetch = wanted.prefetch;
    planned.held = wanted.held;
    if (planned.batch == 0)
        return U64_UNKNOWN;
    if (planned.workers == 0)
        return 0;
    if (plan_loader_need(&planned, false, PAGE_BYTES, &need) < 0)
        return INT64_MAX;
    return bytes_scale(need.guard_bytes, MAX(number_of(tune, setting, COUNTS_TRAINERS, 1), 1.0));
}

/* The memory of a trial scaled to another setting: batches by plan_scale, other numbers in proportion, and
 * the same private memory per process. False: nothing follows from the trial. */
static bool memory_scale(const Tune *tune, const TuneTrial *trial, size_t setting, double *ret_shm,
                         double *ret_own)
{
    PlanSetting from = plan_setting(tune, trial->setting);
    PlanSetting to = plan_setting(tune, setting);
    uint64_t bytes = 0;
    int r = plan_scale(trial->shm_bytes, &from, &to, &bytes);
    double shm = r == -EOVERFLOW ? 0x1p62 : (double)bytes;
    if (r == -ENODATA && to.workers > 0)
        return false;
    for (size_t i = 0; i < tune->n_axes; i++) {
        const TuneAxis *axis = &tune->axes[i];
        if (axis->numbers && (axis->counts == COUNTS_OTHER || axis->counts == COUNTS_TRAINERS))
            shm *= MAX(axis->numbers[tune_value(tune, setting, i)], 1.0) /
                   MAX(axis->numbers[tune_value(tune, trial->setting, i)], 1.0);
    }
    *ret_shm = shm;
    *ret_own =
        (double)trial->own_bytes * tune_processes(tune, setting) / tune_processes(tune, trial->setting);
    return true;
}

/* Scaled from the nearest trial; batches whose samples are known are computed. Shrinking is not relied on:
 * the private memory is never estimated below that of the trial. */
static uint64_t memory_estimate(const Tune *tune, size_t setting)
{
    double nearest = INFINITY;
    double shm_nearest = 0;
    double own_nearest = 0;
    uint64_t planned = tune->loader ? tune_shm_planned(tune, setting, tune->loader) : U64_UNKNOWN;
    for (size_t i = 0; i < tune->n; i++) {
        const TuneTrial *trial = &tune->trials[i];
        double shm = 0;
        double own = 0;
        if (!trial->measured || trial_memory(trial) == U64_UNKNOWN ||
            !memory_scale(tune, trial, setting, &shm, &own))
            continue;
        double distance = fabs(log((shm + 1) / ((double)trial->shm_bytes + 1))) +
                          fabs(log((own + 1) / ((double)trial->own_bytes + 1)));
        if (distance < nearest) {
            nearest = distance;
            shm_nearest = shm;
            own_nearest = MAX(own, (double)trial->own_bytes);
        }
    }
    if (isinf(nearest) && planned == U64_UNKNOWN)
        return U64_UNKNOWN;
    double estimate = own_nearest + (planned == U64_UNKNOWN ? shm_nearest : (double)planned);
    return estimate < 0x1p62 ? (uint64_t)estimate : UINT64_C(1) << 62;
}

/* No number of a is smaller than that of b, and all other values are equal. */
static bool is_no_smaller(const Tune *tune, size_t a, size_t b)
{
    for (size_t i = 0; i < tune->n_axes; i++) {
        const TuneAxis *axis = &tune->axes[i];
        size_t one = tune_value(tune, a, i);
        size_t other = tune_value(tune, b, i);
        if (axis->numbers ? axis->numbers[one] < axis->numbers[other] : one != other)
            return false;
    }
    return true;
}

static bool trial_ran_out(const Tune *tune, const TuneTrial *trial)
{
    uint64_t memory = trial_memory(trial);
    return trial->less_helps ||
           (memory != U64_UNKNOWN && tune->ceiling_bytes != U64_UNKNOWN && memory > tune->ceiling_bytes);
}

static bool smaller_ran_out(const Tune *tune, size_t setting)
{
    for (size_t i = 0; i < tune->n; i++)
        if (tune->trials[i].setting != setting && trial_ran_out(tune, &tune->trials[i]) &&
            is_no_smaller(tune, setting, tune->trials[i].setting))
            return true;
    return false;
}

/* --- One setting -------------------------------------------------------------------------------------- */

static int double_compare(const void *a, const void *b)
{
    double one = *(const double *)a;
    double other = *(const double *)b;
    return (one > other) - (one < other);
}

/* The noise within the trials counts as much as two repeats. */
double tune_noise(const Tune *tune)
{
    enum { PRIOR = 2 };
    double within[TUNE_TRIALS_MAX];
    size_t n_within = 0;
    double squares = 0;
    size_t freedom = 0;
    for (size_t i = 0; i < tune->n; i++) {
        const TuneTrial *trial = &tune->trials[i];
        double sum = 0;
        size_t n = 0;
        if (!trial->measured || trial->stopped)
            continue;
        if (n_within < ARRAY_SIZE(within))
            within[n_within++] = trial->error / trial->rate;
        for (size_t j = 0; j < tune->n; j++)
            if (tune->trials[j].setting == trial->setting && tune->trials[j].measured &&
                !tune->trials[j].stopped) {
                if (j < i)
                    break; /* this setting has been counted */
                sum += tune->trials[j].rate;
                n++;
            }
        for (size_t j = i; n > 1 && j < tune->n; j++)
            if (tune->trials[j].setting == trial->setting && tune->trials[j].measured &&
                !tune->trials[j].stopped) {
                double off = tune->trials[j].rate / (sum / (double)n) - 1;
                squares += off * off;
            }
        freedom += n > 1 ? n - 1 : 0;
    }
    qsort(within, n_within, sizeof within[0], double_compare);
    double prior = n_within > 0 ? within[n_within / 2] : NOISE_MOST;
    prior = MIN(MAX(prior, NOISE_LEAST), NOISE_MOST);
    return MIN(MAX(sqrt((squares + PRIOR * prior * prior) / (double)(freedom + PRIOR)), NOISE_LEAST),
               NOISE_MOST);
}

static TuneFate fate_of_tried(const Tune *tune, const TuneSetting *known, bool bad)
{
    if (bad || known->measured == 0)
        return TUNE_FAILED;
    bool over = known->memory_bytes != U64_UNKNOWN && tune->ceiling_bytes != U64_UNKNOWN &&
                known->memory_bytes > tune->ceiling_bytes;
    return over ? TUNE_OVER : TUNE_MEASURED;
}

TuneSetting tune_known(const Tune *tune, size_t setting, double noise)
{
    TuneSetting known = {.memory_bytes = U64_UNKNOWN};
    bool bad = false;
    for (size_t i = 0; i < tune->n; i++) {
        const TuneTrial *trial = &tune->trials[i];
        if (trial->setting != setting)
            continue;
        known.trials++;
        known.last = trial;
        bad |= trial->cause.id != CAUSE_OK;
        u64_raise(&known.memory_bytes, trial_memory(trial));
        if (trial->measured) {
            known.measured++;
            known.rate += (trial->rate - known.rate) / (double)known.measured;
        }
    }
    if (known.trials > 0) {
        double half = known.measured > 0 ? 2 * noise * known.rate / sqrt((double)known.measured) : 0;
        known.low = MAX(known.rate - half, 0.0);
        known.high = known.rate + half;
        known.fate = fate_of_tried(tune, &known, bad);
        return known;
    }
    known.memory_bytes = memory_estimate(tune, setting);
    if (smaller_ran_out(tune, setting))
        known.fate = TUNE_SKIPPED_SMALLER;
    else if (known.memory_bytes != U64_UNKNOWN && known.memory_bytes > tune->ceiling_bytes)
        known.fate = TUNE_SKIPPED_MEMORY;
    return known;
}

TuneSetting tune_setting(const Tune *tune, size_t setting)
{
    return tune_known(tune, setting, tune_noise(tune));
}

/* --- The end ------------------------------------------------------------------------------------------ */

/* Whether `other` may replace the fastest: not measurably slower, and with clearly less memory than the
 * choice so far. */
static bool is_thriftier(const TuneSetting *other, const TuneSetting *top, const TuneSetting *chosen)
{
    return other->high >= top->low && other->rate >= (1 - TUNE_EQUAL_PART) * top->rate &&
           other->memory_bytes != U64_UNKNOWN && chosen->memory_bytes != U64_UNKNOWN &&
           (double)other->memory_bytes < 0.95 * (double)chosen->memory_bytes;
}

TuneVerdict tune_verdict(const Tune *tune)
{
    TuneVerdict verdict = {0};
    size_t n_settings = tune_settings(tune);
    double noise = tune_noise(tune);
    TuneSetting top = {0};
    size_t top_setting = 0;
    for (size_t i = 0; i < n_settings; i++) {
        TuneSetting known = tune_known(tune, i, noise);
        bool safe = known.fate == TUNE_MEASURED;
        verdict.measured += known.measured > 0;
        verdict.failed += known.fate == TUNE_FAILED;
        verdict.skipped += known.fate == TUNE_SKIPPED_MEMORY || known.fate == TUNE_SKIPPED_SMALLER;
        if (known.measured > 0 &&
            (!verdict.found || safe > verdict.safe || (safe == verdict.safe && known.rate > top.rate))) {
            verdict.found = true;
            verdict.safe = safe;
            top = known;
            top_setting = i;
        }
    }
    if (!verdict.found)
        return verdict;
    TuneSetting best = top;
    verdict.best = top_setting;
    for (size_t i = 0; verdict.safe && i < n_settings; i++) {
        TuneSetting known = tune_known(tune, i, noise);
        if (known.fate == TUNE_MEASURED && is_thriftier(&known, &top, &best)) {
            best = known;
            verdict.best = i;
        }
    }
    double next_rate = 0;
    for (size_t i = 0; i < n_settings; i++) {
        TuneSetting known = tune_known(tune, i, noise);
        if (i == verdict.best || known.fate != TUNE_MEASURED)
            continue;
        verdict.rivals += known.high >= best.low;
        if (known.rate > next_rate) {
            next_rate = known.rate;
            verdict.next = i;
            verdict.has_next = true;
        }
    }
    verdict.separated = verdict.rivals == 0;
    return verdict;
}
