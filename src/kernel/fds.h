/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/fd: what a process has open. */
#pragma once

#include "root.h"

typedef struct FdEntry {
    int fd;
    Text target; /* of the link, as "/dev/shm/torch_…" or "/memfd:x" or "socket:[12]"; without " (deleted)" */
    bool deleted; /* the target ended in " (deleted)". Only a hint: check st_nlink */
} FdEntry;

/* Splits the text of the link. */
void fd_target_parse(Text link, FdEntry *ret);

/* Calls visit for each descriptor until it returns non-zero, which is then the result; 0 after the last;
 * negative errno if the process cannot be read. The target is empty if it is longer than PATH_MAX. ret_count
 * (may be NULL) is their number, written on success. A zombie has none, but only root may see that: -EACCES
 * to others. */
typedef int (*FdVisit)(const FdEntry *entry, void *context);
int fds_visit(const Root *root, int pid, FdVisit visit, void *context, uint32_t *ret_count);

/*
 * How many descriptors a process has open. Since Linux 6.2 the kernel tells (fds_count_quick; -EOPNOTSUPP on
 * older kernels and for a process that has none); before that, and in captured trees, they are counted one by
 * one.
 */
int fds_count(const Root *root, int pid, uint64_t *ret);
int fds_count_quick(const Root *root, int pid, uint64_t *ret);

int fd_stat(const Root *root, int pid, int fd, FileStat *ret);
