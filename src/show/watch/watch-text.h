/* SPDX-License-Identifier: Apache-2.0 */
/* What `watch` shows; what it has in common with `ps` is in ps-text.h. Much of it must fit 80 columns beside
 * figures. */
#pragma once

#include "language.h"

/* --- The title: parts separated by blanks or commas ----------------------------------------------------- */

#define WATCH_TEXT_ENDED         _("the job has ENDED")
#define WATCH_TEXT_PAUSED        _("PAUSED")
#define WATCH_TEXT_RECORDING     _("recording %s") /* a file */
#define WATCH_TEXT_JOB           _("job of pid %d")
#define WATCH_TEXT_TRAINERS_ONE  _("%zu trainer")
#define WATCH_TEXT_TRAINERS_MANY _("%zu trainers")
#define WATCH_TEXT_WORKERS_ONE   _("%zu worker")
#define WATCH_TEXT_WORKERS_MANY  _("%zu workers")
#define WATCH_TEXT_OTHERS_ONE    _("%zu other")
#define WATCH_TEXT_OTHERS_MANY   _("%zu others")

/* What watch itself takes: of a core, and memory. */
#define WATCH_TEXT_LATE            _("the sample is %.0f s late")
#define WATCH_TEXT_COST            _("watch %.1f%% %s")
#define WATCH_TEXT_COST_LONG       _("watch itself: %.1f%% %s")
#define WATCH_TEXT_COST_FIRST      _("watch %s")
#define WATCH_TEXT_COST_FIRST_LONG _("watch itself: %s")

/* Minutes and seconds, and the speed: "03:12 of 10:00 x4 playing". */
#define WATCH_TEXT_PLAYING _("%02lld:%02lld of %02lld:%02lld %s playing")
#define WATCH_TEXT_STOPPED _("%02lld:%02lld of %02lld:%02lld %s stopped")

/* --- Meters --------------------------------------------------------------------------------------------- */

/* A name of at most eight columns, and one for narrow terminals. */
#define WATCH_TEXT_METER_SHM         _("/dev/shm")
#define WATCH_TEXT_METER_SHM_SHORT   _("shm")
#define WATCH_TEXT_METER_MEMORY      _("RAM")
#define WATCH_TEXT_METER_GROUP       _("cgroup")
#define WATCH_TEXT_METER_GROUP_SHORT _("cg")
#define WATCH_TEXT_METER_BUDGET      _("budget")
#define WATCH_TEXT_METER_GUARD       _("guard")
#define WATCH_TEXT_METER_LEAK        _("leak")

#define WATCH_TEXT_METER_OF       _("%s of %s")
#define WATCH_TEXT_METER_FINE     _("%.0f%% fine")
#define WATCH_TEXT_METER_WARNING  _("%.0f%% warning")
#define WATCH_TEXT_METER_CRITICAL _("%.0f%% critical")

#define WATCH_TEXT_NOTE_BEHIND     _(", %s") /* a note behind a share */
#define WATCH_TEXT_NOTE_REFUSED    _("%llu refused")
#define WATCH_TEXT_NOTE_WAITING    _("%llu waiting")
#define WATCH_TEXT_NOTE_NO_CEILING _("of the guarded run, no ceiling")
#define WATCH_TEXT_NOTE_RUN        _("run %d of %u") /* a pid, and how many runs there are */
#define WATCH_TEXT_NOTE_UNKNOWN    _("budget unknown")

/* Parts of /dev/shm beside the kinds of segments. */
#define WATCH_TEXT_PART_UNHELD       _("no holder seen")
#define WATCH_TEXT_PART_UNATTRIBUTED _("unattributed")
#define WATCH_TEXT_PART_OTHERS       _("others")

/* --- Lists ---------------------------------------------------------------------------------------------- */

