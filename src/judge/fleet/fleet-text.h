/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of the ranks of a job. Shares are percentages; sizes and durations come with their units. */
#pragma once

/* --- Why a rank is late: what was seen, then what its workers wait for, then what to do ------------------
 */

#define FLEET_LATE_LOADER                                                                                    \
    "Its trainer waited for batches in %.0f%% of its time, the other ranks' trainers in %.0f%% (median)."
#define FLEET_LATE_BEHIND                                                                                    \
    "For the same marks it took %s longer than the other ranks (median), in %s of training."
#define FLEET_LATE_ROOM_ALONE                                                                                \
    "How long its trainer waited for batches is not known, but its workers waited for room far longer than " \
    "those of the other ranks."

#define FLEET_ROOM "Its workers waited for room in %.0f%% of the time (others: %.0f%%), with a budget of %s."
#define FLEET_ROOM_ADVICE                                                                                    \
    "Give it more memory (a higher limit of its control group, or --budget), or lower num_workers, "         \
    "prefetch_factor or the batch size."
#define FLEET_CPU "Its workers waited for a CPU in %.0f%% of the time (others: %.0f%%)."
#define FLEET_CPU_ADVICE                                                                                     \
    "Its node has fewer CPUs for it, or other jobs: compare \"shmguard doctor\" on both nodes, and start "   \
    "no "                                                                                                    \
    "more workers than there are CPUs."
#define FLEET_DISK "Tasks on its node waited for a disk in %.0f%% of the time (others: %.0f%%)."
#define FLEET_DISK_ADVICE                                                                                    \
    "Its node reads more slowly: copy the data to a local disk, or look for another job that uses the disk."
#define FLEET_WORK "Its workers did not wait: they computed in %.0f%% of the time (others: %.0f%%)."
#define FLEET_WORK_ADVICE                                                                                    \
    "Its samples cost more to make than those of the other ranks, or it has fewer workers: raise "           \
    "num_workers, or compare the data of the ranks."
#define FLEET_UNKNOWN "What its workers waited for is not among what was recorded."
#define FLEET_UNKNOWN_ADVICE                                                                                 \
    "A remote file system or a lock are likely: look at a worker with \"py-spy dump --pid PID\"."

/* --- Clocks --------------------------------------------------------------------------------------------- */

#define FLEET_CLOCK_MARKS "The clocks were aligned by the ranks' own marks: %zu in common."
#define FLEET_CLOCK_WALL  "The recordings have no marks in common: their times are those of the nodes' clocks."
#define FLEET_CLOCK_SOME                                                                                     \
    "%zu of %zu recordings were aligned by marks in common; the times of the others are those of their "     \
    "nodes' clocks."
