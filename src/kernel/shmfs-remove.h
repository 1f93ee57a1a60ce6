/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing a file of /dev/shm that belongs to nobody, and only then. Between the look that found it unheld
 * and the unlink somebody may open it: the kernel is asked once more, by a lease that is held over the
 * unlink.
 */
#pragma once

#include "root.h"

typedef enum ShmRemoval {
    SHM_REMOVED,
    SHM_KEPT_OPEN,    /* somebody has it open, or is opening it now */
    SHM_KEPT_CHANGED, /* not the file that was meant: replaced, or written to since */
    SHM_KEPT_UNSURE,  /* the kernel grants us no lease here (not our file and no CAP_LEASE) */
} ShmRemoval;

/*
 * expected: device, inode and the time of the last change must be these. ret_freed_bytes is what the unlink
 * gave back: 0 for a file that has a second name. -EXDEV for a name that leaves /dev/shm, -ENOENT when it is
 * gone, -EACCES or -EPERM without the right, -EROFS; other errors as they come.
 */
int shmfs_remove(const Root *root, Text name, const FileStat *expected, ShmRemoval *ret,
                 uint64_t *ret_freed_bytes);
