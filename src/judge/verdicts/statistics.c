/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "macro.h"
#include "statistics.h"

/* Noise alone passes each of the two tests once in a thousand series. */
#define Z_LEAST 3.09
#define T_LEAST 4.0

/* A curve that rises and then stays is not a line; where it is accepted, it must be smooth instead. */
#define Z_SETTLED     2.0
#define SETTLED_RATIO 8.0

/* The largest share of the growth that may happen between two windows before it is called a step. */
#define STEP_SHARE 0.5

/* A third of the time should bring a third of the growth. */
#define LATE_SHARE_LEAST   0.10
#define LATE_SHARE_SLOWING 0.22
#define SLOWING_RATIO      1.25
#define STEADY_LATE_RATIO  0.7

/* The number of rises that growth must consist of. Fewer are steps: the largest batch so far, a model that is
 * loaded. */
enum { RISES_LEAST = 6, FEW_LEAST = 4 };

enum { SAMPLES_A_WINDOW = 3, MEDIAN_OF_MOST = 31, TEETH_WINDOWS_MAX = 400, TEETH_MAX = 64 };

/* Of a tooth: the windows of its rise, and how many times faster it falls. */
enum { RISE_LEAST = 6, FALL_FASTER = 5 };

/* --- Order ---------------------------------------------------------------------------------------------- */

