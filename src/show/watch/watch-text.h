/* SPDX-License-Identifier: Apache-2.0 */
/* What `watch` shows; what it has in common with `ps` is in ps-text.h. Much of it must fit 80 columns beside
 * figures. */
#pragma once

/* --- The title: parts separated by blanks or commas ----------------------------------------------------- */

#define WATCH_TEXT_ENDED         "the job has ENDED"
#define WATCH_TEXT_PAUSED        "PAUSED"
#define WATCH_TEXT_RECORDING     "recording %s" /* a file */
#define WATCH_TEXT_JOB           "job of pid %d"
#define WATCH_TEXT_TRAINERS_ONE  "%zu trainer"
#define WATCH_TEXT_TRAINERS_MANY "%zu trainers"
#define WATCH_TEXT_WORKERS_ONE   "%zu worker"
#define WATCH_TEXT_WORKERS_MANY  "%zu workers"
#define WATCH_TEXT_OTHERS_ONE    "%zu other"
#define WATCH_TEXT_OTHERS_MANY   "%zu others"

/* What watch itself takes: of a core, and memory. */
#define WATCH_TEXT_LATE            "the sample is %.0f s late"
#define WATCH_TEXT_COST            "watch %.1f%% %s"
#define WATCH_TEXT_COST_LONG       "watch itself: %.1f%% %s"
#define WATCH_TEXT_COST_FIRST      "watch %s"
#define WATCH_TEXT_COST_FIRST_LONG "watch itself: %s"

/* Minutes and seconds, and the speed: "03:12 of 10:00 x4 playing". */
#define WATCH_TEXT_PLAYING "%02lld:%02lld of %02lld:%02lld %s playing"
#define WATCH_TEXT_STOPPED "%02lld:%02lld of %02lld:%02lld %s stopped"

/* --- Meters --------------------------------------------------------------------------------------------- */

/* A name of at most eight columns, and one for narrow terminals. */
#define WATCH_TEXT_METER_SHM         "/dev/shm"
#define WATCH_TEXT_METER_SHM_SHORT   "shm"
#define WATCH_TEXT_METER_MEMORY      "RAM"
#define WATCH_TEXT_METER_GROUP       "cgroup"
#define WATCH_TEXT_METER_GROUP_SHORT "cg"
#define WATCH_TEXT_METER_BUDGET      "budget"
#define WATCH_TEXT_METER_GUARD       "guard"
#define WATCH_TEXT_METER_LEAK        "leak"

#define WATCH_TEXT_METER_OF       "%s of %s"
#define WATCH_TEXT_METER_FINE     "%.0f%% fine"
#define WATCH_TEXT_METER_WARNING  "%.0f%% warning"
#define WATCH_TEXT_METER_CRITICAL "%.0f%% critical"

#define WATCH_TEXT_NOTE_REFUSED    "%llu refused"
#define WATCH_TEXT_NOTE_WAITING    "%llu waiting"
#define WATCH_TEXT_NOTE_NO_CEILING "of the guarded run, no ceiling"
#define WATCH_TEXT_NOTE_RUN        "run %d of %u" /* a pid, and how many runs there are */
#define WATCH_TEXT_NOTE_UNKNOWN    "budget unknown"

/* Parts of /dev/shm beside the kinds of segments. */
#define WATCH_TEXT_PART_UNHELD       "no holder seen"
#define WATCH_TEXT_PART_UNATTRIBUTED "unattributed"
#define WATCH_TEXT_PART_OTHERS       "others"

/* --- Lists ---------------------------------------------------------------------------------------------- */

#define WATCH_TEXT_HEAD_PID     "PID"
#define WATCH_TEXT_HEAD_ROLE    "ROLE"
#define WATCH_TEXT_HEAD_USS     "USS"
#define WATCH_TEXT_HEAD_PSS     "PSS"
#define WATCH_TEXT_HEAD_RSS     "RSS"
#define WATCH_TEXT_HEAD_SHARED  "SHR"
#define WATCH_TEXT_HEAD_HELD    "SHM"
#define WATCH_TEXT_HEAD_FDS     "FDS"
#define WATCH_TEXT_HEAD_THREADS "THR"
#define WATCH_TEXT_HEAD_CPU     "CPU%"
#define WATCH_TEXT_HEAD_TREND   "%s trend" /* one of the heads above */
#define WATCH_TEXT_HEAD_RATE    "RATE"
#define WATCH_TEXT_HEAD_COMMAND "COMMAND"

#define WATCH_TEXT_HEAD_NAME      "NAME"
#define WATCH_TEXT_HEAD_KIND      "KIND"
#define WATCH_TEXT_HEAD_STATE     "STATE"
#define WATCH_TEXT_HEAD_SIZE      "SIZE"
#define WATCH_TEXT_HEAD_ALLOCATED "ALLOC"
#define WATCH_TEXT_HEAD_HOLDERS   "HELD BY"
#define WATCH_TEXT_SEEN_AT        "seen at %s" /* a time of day */

#define WATCH_TEXT_HEAD_EVENTS                                                                               \
    "TIME      EVENTS since %s, newest first" /* a time of day; times have 8 columns */

#define WATCH_TEXT_RATE "%c%s/min" /* a sign and a figure */

#define WATCH_TEXT_NO_MATCH      "Nothing matches the filter; F4 changes it."
#define WATCH_TEXT_NO_RECORDED   "A recording has the sums by kind, above, but no single segments."
#define WATCH_TEXT_NOT_YET       "Not sampled yet."
#define WATCH_TEXT_NO_EVENTS     "Nothing has happened yet."
#define WATCH_TEXT_FIRST_IS_LATE "The first sample is taking long; a process may be hanging. Press q to quit."

/* --- The bottom ----------------------------------------------------------------------------------------- */

