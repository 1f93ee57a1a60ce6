/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a training runs: from numbers that it prints, or from bytes that are counted elsewhere. Pure: text
 * and times in, figures out.
 */
#pragma once

#include <regex.h>

#include "text.h"

/* --- Numbers in the output ---------------------------------------------------------------------------- */

/* Longer lines are read up to here: no progress bar is as long. */
enum { RATE_LINE_MAX = 4096 };

typedef struct RateReader {
    regex_t regex;
    bool compiled;
    char line[RATE_LINE_MAX]; /* the line that has not ended yet */
    size_t size;
    char last[RATE_LINE_MAX]; /* the last complete line that was not blank, NUL-terminated */
    uint64_t lines;
    uint64_t matches;  /* with a number in the first group */
    uint64_t nonsense; /* with something else there, or a negative number */
} RateReader;

/*
 * An extended regular expression of POSIX whose first group is the number. NULL: only lines are counted, not
 * numbers. 0, or -EINVAL with one escaped line without newline appended to error.
 */
int rate_reader_open(const char *regex, RateReader *ret, Buffer *error);
void rate_reader_close(RateReader *reader);

/* Forgets what was read, for another command. */
void rate_reader_clear(RateReader *reader);

/* Reads a piece of output, which may begin and end anywhere. Carriage returns end lines, too, since progress
 * bars use them. `found` is called with each number. */
void rate_reader_feed(RateReader *reader, Text piece, void (*found)(void *context, double number),
                      void *context);

/* The whole text as a number, with or without commas between thousands ("1,234.5", "2e3"). Neither negative
 * nor infinite. 0 or -EINVAL. */
int rate_number_parse(Text text, double *ret);

/* --- A trial's rate ----------------------------------------------------------------------------------- */

/*
 * A trial begins with the first sign of work, so that importing libraries and reading an index do not count,
 * and lasts `seconds` from then on. Its first quarter fills queues and caches, and is not measured.
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
    bool counts;  /* it reads a count, not values */
    uint64_t count_last;
    bool has_window;
    double window_first; /* the first and the last change within the measured part */
    double window_last;
    uint64_t window_first_count;
    uint64_t window_last_count;
    MeterSlice slices[METER_SLICES];
} RateMeter;

/* A new meter is {.seconds}. Times are seconds since the command was started. */
void meter_value(RateMeter *meter, double now, double value);
void meter_count(RateMeter *meter, double now, uint64_t count);

/* The trial has lasted long enough. */
bool meter_is_over(const RateMeter *meter, double now);

typedef struct MeterReading {
    double rate;
    double error;  /* standard error, from how its parts differ; the rate itself if there are too few */
    double filled; /* how much of the measured part has been seen, 0…1 */
} MeterReading;

/* False: nothing was measured, or only zeros. */
bool meter_read(const RateMeter *meter, MeterReading *ret);
