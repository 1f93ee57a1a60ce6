/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "need.h"
#include "tune-known.h"

/*
 * GAIN_LEAST: less than this is not worth a trial. GAIN_LARGE: more than this is worth it before the leader's
 * neighbours were tried. HOPELESS_PART: a setting that cannot reach this part of the best is given up early.
 * REPEATS_MOST: of one setting.
 *
 * SAMPLE_ASSUMED_BYTES: a clip of a video, decoded, or a scan in three dimensions; pictures are far smaller.
 * PROCESS_ASSUMED_BYTES: Python with PyTorch loaded. BATCH_ASSUMED: where it is not varied.
 */
#define GAIN_LEAST            0.004
#define GAIN_LARGE            0.1
#define HOPELESS_PART         0.85
#define SAMPLE_ASSUMED_BYTES  (UINT64_C(32) << 20)
#define PROCESS_ASSUMED_BYTES (UINT64_C(256) << 20)
enum { REPEATS_MOST = 5, SPREAD_MOST = 4, FIT_MOST = 128, BATCH_ASSUMED = 64 };

/* --- The first ---------------------------------------------------------------------------------------- */

static double middle_distance(const Tune *tune, size_t setting)
{
    double square = 0;
    double sum = 0;
    for (size_t i = 0; i < tune->n_axes; i++) {
        double off = tune_place(tune, setting, i) - 0.5;
        square += off * off;
        sum += tune_place(tune, setting, i);
    }
    return square + 1e-6 * sum; /* of equals, the smaller one */
}

TuneStart tune_start(const Tune *tune)
{
    uint64_t assumed = SAMPLE_ASSUMED_BYTES;
    PlanLoader loader = {.field_bytes = &assumed, .n_fields = 1};
    TuneStart start = {.assumed = !tune->loader};
    if (tune->loader)
        loader = *tune->loader;
    for (size_t i = 0; i < loader.n_fields; i++)
        start.sample_bytes = bytes_add(start.sample_bytes, loader.field_bytes[i]);
    if (loader.batch == 0)
        loader.batch = BATCH_ASSUMED;

    double nearest = INFINITY;
    uint64_t least = U64_UNKNOWN;
    for (size_t i = 0; i < tune_settings(tune); i++) {
        uint64_t shm = tune_shm_planned(tune, i, &loader);
        uint64_t own = bytes_scale(PROCESS_ASSUMED_BYTES, tune_processes(tune, i));
        uint64_t all = bytes_add(need_with_margin(shm, NEED_MARGIN), own);
        bool fits = all <= tune->ceiling_bytes;
        double distance = middle_distance(tune, i);
        bool better = fits == start.fits ? (fits ? distance < nearest : i == 0 || all < least) : fits;
        if (better) {
            start.setting = i;
            start.fits = fits;
            start.need_bytes = shm;
            nearest = distance;
            least = all;
        }
    }
    return start;
}

/* --- The surface -------------------------------------------------------------------------------------- */

/* Through what was measured: one point per setting. */
typedef struct Surface {
    const Tune *tune;
    size_t n;
    size_t *settings;
    double *values;  /* logarithms of the rates, minus their mean */
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
        double d = (tune_place(surface->tune, a, i) - tune_place(surface->tune, b, i)) / surface->scales[i];
        square += d * d;
    }
    double r = sqrt(5 * square);
    return surface->variance * (1 + r + r * r / 3) * exp(-r);
}

/* Cholesky's decomposition and the weights. Returns the logarithm of the likelihood without its constants;
 * -INFINITY if the points are too close to each other. */
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

/* The height of the surface at a setting, and its standard deviation. */
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

