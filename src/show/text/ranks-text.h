/* SPDX-License-Identifier: Apache-2.0 */
/* What `report` tells people of several recordings in a terminal. */
#pragma once

#define FLEET_LATE_RANK "Rank %d (%s) is late."
#define FLEET_LATE_NODE "The training on %s is late."
#define FLEET_NONE_LATE "No rank is late: none waits for batches much longer than the others."
#define FLEET_GROWS     "%s: %s in %s (shmguard report on that file alone says more)" /* title, rate, file */

#define FLEET_LABEL_JOB    "job"
#define FLEET_LABEL_MERGED "merged"
#define FLEET_MERGED       "recordings: %zu, nodes: %zu, ranks: %zu"
#define FLEET_LABEL_CLOCKS "clocks"
#define FLEET_LABEL_NOTE   "note"
#define FLEET_JOBS         "The recordings are of %zu different jobs, whose ranks may have the same numbers."

#define FLEET_RANKS        "Ranks (shares of the time for which each was recorded)"
#define FLEET_HEAD_RANK    "RANK"
#define FLEET_HEAD_NODE    "NODE"
#define FLEET_HEAD_ATTEMPT "ATTEMPT"
#define FLEET_HEAD_TIME    "TIME"
#define FLEET_HEAD_STEP    "PER MARK"
#define FLEET_HEAD_LOADER  "LOADER"
#define FLEET_HEAD_ROOM    "ROOM"
#define FLEET_HEAD_CPU     "CPU"
#define FLEET_HEAD_DISK    "DISK"
#define FLEET_HEAD_WORK    "AT WORK"
#define FLEET_HEAD_RSS     "RSS"
#define FLEET_HEAD_LATE    "LATE"
#define FLEET_HEAD_FILE    "FILE"

/* What a late rank's workers wait for. */
#define FLEET_WHY_ROOM    "waits for room"
#define FLEET_WHY_CPU     "waits for a CPU"
#define FLEET_WHY_DISK    "waits for a disk"
#define FLEET_WHY_WORK    "its workers compute"
#define FLEET_WHY_UNKNOWN "why is not known"

#define FLEET_NODES       "Nodes (each figure at its peak)"
#define FLEET_HEAD_RANKS  "RANKS"
#define FLEET_HEAD_MEMORY "LEAST FREE"
#define FLEET_HEAD_GROUP  "CONTROL GROUP"
#define FLEET_HEAD_SHM    "/DEV/SHM"
#define FLEET_HEAD_GUARD  "GUARD"
#define FLEET_HEAD_WAITS  "WAITS"
#define FLEET_HEAD_KILLS  "OOM KILLS"
