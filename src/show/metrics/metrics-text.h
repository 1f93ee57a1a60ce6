/* SPDX-License-Identifier: Apache-2.0 */
/* What each metric means: the HELP lines of /metrics, and the table in docs/reference.md. */
#pragma once

#define METRIC_TEXT_BUILD    "Always 1; the version of shmguard, and the name of this machine."
#define METRIC_TEXT_SAMPLED  "When the machine was sampled last, in seconds since 1970."
#define METRIC_TEXT_SHM_SIZE "Size of /dev/shm."
#define METRIC_TEXT_SHM_USED "Memory in files of /dev/shm, including those without a name."
#define METRIC_TEXT_SHM_LEFT                                                                                 \
    "Estimated time until /dev/shm is full if the last two minutes continue; +Inf if that is more than an "  \
    "hour, NaN while too little is known."
#define METRIC_TEXT_MEMORY_LEFT                                                                              \
    "Estimated time until memory is used up if the last two minutes continue; +Inf if that is more than an " \
    "hour, NaN while too little is known."
#define METRIC_TEXT_SEGMENTS                                                                                 \
    "Allocated memory of the segments in /dev/shm (backing=shm) and of memfds (backing=memfd) by kind. "     \
    "Sampled in turns."
#define METRIC_TEXT_ORPHAN_BYTES                                                                             \
    "Memory of segments that provably belong to no process, which shmguard clean removes. Looked at once a " \
    "minute."
#define METRIC_TEXT_ORPHANS   "Number of these segments."
#define METRIC_TEXT_PROCESSES "Number of training processes and holders of shared memory by role."
#define METRIC_TEXT_RSS       "Resident memory; shared pages count in full for each process."
#define METRIC_TEXT_PSS                                                                                      \
    "Resident memory with shared pages divided among their users. Sampled in turns: a sum over processes "   \
    "is an estimate."
#define METRIC_TEXT_USS "Resident memory that no other process shares. Sampled in turns."
#define METRIC_TEXT_SHM "Allocated memory of the segments that it holds. Sampled in turns."
#define METRIC_TEXT_FDS "Number of open descriptors; of several processes, the most of one of them."
#define METRIC_TEXT_FDS_MOST                                                                                 \
    "Soft limit of open descriptors of the trainer, which its workers inherit; absent without one."
#define METRIC_TEXT_MEMORY_LIMIT                                                                             \
    "Memory that can be used here: the limit of the tightest control group, otherwise the RAM."
#define METRIC_TEXT_MEMORY_AVAILABLE "Memory that is still available under that limit."
#define METRIC_TEXT_OOM_KILLS                                                                                \
    "OOM kills in that control group, or without one on this machine since it was started."
#define METRIC_TEXT_GUARD_RUNS "Number of guarded runs (shmguard run) that can be seen."
#define METRIC_TEXT_GUARD_SEGMENTS                                                                           \
    "Segments that the guard has created, of all guarded runs since they were first seen."
#define METRIC_TEXT_GUARD_REUSED                                                                             \
    "Segments that the guard has recycled, of all guarded runs since they were first seen."
#define METRIC_TEXT_GUARD_WAITS                                                                              \
    "Requests that had to wait for room in a budget, of all guarded runs since they were first seen."
#define METRIC_TEXT_GUARD_REFUSED                                                                            \
    "Requests for memory that the guard refused, of all guarded runs since they were first seen."
#define METRIC_TEXT_GUARD_BYTES   "Memory in the guard's segments."
#define METRIC_TEXT_GUARD_BUDGET  "Memory that the budget allows; absent without a budget."
#define METRIC_TEXT_GUARD_WAITING "Requests that wait for room in the budget now."
#define METRIC_TEXT_GUARD_BATCHES "Batches that the DataLoader workers of a guarded run have sent."
#define METRIC_TEXT_STREAMS       "Number of pages that are open."
#define METRIC_TEXT_CPU           "CPU time that this shmguard has used."
#define METRIC_TEXT_MEMORY        "Resident memory of this shmguard."
