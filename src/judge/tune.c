#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rate.h"
#include "tune.h"

/*
 * NOISE_LEAST, NOISE_MOST: of one trial, as a part of its rate; a machine is never quieter, and a noise that
 * is taken for louder would make everything equal.
 * GAIN_LEAST: less than this is not worth a trial.
 * EQUAL_PART: rates nearer than this make no difference to anybody.
 * HOPELESS_PART: a setting that cannot reach this part of the best is given up early.
 * REPEATS_MOST: of one setting.
 */
#define NOISE_LEAST   0.005
#define NOISE_MOST    0.3
#define GAIN_LEAST    0.004
#define EQUAL_PART    0.02
#define HOPELESS_PART 0.85
enum { REPEATS_MOST = 5, SPREAD_MOST = 4, FIT_MOST = 128 };

/* --- The grid ----------------------------------------------------------------------------------------- */

static bool name_has(const char *name, const char *part)
{
    return strcasestr(name, part) != NULL;
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
        .processes = name_has(name, "worker") || name_has(name, "nproc") || name_has(name, "procs"),
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

static double place_of(const Tune *tune, size_t setting, size_t axis)
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

/* --- Memory ------------------------------------------------------------------------------------------- */

static uint64_t trial_memory(const TuneTrial *trial)
{
    if (trial->shm_bytes == U64_UNKNOWN || trial->own_bytes == U64_UNKNOWN)
        return U64_UNKNOWN;
    return trial->shm_bytes + trial->own_bytes;
}

/* What shared memory and the rest are to be multiplied by, from one setting to the other: batches in flight
 * grow with every number, processes with the number of processes and ourselves. */
static void memory_ratios(const Tune *tune, size_t from, size_t to, double *ret_shm, double *ret_own)
{
    *ret_shm = *ret_own = 1;
    for (size_t i = 0; i < tune->n_axes; i++) {
        const TuneAxis *axis = &tune->axes[i];
        if (!axis->numbers)
            continue;
        double before = axis->numbers[tune_value(tune, from, i)];
        double after = axis->numbers[tune_value(tune, to, i)];
        if (axis->processes) {
            *ret_shm *= (after + 1) / (before + 1);
            *ret_own *= (after + 1) / (before + 1);
        } else
            *ret_shm *= MAX(after, 1.0) / MAX(before, 1.0);
    }
}

/* Scaled from the trial that is nearest. What may shrink is not counted on: memory for the rest of the
 * training never falls below what was seen. */
static uint64_t memory_estimate(const Tune *tune, size_t setting)
{
    double nearest = INFINITY;
    double estimate = 0;
    for (size_t i = 0; i < tune->n; i++) {
        const TuneTrial *trial = &tune->trials[i];
        double shm = 1;
        double own = 1;
        if (!trial->measured || trial_memory(trial) == U64_UNKNOWN)
            continue;
        memory_ratios(tune, trial->setting, setting, &shm, &own);
        double distance = fabs(log(shm)) + fabs(log(own));
        if (distance < nearest) {
            nearest = distance;
            estimate = (double)trial->shm_bytes * shm + (double)trial->own_bytes * MAX(own, 1.0);
        }
    }
    if (isinf(nearest))
        return U64_UNKNOWN;
    return estimate < 0x1p62 ? (uint64_t)estimate : UINT64_C(1) << 62;
}

/* No number of a is smaller than that of b, and what is no number is the same. */
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

/* What the trials say of themselves counts as two repeats. */
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

static TuneSetting setting_look(const Tune *tune, size_t setting, double noise)
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
    return setting_look(tune, setting, tune_noise(tune));
}

/* --- The surface -------------------------------------------------------------------------------------- */

/* Of what was measured: one point a setting. */
typedef struct Surface {
    const Tune *tune;
    size_t n;
    size_t *settings;
    double *values;  /* logarithms of the rates, their mean taken away */
    double *noises;  /* their variances */
    double *factor;  /* of the covariances: lower triangle, n by n */
    double *weights; /* the covariances' inverse times values */
    double *column;  /* scratch */
    double scales[TUNE_AXES_MAX];
    double variance;
    double best; /* the highest point of the surface at what was measured */
} Surface;

