/*
 * Removing a file of /dev/shm that belongs to nobody, and only then. Between the look that found it unheld
 * and the unlink somebody may open it: the kernel is asked once more, by a write lease. It grants one only
 * while no other open file description of the file exists anywhere, in whichever namespace: descriptors,
 * descriptors in flight in a socket and mappings all count. From then on whoever opens the file waits until
 * the lease is gone.
 */
#pragma once

#include "root.h"

typedef enum ShmRemoval {
    SHM_REMOVED,
    SHM_KEPT_OPEN,    /* somebody has it open, or is opening it now */
    SHM_KEPT_CHANGED, /* not the file that was meant: replaced, or written to since */
    SHM_KEPT_UNSURE,  /* the kernel grants us no lease here (not our file and no CAP_LEASE) */
} ShmRemoval;

typedef enum ShmProof {
    SHM_PROOF_LEASE, /* the kernel must confirm that nobody has it open */
    SHM_PROOF_OTHER, /* the caller has just made sure by other means; leases are not asked for */
} ShmProof;

/*
 * dir: a descriptor of the directory (/dev/shm). name: below it, without "..", no component a symbolic link.
 * expected: device, inode and the time of the last change must be these. Nothing is opened for writing.
 *
 * ret_freed_bytes is what the unlink gave back: 0 for a file that has a second name.
 * -EINVAL for a name that leaves the directory, -ENOENT when it is gone, -EACCES or -EPERM without the right,
 * -EROFS; other errors as they come.
 */
int shmfs_remove(int dir, const char *name, const FileStat *expected, ShmProof proof, ShmRemoval *ret,
                 uint64_t *ret_freed_bytes);
