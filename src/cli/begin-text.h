/* SPDX-License-Identifier: Apache-2.0 */
/* Where to begin, for the program without arguments and for the manual. What a command does follows the
 * command in a table. */
#pragma once

#include "language.h"

#define BEGIN_TITLE _("Where to begin:")

#define BEGIN_DIED     N_("A training died:")
#define BEGIN_EXPLAIN  N_("Say from its log what happened, and what to do.")
#define BEGIN_RUN      N_("Run it so that a small /dev/shm cannot kill it, and learn why if it dies again.")
#define BEGIN_STARTS   N_("A training will start:")
#define BEGIN_CHECK    N_("Say what threatens it here, and start nothing.")
#define BEGIN_PLAN     N_("Compute how much shared memory it needs.")
#define BEGIN_GROWS    N_("Its memory grows:")
#define BEGIN_RECORD   N_("Record a running training; Ctrl-C ends that.")
#define BEGIN_REPORT   N_("Say from the recording whether it leaks.")
#define BEGIN_SLOW     N_("It is slow:")
#define BEGIN_TUNE     N_("Find the fastest batch size and number of workers that are safe.")
#define BEGIN_WATCH    N_("See live what waits and what is full.")
#define BEGIN_ANYTHING N_("Something else is wrong:")
#define BEGIN_DOCTOR   N_("Find what is wrong on this machine.")

#define BEGIN_MORE _("All commands: shmguard --help. Each has a manual: man shmguard-run.")