static double kernel(const Surface *surface, size_t a, size_t b)
{
    double square = 0;
    for (size_t i = 0; i < surface->tune->n_axes; i++) {
        double d = (place_of(surface->tune, a, i) - place_of(surface->tune, b, i)) / surface->scales[i];
        square += d * d;
    }
    double r = sqrt(5 * square);
    return surface->variance * (1 + r + r * r / 3) * exp(-r);
}

/* Cholesky's decomposition and the weights. The logarithm of the likelihood, but for what never changes;
 * -INFINITY when the points are too alike. */
static double surface_fit(Surface *surface)
{
    size_t n = surface->n;
    double likelihood = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = kernel(surface, surface->settings[i], surface->settings[j]);
            if (i == j)
                sum += surface->noises[i];
            for (size_t k = 0; k < j; k++)
                sum -= surface->factor[i * n + k] * surface->factor[j * n + k];
            if (i == j && sum <= 0)
                return -INFINITY;
            surface->factor[i * n + j] = i == j ? sqrt(sum) : sum / surface->factor[j * n + j];
        }
    for (size_t i = 0; i < n; i++) {
        double sum = surface->values[i];
        for (size_t k = 0; k < i; k++)
            sum -= surface->factor[i * n + k] * surface->weights[k];
        surface->weights[i] = sum / surface->factor[i * n + i];
        likelihood -= surface->weights[i] * surface->weights[i] / 2 + log(surface->factor[i * n + i]);
    }
    for (size_t i = n; i-- > 0;) {
        double sum = surface->weights[i];
        for (size_t k = i + 1; k < n; k++)
            sum -= surface->factor[k * n + i] * surface->weights[k];
        surface->weights[i] = sum / surface->factor[i * n + i];
    }
    return likelihood;
}

/* The height of the surface there, and how sure it is. */
static double surface_at(Surface *surface, size_t setting, double *ret_deviation)
{
    size_t n = surface->n;
    double mean = 0;
    double variance = surface->variance;
    for (size_t i = 0; i < n; i++) {
        double sum = kernel(surface, setting, surface->settings[i]);
        mean += sum * surface->weights[i];
        for (size_t k = 0; k < i; k++)
            sum -= surface->factor[i * n + k] * surface->column[k];
        surface->column[i] = sum / surface->factor[i * n + i];
        variance -= surface->column[i] * surface->column[i];
    }
    *ret_deviation = sqrt(MAX(variance, 0.0));
    return mean;
}

/* Each axis has its own scale where there are few; with many they share one. */
static void scales_choose(Surface *surface)
{
    static const double scales[] = {0.4, 0.8, 1.6, 4};
    static const double amplitudes[] = {0.5, 1, 2, 4};
    const Tune *tune = surface->tune;
    size_t free_axes = tune->n_axes <= 3 ? tune->n_axes : 1;
    double spread = 0;
    double best = -INFINITY;
    size_t best_choice = 0;
    size_t choices = ARRAY_SIZE(amplitudes);
    for (size_t i = 0; i < surface->n; i++)
        spread += surface->values[i] * surface->values[i] / (double)surface->n;
    spread = MAX(spread, 0.03 * 0.03);
    for (size_t i = 0; i < free_axes; i++)
        choices *= ARRAY_SIZE(scales);
    /* With so many points the scales of the first would cost too much, and matter little. */
    bool fits = surface->n <= FIT_MOST;
    for (size_t choice = 0; choice <= choices; choice++) {
        size_t rest = choice < choices ? choice : best_choice; /* the last round is the best one's, again */
        if (!fits)
            choice = choices;
        surface->variance = spread * amplitudes[rest % ARRAY_SIZE(amplitudes)];
        rest /= ARRAY_SIZE(amplitudes);
        for (size_t i = 0; i < tune->n_axes; i++) {
            surface->scales[i] = scales[rest % ARRAY_SIZE(scales)];
            if (i + 1 < free_axes)
                rest /= ARRAY_SIZE(scales);
        }
        /* Smooth surfaces are the rule: a rough one must be clearly likelier. */
        double prior = 0;
        for (size_t i = 0; i < free_axes; i++)
            prior -= 0.5 * (surface->scales[i] < 0.5);
        double likelihood = surface_fit(surface) + prior;
        if (likelihood > best) {
            best = likelihood;
            best_choice = choice;
        }
    }
}

