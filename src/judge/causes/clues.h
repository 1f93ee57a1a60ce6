/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a log can say.
 *
 * Pattern: literals that appear together in one line. Several patterns, such as the wordings of old and new
 * versions, lead to one clue.
 *
 * Clue: one thing that happened, or that the log mentions.
 *
 * Tier: how much a clue shows: the cause itself, a cause only if no better clue is found, a mere
 * after-effect, or background that changes how other clues are read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cause.h"

typedef enum Clue {
    /* causes */
    CLUE_SHM_FULL,
    CLUE_SHM_STALE_ERRNO,
    CLUE_SHM_WRITE,
    CLUE_SHM_RESIZE,
    CLUE_SHM_FILE,
    CLUE_SHM_PYTHON,
    CLUE_SHM_SEMAPHORE,
    CLUE_SHM_JOBLIB,
    CLUE_SHM_OBJECT_STORE,
    CLUE_SHM_INODES,
    CLUE_SHM_NCCL,
    CLUE_NCCL_SEGMENT,
    CLUE_SHM_EMPTYDIR,
    CLUE_BUS_WORKER,
    CLUE_BUS,
    CLUE_FD,
    CLUE_FD_SYSTEM,
    CLUE_OPEN_FAILED,
    CLUE_MAPS,
    CLUE_MMAP_MEMORY,
    CLUE_SEGMENT_GONE,
    CLUE_SEGMENT_UNLINK,
    CLUE_PYTHON_SEGMENT_GONE,
    CLUE_NCCL_SEGMENT_GONE,
    CLUE_OOM_CGROUP,
    CLUE_OOM_SCHEDULER,
    CLUE_OOM_KUBERNETES,
    CLUE_OOM_MACHINE,
    CLUE_OOM_DAEMON,
    CLUE_OOM_RAY,
    CLUE_OOM_SOME,
    CLUE_SIGKILL_WORKER,
    CLUE_SIGKILL,
    CLUE_TIME_LIMIT,
    CLUE_PREEMPTED,
    CLUE_REQUEUED,
    CLUE_NODE_FAILURE,
    CLUE_CANCELLED,
    CLUE_EVICTED,
    CLUE_SEGFAULT,
    CLUE_HEAP,
    CLUE_CUDA_FORK,
    CLUE_CUDA_INIT,
    CLUE_GPU_MEMORY,
    CLUE_CUDA_ERROR,
    CLUE_NCCL_CUDA,
    CLUE_NOT_PICKLABLE,
    CLUE_MAIN_ATTRIBUTE,
    CLUE_MAIN_GUARD,
    CLUE_NESTED,
    CLUE_SHM_DENIED,
    CLUE_HOST_MEMORY,
    CLUE_FORK_MEMORY,
    CLUE_MMAP_FILE,
    CLUE_PINNED_MEMORY,
    CLUE_THREADS,
    CLUE_DISK_FULL,
    CLUE_DISK_WRITE,
    CLUE_COLLATE_SHAPES,
    CLUE_COLLATE_STORAGE,
    /* causes if no better clue is found */
    CLUE_TIMEOUT,
    CLUE_SIGTERM_WORKER,
    CLUE_SIGTERM,
    CLUE_HANGUP,
    CLUE_INTERRUPTED,
    CLUE_COLLECTIVE_TIMEOUT,
    CLUE_BROADCAST,
    CLUE_CONNECT,
    CLUE_WORKER_LEFT,
    CLUE_JOB_CONTAINER,
    CLUE_OBJECT_STORE_SLOW,
    CLUE_BLOCKED,
    CLUE_GPU_FAULT,
    CLUE_ABORTED,
    CLUE_FPE,
    CLUE_ILLEGAL,
    CLUE_CPP,
    /* after-effects */
    CLUE_WORKER_EXITED,
    CLUE_POOL_BROKEN,
    CLUE_PIN_THREAD,
    CLUE_PARENT_GONE,
    CLUE_PEER_LOST,
    CLUE_CHILD_FAILED,
    CLUE_NCCL_ERROR,
    CLUE_LEAKED,
    CLUE_TEARDOWN,
    /* background */
    CLUE_CPP_WHAT,
    CLUE_FORK_WARNING,
    CLUE_SHARING_CODE,
    CLUE_FINISHED,
    CLUE_WAITING,
    CLUE_ROOT_CAUSE,
    CLUE_MAPPED_FILE,
    CLUE_MAPPED_READER,
    CLUE_STORAGE,
    CLUE_DF,
    CLUE_VERSION,
    CLUE_CGROUP_USAGE,
    CLUE_NO_OOM,
    CLUE_NCCL_WARN,
    CLUE_WORKER_THREADS,
    CLUE_IN_DOCKER,
    CLUE_IN_KUBERNETES,
    CLUE_IN_SLURM,
    CLUE_IN_MACOS,
    CLUE_IN_WINDOWS,
    CLUE_PYTORCH,
    CLUE_FILE_SYSTEM_USED,
    CLUE_SAYS_FILE_SYSTEM,
    CLUE_SAYS_PIN_MEMORY,
    CLUE_SAYS_GC,
    CLUE_SAYS_LS,
    CLUE_SAYS_SHM,
    CLUE_SAYS_RSS_SHMEM,
    CLUES,
} Clue;

typedef enum ClueTier {
    TIER_CAUSE,
    TIER_FALLBACK,
    TIER_SYMPTOM,
    TIER_CONTEXT,
} ClueTier;

typedef struct ClueInfo {
    ClueTier tier;
    CauseId cause;
    double confidence;    /* if there are no other clues */
    const char *detail;   /* or NULL */
    const char *evidence; /* what the line means */
    const char *summary;  /* with {pid} (clues-text.h); NULL for symptoms and context */
    const char *fix;      /* a change to the training itself, or NULL */
    const char *command;  /* for fix, or NULL */
} ClueInfo;

extern const ClueInfo clue_infos[CLUES];

typedef enum PatternPlace {
    PLACE_ANYWHERE,
    PLACE_EXCEPTION, /* only in the line of a Python exception */
    PLACE_HOST,      /* only before a name that a container has by default */
    PLACE_SEGMENT,   /* only in a line that names a segment of PyTorch */
    PLACE_AFFIRMED,  /* only where no word before it denies it: "I do not use docker" */
    PLACE_DEATH,     /* where a death by signal is reported (logged-death.h), which also gives the clue */
} PatternPlace;

typedef enum PatternPid {
    PID_NONE,
    PID_LINE, /* the line names the process that died */
    PID_FILE, /* the segment's name begins with the pid of its creator, which is the process that failed */
} PatternPid;

typedef struct Pattern {
    Clue clue;
    const char *needle; /* NULL with PLACE_DEATH */
    const char *also;   /* must be in the same line */
    const char *above;  /* must be in the traceback above the line */
    const char *unless; /* must not be in the line */
    PatternPlace place;
    PatternPid pid;
} Pattern;

/* Of a line only the first matching pattern counts (TIER_CONTEXT aside), so special patterns come first. */
extern const Pattern patterns[];
extern const size_t n_patterns;