/* Puts the k-th smallest where it belongs (Hoare's selection, the middle of three as the pivot). */
static double nth_of(double *v, size_t n, size_t k)
{
    size_t low = 0;
    size_t high = n - 1;
    while (low < high) {
        double a = v[low];
        double b = v[low + (high - low) / 2];
        double c = v[high];
        double pivot = MAX(MIN(a, b), MIN(MAX(a, b), c));
        size_t i = low;
        size_t j = high;
        for (;;) {
            while (i < high && v[i] < pivot)
                i++;
            while (j > low && v[j] > pivot)
                j--;
            if (i >= j)
                break;
            double swapped = v[i];
            v[i++] = v[j];
            v[j--] = swapped;
        }
        /* All below i are at most the pivot, all above j at least; between them, if anything, is the pivot.
         */
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
    return v[k];
}

double median_of(double *values, size_t n)
{
    double upper = nth_of(values, n, n / 2);
    if (n % 2 == 1)
        return upper;
    double lower = values[0]; /* all before n / 2 are at most `upper` */
    for (size_t i = 1; i < n / 2; i++)
        lower = MAX(lower, values[i]);
    return (lower + upper) / 2;
}

/* The median of neighbours, which stay in order. */
static double median_around(const double *values, size_t n)
{
    double copy[WINDOWS_MAX];
    memcpy(copy, values, n * sizeof *values);
    return median_of(copy, n);
}

/* --- Windows -------------------------------------------------------------------------------------------- */

static bool figure_at(const ValueSeries *figures, size_t i, double *ret)
{
    if (figures->values[i] == UINT64_MAX)
        return false;
    *ret = (double)figures->values[i];
    if (figures->also && figures->also[i] != UINT64_MAX)
        *ret += (double)figures->also[i];
    return true;
}

/* The index of the first value at `seconds` or later. */
static size_t figure_from(const ValueSeries *figures, double seconds)
{
    return LOWER_BOUND(i, figures->n, figures->seconds[i] < seconds);
}

static size_t known_between(const ValueSeries *figures, size_t i, size_t end)
{
    size_t known = 0;
    for (; i < end; i++)
        known += figures->values[i] != UINT64_MAX;
    return known;
}

/* The median of up to MEDIAN_OF_MOST values, evenly chosen: more would not change it much. */
static bool window_level(const ValueSeries *figures, size_t i, size_t end, double *ret)
{
    size_t known = known_between(figures, i, end);
    if (known == 0)
        return false;
    double values[MEDIAN_OF_MOST];
    size_t n = 0;
    size_t stride = (known + MEDIAN_OF_MOST - 1) / MEDIAN_OF_MOST;
    size_t seen = 0;
    double value = 0;
    for (; i < end && n < MEDIAN_OF_MOST; i++)
        if (figure_at(figures, i, &value) && seen++ % stride == stride / 2)
            values[n++] = value;
    if (n == 0)
        return false;
    *ret = median_of(values, n);
    return true;
}

/* Cuts [from, until] into `most` windows and keeps those that have a value. */
static size_t windows_cut(const ValueSeries *figures, double from, double until, size_t most,
                          double *ret_seconds, double *ret_levels)
{
    double width = (until - from) / (double)most;
    size_t n = 0;
    size_t i = figure_from(figures, from);
    for (size_t k = 0; k < most; k++) {
        double edge = from + width * (double)(k + 1);
        size_t end = k + 1 == most ? figures->n : figure_from(figures, edge);
        if (k + 1 == most)
            while (end > i && figures->seconds[end - 1] > until)
                end--;
        if (window_level(figures, i, end, &ret_levels[n]))
            ret_seconds[n++] = edge - width / 2;
        i = MAX(i, end);
    }
    return n;
}

static size_t samples_between(const ValueSeries *figures, double from, double until)
{
    size_t end = figure_from(figures, until);
    while (end < figures->n && figures->seconds[end] <= until)
        end++;
    return known_between(figures, figure_from(figures, from), end);
}

void windows_make(const ValueSeries *figures, double from, double until, size_t most, Windows *ret)
{
    ret->n = 0;
    ret->samples = until > from ? samples_between(figures, from, until) : 0;
    if (ret->samples == 0)
        return;
    size_t wanted = MAX(ret->samples / SAMPLES_A_WINDOW, MIN(ret->samples, (size_t)12));
    wanted = MIN(MIN(wanted, most), (size_t)WINDOWS_MAX);
    ret->n = windows_cut(figures, from, until, wanted, ret->seconds, ret->levels);
}

/* --- Trend ---------------------------------------------------------------------------------------------- */

static double theil_sen(const double *x, const double *y, size_t n)
{
    double slopes[WINDOWS_MAX * (WINDOWS_MAX - 1) / 2];
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            if (x[j] > x[i])
                slopes[k++] = (y[j] - y[i]) / (x[j] - x[i]);
    return k == 0 ? 0 : median_of(slopes, k);
}

/* Ties do not count and lower the variance, so that few distinct values do not look like noise. */
static double mann_kendall(const double *y, size_t n)
{
    double s = 0;
    double ties = 0;
    for (size_t i = 0; i < n; i++) {
        double same_before = 0;
        for (size_t j = 0; j < i; j++) {
            s += (y[i] > y[j]) - (y[i] < y[j]);
            same_before += y[i] == y[j];
        }
        /* The k-th of equal values adds f(k) - f(k-1) to the sum of f(t) = t (t - 1) (2t + 5). */
        double k = same_before + 1;
        ties += k * (k - 1) * (2 * k + 5) - (k - 1) * (k - 2) * (2 * k + 3);
    }
    double count = (double)n;
    double variance = (count * (count - 1) * (2 * count + 5) - ties) / 18;
    if (variance <= 0 || s == 0)
        return 0;
    return (s > 0 ? s - 1 : s + 1) / sqrt(variance);
}

/*
 * The correlation between neighbouring distances from the line. The estimate is too low in short series, by
 * about (1 + 3 r) / n, and is raised by that.
 */
static double correlation_of(const double *residuals, size_t n)
{
    double above = 0;
    double below = 0;
    for (size_t i = 0; i < n; i++) {
        below += residuals[i] * residuals[i];
        if (i > 0)
            above += residuals[i] * residuals[i - 1];
    }
    if (below <= 0)
        return 0;
    double r = above / below;
    r += (1 + 3 * r) / (double)n;
    return MIN(MAX(r, 0.0), 0.97);
}

static Trend trend_measure(const double *x, const double *y, size_t n)
{
    Trend trend = {.windows = n};
    if (n < WINDOWS_LEAST)
        return trend;
    trend.began = x[0];
    trend.ended = x[n - 1];
    trend.slope = theil_sen(x, y, n);
    trend.z = mann_kendall(y, n);

    double residuals[WINDOWS_MAX];
    double sorted[WINDOWS_MAX];
    for (size_t i = 0; i < n; i++)
        residuals[i] = y[i] - trend.slope * x[i];
    memcpy(sorted, residuals, n * sizeof *residuals);
    double offset = median_of(sorted, n);
    for (size_t i = 0; i < n; i++) {
        residuals[i] -= offset;
        sorted[i] = fabs(residuals[i]);
    }
    trend.noise = 1.4826 * median_of(sorted, n);

    /* Outliers must not hide the correlation of the other values. */
    for (size_t i = 0; i < n; i++)
        residuals[i] = MAX(MIN(residuals[i], 3 * trend.noise), -3 * trend.noise);
    double correlation = correlation_of(residuals, n);
    double independent = MAX((double)n * (1 - correlation) / (1 + correlation), 2.0);
    double span = trend.ended - trend.began;
    trend.error = trend.noise / (span / sqrt(12) * sqrt(independent));
    /* Without any noise, the error would be 0. */
    trend.t = trend.slope == 0 ? 0 : trend.slope / MAX(trend.error, fabs(trend.slope) / 1e6);
    return trend;
}

/* Noise as neighbours show it: how far each value lies from the mean of those beside it. A curve that rises
 * and then stays is far from any line, and yet smooth. */
static double neighbour_noise(const double *y, size_t n)
{
    double bends[WINDOWS_MAX];
    for (size_t i = 1; i + 1 < n; i++)
        bends[i - 1] = fabs(y[i + 1] - 2 * y[i] + y[i - 1]);
    return 1.4826 / sqrt(6) * median_of(bends, n - 2);
}

/* Levels at the ends and at the thirds, each the median of a few windows. */
static void trend_levels(const double *y, size_t n, double levels[static 4])
{
    size_t few = MAX(n / 8 | 1, (size_t)1);
    for (size_t k = 0; k < 4; k++) {
        size_t middle = k * (n - 1) / 3;
        size_t first = middle < few / 2 ? 0 : MIN(middle - few / 2, n - few);
        levels[k] = median_around(y + first, few);
    }
}

static Trend trend_judge(const double *x, const double *y, size_t n, int again)
{
    Trend trend = trend_measure(x, y, n);
    if (n < WINDOWS_LEAST)
        return trend;
    double levels[4];
    trend_levels(y, n, levels);
    trend.from = levels[0];
    trend.until = levels[3];
    double growth = levels[3] - levels[0];
    bool falls = trend.z <= -Z_LEAST && trend.t <= -T_LEAST;
    bool rises = trend.z >= Z_LEAST && trend.t >= T_LEAST && growth > 0;

    double most = 0;
    size_t at = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        double rise = y[i + 1] - y[i];
        trend.rises += rise > growth / (double)(n - 1) / 4 && rise > 0;
        if (rise > most) {
            most = rise;
            at = i + 1;
        }
    }
    bool few = trend.rises < MIN((size_t)RISES_LEAST, n / 4);
    bool stepped = growth > 0 && ((most > STEP_SHARE * growth && most > 4 * trend.noise) || few);

    /* An early step is not part of the growth after it. */
    if (stepped && again > 0 && n - at >= MAX(n / 3, (size_t)WINDOWS_LEAST)) {
        Trend behind = trend_judge(x + at, y + at, n - at, again - 1);
        if (behind.kind == TREND_RISING)
            return behind;
    }
    if (!rises) {
        bool settled = !stepped && trend.z >= Z_SETTLED &&
                       levels[3] - levels[2] < LATE_SHARE_LEAST * growth &&
                       growth > SETTLED_RATIO * neighbour_noise(y, n);
        trend.kind = falls ? TREND_FALLING : settled ? TREND_SETTLING : TREND_FLAT;
        return trend;
    }
    if (stepped) {
        trend.kind = TREND_STEPPED;
        return trend;
    }

    double first = levels[1] - levels[0];
    double second = levels[2] - levels[1];
    double third = levels[3] - levels[2];
    bool slowing = first > SLOWING_RATIO * second && second > SLOWING_RATIO * third;
    trend.kind = third < LATE_SHARE_LEAST * growth || (third < LATE_SHARE_SLOWING * growth && slowing)
                     ? TREND_SETTLING
                     : TREND_RISING;

    /* Steep at first and then straight: a warm-up, and what came after it. */
    size_t third_of = n / 3;
    if (trend.kind == TREND_SETTLING && again > 0 && third > STEADY_LATE_RATIO * second &&
        n - third_of >= WINDOWS_LEAST) {
        Trend behind = trend_judge(x + third_of, y + third_of, n - third_of, again - 1);
        if (behind.kind == TREND_RISING)
            return behind;
    }
    return trend;
}

