/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `run` tells people: before the command starts, while it runs, between attempts and at the end. Most
 * lines begin with "shmguard: ", which is not part of them.
 */
#pragma once

#include <inttypes.h>

/* --- Before it starts ----------------------------------------------------------------------------------- */

#define RUN_NO_THREAT       "found no threat to this job."
#define RUN_MEMORY          "Memory available: %s."
#define RUN_SHM             "Free in /dev/shm: %s."
#define RUN_SHM_GUARDED     "Free in /dev/shm: %s (tensors do not need it)."
#define RUN_OWN_SHM         "Free in the job's own /dev/shm: %s."
#define RUN_OWN_SHM_GUARDED "Free in the job's own /dev/shm: %s (tensors do not need it)."
#define RUN_DISK            "Free on the disk: %s."

/* --- The line of progress: its parts are separated by commas, and those that do not fit are left out ---- */

#define RUN_PROGRESS_FREEZING     "making the dataset immortal: %.1f million objects"
#define RUN_PROGRESS_BATCHES      "%.*f batches/s"
#define RUN_PROGRESS_TENSORS      "%.*f tensors/s"
#define RUN_PROGRESS_BYTES        "%s/s"
#define RUN_PROGRESS_SHARED_OF    "shared memory: %s of %s"
#define RUN_PROGRESS_SHARED       "shared memory: %s"
#define RUN_PROGRESS_WAITING_ONE  "%u worker waiting"
#define RUN_PROGRESS_WAITING_MANY "%u workers waiting"

/* --- While workers wait for memory that is not released ------------------------------------------------- */

#define RUN_CRAWL_ONE    "%" PRIu64 " worker is waiting, and no memory was released for %.0f s."
#define RUN_CRAWL_MANY   "%" PRIu64 " workers are waiting, and no memory was released for %.0f s."
#define RUN_CRAWL_KEEPER "Most of the shared memory is kept by %s: %s." /* a process, and a size */
#define RUN_CRAWL_IN_USE "%s of shared memory is in use."
#define RUN_CRAWL_BUDGET "The budget is %s."
#define RUN_CRAWL_RAISE  "Raise --budget, or keep copies (clone) instead of the batches."
#define RUN_CRAWL_COPY                                                                                       \
    "No more memory is available. Keep copies (clone) of what you need instead of the batches, or lower "    \
    "batch_size."

/* A process within a sentence. */
#define RUN_PROCESS_COMMAND "the command (pid %d)"
#define RUN_PROCESS_WORKER  "DataLoader worker %d"
#define RUN_PROCESS_TRAINER "trainer %d"
#define RUN_PROCESS_OTHER   "process %d (%s)"

/* --- What the guard did --------------------------------------------------------------------------------- */

#define RUN_TENSORS     "%s of shared tensors were kept out of /dev/shm, in at most %s of memory at a time."
#define RUN_MEMORY_PEAK "at most %s of shared memory was kept out of /dev/shm at a time."

/* Figures on one line, separated by semicolons. */
#define RUN_SEGMENTS  "segments issued: %" PRIu64 " (%" PRIu64 " created, %" PRIu64 "%% recycled)"
#define RUN_SMALL     "small tensors: %" PRIu64
#define RUN_LANE      "batches on the lane: %" PRIu64 " (%s by value)"
#define RUN_NAMES     "names kept: %" PRIu64 " (opened: %" PRIu64 ")"
#define RUN_WAITS     "waits for room: %" PRIu64 " (%.1f s in total)"
#define RUN_FALLBACKS "tensors that went through /dev/shm instead: %" PRIu64

#define RUN_FROZEN_ONE                                                                                       \
    "%" PRIu64 " object of the dataset (%s) made immortal in %.1f s, so that workers do not copy it"
#define RUN_FROZEN_MANY                                                                                      \
    "%" PRIu64 " objects of the dataset (%s) made immortal in %.1f s, so that workers do not copy them"
#define RUN_FROZEN_LEFT                                                                                      \
    "%s of a dataset stay in memory until the process ends: it was made immortal, and then dropped or "      \
    "replaced. Use --freeze off if that is too much."
#define RUN_FROZEN_FULL "not all of the dataset was made immortal: it is limited to a quarter of the memory."

/* Why no batch took the lane. */
#define RUN_NO_LANE_PYTHON  "no batch on the lane: it does not know this Python"
#define RUN_NO_LANE_TORCH   "no batch on the lane: it does not know this PyTorch"
#define RUN_NO_LANE_TRAINER "no batch on the lane: a trainer could not have read it"

#define RUN_WAITED_ONE                                                                                       \
    "workers waited for room during %.0f%% of the run, and %" PRIu64                                         \
    " batch passed the budget of %s because no memory was released."
#define RUN_WAITED_MANY                                                                                      \
    "workers waited for room during %.0f%% of the run, and %" PRIu64                                         \
    " batches passed the budget of %s because no memory was released."
#define RUN_WAITED_KEEPER "Most of the shared memory was kept by %s: %s." /* a process, and a size */
#define RUN_WAITED_COPY   "Keep copies (clone) of what you need instead of the batches."
#define RUN_WAITED_RAISE                                                                                     \
    "Keep copies (clone) of what you need instead of the batches, or use --budget %s (estimated)."