#define WATCH_TEXT_HEAD_PID     N_("PID")
#define WATCH_TEXT_HEAD_ROLE    N_("ROLE")
#define WATCH_TEXT_HEAD_USS     N_("USS")
#define WATCH_TEXT_HEAD_PSS     N_("PSS")
#define WATCH_TEXT_HEAD_RSS     N_("RSS")
#define WATCH_TEXT_HEAD_SHARED  N_("SHR")
#define WATCH_TEXT_HEAD_HELD    N_("SHM")
#define WATCH_TEXT_HEAD_FDS     N_("FDS")
#define WATCH_TEXT_HEAD_THREADS N_("THR")
#define WATCH_TEXT_HEAD_CPU     N_("CPU%")
#define WATCH_TEXT_HEAD_TREND   _("%s trend") /* one of the heads above */
#define WATCH_TEXT_HEAD_RATE    N_("RATE")
#define WATCH_TEXT_HEAD_COMMAND N_("COMMAND")

#define WATCH_TEXT_HEAD_NAME      N_("NAME")
#define WATCH_TEXT_HEAD_KIND      N_("KIND")
#define WATCH_TEXT_HEAD_STATE     N_("STATE")
#define WATCH_TEXT_HEAD_SIZE      N_("SIZE")
#define WATCH_TEXT_HEAD_ALLOCATED N_("ALLOC")
#define WATCH_TEXT_HEAD_HOLDERS   N_("HELD BY")
#define WATCH_TEXT_SEEN_AT        _("seen at %s") /* a time of day */

#define WATCH_TEXT_HEAD_EVENTS                                                                               \
    _("TIME      EVENTS since %s, newest first") /* a time of day; times have 8 columns */

#define WATCH_TEXT_RATE _("%c%s/min") /* a sign and a figure */

#define WATCH_TEXT_NO_MATCH    _("Nothing matches the filter; F4 changes it.")
#define WATCH_TEXT_NO_RECORDED _("A recording has the sums by kind, above, but no single segments.")
#define WATCH_TEXT_NOT_YET     _("Not sampled yet.")
#define WATCH_TEXT_NO_EVENTS   _("Nothing has happened yet.")
#define WATCH_TEXT_FIRST_IS_LATE                                                                             \
    _("The first sample is taking long; a process may be hanging. Press q to quit.")

/* --- The bottom ----------------------------------------------------------------------------------------- */

/* A duration. */
#define WATCH_TEXT_FORECAST_SHM    _("/dev/shm full in about %s (estimated)")
#define WATCH_TEXT_FORECAST_GROUP  _("cgroup full in about %s (estimated)")
#define WATCH_TEXT_FORECAST_MEMORY _("RAM used up in about %s (estimated)")

#define WATCH_TEXT_AGO     _("%s ago: %s") /* a duration, and one of the events below */
#define WATCH_TEXT_NO_NEWS _("no events yet")

/* Whom an event is about. */
#define WATCH_TEXT_SUBJECT_JOB       _("job")
#define WATCH_TEXT_SUBJECT_TRAINER   _("trainer %d")
#define WATCH_TEXT_SUBJECT_TRAINERS  _("%zu trainers")
#define WATCH_TEXT_SUBJECT_WORKER    _("worker %d")
#define WATCH_TEXT_SUBJECT_WORKERS   _("%zu workers")
#define WATCH_TEXT_SUBJECT_MANAGER   _("manager %d")
#define WATCH_TEXT_SUBJECT_MANAGERS  _("%zu managers")
#define WATCH_TEXT_SUBJECT_PROCESS   _("process %d")
#define WATCH_TEXT_SUBJECT_PROCESSES _("%zu processes")

#define WATCH_TEXT_EVENT_BORN    _("%s started")
#define WATCH_TEXT_EVENT_ENDED   _("%s ended")
#define WATCH_TEXT_EVENT_KILL    _("OOM kill")
#define WATCH_TEXT_EVENT_KILL_OF _("OOM kill of %s")
#define WATCH_TEXT_EVENT_ATTEMPT _("attempt")
#define WATCH_TEXT_EVENT_EPOCH   _("epoch")
#define WATCH_TEXT_EVENT_EPOCHS  _("epochs")
#define WATCH_TEXT_EVENT_MARK    _("mark")
#define WATCH_TEXT_EVENT_DETAIL                                                                              \
    _("%s: %s") /* one of the above, and what the job or the system said about it                            \
                 */

