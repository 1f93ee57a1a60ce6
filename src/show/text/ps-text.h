/* SPDX-License-Identifier: Apache-2.0 */
/* What `ps` and `clean` tell people. */
#pragma once

/* --- Processes ------------------------------------------------------------------------------------------ */

#define PS_PROCESSES    "Processes (sizes in MiB)"
#define PS_NO_PROCESSES "No training processes or shared-memory holders found."

#define PS_HEAD_PID     "PID"
#define PS_HEAD_ROLE    "ROLE"
#define PS_HEAD_RSS     "RSS"
#define PS_HEAD_PSS     "PSS"
#define PS_HEAD_USS     "USS"
#define PS_HEAD_SHM     "SHM"
#define PS_HEAD_FDS     "FDS"
#define PS_HEAD_THREADS "THREADS"
#define PS_HEAD_START   "START"
#define PS_HEAD_COMMAND "COMMAND"

/* The last row. */
#define PS_TOTAL                "total"
#define PS_TOTAL_PROCESSES_ONE  "%zu process"
#define PS_TOTAL_PROCESSES_MANY "%zu processes"

/* --- Segments ------------------------------------------------------------------------------------------- */

#define PS_NO_SEGMENTS "No shared-memory segments found."
#define PS_KINDS       "Segments (--segments shows each)"

#define PS_HEAD_NAME      "NAME"
#define PS_HEAD_KIND      "KIND"
#define PS_HEAD_STATE     "STATE"
#define PS_HEAD_SIZE      "SIZE"
#define PS_HEAD_ALLOCATED "ALLOCATED"
#define PS_HEAD_ORPHAN    "ORPHAN"
#define PS_HEAD_HOLDERS   "HELD BY"
#define PS_HEAD_COUNT     "COUNT"
#define PS_HEAD_UNHELD    "UNHELD"
#define PS_HEAD_ORPHANS   "ORPHANS"

#define PS_STATE_MEMFD     "memfd"
#define PS_STATE_UNLINKED  "unlinked"
#define PS_STATE_NAMED     "named"
#define PS_STATE_ELSEWHERE "elsewhere"

#define PS_NO_HOLDERS     "none seen"
#define PS_TOTAL_SEGMENTS "total: %zu segments" /* two or more */
#define PS_ESTIMATED      "~ estimated: at least as much as one of its holders has in memory"

/* --- Below the tables: a label, and what stands beside it ----------------------------------------------- */

#define PS_LABEL_ATTRIBUTED   "attributed"
#define PS_ATTRIBUTED         "%s held by processes that are visible here"
#define PS_LABEL_UNATTRIBUTED "unattributed"
#define PS_UNHELD             "%s in files that no visible process holds (see shmguard clean -n)"
#define PS_UNSEEN                                                                                            \
    "%s out of sight: held in another container or namespace, or in transit between two processes"
#define PS_UNSEEN_UNREADABLE                                                                                 \
    "%s out of sight: held by processes that could not be read, in another container or namespace, or in "   \
    "transit between two processes"
#define PS_LABEL_MEMFD   "memfd"
#define PS_MEMFD         "%s outside /dev/shm"
#define PS_LABEL_THREADS "threads"
/* A pid, and a number. */
#define PS_THREADS_ONE                                                                                       \
    "pid %d has %u DataLoader worker that is a thread: its batches need no shared memory, so there is "      \
    "nothing to guard"
#define PS_THREADS_MANY                                                                                      \
    "pid %d has %u DataLoader workers that are threads: their batches need no shared memory, so there is "   \
    "nothing to guard"
#define PS_LABEL_UNREADABLE      "unreadable"
#define PS_UNREADABLE_ONE        "%zu process could not be read"
#define PS_UNREADABLE_MANY       "%zu processes could not be read"
#define PS_UNREADABLE_USERS_ONE  "%zu process of other users could not be read; root can read it"
#define PS_UNREADABLE_USERS_MANY "%zu processes of other users could not be read; root can read them"

/* --- clean ---------------------------------------------------------------------------------------------- */

#define CLEAN_REMOVED   "Removed"
#define CLEAN_TO_REMOVE "Would be removed"
#define CLEAN_KEPT      "Kept"
#define CLEAN_DONE      "%zu removed, %zu kept, %s freed"
#define CLEAN_DRY_RUN   "%zu would be removed, %zu kept, %s would be freed"