/* -ENODATA: nothing was measured. */
static int surface_make(const Tune *tune, const TuneSetting *known, size_t n_settings, double noise,
                        Arena *arena, Surface *ret)
{
    Surface surface = {.tune = tune, .best = -INFINITY};
    size_t n = 0;
    for (size_t i = 0; i < n_settings; i++)
        n += known[i].measured > 0;
    if (n == 0)
        return -ENODATA;
    surface.settings = arena_alloc(arena, n * sizeof *surface.settings);
    surface.values = arena_alloc(arena, n * sizeof *surface.values);
    surface.noises = arena_alloc(arena, n * sizeof *surface.noises);
    surface.weights = arena_alloc(arena, n * sizeof *surface.weights);
    surface.column = arena_alloc(arena, n * sizeof *surface.column);
    surface.factor = arena_alloc(arena, n * n * sizeof *surface.factor);
    if (!surface.settings || !surface.values || !surface.noises || !surface.weights || !surface.column ||
        !surface.factor)
        return -ENOMEM;
    double mean = 0;
    for (size_t i = 0; i < n_settings; i++)
        if (known[i].measured > 0) {
            surface.settings[surface.n] = i;
            surface.noises[surface.n] = noise * noise / (double)known[i].measured;
            surface.values[surface.n] = log(known[i].rate);
            mean += surface.values[surface.n++] / (double)n;
        }
    for (size_t i = 0; i < n; i++)
        surface.values[i] -= mean;
    scales_choose(&surface);
    for (size_t i = 0; i < n; i++) {
        double deviation = 0;
        if (known[surface.settings[i]].fate == TUNE_MEASURED)
            surface.best = MAX(surface.best, surface_at(&surface, surface.settings[i], &deviation));
    }
    *ret = surface;
    return 0;
}

static double gain_expected(double mean, double deviation, double best)
{
    if (isinf(best))
        return deviation;
    if (deviation < 1e-9)
        return MAX(mean - best, 0.0);
    double z = (mean - best) / deviation;
    return (mean - best) * erfc(-z / M_SQRT2) / 2 + deviation * exp(-z * z / 2) / sqrt(2 * M_PI);
}

/* --- What next ---------------------------------------------------------------------------------------- */

/* The untried setting that is farthest from all tried ones, failed and skipped ones left out; of equals the
 * one with the largest places, which tells most about what more brings. The first is the middle. */
static bool spread_next(const Tune *tune, const TuneSetting *known, size_t n_settings, size_t *ret)
{
    double best = -INFINITY;
    for (size_t i = 0; i < n_settings; i++) {
        if (known[i].fate != TUNE_UNTRIED)
            continue;
        double nearest = INFINITY;
        double from_middle = 0;
        double sum = 0;
        for (size_t a = 0; a < tune->n_axes; a++) {
            double off = place_of(tune, i, a) - 0.5;
            from_middle += off * off;
            sum += place_of(tune, i, a);
        }
        for (size_t t = 0; t < tune->n; t++) {
            double square = 0;
            for (size_t a = 0; a < tune->n_axes; a++) {
                double d = place_of(tune, i, a) - place_of(tune, tune->trials[t].setting, a);
                square += d * d;
            }
            nearest = MIN(nearest, square);
        }
        double score = tune->n == 0 ? -from_middle - 1e-6 * sum : nearest + 1e-6 * sum;
        if (score > best) {
            best = score;
            *ret = i;
        }
    }
    return !isinf(best);
}

/* The untried setting with the largest expected gain, as a part of the rate. */
static double gain_next(Surface *surface, const TuneSetting *known, size_t n_settings, size_t *ret)
{
    double most = -1;
    for (size_t i = 0; i < n_settings; i++) {
        double deviation = 0;
        if (known[i].fate != TUNE_UNTRIED)
            continue;
        double mean = surface_at(surface, i, &deviation);
        double gain = gain_expected(mean, deviation, surface->best);
        if (gain > most) {
            most = gain;
            *ret = i;
        }
    }
    return most;
}

/* The two fastest that are safe. How many there are. */
static size_t leaders_find(const TuneSetting *known, size_t n_settings, size_t leaders[static 2])
{
    size_t n = 0;
    for (size_t i = 0; i < n_settings; i++) {
        if (known[i].fate != TUNE_MEASURED)
            continue;
        if (n == 0 || known[i].rate > known[leaders[0]].rate) {
            leaders[1] = leaders[0];
            leaders[0] = i;
        } else if (n == 1 || known[i].rate > known[leaders[1]].rate)
            leaders[1] = i;
        n++;
    }
    return n;
}

