/* SPDX-License-Identifier: Apache-2.0 */
/* What `plan` tells people. Sizes and durations are placeholders that come with their units. */
#pragma once

/* --- Notes ---------------------------------------------------------------------------------------------- */

/* A kind of training, as --kind takes it. */
#define PLAN_NOTE_KIND                                                                                       \
    "A rule of thumb for %s training: %llu to %llu GiB per job. Nothing was computed or measured; give "     \
    "--sample, --batch and --workers, or --measure."
#define PLAN_NOTE_KIND_OVER                                                                                  \
    "A rule of thumb for %s training: over %llu GiB per job. Nothing was computed or measured; give "        \
    "--sample, --batch and --workers, or --measure."
#define PLAN_NOTE_NCCL                                                                                       \
    "Estimated and added to the recommended size: %s for NCCL's segments between ranks (two channels of "    \
    "9.2 MiB per rank, used where the GPUs cannot reach each other directly; over NVLink, segments of "      \
    "that size are not used)."
#define PLAN_NOTE_GLOO                                                                                       \
    "Estimated and added to the recommended size: %s for Gloo's all-reduce through shared memory (66 MiB "   \
    "per rank where it is enabled, otherwise none)."
#define PLAN_NOTE_SHARE                                                                                      \
    "%s is %.0f%% of the memory here (%s), above a quarter. The training cannot use that memory for "        \
    "anything else. Lower the batch size, the number of workers or prefetch_factor."
#define PLAN_NOTE_ROW_ONE  "The figures are for %llu job per GPU, the last row of the table."
#define PLAN_NOTE_ROW_MANY "The figures are for %llu jobs per GPU, the last row of the table."
#define PLAN_NOTE_PAGES    "/dev/shm is mounted with pages of %s, and each tensor is rounded up to whole pages."
#define PLAN_NOTE_MARGIN                                                                                     \
    "It would fit without the margin, but then anything else that is put into /dev/shm ends the job."

/* --- The answer: a label, and what stands beside it ----------------------------------------------------- */

#define PLAN_LABEL_LOADER "loader"

#define PLAN_LABEL_BATCH "one batch"
#define PLAN_BATCH_ONE   "%s in %llu tensor"
#define PLAN_BATCH_MANY  "%s in %llu tensors"

#define PLAN_LABEL_IN_FLIGHT "in flight"
#define PLAN_IN_FLIGHT       "%llu batches (workers x prefetch + kept by the trainer: %llu x %llu + %llu)"

#define PLAN_LABEL_MEASURED    "measured"
#define PLAN_MEASURED_PEAK     "%s at most in %s"
#define PLAN_MEASURED_NOW      "%s now"
#define PLAN_MEASURED_TRAINERS "trainers: %llu"
#define PLAN_MEASURED_WORKERS  "workers per trainer: %llu"

#define PLAN_LABEL_NEEDED    "needed"
#define PLAN_NEEDED_ONE      "%s (%s): %llu trainer x %s" /* the second is one of the sources below */
#define PLAN_NEEDED_MANY     "%s (%s): %llu trainers x %s"
#define PLAN_SOURCE_KIND     "a rule of thumb"
#define PLAN_SOURCE_GIVEN    "as given"
#define PLAN_SOURCE_COMPUTED "computed"
#define PLAN_SOURCE_MEASURED "measured"
#define PLAN_SOURCE_SCALED   "measured, then scaled"

#define PLAN_LABEL_BOUND "short peaks"
#define PLAN_BOUND       "up to %s, when samples take no time to make"

#define PLAN_LABEL_COLLECTIVES "in addition"
#define PLAN_COLLECTIVES       "%s for %s between the ranks (estimated)" /* nccl or gloo */

#define PLAN_LABEL_RECOMMENDED "recommended"
#define PLAN_RECOMMENDED       "%s for /dev/shm (margin %.4g, then rounded up)"
#define PLAN_RECOMMENDED_KIND  "%s for /dev/shm"

#define PLAN_LABEL_AVAILABLE  "available"
#define PLAN_AVAILABLE_SHM    "/dev/shm: %s"
#define PLAN_AVAILABLE_ANY    "/dev/shm: no known limit"
#define PLAN_AVAILABLE_MEMORY "memory: %s"

#define PLAN_LABEL_VERDICT "verdict"
#define PLAN_FITS          "fits (%s with the margin)"
#define PLAN_FITS_KIND     "fits (%s)"
#define PLAN_FITS_NOT      "does not fit (%s with the margin)"
#define PLAN_FITS_NOT_KIND "does not fit (%s)"
#define PLAN_FITS_UNKNOWN  "unknown: neither /dev/shm nor memory has a limit that can be read"

