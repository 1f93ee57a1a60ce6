/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a file in /dev/shm is open anywhere. The kernel grants a write lease only if the caller has the
 * only open description of the inode: there is no other descriptor, mapping or descriptor in flight, in any
 * process of any namespace (fcntl(2), F_SETLEASE). Only the owner of the file or a process with CAP_LEASE may
 * ask. While a lease is held, a process that opens the file waits, and the holder gets SIGURG.
 */
#pragma once

#include "root.h"

/* Whether any process except the caller has it open. */
typedef enum FileOpen {
    OPEN_NOT_ASKED,
    OPEN_NOWHERE,
    OPEN_SOMEWHERE,
    OPEN_CANNOT_TELL, /* the file is not ours, or the file system has no leases */
} FileOpen;

/* Takes the lease on fd, which must be the caller's only descriptor of the file; it is released when fd is
 * closed. */
FileOpen lease_take(int fd);

/*
 * Whether any process has the file behind fd, which was opened read-only, open for writing. The kernel grants
 * a read lease only if none has; it is released at once, so that a writer that comes meanwhile can continue.
 */
FileOpen lease_ask_writers(int fd);

/* Still held, and no process is waiting to open the file. */
bool lease_held(int fd);

/* Opens the file of that name in /dev/shm, asks, and releases it at once. A captured tree has the answer of
 * that time. */
FileOpen lease_ask(const Root *root, Text name);

/*
 * Opens a file in /dev/shm for reading, to ask about it: below /dev/shm and through no symbolic link. -ELOOP
 * or -EXDEV: the name leads elsewhere. ret_directory, if not NULL, is the directory that it is in, to unlink
 * it from.
 */
int shm_file_open(const Root *root, Text name, int *ret_directory);
