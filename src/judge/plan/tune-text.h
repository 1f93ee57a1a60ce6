/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `tune` tells people. A setting is written "batch=64 workers=4", a rate "812.4 samples/s" or
 * "1.2 GiB/s".
 */
#pragma once

#define TUNE_RATE_SAMPLES "%.*f samples/s"
#define TUNE_RATE_BYTES   "%s/s"

/* --- One trial ------------------------------------------------------------------------------------------ */

#define TUNE_TRIAL_FAILED  "%s: %s. %s" /* a setting, the id of a cause, its summary */
#define TUNE_TRIAL         "%s: %s"     /* a setting and its rate; what follows is separated by commas */
#define TUNE_TRIAL_MEMORY  "peak memory: %s"
#define TUNE_TRIAL_STOPPED "stopped early because it was clearly slower"

/* --- The paragraph below the table: sentences, one after the other -------------------------------------- */

#define TUNE_BEST_ONE  "%s gave %s (give or take %.1f%%), measured in %zu trial."
#define TUNE_BEST_MANY "%s gave %s (give or take %.1f%%), measured in %zu trials."

#define TUNE_SAFE         "It took at most %s of memory; the ceiling is %s."
#define TUNE_SAFE_UNKNOWN "Its memory could not be compared with a ceiling."
#define TUNE_SAFE_OVER    "It is not safe: it took up to %s of memory, and the ceiling is %s."
#define TUNE_SAFE_FAILED  "It is not safe: a trial of it failed (%s)." /* the id of a cause */

#define TUNE_ALONE  "There is nothing to compare it with."
#define TUNE_FASTER "It is %.1f%% faster than the next, %s." /* a setting */
#define TUNE_RIVALS_ONE                                                                                      \
    "%zu other setting cannot be told apart from it, because trials of one setting differ by about %.1f%%."
#define TUNE_RIVALS_MANY                                                                                     \
    "%zu other settings cannot be told apart from it, because trials of one setting differ by about %.1f%%."
#define TUNE_RIVAL        "The fastest of the others is %s with %s." /* a setting and its rate */
#define TUNE_RIVAL_MEMORY "The fastest of the others is %s with %s and %s of memory."

#define TUNE_TRIED_ONE     "Settings tried: %zu of %zu, in %zu trial."
#define TUNE_TRIED_MANY    "Settings tried: %zu of %zu, in %zu trials."
#define TUNE_FAILED_COUNT  "Settings that failed: %zu."
#define TUNE_SKIPPED_COUNT "Settings skipped because they would not fit (estimated): %zu."
#define TUNE_INTERRUPTED   "The search was interrupted."

/* A setting, and the size of a sample. */
#define TUNE_FIRST_MIDDLE "The first was %s, the middle of the grid."
#define TUNE_FIRST_LEAST                                                                                     \
    "The first was %s, which needs least, because no setting is known to be safe for samples of %s."
#define TUNE_FIRST_LEAST_ASSUMED                                                                             \
    "The first was %s, which needs least, because no setting is known to be safe for samples of %s "         \
    "(assumed)."
#define TUNE_FIRST_SAFE "The first was %s, which is safe by the arithmetic of plan for samples of up to %s."
#define TUNE_FIRST_SAFE_ASSUMED                                                                              \
    "The first was %s, which is safe by the arithmetic of plan for samples of up to %s (assumed)."

/* --- The table and the plot ----------------------------------------------------------------------------- */

#define TUNE_HEAD_RATE   "rate"
#define TUNE_HEAD_TRIALS "trials"
#define TUNE_HEAD_MEMORY "memory"
#define TUNE_HEAD_PEAK   "peak memory"

#define TUNE_ROW_BEST      "best"
#define TUNE_ROW_UNSAFE    "fastest, not safe"
#define TUNE_ROW_STOPPED   "slower, stopped early"
#define TUNE_ROW_OVER      "over the ceiling"
#define TUNE_ROW_FAILED    "failed: %s" /* the id of a cause */
#define TUNE_ROW_ESTIMATED "skipped: estimated"
#define TUNE_ROW_SMALLER   "skipped: a smaller one ran out"
#define TUNE_MORE_ONE      "%zu more setting would not fit (estimated)."
#define TUNE_MORE_MANY     "%zu more settings would not fit (estimated)."

/* Why a setting was skipped. */
#define TUNE_WHY_MEMORY  "estimated to need more than the ceiling"
#define TUNE_WHY_SMALLER "a smaller setting ran out of memory"

/* --- Mistakes in --rate, and in a file to continue from ------------------------------------------------- */

#define TUNE_BAD_REGEX     "\"%s\" is not a regular expression: %s"
#define TUNE_BAD_GROUP     "put the number of \"%s\" in parentheses, as in 'rate: ([0-9.]+)'"
#define TUNE_STATE_SCHEMA  "it is not a state of shmguard tune"
#define TUNE_STATE_COMMAND "it is of another command"
#define TUNE_STATE_VARY    "it has other values of --vary"
#define TUNE_STATE_RATE    "its rates were measured in another way (--rate)"
#define TUNE_STATE_TRIALS  "its list of trials is missing or too long"
#define TUNE_STATE_TRIAL   "its trial %zu is invalid"
#define TUNE_STATE_LARGE   "it is too large to be a state of shmguard tune"
#define TUNE_STATE_JSON    "it is not JSON (line %d)"
