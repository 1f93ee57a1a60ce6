/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes a file in /dev/shm only if no process has it open. Another process may open it between the look
 * that found no holder and the unlink, so the kernel is asked once more, by a lease that is held during the
 * unlink.
 */
#pragma once

#include "root.h"

typedef enum ShmRemoval {
    SHM_REMOVED,
    SHM_KEPT_OPEN,    /* a process has it open, or is opening it now */
    SHM_KEPT_CHANGED, /* it is not the intended file: replaced, or written to meanwhile */
    SHM_KEPT_UNSURE,  /* the kernel grants us no lease here (it is not our file, and we have no CAP_LEASE) */
} ShmRemoval;

/*
 * expected: device, inode and the time of the last change must match. ret_freed_bytes is what the unlink
 * freed: 0 for a file that has a second name. -EXDEV: the name leaves /dev/shm; -ENOENT: it is gone; -EACCES
 * or -EPERM: not permitted; -EROFS; other errors are passed on.
 */
int shmfs_remove(const Root *root, Text name, const FileStat *expected, ShmRemoval *ret,
                 uint64_t *ret_freed_bytes);
