/* SPDX-License-Identifier: Apache-2.0 */
/* /dev/shm as a file system. */
#pragma once

#include "mounts.h"
#include "root.h"

#define SHM_PATH "dev/shm" /* below the root; people know it as /dev/shm */

typedef enum ShmState {
    SHM_OK,
    SHM_ABSENT,    /* no such directory */
    SHM_NOT_TMPFS, /* a directory of another file system: shared memory on a disk, or nothing is mounted */
    SHM_UNKNOWN,   /* could not be read */
} ShmState;

/* Who mounted it, where its traces tell. */
typedef enum ShmOwner {
    SHM_OWNER_UNKNOWN,
    SHM_OF_POD, /* an emptyDir of Kubernetes with medium: Memory */
    SHM_OF_JOB, /* Slurm's job_container/tmpfs: each job has its own */
} ShmOwner;

typedef struct ShmMount {
    ShmState state;
    ShmOwner owner;
    Device device;
    uint64_t size_bytes;      /* 0 with no limit (mount -o size=0) */
    uint64_t used_bytes;      /* U64_UNKNOWN with no limit: the kernel does not count then */
    uint64_t available_bytes; /* U64_UNKNOWN with no limit */
    uint64_t inodes;          /* 0: no limit */
    uint64_t inodes_free;
    bool mounted; /* a mount of its own, rather than a directory of /dev */
    bool sized;   /* its size was chosen: it is not the kernel's default, half of the memory */
    bool read_only;
    bool no_access; /* this user may not create files in it */
    bool huge;      /* huge pages for every file: sizes are rounded up to 2 MiB */
} ShmMount;

/* kubernetes, slurm: the process is in a pod, or in a job of Slurm. */
ShmOwner shm_owner_find(const Mounts *mounts, bool kubernetes, bool slurm);

/* Never fails: what is wrong is in `state`. */
void shmfs_read(const Root *root, const Mounts *mounts, ShmMount *ret);

/*
 * Calls visit for each regular file of the mount, including subdirectories (up to 4 levels), until it returns
 * non-zero, which is then the result; 0 after the last; negative errno if the directory cannot be read. name
 * is relative to the mount. Links are not followed, and other mounts below it are not entered.
 */
typedef int (*ShmVisit)(const char *name, const FileStat *stat, void *context);
int shmfs_visit(const Root *root, ShmVisit visit, void *context);