Trend trend_of_windows(const Windows *windows)
{
    Trend trend = trend_judge(windows->seconds, windows->levels, windows->n, 2);
    trend.samples = windows->samples;
    return trend;
}

Trend trend_of(const ValueSeries *figures, double from, double until)
{
    Windows windows;
    windows_make(figures, from, until, WINDOWS_MAX, &windows);
    return trend_of_windows(&windows);
}

Trend trend_of_few(const ValueSeries *figures, double from, double until)
{
    Trend trend = {0};
    double first_at = 0;
    double low = 0; /* below the highest value so far */
    double value = 0;
    for (size_t i = figure_from(figures, from); i < figures->n && figures->seconds[i] <= until; i++) {
        if (!figure_at(figures, i, &value))
            continue;
        if (trend.samples++ == 0) {
            first_at = figures->seconds[i];
            trend.from = trend.until = value;
        }
        low = MAX(low, trend.until - value);
        trend.rises += value > trend.until;
        trend.until = MAX(trend.until, value);
        trend.ended = figures->seconds[i];
    }
    double growth = trend.until - trend.from;
    if (trend.samples < FEW_LEAST || !(trend.ended > first_at) || growth <= 0 || low > growth / 10)
        return (Trend){0};
    trend.kind = TREND_SETTLING;
    trend.began = first_at;
    trend.slope = growth / (trend.ended - first_at);
    trend.windows = trend.samples;
    return trend;
}

