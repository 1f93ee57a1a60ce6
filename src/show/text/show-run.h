/* SPDX-License-Identifier: Apache-2.0 */
/* `run` for people and for scripts. */
#pragma once

#include "job-run.h"
#include "json.h"
#include "terminal.h"

/* The summary of a run: what the guard did (verbose: with its figures) and, after a failure, what died, the
 * evidence and what to do. Prints nothing when the command could not be started, since that was reported when
 * it failed. */
void show_run(const Terminal *terminal, const RunReport *report, bool verbose);

/* The command returned before its work was done, and what to do about it. A part of show_run. */
void show_stray_work(const Terminal *terminal, const StrayWork *work);

/* While it runs: one line that says why workers wait and proceed by rescues alone, and what to do. */
void show_crawl(const Terminal *terminal, const RunTick *tick);

/* { NAME: value }, and { shm, rss, fds, processes } with null for what was not measured. NULL: no memory. */
json_t *json_values(const AttemptValue *values, size_t n);
json_t *json_peaks(const Peaks *peaks);

/* A process that has ended, with its last sample and its fault. */
json_t *json_ended(const Ended *ended);

/* Schema "shmguard.run/1". 0 or -ENOMEM. */
int json_run(FILE *out, bool indented, const RunReport *report);
