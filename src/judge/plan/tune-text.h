/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `tune` tells people. A setting is written "batch=64 workers=4", a rate "812.4 samples/s" or
 * "1.2 GiB/s".
 */
#pragma once

#include "language.h"

#define TUNE_RATE_SAMPLES _("%.*f samples/s")
#define TUNE_RATE_BYTES   _("%s/s")

/* --- One trial ------------------------------------------------------------------------------------------ */

#define TUNE_TRIAL_FAILED  _("%s: %s. %s") /* a setting, the id of a cause, its summary */
#define TUNE_TRIAL         _("%s: %s")     /* a setting and its rate; what follows is separated by commas */
#define TUNE_TRIAL_MEMORY  _("peak memory: %s")
#define TUNE_TRIAL_STOPPED _("stopped early because it was clearly slower")

/* --- The paragraph below the table: sentences, one after the other -------------------------------------- */

#define TUNE_BEST_ONE  _("%s gave %s (give or take %.1f%%), measured in %zu trial.")
#define TUNE_BEST_MANY _("%s gave %s (give or take %.1f%%), measured in %zu trials.")

#define TUNE_SAFE         _("It took at most %s of memory; the ceiling is %s.")
#define TUNE_SAFE_UNKNOWN _("Its memory could not be compared with a ceiling.")
#define TUNE_SAFE_OVER    _("It is not safe: it took up to %s of memory, and the ceiling is %s.")
#define TUNE_SAFE_FAILED  _("It is not safe: a trial of it failed (%s).") /* the id of a cause */

#define TUNE_ALONE  _("There is nothing to compare it with.")
#define TUNE_FASTER _("It is %.1f%% faster than the next, %s.") /* a setting */
#define TUNE_RIVALS_ONE                                                                                      \
    _("%zu other setting cannot be told apart from it, because trials of one setting differ by about "       \
      "%.1f%%.")
#define TUNE_RIVALS_MANY                                                                                     \
    _("%zu other settings cannot be told apart from it, because trials of one setting differ by about "      \
      "%.1f%%.")
#define TUNE_RIVAL        _("The fastest of the others is %s with %s.") /* a setting and its rate */
#define TUNE_RIVAL_MEMORY _("The fastest of the others is %s with %s and %s of memory.")

#define TUNE_TRIED_ONE     _("Settings tried: %zu of %zu, in %zu trial.")
#define TUNE_TRIED_MANY    _("Settings tried: %zu of %zu, in %zu trials.")
#define TUNE_FAILED_COUNT  _("Settings that failed: %zu.")
#define TUNE_SKIPPED_COUNT _("Settings skipped because they would not fit (estimated): %zu.")
#define TUNE_INTERRUPTED   _("The search was interrupted.")

/* A setting, and the size of a sample. */
#define TUNE_FIRST_MIDDLE _("The first was %s, the middle of the grid.")
#define TUNE_FIRST_LEAST                                                                                     \
    _("The first was %s, which needs least, because no setting is known to be safe for samples of %s.")
#define TUNE_FIRST_LEAST_ASSUMED                                                                             \
    _("The first was %s, which needs least, because no setting is known to be safe for samples of %s "       \
      "(assumed).")
#define TUNE_FIRST_SAFE                                                                                      \
    _("The first was %s, which is safe by the arithmetic of plan for samples of up to %s.")
#define TUNE_FIRST_SAFE_ASSUMED                                                                              \
    _("The first was %s, which is safe by the arithmetic of plan for samples of up to %s (assumed).")

/* --- The table and the plot ----------------------------------------------------------------------------- */

#define TUNE_HEAD_RATE   _("rate")
#define TUNE_HEAD_TRIALS _("trials")
#define TUNE_HEAD_MEMORY _("memory")
#define TUNE_HEAD_PEAK   _("peak memory")

#define TUNE_ROW_BEST      _("best")
#define TUNE_ROW_UNSAFE    _("fastest, not safe")
#define TUNE_ROW_STOPPED   _("slower, stopped early")
#define TUNE_ROW_OVER      _("over the ceiling")
#define TUNE_ROW_FAILED    _("failed: %s") /* the id of a cause */
#define TUNE_ROW_ESTIMATED _("skipped: estimated")
#define TUNE_ROW_SMALLER   _("skipped: a smaller one ran out")
#define TUNE_MORE_ONE      _("%zu more setting would not fit (estimated).")
#define TUNE_MORE_MANY     _("%zu more settings would not fit (estimated).")

/* Why a setting was skipped. */
#define TUNE_WHY_MEMORY  _("estimated to need more than the ceiling")
#define TUNE_WHY_SMALLER _("a smaller setting ran out of memory")

/* --- Mistakes in --rate, and in a file to continue from ------------------------------------------------- */

#define TUNE_BAD_REGEX     _("\"%s\" is not a regular expression: %s")
#define TUNE_BAD_GROUP     _("put the number of \"%s\" in parentheses, as in 'rate: ([0-9.]+)'")
#define TUNE_STATE_SCHEMA  _("it is not a state of shmguard tune")
#define TUNE_STATE_COMMAND _("it is of another command")
#define TUNE_STATE_VARY    _("it has other values of --vary")
#define TUNE_STATE_RATE    _("its rates were measured in another way (--rate)")
#define TUNE_STATE_TRIALS  _("its list of trials is missing or too long")
#define TUNE_STATE_TRIAL   _("its trial %zu is invalid")
#define TUNE_STATE_LARGE   _("it is too large to be a state of shmguard tune")
#define TUNE_STATE_JSON    _("it is not JSON (line %d)")
