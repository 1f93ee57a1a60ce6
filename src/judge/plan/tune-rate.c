/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "tune-rate.h"
#include "tune-text.h"

/* --- Numbers in the output ---------------------------------------------------------------------------- */

int rate_reader_open(const char *regex, RateReader *ret, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    memset(ret, 0, sizeof *ret);
    if (!regex)
        return 0;
    int problem = regcomp(&ret->regex, regex, REG_EXTENDED | REG_NEWLINE);
    (void)text_escape(text_of(regex), &quoted);
    if (problem != 0) {
        char words[128];
        regerror(problem, &ret->regex, words, sizeof words);
        (void)buffer_printf(error, TUNE_BAD_REGEX, buffer_text(&quoted), words);
        return -EINVAL;
    }
    if (ret->regex.re_nsub == 0) {
        regfree(&ret->regex);
        (void)buffer_printf(error, TUNE_BAD_GROUP, buffer_text(&quoted));
        return -EINVAL;
    }
    ret->compiled = true;
    return 0;
}

void rate_reader_close(RateReader *reader)
{
    if (reader->compiled)
        regfree(&reader->regex);
    reader->compiled = false;
}

void rate_reader_clear(RateReader *reader)
{
    reader->size = 0;
    reader->last[0] = '\0';
    reader->lines = reader->matches = reader->nonsense = 0;
}

/* Groups of three digits after the first comma, and no commas in the fraction. */
static bool without_commas(Text text, char *out, size_t room)
{
    size_t n = 0;
    size_t group = 0;
    bool commas = false;
    bool whole = true;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        bool digit = c >= '0' && c <= '9';
        if (c == ',') {
            if (!whole || group == 0 || (commas && group != 3))
                return false;
            commas = true;
            group = 0;
            continue;
        }
        if (whole && !digit) {
            if (commas && group != 3)
                return false;
            whole = false;
        }
        group += digit;
        if (n + 1 >= room)
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    return n > 0 && !(whole && commas && group != 3);
}

int rate_number_parse(Text text, double *ret)
{
    char number[64];
    char *end = NULL;
    if (!without_commas(text, number, sizeof number) || strspn(number, "0123456789.eE+-") != strlen(number) ||
        strchr("+-eE", number[0]))
        return -EINVAL;
    double value = strtod(number, &end);
    if (end == number || *end || !isfinite(value) || value < 0)
        return -EINVAL;
    *ret = value;
    return 0;
}

static void line_take(RateReader *reader, void (*found)(void *context, double number), void *context)
{
    regmatch_t groups[2];
    double number = 0;
    if (text_trim((Text){reader->line, reader->size}).size == 0) {
        reader->size = 0;
        return;
    }
    memcpy(reader->last, reader->line, reader->size);
    reader->last[reader->size] = '\0';
    reader->size = 0;
    reader->lines++;
    if (!reader->compiled || regexec(&reader->regex, reader->last, ARRAY_SIZE(groups), groups, 0) != 0)
        return;
    Text group = groups[1].rm_so < 0
                     ? (Text){"", 0}
                     : (Text){reader->last + groups[1].rm_so, (size_t)(groups[1].rm_eo - groups[1].rm_so)};
    if (rate_number_parse(text_trim(group), &number) < 0) {
        reader->nonsense++;
        return;
    }
    reader->matches++;
    found(context, number);
}

void rate_reader_feed(RateReader *reader, Text piece, void (*found)(void *context, double number),
                      void *context)
{
    for (size_t i = 0; i < piece.size; i++) {
        char c = piece.data[i];
        if (c == '\n' || c == '\r')
            line_take(reader, found, context);
        else if (reader->size < RATE_LINE_MAX - 1)
            reader->line[reader->size++] = c == '\0' ? ' ' : c;
    }
}

/* --- A trial's rate ----------------------------------------------------------------------------------- */

static double window_begin(const RateMeter *meter)
{
    return meter->first + meter->seconds * METER_WARM_PART;
}