/* Which of the leaders needs another trial. False: they are separated, equal, or were repeated enough. */
static bool repeat_next(const TuneSetting *known, size_t n_settings, size_t *ret)
{
    size_t leaders[2] = {0, 0};
    size_t n = leaders_find(known, n_settings, leaders);
    if (n < 2)
        return false;
    const TuneSetting *first = &known[leaders[0]];
    const TuneSetting *second = &known[leaders[1]];
    /* What varies from trial to trial does not show within one: the leader runs twice at least. */
    if (first->trials < 2) {
        *ret = leaders[0];
        return true;
    }
    bool separated = first->low > second->high;
    bool equal = first->high - second->low < EQUAL_PART * first->rate;
    if (separated || equal)
        return false;
    *ret = second->trials < first->trials ? leaders[1] : leaders[0];
    return known[*ret].trials < REPEATS_MOST;
}

static size_t repeats_kept(const Tune *tune)
{
    return tune->most >= 6 ? MAX(tune->most / 4, (size_t)2) : tune->most / 4;
}

static int step_choose(const Tune *tune, const TuneSetting *known, size_t n_settings, double noise,
                       Arena *arena, TuneStep *ret)
{
    Surface surface;
    size_t setting = 0;
    size_t measured = 0;
    for (size_t i = 0; i < n_settings; i++)
        measured += known[i].measured > 0;
    size_t spread = MIN(tune->n_axes + 1, (size_t)SPREAD_MOST);
    if (measured < spread && spread_next(tune, known, n_settings, &setting)) {
        *ret = (TuneStep){TUNE_TRY, setting};
        return 0;
    }
    int r = surface_make(tune, known, n_settings, noise, arena, &surface);
    if (r == -ENODATA) {
        *ret = (TuneStep){TUNE_DONE, 0};
        return 0;
    }
    if (r < 0)
        return r;
    size_t leader = 0;
    double gain = gain_next(&surface, known, n_settings, &setting);
    bool repeats = repeat_next(known, n_settings, &leader);
    bool searches = gain > GAIN_LEAST && (tune->n + repeats_kept(tune) < tune->most || !repeats);
    *ret = searches  ? (TuneStep){TUNE_TRY, setting}
           : repeats ? (TuneStep){TUNE_REPEAT, leader}
                     : (TuneStep){TUNE_DONE, 0};
    return 0;
}

int tune_next(const Tune *tune, TuneStep *ret)
{
    _cleanup_arena_ Arena arena = {0};
    size_t n_settings = tune_settings(tune);
    TuneSetting *known = arena_alloc(&arena, n_settings * sizeof *known);
    if (!known)
        return -ENOMEM;
    if (tune->n >= tune->most) {
        *ret = (TuneStep){TUNE_DONE, 0};
        return 0;
    }
    double noise = tune_noise(tune);
    for (size_t i = 0; i < n_settings; i++)
        known[i] = setting_look(tune, i, noise);
    return step_choose(tune, known, n_settings, noise, &arena, ret);
}

bool tune_is_hopeless(const Tune *tune, double rate, double error)
{
    double noise = tune_noise(tune);
    double likely = rate + 3 * MAX(error, noise * rate);
    for (size_t i = 0; i < tune->n; i++) {
        TuneSetting known = setting_look(tune, tune->trials[i].setting, noise);
        if (known.fate == TUNE_MEASURED && likely < HOPELESS_PART * known.low)
            return true;
    }
    return false;
}

/* --- The end ------------------------------------------------------------------------------------------ */

/* Whether `other` may stand in for the fastest: as fast as anybody can tell, and with clearly less memory
 * than what was chosen so far. */
static bool is_thriftier(const TuneSetting *other, const TuneSetting *top, const TuneSetting *chosen)
{
    return other->high >= top->low && other->rate >= (1 - EQUAL_PART) * top->rate &&
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
        TuneSetting known = setting_look(tune, i, noise);
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
        TuneSetting known = setting_look(tune, i, noise);
        if (known.fate == TUNE_MEASURED && is_thriftier(&known, &top, &best)) {
            best = known;
            verdict.best = i;
        }
    }
    double next_rate = 0;
    for (size_t i = 0; i < n_settings; i++) {
        TuneSetting known = setting_look(tune, i, noise);
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
