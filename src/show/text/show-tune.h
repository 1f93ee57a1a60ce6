/* SPDX-License-Identifier: Apache-2.0 */
/* `tune` for people and for scripts, and the file from which it goes on. */
#pragma once

#include "json.h"
#include "terminal.h"
#include "tune.h"

/* "812.4 samples/s", "1.2 GiB/s". 0 or -ENOMEM. */
int tune_rate_words(const TuneReport *report, double rate, Buffer *out);

/* What was found and why it is believed. 0 or -ENOMEM. */
int tune_why(const TuneReport *report, Buffer *out);

/* "batch=64 workers=4: 812.4 samples/s, at most 1.2 GiB" or what went wrong, of one trial. 0 or -ENOMEM. */
int tune_trial_words(const TuneReport *report, const TuneTrial *trial, Buffer *out);

/* The table, the plot and why. */
void show_tune(const Terminal *terminal, const TuneReport *report);

/* Schema "shmguard.tune/1". 0 or -ENOMEM. */
int json_tune(FILE *out, bool indented, const TuneReport *report);

/* The list "trials", which the file has, too. */
void json_tune_trials(JsonWriter *writer, const Tune *tune);

/* Schema "shmguard.tune-state/1": the grid, and the trials so far. 0 or -ENOMEM. */
int tune_state_write(FILE *out, const TuneReport *report);

/*
 * Reads the trials into report->tune, which has none yet and whose grid is that of the file. 0, -ENOMEM, or
 * -EINVAL with what is wrong appended to error, one escaped line without newline; the report is then as it
 * was. What was read lives in arena.
 */
int tune_state_parse(Text text, TuneReport *report, Arena *arena, Buffer *error);