static double window_seconds(const RateMeter *meter)
{
    return meter->seconds * (1 - METER_WARM_PART);
}

/* NULL: outside the measured part. */
static MeterSlice *slice_at(RateMeter *meter, double now)
{
    double place = (now - window_begin(meter)) / window_seconds(meter);
    if (!(place >= 0) || place >= 1)
        return NULL;
    return &meter->slices[(size_t)(place * METER_SLICES)];
}

static void meter_begin(RateMeter *meter, double now)
{
    if (!meter->began) {
        meter->began = true;
        meter->first = now;
    }
}

static void window_stretch(RateMeter *meter, double now)
{
    if (!meter->has_window) {
        meter->has_window = true;
        meter->window_first = now;
    }
    meter->window_last = now;
}

void meter_value(RateMeter *meter, double now, double value)
{
    meter_begin(meter, now);
    MeterSlice *slice = slice_at(meter, now);
    if (!slice)
        return;
    window_stretch(meter, now);
    slice->sum += value;
    slice->n++;
}

void meter_count(RateMeter *meter, double now, uint64_t count)
{
    meter->counts = true;
    if (count <= meter->count_last)
        return;
    uint64_t more = count - meter->count_last;
    meter->count_last = count;
    meter_begin(meter, now);
    MeterSlice *slice = slice_at(meter, now);
    if (!slice)
        return;
    if (!meter->has_window)
        meter->window_first_count = count;
    else
        slice->sum += (double)more;
    meter->window_last_count = count;
    window_stretch(meter, now);
}

bool meter_is_over(const RateMeter *meter, double now)
{
    return meter->began && now - meter->first >= meter->seconds;
}

/* How much the slices differ, as the standard error of their mean. */
static double slices_error(const double *rates, size_t n, double fallback)
{
    double mean = 0;
    double squares = 0;
    if (n < 2)
        return fallback;
    for (size_t i = 0; i < n; i++)
        mean += rates[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (rates[i] - mean) * (rates[i] - mean);
    return sqrt(squares / (double)(n - 1) / (double)n);
}

/* Measured from change to change, so that a batch that takes longer than a slice causes no rounding error. */
static bool counts_read(const RateMeter *meter, MeterReading *ret)
{
    double seconds = meter->window_last - meter->window_first;
    double rates[METER_SLICES];
    size_t n = 0;
    if (!meter->has_window || seconds <= 0)
        return false;
    double slice_seconds = window_seconds(meter) / METER_SLICES;
    size_t first = (size_t)((meter->window_first - window_begin(meter)) / slice_seconds) + 1;
    size_t end = (size_t)((meter->window_last - window_begin(meter)) / slice_seconds);
    for (size_t i = first; i < end && i < METER_SLICES; i++) /* only complete slices */
        rates[n++] = meter->slices[i].sum / slice_seconds;
    double rate = (double)(meter->window_last_count - meter->window_first_count) / seconds;
    *ret = (MeterReading){rate, slices_error(rates, n, rate), 0};
    return rate > 0;
}

static bool values_read(const RateMeter *meter, MeterReading *ret)
{
    double means[METER_SLICES];
    size_t n = 0;
    double sum = 0;
    double values = 0;
    for (size_t i = 0; i < METER_SLICES; i++) {
        const MeterSlice *slice = &meter->slices[i];
        sum += slice->sum;
        values += slice->n;
        if (slice->n > 0)
            means[n++] = slice->sum / slice->n;
    }
    if (values == 0 || sum <= 0)
        return false;
    *ret = (MeterReading){sum / values, slices_error(means, n, sum / values), 0};
    return true;
}

bool meter_read(const RateMeter *meter, MeterReading *ret)
{
    MeterReading reading;
    if (!(meter->counts ? counts_read(meter, &reading) : values_read(meter, &reading)))
        return false;
    reading.filled = MIN((meter->window_last - window_begin(meter)) / window_seconds(meter), 1.0);
    *ret = reading;
    return isfinite(reading.rate) && isfinite(reading.error);
}
