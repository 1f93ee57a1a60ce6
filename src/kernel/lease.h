/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a file of /dev/shm open anywhere? The kernel grants a write lease only when the asker's is the only open
 * description of the inode: no other descriptor, mapping or descriptor in flight, in any process of any
 * namespace (fcntl(2), F_SETLEASE). Only the owner of the file or CAP_LEASE may ask. While a lease is held,
 * whoever opens the file waits, and the holder gets SIGURG.
 */
#pragma once

#include "root.h"

/* Whether anybody but the caller has it open. */
typedef enum FileOpen {
    OPEN_NOT_ASKED,
    OPEN_NOWHERE,
    OPEN_SOMEWHERE,
    OPEN_CANNOT_TELL, /* the file is not ours, or the file system has no leases */
} FileOpen;

/* Takes the lease on fd, which must be the caller's only one of the file; it is given back when fd is closed.
 */
FileOpen lease_take(int fd);

/*
 * Whether anybody has the file behind fd, which was opened for reading only, open for writing. The kernel
 * grants a read lease only when nobody has; it is given back at once, so that a writer who comes meanwhile
 * goes on.
 */
FileOpen lease_ask_writers(int fd);

/* Still held, and nobody is waiting to open the file. */
bool lease_held(int fd);

/* Opens the file of /dev/shm of that name, asks, and lets go at once. A captured tree has the answer of then.
 */
FileOpen lease_ask(const Root *root, Text name);

/*
 * Opens a file of /dev/shm for reading, to ask about it: below /dev/shm and through no symbolic link. -ELOOP
 * or -EXDEV when the name leads elsewhere. ret_directory, when not NULL, is the directory that it is in, to
 * unlink it from.
 */
int shm_file_open(const Root *root, Text name, int *ret_directory);
