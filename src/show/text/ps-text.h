/* SPDX-License-Identifier: Apache-2.0 */
/* What `ps` and `clean` tell people. */
#pragma once

#include "language.h"

/* --- Processes ------------------------------------------------------------------------------------------ */

#define PS_PROCESSES    _("Processes (sizes in MiB)")
#define PS_NO_PROCESSES _("No training processes or shared-memory holders found.")

#define PS_HEAD_PID     N_("PID")
#define PS_HEAD_ROLE    N_("ROLE")
#define PS_HEAD_RSS     N_("RSS")
#define PS_HEAD_PSS     N_("PSS")
#define PS_HEAD_USS     N_("USS")
#define PS_HEAD_SHM     N_("SHM")
#define PS_HEAD_FDS     N_("FDS")
#define PS_HEAD_THREADS N_("THREADS")
#define PS_HEAD_START   N_("START")
#define PS_HEAD_COMMAND N_("COMMAND")

/* The last row. */
#define PS_TOTAL                _("total")
#define PS_TOTAL_PROCESSES_ONE  _("%zu process")
#define PS_TOTAL_PROCESSES_MANY _("%zu processes")

/* --- Segments ------------------------------------------------------------------------------------------- */

#define PS_NO_SEGMENTS _("No shared-memory segments found.")
#define PS_KINDS       _("Segments (--segments shows each)")

#define PS_HEAD_NAME      N_("NAME")
#define PS_HEAD_KIND      N_("KIND")
#define PS_HEAD_STATE     N_("STATE")
#define PS_HEAD_SIZE      N_("SIZE")
#define PS_HEAD_ALLOCATED N_("ALLOCATED")
#define PS_HEAD_ORPHAN    N_("ORPHAN")
#define PS_HEAD_HOLDERS   N_("HELD BY")
#define PS_HEAD_COUNT     N_("COUNT")
#define PS_HEAD_UNHELD    N_("UNHELD")
#define PS_HEAD_ORPHANS   N_("ORPHANS")

#define PS_STATE_MEMFD     _("memfd")
#define PS_STATE_UNLINKED  _("unlinked")
#define PS_STATE_NAMED     _("named")
#define PS_STATE_ELSEWHERE _("elsewhere")

#define PS_NO_HOLDERS     _("none seen")
#define PS_TOTAL_SEGMENTS _("total: %zu segments") /* two or more */
#define PS_ESTIMATED      _("~ estimated: at least as much as one of its holders has in memory")

/* --- Below the tables: a label, and what stands beside it ----------------------------------------------- */

#define PS_LABEL_ATTRIBUTED   _("attributed")
#define PS_ATTRIBUTED         _("%s held by processes that are visible here")
#define PS_LABEL_UNATTRIBUTED _("unattributed")
#define PS_UNHELD             _("%s in files that no visible process holds (see shmguard clean -n)")
#define PS_UNSEEN                                                                                            \
    _("%s out of sight: held in another container or namespace, or in transit between two processes")
#define PS_UNSEEN_UNREADABLE                                                                                 \
    _("%s out of sight: held by processes that could not be read, in another container or namespace, or in " \
      "transit between two processes")
#define PS_LABEL_MEMFD   _("memfd")
#define PS_MEMFD         _("%s outside /dev/shm")
#define PS_LABEL_THREADS _("threads")
/* A pid, and a number. */
#define PS_THREADS_ONE                                                                                       \
    _("pid %d has %u DataLoader worker that is a thread: its batches need no shared memory, so there is "    \
      "nothing to guard")
#define PS_THREADS_MANY                                                                                      \
    _("pid %d has %u DataLoader workers that are threads: their batches need no shared memory, so there is " \
      "nothing to guard")
#define PS_LABEL_UNREADABLE      _("unreadable")
#define PS_UNREADABLE_ONE        _("%zu process could not be read")
#define PS_UNREADABLE_MANY       _("%zu processes could not be read")
#define PS_UNREADABLE_USERS_ONE  _("%zu process of other users could not be read; root can read it")
#define PS_UNREADABLE_USERS_MANY _("%zu processes of other users could not be read; root can read them")

/* --- clean ---------------------------------------------------------------------------------------------- */

#define CLEAN_REMOVED   _("Removed")
#define CLEAN_TO_REMOVE _("Would be removed")
#define CLEAN_KEPT      _("Kept")
#define CLEAN_DONE      _("%zu removed, %zu kept, %s freed")
#define CLEAN_DRY_RUN   _("%zu would be removed, %zu kept, %s would be freed")