#define PLAN_LABEL_ROOM "room for"
#define PLAN_ROOM_ONE   "%llu trainer like this"
#define PLAN_ROOM_MANY  "%llu trainers like this"

#define PLAN_LABEL_LARGEST       "largest fit"
#define PLAN_LARGEST_NONE        "none: not even one worker fits"
#define PLAN_LARGEST_NONE_SAMPLE "none: not even one worker with batches of one sample fits"
#define PLAN_LARGEST_ONE         "%llu worker"
#define PLAN_LARGEST_MANY        "%llu workers"
#define PLAN_LARGEST_BATCH_ONE   "batch size %llu with %llu worker"
#define PLAN_LARGEST_BATCH_MANY  "batch size %llu with %llu workers"

/* --- Tables --------------------------------------------------------------------------------------------- */

#define PLAN_PEAKS             "Measured peaks, the largest of each role:"
#define PLAN_HEAD_ROLE         "role"
#define PLAN_HEAD_PROCESSES    "processes"
#define PLAN_HEAD_MEMORY       "memory"
#define PLAN_HEAD_SHARED       "shared"
#define PLAN_HEAD_PRIVATE      "private"
#define PLAN_HEAD_PER_GPU      "per GPU"
#define PLAN_HEAD_NEEDED       "needed"
#define PLAN_HEAD_RECOMMENDED  "recommended"
#define PLAN_LADDER_TITLE      "Safe settings (change one of the two at a time):"
#define PLAN_HEAD_SETTING      "setting"
#define PLAN_HEAD_SHARE        "of the room"
#define PLAN_HEAD_WORKERS      "workers"
#define PLAN_HEAD_WORKERS_WITH "workers with batch %llu"
#define PLAN_HEAD_BATCH_ONE    "batch with %llu worker"
#define PLAN_HEAD_BATCH_MANY   "batch with %llu workers"

/* --- What to do ----------------------------------------------------------------------------------------- */

#define PLAN_WAYS           "To get a /dev/shm of %s:"
#define PLAN_WAY_ENGINE     "docker run, podman run:"
#define PLAN_WAY_COMPOSE    "compose:"
#define PLAN_WAY_KUBERNETES "Kubernetes:"
#define PLAN_WAY_REMOUNT    "now, until the next boot:"
#define PLAN_WAY_FSTAB      "at every boot, a line in /etc/fstab:"
#define PLAN_WAY_GUARD                                                                                       \
    "Or leave it as it is: under \"shmguard run\" the size of /dev/shm no longer matters. RAM needed then: " \
    "%s."

/* --- Mistakes in what the user wrote, which is quoted --------------------------------------------------- */

#define PLAN_BAD_SHAPE_COMMA  "\"%s\" ends its shape with a comma"
#define PLAN_BAD_SHAPE        "\"%s\" has a shape that is not whole numbers; write it as float32[3,224,224]"
#define PLAN_BAD_SHAPE_ZERO   "\"%s\" has a dimension of 0, so it holds nothing"
#define PLAN_BAD_SHAPE_LONG   "\"%s\" has more dimensions than PyTorch allows (64)"
#define PLAN_BAD_SAMPLE_LARGE "\"%s\" is larger than any memory"
#define PLAN_BAD_SAMPLE_DTYPE "\"%s\" names no dtype; write it as float32[3,224,224]"
#define PLAN_BAD_SAMPLE_END   "\"%s\" has no ] at its end"
#define PLAN_BAD_DTYPE        "unknown dtype \"%s\"; PyTorch has uint8, int64, float16, bfloat16, float32 and others"
#define PLAN_BAD_FIELDS       "a sample has more than %d tensors"
#define PLAN_BAD_SETTING_NAME                                                                                \
    "unknown setting \"%s\"; the settings are sample, bytes, batch, workers, prefetch, held and collate"
#define PLAN_BAD_SETTING "\"%s\" is not a setting; write NAME=VALUE, as in workers=4"
#define PLAN_BAD_BOTH    "it has both sample= and bytes=; give only one of them"

/* The name of an option or a setting comes first: "--workers takes …". */
#define PLAN_BAD_COUNT       "takes a whole number from 1 to %llu, not \"%s\""
#define PLAN_BAD_SIZE_LARGE  "takes a size, and \"%s\" is larger than any memory"
#define PLAN_BAD_SIZE        "takes a size (64M, 1.5GiB), not \"%s\""
#define PLAN_BAD_SIZE_ZERO   "takes a size above 0, not \"%s\""
#define PLAN_BAD_MARGIN      "takes a factor from 1 (no margin) to 100, not \"%s\""
#define PLAN_BAD_RANGE_ORDER "takes a range from the smaller to the larger number, not \"%s\""
#define PLAN_BAD_RANGE_LONG  "takes a range of at most 1024 numbers, not \"%s\""
#define PLAN_BAD_COLLATE     "takes stack or list, not \"%s\""

