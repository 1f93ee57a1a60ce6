/* SPDX-License-Identifier: Apache-2.0 */
/* What `report` tells people of several recordings in a terminal. */
#pragma once

#include "language.h"

#define FLEET_LATE_RANK _("Rank %d (%s) is late.")
#define FLEET_LATE_NODE _("The training on %s is late.")
#define FLEET_NONE_LATE _("No rank is late: none waits for batches much longer than the others.")
#define FLEET_GROWS     _("%s: %s in %s (shmguard report on that file alone says more)") /* title, rate, file */

#define FLEET_LABEL_JOB    _("job")
#define FLEET_LABEL_MERGED _("merged")
#define FLEET_MERGED       _("recordings: %zu, nodes: %zu, ranks: %zu")
#define FLEET_LABEL_CLOCKS _("clocks")
#define FLEET_LABEL_NOTE   _("note")
#define FLEET_JOBS         _("The recordings are of %zu different jobs, whose ranks may have the same numbers.")

#define FLEET_RANKS        _("Ranks (shares of the time for which each was recorded)")
#define FLEET_HEAD_RANK    N_("RANK")
#define FLEET_HEAD_NODE    N_("NODE")
#define FLEET_HEAD_ATTEMPT N_("ATTEMPT")
#define FLEET_HEAD_TIME    N_("TIME")
#define FLEET_HEAD_STEP    N_("PER MARK")
#define FLEET_HEAD_LOADER  N_("LOADER")
#define FLEET_HEAD_ROOM    N_("ROOM")
#define FLEET_HEAD_CPU     N_("CPU")
#define FLEET_HEAD_DISK    N_("DISK")
#define FLEET_HEAD_WORK    N_("AT WORK")
#define FLEET_HEAD_RSS     N_("RSS")
#define FLEET_HEAD_LATE    N_("LATE")
#define FLEET_HEAD_FILE    N_("FILE")

/* What a late rank's workers wait for. */
#define FLEET_WHY_ROOM    N_("waits for room")
#define FLEET_WHY_CPU     N_("waits for a CPU")
#define FLEET_WHY_DISK    N_("waits for a disk")
#define FLEET_WHY_WORK    N_("its workers compute")
#define FLEET_WHY_UNKNOWN N_("why is not known")

#define FLEET_NODES       _("Nodes (each figure at its peak)")
#define FLEET_HEAD_RANKS  N_("RANKS")
#define FLEET_HEAD_MEMORY N_("LEAST FREE")
#define FLEET_HEAD_GROUP  N_("CONTROL GROUP")
#define FLEET_HEAD_SHM    N_("/DEV/SHM")
#define FLEET_HEAD_GUARD  N_("GUARD")
#define FLEET_HEAD_WAITS  N_("WAITS")
#define FLEET_HEAD_KILLS  N_("OOM KILLS")
