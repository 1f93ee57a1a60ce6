/* SPDX-License-Identifier: Apache-2.0 */
/* Why a trial of `tune` has no rate, for people. Each duration is one of "3.2 s". */
#pragma once

#define TRIAL_GOOD "It ran for its time."
#define TRIAL_SHORT                                                                                          \
    "It ended after %s, before anything could be measured. Let it run for more steps, or give --trial a "    \
    "shorter time."
#define TRIAL_NO_TENSORS                                                                                     \
    "The guard saw no shared tensor in %s. A loader without workers shares none: use --rate, and let the "   \
    "training print its rate."
#define TRIAL_SILENT "It printed nothing in %s, so --rate found nothing."
/* A number of lines, and the last one. */
#define TRIAL_NO_MATCH_ONE   "--rate did not match the %llu line that it printed: %s"
#define TRIAL_NO_MATCH_MANY  "--rate matched none of the %llu lines that it printed; the last one is: %s"
#define TRIAL_NO_NUMBER_ONE  "The group of --rate did not match a number; it printed %llu line: %s"
#define TRIAL_NO_NUMBER_MANY "The group of --rate did not match a number; the last of %llu lines is: %s"
/* The summary of a cause, which is a sentence, and a line. */
#define TRIAL_LAST_LINE "%s The last line that it printed: %s"