/* --- Teeth ---------------------------------------------------------------------------------------------- */

typedef struct Curve {
    double seconds[TEETH_WINDOWS_MAX];
    double levels[TEETH_WINDOWS_MAX];
    size_t n;
} Curve;

typedef struct Turn {
    size_t trough;
    size_t peak;
    size_t fallen; /* where it has fallen by the threshold */
    size_t bottom; /* the lowest value before the next rise */
} Turn;

/* The range that holds 90% of the values. */
static double curve_range(const Curve *curve)
{
    double copy[TEETH_WINDOWS_MAX];
    memcpy(copy, curve->levels, curve->n * sizeof *copy);
    double low = nth_of(copy, curve->n, curve->n / 20);
    double high = nth_of(copy, curve->n, curve->n - 1 - curve->n / 20);
    return high - low;
}

/* Turns that exceed the threshold: each complete one has a trough before it and a fall after it. */
static size_t curve_turns(const Curve *curve, double threshold, Turn turns[static TEETH_MAX])
{
    const double *y = curve->levels;
    size_t n = 0;
    size_t trough = 0;
    size_t peak = 0;
    bool up = false;
    for (size_t i = 1; i < curve->n && n < TEETH_MAX; i++) {
        if (!up) {
            if (y[i] < y[trough])
                trough = i;
            else if (y[i] > y[trough] + threshold) {
                up = true;
                peak = i;
            }
            if (n > 0 && !up)
                turns[n - 1].bottom = trough;
            continue;
        }
        if (y[i] > y[peak])
            peak = i;
        else if (y[i] < y[peak] - threshold) {
            turns[n++] = (Turn){trough, peak, i, i};
            trough = i;
            up = false;
        }
    }
    return n;
}