/* Each axis has a scale of its own if there are few axes; many axes share one. */
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
    /* With many points, finding the scales costs too much and matters little. */
    bool fits = surface->n <= FIT_MOST;
    for (size_t choice = 0; choice <= choices; choice++) {
        size_t rest = choice < choices ? choice : best_choice; /* the last round repeats the best choice */
        if (!fits)
            choice = choices;
        surface->variance = spread * amplitudes[rest % ARRAY_SIZE(amplitudes)];
        rest /= ARRAY_SIZE(amplitudes);
        for (size_t i = 0; i < tune->n_axes; i++) {
            surface->scales[i] = scales[rest % ARRAY_SIZE(scales)];
            if (i + 1 < free_axes)
                rest /= ARRAY_SIZE(scales);
        }
        /* Most surfaces are smooth: a rough one must be clearly likelier. */
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

/* The untried setting that is farthest from all tried ones, without failed and skipped ones; of equals, the
 * one with the largest places, which shows best what more of everything brings. */
static bool spread_next(const Tune *tune, const TuneSetting *known, size_t n_settings, size_t *ret)
{
    double best = -INFINITY;
    for (size_t i = 0; i < n_settings; i++) {
        if (known[i].fate != TUNE_UNTRIED)
            continue;
        double nearest = INFINITY;
        double sum = 0;
        for (size_t a = 0; a < tune->n_axes; a++)
            sum += tune_place(tune, i, a);
        for (size_t t = 0; t < tune->n; t++) {
            double square = 0;
            for (size_t a = 0; a < tune->n_axes; a++) {
                double d = tune_place(tune, i, a) - tune_place(tune, tune->trials[t].setting, a);
                square += d * d;
            }
            nearest = MIN(nearest, square);
        }
        double score = nearest + 1e-6 * sum;
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

/* Finds the two fastest safe settings. Returns how many safe ones there are. */
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
    /* Variation between trials does not show within one, so the leader runs at least twice. */
    if (first->trials < 2) {
        *ret = leaders[0];
        return true;
    }
    bool separated = first->low > second->high;
    bool equal = first->high - second->low < TUNE_EQUAL_PART * first->rate;
    if (separated || equal)
        return false;
    *ret = second->trials < first->trials ? leaders[1] : leaders[0];
    return known[*ret].trials < REPEATS_MOST;
}

/* Whether a and b differ on one axis alone, by one place. */
static bool is_neighbour(const Tune *tune, size_t a, size_t b, size_t *ret_axis)
{
    size_t apart = 0;
    for (size_t i = 0; i < tune->n_axes; i++) {
        double step = 1.0 / (double)(tune->axes[i].n - 1);
        double distance = fabs(tune_place(tune, a, i) - tune_place(tune, b, i));
        if (distance == 0)
            continue;
        if (distance > 1.5 * step || ++apart > 1)
            return false;
        *ret_axis = i;
    }
    return apart == 1;
}

/* Whether a setting may reach a rate, judged by settings that differ only in having fewer processes. */
static bool proportion_allows(const Tune *tune, const TuneSetting *known, size_t n_settings, size_t setting,
                              size_t axis, double rate)
{
    const double *numbers = tune->axes[axis].numbers;
    for (size_t i = 0; numbers && i < n_settings; i++) {
        bool same = known[i].measured > 0;
        for (size_t a = 0; same && a < tune->n_axes; a++)
            same = a == axis || tune_value(tune, i, a) == tune_value(tune, setting, a);
        double fewer = same ? numbers[tune_value(tune, i, axis)] : 0;
        double more = numbers[tune_value(tune, setting, axis)];
        if (fewer > 0 && fewer < more && known[i].high * more / fewer < rate)
            return false;
    }
    return true;
}

/*
 * An untried setting one step from the leader along one axis. The surface is smooth, but rates are not: they
 * have an edge where all processors are busy, and the best setting may lie just below or just beyond it. So
 * on an axis of processes a neighbour counts unless proportion rules it out (n workers are at most n times as
 * fast as one), and comes first; on other axes the surface may rule it out. Of several, the most promising.
 */
static bool neighbour_next(Surface *surface, const TuneSetting *known, size_t n_settings, size_t *ret)
{
    const Tune *tune = surface->tune;
    size_t leaders[2] = {0, 0};
    if (leaders_find(known, n_settings, leaders) == 0)
        return false;
    double best = -INFINITY;
    bool best_has_edges = false;
    for (size_t i = 0; i < n_settings; i++) {
        size_t axis = 0;
        double deviation = 0;
        if (known[i].fate != TUNE_UNTRIED || !is_neighbour(tune, i, leaders[0], &axis))
            continue;
        bool has_edges = tune_counts_processes(tune->axes[axis].counts);
        double hope = surface_at(surface, i, &deviation) + deviation;
        bool possible = has_edges
                            ? proportion_allows(tune, known, n_settings, i, axis, known[leaders[0]].rate)
                            : hope + deviation > surface->best;
        if (possible && (has_edges != best_has_edges ? has_edges : hope > best)) {
            best = hope;
            best_has_edges = has_edges;
            *ret = i;
        }
    }
    return !isinf(best);
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
    size_t neighbour = 0;
    size_t measured = 0;
    for (size_t i = 0; i < n_settings; i++)
        measured += known[i].measured > 0;
    if (tune->n == 0) {
        setting = tune_start(tune).setting;
        *ret = (TuneStep){known[setting].fate == TUNE_UNTRIED ? TUNE_TRY : TUNE_DONE, setting};
        return 0;
    }
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
    /* The last trial is for a leader that ran only once. */
    bool once = repeats && known[leader].trials == 1 && tune->n + 1 == tune->most;
    bool compares = !once && neighbour_next(&surface, known, n_settings, &neighbour);
    bool early = tune->n + repeats_kept(tune) < tune->most;
    bool searches = gain > (compares ? GAIN_LARGE : GAIN_LEAST) && (early || !(repeats || compares));
    *ret = searches   ? (TuneStep){TUNE_TRY, setting}
           : compares ? (TuneStep){TUNE_TRY, neighbour}
           : repeats  ? (TuneStep){TUNE_REPEAT, leader}
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
        known[i] = tune_known(tune, i, noise);
    return step_choose(tune, known, n_settings, noise, &arena, ret);
}

bool tune_is_hopeless(const Tune *tune, double rate, double error)
{
    double noise = tune_noise(tune);
    double likely = rate + 3 * MAX(error, noise * rate);
    for (size_t i = 0; i < tune->n; i++) {
        TuneSetting known = tune_known(tune, tune->trials[i].setting, noise);
        if (known.fate == TUNE_MEASURED && likely < HOPELESS_PART * known.low)
            return true;
    }
    return false;
}