/* --- Nodes: what to change on those of a group -----------------------------------------------------------
 */

#define NODES_CHANGE_SHM_ONE                                                                                 \
    "Enlarge /dev/shm to %s (mount -o remount,size=) for %llu job, or start it with shmguard run."
#define NODES_CHANGE_SHM_MANY                                                                                \
    "Enlarge /dev/shm to %s (mount -o remount,size=) for %llu jobs, or start them with shmguard run."
#define NODES_CHANGE_SMALLER                                                                                 \
    "Lower the batch size, num_workers or prefetch_factor: each job takes less memory."
#define NODES_CHANGE_CPUS    "Lower num_workers: each process counts as one CPU."
#define NODES_CHANGE_WORKERS "With %llu workers per trainer, %llu jobs have a CPU for each process."
#define NODES_CHANGE_FILES   "Raise the limit of open files to %llu or more: ulimit -n, or LimitNOFILE=."
#define NODES_CHANGE_UNKNOWN "Nothing is known of these nodes: add columns to the list, or give --memory."

#define NODES_TITLE         "Nodes like these, and how many jobs fit on each:"
#define NODES_LABEL_TOTAL   "nodes"
#define NODES_TOTAL         "%llu jobs on %llu of %llu nodes"
#define NODES_LABEL_GUARDED "guarded"
#define NODES_GUARDED       "%llu jobs (shmguard run: the size of /dev/shm does not matter)"
#define NODES_LABEL_JOB     "each job"
#define NODES_JOB           "/dev/shm %s, memory %s, CPUs %llu, open files %llu (estimated)"
#define NODES_JOB_ALONE     "/dev/shm %s, memory %s, CPUs %llu"
#define NODES_WANTED_NOT    "%llu jobs were asked for; %llu fit."
#define NODES_WANTED        "All %llu jobs that were asked for fit."
#define NODES_NOTE_UNKNOWN  "The list says nothing about: %s. That does not limit anything here."
#define NODES_NOTE_PRIVATE                                                                                   \
    "The private memory of the processes is not counted; give it with --process-memory SIZE (shmguard ps "   \
    "shows the USS of a running job)."
#define NODES_MORE         "%zu more kinds of nodes are listed by --json."
#define NODES_HEAD_NODES   "NODES"
#define NODES_HEAD_EXAMPLE "SUCH AS"
#define NODES_HEAD_CPUS    "CPUS"
#define NODES_HEAD_MEMORY  "MEMORY"
#define NODES_HEAD_SHM     "SHM"
#define NODES_HEAD_GPUS    "GPUS"
#define NODES_HEAD_FILES   "FILES"
#define NODES_HEAD_JOBS    "JOBS"
#define NODES_HEAD_LIMIT   "LIMITED BY"
#define NODES_HEAD_GUARDED "GUARDED"
#define NODES_CHANGES      "What to change:"
#define NODES_CHANGE       "%s: %s" /* the name of a node, a sentence */

/* --- Mistakes in a list of nodes. FILE:LINE comes first --------------------------------------------------
 */

#define NODES_BAD_NAME  "\"%s\" is not the name of a node (letters, digits, dots and dashes; at most %d bytes)"
#define NODES_BAD_SIZE  "%s takes a size (64G, 1.5TiB), not \"%s\""
#define NODES_BAD_COUNT "%s takes a whole number, not \"%s\""
#define NODES_BAD_COLUMN                                                                                     \
    "\"%s\" is not one of the columns, or is there twice; they are name, cpus, memory, shm, gpus and "       \
    "open_files"
#define NODES_TOO_WIDE     "there are more than %zu columns; give name,cpus,memory,shm,gpus,open_files"
#define NODES_NO_NAME      "the node has no name; give each line a name"
#define NODES_TOO_MANY     "there are more than %d nodes; split the list"
#define NODES_BAD_VALUE    "%s takes a number or a string"
#define NODES_BAD_JSON     "this is not JSON: %s; write one object per line, as {\"name\": \"n1\", \"cpus\": 64}"
#define NODES_NO_OBJECT    "this is not a JSON object; write one per line, as {\"name\": \"n1\", \"cpus\": 64}"
#define NODES_BAD_QUANTITY "%s is \"%s\", which is not a quantity of Kubernetes"
#define NODES_NO_ITEMS     "there are no items; give the output of kubectl get nodes -o json"
#define NODES_NONE                                                                                           \
    "there is no node in it; give lines of name,cpus,memory,shm,gpus,open_files, or the output of "          \
    "scontrol show nodes, sinfo or kubectl get nodes -o json"