/* A slow, straight rise and a fast fall. */
static bool turn_is_gradual(const Curve *curve, const Turn *turn)
{
    const double *y = curve->levels;
    size_t rise = turn->peak - turn->trough;
    size_t fall = turn->fallen - turn->peak;
    double height = y[turn->peak] - y[turn->trough];
    if (rise < RISE_LEAST || fall > MAX(rise / FALL_FASTER, (size_t)2))
        return false;
    double most = 0;
    for (size_t i = turn->trough; i < turn->peak; i++)
        most = MAX(most, y[i + 1] - y[i]);
    double middle = (y[turn->trough + rise / 2] - y[turn->trough]) / height;
    return most <= STEP_SHARE * height && middle >= 0.2 && middle <= 0.8;
}

/* Removes spikes: each value becomes the median of three. A wider median would wear the teeth off. */
static void curve_smooth(Curve *curve)
{
    double before[TEETH_WINDOWS_MAX];
    memcpy(before, curve->levels, curve->n * sizeof *before);
    for (size_t i = 1; i + 1 < curve->n; i++)
        curve->levels[i] = median_around(before + i - 1, 3);
}

Teeth teeth_of(const ValueSeries *figures, double from, double until)
{
    size_t samples = samples_between(figures, from, until);
    Teeth teeth = {.samples = samples, .began = from, .ended = until};
    if (samples < 3 * (size_t)WINDOWS_LEAST || !(until > from))
        return teeth;
    Curve curve = {0};
    curve.n = windows_cut(figures, from, until, MIN(samples, (size_t)TEETH_WINDOWS_MAX), curve.seconds,
                          curve.levels);
    if (curve.n < 3 * (size_t)WINDOWS_LEAST)
        return teeth;
    curve_smooth(&curve);
    double range = curve_range(&curve);
    if (range <= 0)
        return teeth;

    Turn turns[TEETH_MAX];
    double heights[TEETH_MAX];
    double slopes[TEETH_MAX];
    double periods[TEETH_MAX];
    double lows[TEETH_MAX];
    double highs[TEETH_MAX];
    Windows troughs = {0};
    teeth.cycles = curve_turns(&curve, 0.45 * range, turns);
    /* The start of the first one was not seen. */
    if (teeth.cycles > 0 && !turn_is_gradual(&curve, &turns[0]))
        memmove(turns, turns + 1, --teeth.cycles * sizeof *turns);
    for (size_t i = 0; i < teeth.cycles; i++) {
        const Turn *turn = &turns[i];
        lows[i] = curve.levels[turn->bottom];
        highs[i] = curve.levels[turn->peak];
        if (i > 0) {
            double period = curve.seconds[turn->peak] - curve.seconds[turns[i - 1].peak];
            periods[i - 1] = period;
            teeth.shortest = i == 1 ? period : MIN(teeth.shortest, period);
            teeth.longest = MAX(teeth.longest, period);
        }
        if (troughs.n < WINDOWS_MAX) {
            troughs.seconds[troughs.n] = curve.seconds[turn->bottom];
            troughs.levels[troughs.n++] = lows[i];
        }
        if (!turn_is_gradual(&curve, turn))
            continue;
        heights[teeth.gradual] = highs[i] - curve.levels[turn->trough];
        slopes[teeth.gradual] =
            heights[teeth.gradual] / (curve.seconds[turn->peak] - curve.seconds[turn->trough]);
        teeth.gradual++;
    }
    if (teeth.cycles < 2 || teeth.gradual == 0)
        return teeth;
    teeth.height = median_of(heights, teeth.gradual);
    teeth.slope = median_of(slopes, teeth.gradual);
    teeth.period = median_of(periods, teeth.cycles - 1);
    teeth.low = median_of(lows, teeth.cycles);
    teeth.high = median_of(highs, teeth.cycles);
    teeth.lows_rose = troughs.levels[troughs.n - 1] - troughs.levels[0];
    teeth.troughs = trend_of_windows(&troughs);
    return teeth;
}
