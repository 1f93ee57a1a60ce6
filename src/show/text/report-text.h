/* SPDX-License-Identifier: Apache-2.0 */
/* What `report` tells people in a terminal. */
#pragma once

#include "language.h"

/* --- Verdicts ------------------------------------------------------------------------------------------- */

/* Behind the id of a verdict: whom it is about, and how certain it is, in words and from 0 to 1. */
#define REPORT_SUBJECT    _(": %s %d")
#define REPORT_CONFIDENCE _(", %s (%.2f)")

#define REPORT_GROWS     _("It grows by %s.")                                      /* "12.3 MiB/min" */
#define REPORT_EXHAUSTS  _("At this rate the limit is reached in %s (estimated).") /* a duration */
#define REPORT_ALSO_ONE  _("Also in process %s.")
#define REPORT_ALSO_MANY _("Also in processes %s.")              /* numbers separated by commas */
#define REPORT_ALSO_MORE _("Also in processes %s and %zu more.") /* the same */
#define REPORT_FIXES     _("What to do:")

/* --- What was recorded: a label, and what stands beside it ---------------------------------------------- */

#define REPORT_LABEL_JOB       _("job")
#define REPORT_LABEL_RECORDED  _("recorded")
#define REPORT_RECORDED        _("%s from %s, interval %g s, samples kept: %zu")
#define REPORT_LABEL_PROCESSES _("processes")
#define REPORT_PROCESSES       _("at most %llu at a time, %zu in total")
#define REPORT_LABEL_MEMORY    _("memory")
#define REPORT_PSS             _("%s at most, all processes together (PSS, estimated from samples taken in turns)")
#define REPORT_PSS_UNKNOWN     _("? (PSS could not be read)")
#define REPORT_LABEL_MACHINE   _("machine")
#define REPORT_MACHINE         _("at least %s of %s available")
#define REPORT_LABEL_GROUP     _("control group")
#define REPORT_LABEL_SHM       _("/dev/shm")
#define REPORT_LABEL_GUARD     _("guard memory")
#define REPORT_PEAK            _("%s at most")
#define REPORT_PEAK_OF         _("%s of %s (%.0f%%) at most")
#define REPORT_PEAK_OF_LITTLE  _("%s of %s (<1%%) at most")

/* How many of each, separated by commas. */
#define REPORT_LABEL_EVENTS _("events")
#define REPORT_EVENT        _("%s: %zu")
#define REPORT_BORN         N_("processes started")
#define REPORT_ENDED        N_("ended")
#define REPORT_OOM_KILLS    N_("OOM kills")
#define REPORT_ATTEMPTS     N_("attempts")
#define REPORT_MARKS        N_("marks")
#define REPORT_EPOCHS       N_("epochs")
#define REPORT_NO_EVENTS    _("none")

/* --- Processes ------------------------------------------------------------------------------------------ */

#define REPORT_PEAKS     _("Processes (each figure at its peak)")
#define REPORT_MORE_ONE  _("%zu more process is listed by --json.")
#define REPORT_MORE_MANY _("%zu more processes are listed by --json.")

#define REPORT_HEAD_PID     N_("PID")
#define REPORT_HEAD_ROLE    N_("ROLE")
#define REPORT_HEAD_RSS     N_("RSS")
#define REPORT_HEAD_USS     N_("USS")
#define REPORT_HEAD_SHM     N_("SHM")
#define REPORT_HEAD_FDS     N_("FDS")
#define REPORT_HEAD_LIVED   N_("LIVED")
#define REPORT_HEAD_SPARK   N_("RSS OVER TIME")
#define REPORT_HEAD_COMMAND N_("COMMAND")
