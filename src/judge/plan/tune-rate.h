/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a training goes: numbers that it prints, or bytes that are counted elsewhere. Pure: text and times
 * in, figures out.
 */
#pragma once

#include <regex.h>

#include "text.h"

/* --- Numbers in the output ---------------------------------------------------------------------------- */

/* Longer lines are looked at as far as this: no progress bar is as long. */
enum { RATE_LINE_MAX = 4096 };

typedef struct RateReader {
    regex_t regex;
    bool compiled;
    char line[RATE_LINE_MAX]; /* the one that is not at its end yet */
    size_t size;
    char last[RATE_LINE_MAX]; /* the last whole one that was not blank, NUL-terminated */
    uint64_t lines;
    uint64_t matches;  /* with a number in the first group */
    uint64_t nonsense; /* with something else there, or a negative number */
} RateReader;

/*
 * An extended regular expression of POSIX whose first group is the number. NULL: no numbers are looked for,
 * only lines. 0 or -EINVAL with what is wrong appended to error, one escaped line without newline.
 */
int rate_reader_open(const char *regex, RateReader *ret, Buffer *error);
void rate_reader_close(RateReader *reader);

/* Forgets what was read, for another command. */
void rate_reader_clear(RateReader *reader);

/* Takes in a piece of output, which may begin and end anywhere; carriage returns end lines, too, as progress
 * bars have them. `found` gets each number. */
void rate_reader_feed(RateReader *reader, Text piece, void (*found)(void *context, double number),
                      void *context);

/* The number that is all of the text, with thousands set apart by commas or not ("1,234.5", "2e3"). Neither
 * negative nor infinite. 0 or -EINVAL. */
int rate_number_parse(Text text, double *ret);

/* --- A trial's rate ----------------------------------------------------------------------------------- */

/*
 * A trial begins with the first sign of work, so that importing libraries and reading an index do not count,
 * and lasts `seconds` from there. Its first quarter is for filling queues and caches, and not measured.
 */
#define METER_WARM_PART 0.25
enum { METER_SLICES = 8 };

typedef struct MeterSlice {
    double sum; /* of values, or of what was counted */
    double n;   /* of values */
} MeterSlice;

typedef struct RateMeter {
    double seconds;
    bool began;
    double first; /* time of the first sign */
    bool counts;  /* it was given a count, not values */
    uint64_t count_last;
    bool has_window;
    double window_first; /* the first and the last change within the measured part */
    double window_last;
    uint64_t window_first_count;
    uint64_t window_last_count;
    MeterSlice slices[METER_SLICES];
} RateMeter;

/* {.seconds} is one that has seen nothing. Times are seconds since the command was started. */
void meter_value(RateMeter *meter, double now, double value);
void meter_count(RateMeter *meter, double now, uint64_t count);

/* The trial has lasted long enough. */
bool meter_is_over(const RateMeter *meter, double now);

typedef struct MeterReading {
    double rate;
    double
        error; /* standard error, from how its parts differ; as large as the rate when there are not enough */
    double filled; /* how much of the measured part has been seen, 0…1 */
} MeterReading;

/* False: there is nothing to go by, or nothing but zero. */
bool meter_read(const RateMeter *meter, MeterReading *ret);