/* The names of keys, each with what it does. */
#define WATCH_TEXT_KEY_NAME_SPACE _("Spc")
#define WATCH_TEXT_KEY_HELP       _("Help")
#define WATCH_TEXT_KEY_SEGMENTS   _("Segments")
#define WATCH_TEXT_KEY_EVENTS     _("Events")
#define WATCH_TEXT_KEY_PROCESSES  _("Processes")
#define WATCH_TEXT_KEY_SEARCH     _("Search")
#define WATCH_TEXT_KEY_FILTER     _("Filter")
#define WATCH_TEXT_KEY_FILTER_ON  _("FILTER")
#define WATCH_TEXT_KEY_TREE       _("Tree")
#define WATCH_TEXT_KEY_FLAT       _("Flat")
#define WATCH_TEXT_KEY_SORT       _("Sort")
#define WATCH_TEXT_KEY_PAUSE      _("Pause")
#define WATCH_TEXT_KEY_RESUME     _("Resume")
#define WATCH_TEXT_KEY_PLAY       _("Play")
#define WATCH_TEXT_KEY_STOP       _("Stop")
#define WATCH_TEXT_KEY_TIME       _("Time")
#define WATCH_TEXT_KEY_QUIT       _("Quit")

#define WATCH_TEXT_EDIT_SEARCH      _("Search:")
#define WATCH_TEXT_EDIT_FILTER      _("Filter:")
#define WATCH_TEXT_EDIT_MISSED      _("not found")
#define WATCH_TEXT_EDIT_SEARCH_KEYS _("Enter: done, F3: next, Esc: cancel")
#define WATCH_TEXT_EDIT_FILTER_KEYS _("Enter: keep, Esc: remove")

/* --- Help: lines of at most 80 columns ------------------------------------------------------------------ */

#define WATCH_TEXT_HELP_TITLE _("shmguard watch: help")
#define WATCH_TEXT_HELP                                                                                      \
    _("F1 h ?       this help; any key leaves it\nF2 Tab       processes, segments, events\nF3 /         "   \
      "search; F3 or n: next match, N: previous match\nF4 \\         filter: only rows that contain these "  \
      "words\nF5 t         trees of trainers and workers, or one flat list\nF6 > . < ,   sort by the next "  \
      "or the previous column; I reverses the order\nZ            pause until Z again; meanwhile Left and "  \
      "Right go back in time\nq F10        quit\narrows, PgUp, PgDn, Home, End, mouse: move; a click on a "  \
      "title sorts by it\nIn a recording: Space plays and stops, Left and Right step, [ and ] go 60 "        \
      "steps,\n             + and - change the speed, b and e go to its beginning and end\n\nUSS    "        \
      "private memory: what would become free if the process ended\nPSS    USS, and its share of the "       \
      "memory that it shares with others\nRSS    all resident memory; shared pages count in full in each "   \
      "process\nSHR    of that, shared memory       SHM    in the segments that it holds\nFDS    open "      \
      "descriptors             RATE   of the trend\ntrend  of the column sorted by, else of RSS, over 2 "    \
      "minutes (120 samples);\n       the arrow is flat where a change cannot be told from noise\nUSS, PSS " \
      "and SHM are costly and sampled in turns: an ellipsis until the first\ntime, ? when that is not "      \
      "permitted. \"full in about\" is estimated: what is left\ndivided by the slope of the last two "       \
      "minutes.\nLetters in the bar of /dev/shm are kinds, with sizes below; : is file cache.\nMeters: "     \
      "warning from 80%, critical from 90%; budget: waits, refusals.\n")
