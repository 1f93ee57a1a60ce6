/* SPDX-License-Identifier: Apache-2.0 */
/* Where to begin, for the program without arguments and for the manual. What a command does follows the
 * command in a table. */
#pragma once

#define BEGIN_TITLE "Where to begin:"

#define BEGIN_DIED     "A training died:"
#define BEGIN_EXPLAIN  "Say from its log what happened, and what to do."
#define BEGIN_RUN      "Run it so that a small /dev/shm cannot kill it, and learn why if it dies again."
#define BEGIN_STARTS   "A training will start:"
#define BEGIN_CHECK    "Say what threatens it here, and start nothing."
#define BEGIN_PLAN     "Compute how much shared memory it needs."
#define BEGIN_GROWS    "Its memory grows:"
#define BEGIN_RECORD   "Record a running training; Ctrl-C ends that."
#define BEGIN_REPORT   "Say from the recording whether it leaks."
#define BEGIN_SLOW     "It is slow:"
#define BEGIN_TUNE     "Find the fastest batch size and number of workers that are safe."
#define BEGIN_WATCH    "See live what waits and what is full."
#define BEGIN_ANYTHING "Something else is wrong:"
#define BEGIN_DOCTOR   "Find what is wrong on this machine."

#define BEGIN_MORE "All commands: shmguard --help. Each has a manual: man shmguard-run."