/* A duration. */
#define WATCH_TEXT_FORECAST_SHM    "/dev/shm full in about %s (estimated)"
#define WATCH_TEXT_FORECAST_GROUP  "cgroup full in about %s (estimated)"
#define WATCH_TEXT_FORECAST_MEMORY "RAM used up in about %s (estimated)"

#define WATCH_TEXT_AGO     "%s ago: %s" /* a duration, and one of the events below */
#define WATCH_TEXT_NO_NEWS "no events yet"

/* Whom an event is about. */
#define WATCH_TEXT_SUBJECT_JOB       "job"
#define WATCH_TEXT_SUBJECT_TRAINER   "trainer %d"
#define WATCH_TEXT_SUBJECT_TRAINERS  "%zu trainers"
#define WATCH_TEXT_SUBJECT_WORKER    "worker %d"
#define WATCH_TEXT_SUBJECT_WORKERS   "%zu workers"
#define WATCH_TEXT_SUBJECT_MANAGER   "manager %d"
#define WATCH_TEXT_SUBJECT_MANAGERS  "%zu managers"
#define WATCH_TEXT_SUBJECT_PROCESS   "process %d"
#define WATCH_TEXT_SUBJECT_PROCESSES "%zu processes"

#define WATCH_TEXT_EVENT_BORN    "%s started"
#define WATCH_TEXT_EVENT_ENDED   "%s ended"
#define WATCH_TEXT_EVENT_KILL    "OOM kill"
#define WATCH_TEXT_EVENT_KILL_OF "OOM kill of %s"
#define WATCH_TEXT_EVENT_ATTEMPT "attempt"
#define WATCH_TEXT_EVENT_EPOCH   "epoch"
#define WATCH_TEXT_EVENT_EPOCHS  "epochs"
#define WATCH_TEXT_EVENT_MARK    "mark"
#define WATCH_TEXT_EVENT_DETAIL                                                                              \
    "%s: %s" /* one of the above, and what the job or the system said about it                               \
              */

/* The names of keys, each with what it does. */
#define WATCH_TEXT_KEY_NAME_SPACE "Spc"
#define WATCH_TEXT_KEY_HELP       "Help"
#define WATCH_TEXT_KEY_SEGMENTS   "Segments"
#define WATCH_TEXT_KEY_EVENTS     "Events"
#define WATCH_TEXT_KEY_PROCESSES  "Processes"
#define WATCH_TEXT_KEY_SEARCH     "Search"
#define WATCH_TEXT_KEY_FILTER     "Filter"
#define WATCH_TEXT_KEY_FILTER_ON  "FILTER"
#define WATCH_TEXT_KEY_TREE       "Tree"
#define WATCH_TEXT_KEY_FLAT       "Flat"
#define WATCH_TEXT_KEY_SORT       "Sort"
#define WATCH_TEXT_KEY_PAUSE      "Pause"
#define WATCH_TEXT_KEY_RESUME     "Resume"
#define WATCH_TEXT_KEY_PLAY       "Play"
#define WATCH_TEXT_KEY_STOP       "Stop"
#define WATCH_TEXT_KEY_TIME       "Time"
#define WATCH_TEXT_KEY_QUIT       "Quit"

#define WATCH_TEXT_EDIT_SEARCH      "Search:"
#define WATCH_TEXT_EDIT_FILTER      "Filter:"
#define WATCH_TEXT_EDIT_MISSED      "not found"
#define WATCH_TEXT_EDIT_SEARCH_KEYS "Enter: done, F3: next, Esc: cancel"
#define WATCH_TEXT_EDIT_FILTER_KEYS "Enter: keep, Esc: remove"

/* --- Help: lines of at most 80 columns ------------------------------------------------------------------ */

#define WATCH_TEXT_HELP_TITLE "shmguard watch: help"
#define WATCH_TEXT_HELP                                                                                      \
    "F1 h ?       this help; any key leaves it\n"                                                            \
    "F2 Tab       processes, segments, events\n"                                                             \
    "F3 /         search; F3 or n: next match, N: previous match\n"                                          \
    "F4 \\         filter: only rows that contain these words\n"                                             \
    "F5 t         trees of trainers and workers, or one flat list\n"                                         \
    "F6 > . < ,   sort by the next or the previous column; I reverses the order\n"                           \
    "Z            pause until Z again; meanwhile Left and Right go back in time\n"                           \
    "q F10        quit\n"                                                                                    \
    "arrows, PgUp, PgDn, Home, End, mouse: move; a click on a title sorts by it\n"                           \
    "In a recording: Space plays and stops, Left and Right step, [ and ] go 60 steps,\n"                     \
    "             + and - change the speed, b and e go to its beginning and end\n"                           \
    "\n"                                                                                                     \
    "USS    private memory: what would become free if the process ended\n"                                   \
    "PSS    USS, and its share of the memory that it shares with others\n"                                   \
    "RSS    all resident memory; shared pages count in full in each process\n"                               \
    "SHR    of that, shared memory       SHM    in the segments that it holds\n"                             \
    "FDS    open descriptors             RATE   of the trend\n"                                              \
    "trend  of the column sorted by, else of RSS, over 2 minutes (120 samples);\n"                           \
    "       the arrow is flat where a change cannot be told from noise\n"                                    \
    "USS, PSS and SHM are costly and sampled in turns: an ellipsis until the first\n"                        \
    "time, ? when that is not permitted. \"full in about\" is estimated: what is left\n"                     \
    "divided by the slope of the last two minutes.\n"                                                        \
    "Letters in the bar of /dev/shm are kinds, with sizes below; : is file cache.\n"                         \
    "Meters: warning from 80% on, critical from 90% on; budget: waits, refusals.\n"
