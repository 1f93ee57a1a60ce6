/* SPDX-License-Identifier: Apache-2.0 */
/* What `report` tells people in a terminal. */
#pragma once

/* --- Verdicts ------------------------------------------------------------------------------------------- */

#define REPORT_GROWS     "It grows by %s."                                      /* "12.3 MiB/min" */
#define REPORT_EXHAUSTS  "At this rate the limit is reached in %s (estimated)." /* a duration */
#define REPORT_ALSO_ONE  "Also in process %s."
#define REPORT_ALSO_MANY "Also in processes %s."              /* numbers separated by commas */
#define REPORT_ALSO_MORE "Also in processes %s and %zu more." /* the same */
#define REPORT_FIXES     "What to do:"

/* --- What was recorded: a label, and what stands beside it ---------------------------------------------- */

#define REPORT_LABEL_JOB       "job"
#define REPORT_LABEL_RECORDED  "recorded"
#define REPORT_RECORDED        "%s from %s, interval %g s, samples kept: %zu"
#define REPORT_LABEL_PROCESSES "processes"
#define REPORT_PROCESSES       "at most %llu at a time, %zu in total"
#define REPORT_LABEL_MEMORY    "memory"
#define REPORT_PSS             "%s at most, all processes together (PSS, estimated from samples taken in turns)"
#define REPORT_PSS_UNKNOWN     "? (PSS could not be read)"
#define REPORT_LABEL_MACHINE   "machine"
#define REPORT_MACHINE         "at least %s of %s available"
#define REPORT_LABEL_GROUP     "control group"
#define REPORT_LABEL_SHM       "/dev/shm"
#define REPORT_LABEL_GUARD     "guard memory"
#define REPORT_PEAK            "%s at most"
#define REPORT_PEAK_OF         "%s of %s (%.0f%%) at most"
#define REPORT_PEAK_OF_LITTLE  "%s of %s (<1%%) at most"

/* How many of each, separated by commas. */
#define REPORT_LABEL_EVENTS "events"
#define REPORT_EVENT        "%s: %zu"
#define REPORT_BORN         "processes started"
#define REPORT_ENDED        "ended"
#define REPORT_OOM_KILLS    "OOM kills"
#define REPORT_ATTEMPTS     "attempts"
#define REPORT_MARKS        "marks"
#define REPORT_EPOCHS       "epochs"
#define REPORT_NO_EVENTS    "none"

/* --- Processes ------------------------------------------------------------------------------------------ */

#define REPORT_PEAKS     "Processes (each figure at its peak)"
#define REPORT_MORE_ONE  "%zu more process is listed by --json."
#define REPORT_MORE_MANY "%zu more processes are listed by --json."

#define REPORT_HEAD_PID     "PID"
#define REPORT_HEAD_ROLE    "ROLE"
#define REPORT_HEAD_RSS     "RSS"
#define REPORT_HEAD_USS     "USS"
#define REPORT_HEAD_SHM     "SHM"
#define REPORT_HEAD_FDS     "FDS"
#define REPORT_HEAD_LIVED   "LIVED"
#define REPORT_HEAD_SPARK   "RSS OVER TIME"
#define REPORT_HEAD_COMMAND "COMMAND"