#define RUN_REFUSED_ONE     "%" PRIu64 " request for shared memory was refused; it was for %s."
#define RUN_REFUSED_MANY    "%" PRIu64 " requests for shared memory were refused; the largest was for %s."
#define RUN_REFUSED_MEMORY  "No memory was left."
#define RUN_REFUSED_BUDGET  "The budget is %s."
#define RUN_REFUSED_ENDURED "The command handled this and continued."

/* --- Why the guard had nothing to do, or less than it could have ---------------------------------------- */

#define RUN_IDLE_UNKNOWN "the guard saw no shared tensors"
#define RUN_IDLE_NO_TENSORS                                                                                  \
    "no shared tensors were made, so the guard had nothing to do. A DataLoader shares tensors when it has "  \
    "num_workers > 0."
#define RUN_IDLE_THREADS                                                                                     \
    "the DataLoader's workers were threads of the training process, which share its memory: no shared "      \
    "tensors were made, and there was nothing to guard."
#define RUN_IDLE_OTHER_USER                                                                                  \
    "processes of another user asked for the guard and were refused: it could not be shown that they "       \
    "belong to this job. Start shmguard after the change of user."
#define RUN_IDLE_INNER_RUN                                                                                   \
    "another shmguard within this one served the training; its own summary has the figures. One of the two " \
    "is enough."

/* %s is the name of a program. */
#define RUN_UNGUARDED           "%s (pid %d) ran without the guard."
#define RUN_UNGUARDED_MORE_ONE  "%s (pid %d) and %zu other process ran without the guard."
#define RUN_UNGUARDED_MORE_MANY "%s (pid %d) and %zu other processes ran without the guard."
#define RUN_UNGUARDED_USER      "It ran as user %u."
#define RUN_UNREADABLE                                                                                       \
    "shmguard is not allowed to inspect %s (pid %d), which ran as user %u, so it is unknown whether the "    \
    "guard was loaded in it. Inspecting it requires CAP_SYS_PTRACE: docker run --cap-add=SYS_PTRACE"

/* --- The end -------------------------------------------------------------------------------------------- */

#define RUN_STRAYS_ONE  "ended %u process that the command had left running"
#define RUN_STRAYS_MANY "ended %u processes that the command had left running"
#define RUN_LEFT_ONE    "%u process that the command had left running could not be ended"
#define RUN_LEFT_MANY   "%u processes that the command had left running could not be ended"

/* %s is a command line. */
#define RUN_WORK_ONE                                                                                         \
    "The command returned, but process %d (%s), which it had left running, was still working and was ended."
#define RUN_WORK_MANY                                                                                        \
    "The command returned, but %u processes that it had left running were still working and were ended. "    \
    "The busiest was process %d (%s)."
#define RUN_WORK_ADVICE                                                                                      \
    "A script that starts its training in the background must wait for it: put \"wait\" on its last line. "  \
    "The exit code is 1."

#define RUN_FRAME  "Python was at %s" /* "load.py line 9, in read" */
#define RUN_FIXES  "What to do:"
#define RUN_CAUSE  "cause: "
#define RUN_REPORT "report: %s"

/* --- Between attempts ----------------------------------------------------------------------------------- */

/* %s: the id of a cause. */
#define RUN_ATTEMPT          "attempt %u of %u starts in %u s, because the last one failed: %s."
#define RUN_ATTEMPT_VALUES   "Changed: %s." /* "batch=32 -> 16, accum=1 -> 2" */
#define RUN_ATTEMPT_SAME     "The values stay the same."
#define RUN_ATTEMPT_SMALLEST "There are no smaller values left to try."
#define RUN_EFFECTIVE_SAME   "The effective batch stays %" PRIu64 "."
#define RUN_EFFECTIVE_OTHER  "The effective batch changes: %" PRIu64 " %s %" PRIu64 "." /* %s: an arrow */
#define RUN_EFFECTIVE_FACTOR                                                                                 \
    "The effective batch becomes %.3g times as large, because gradients are not accumulated."

/* %s are paths, patterns of paths, and a duration. */
#define RUN_CONTINUES       "Continuing from %s."
#define RUN_CONTINUES_OLDER "Continuing from %s, which is %s older than this run."
#define RUN_BEGINS          "Starting from the beginning, because no complete checkpoint matches %s."

/* Newer checkpoints that cannot be used: a path, and what is wrong with it. */
#define RUN_SKIPPED            "Skipped: %s (%s)."
#define RUN_SKIPPED_EMPTY      "empty"
#define RUN_SKIPPED_TEMPORARY  "looks like a temporary file"
#define RUN_SKIPPED_WRITTEN    "still being written"
#define RUN_SKIPPED_CUT        "truncated"
#define RUN_SKIPPED_UNREADABLE "unreadable"
#define RUN_SKIPPED_MORE_ONE   "Skipped %zu more incomplete checkpoint."
#define RUN_SKIPPED_MORE_MANY  "Skipped %zu more incomplete checkpoints."

#define RUN_NO_ATTEMPT "not tried again: %s" /* a reason, by retry_words or the command */
