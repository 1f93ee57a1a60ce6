/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>

#include "guard.h"

/*
 * PyTorch takes two descriptors for the same tensor if fstat says that they are the same file, and remembers
 * that for as long as the tensor's storage lives. Files in /dev/shm are new each time; segments are not. So
 * fstat reports a different inode for each issue of a segment: the segment's own in the lower INODE_BITS, the
 * number of the issue above them.
 *
 * The number must be the same in all processes that have the issue, and different for every other issue. So
 * it is kept where the issue itself is: in the handed-out description, as the position of a lock. Copies of
 * the descriptor share it, whether made by dup, fork or a socket; no program changes it by accident; it ends
 * with the description. F_GETLK asks on behalf of the process, and therefore sees what the description itself
 * has locked. The kernel drops all locks of a description in one step, so an issue that is over is never seen
 * beside the next one.
 *
 * No two files get the same inode: the kernel counts inodes of memfds up from 1, and would have to create
 * 2^40 of them to reach one of ours. A segment whose own inode is larger, or that was issued too often, is
 * not issued again. Nor is one whose mark cannot be read back (in a sandbox that refuses F_GETLK).
 *
 * There is no state here, so it works in signal handlers, in children of vfork, and where the guard is off.
 */
enum { INODE_BITS = 40, ISSUES_MAX = ISSUES_PER_PRODUCER * PRODUCERS_MAX };
_Static_assert(ISSUES_MAX <= UINT64_C(1) << (63 - INODE_BITS), "an issue has its place above the inode");

/* 0: the first issue, which has no mark. */
static uint64_t issue_of(int fd)
{
    struct flock found = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_ISSUE};
    int saved = errno;
    bool marked = real_fcntl(fd, F_GETLK, &found) == 0 && found.l_type == F_RDLCK && found.l_len == 1;
    errno = saved;
    uint64_t issue = marked ? (uint64_t)(found.l_start - LOCK_ISSUE) : 0;
    return issue < ISSUES_MAX ? issue : 0;
}

bool identity_set(int fd, uint64_t issue)
{
    return issue == 0 || (lock_share(fd, LOCK_ISSUE + (off_t)issue) && issue_of(fd) == issue);
}

bool identity_fits(uint64_t inode, uint64_t issue)
{
    return inode >> INODE_BITS == 0 && issue < ISSUES_MAX;
}

/* For most files no lock is queried. */
static uint64_t inode_shown(int fd, mode_t mode, uint64_t links, uint64_t size, uint64_t inode)
{
    bool may_be_segment = S_ISREG(mode) && links == 0 && size >= SEGMENT_MIN_BYTES && identity_fits(inode, 0);
    return may_be_segment ? inode | issue_of(fd) << INODE_BITS : inode;
}

void identity_stat(int fd, struct stat *st)
{
    st->st_ino = inode_shown(fd, st->st_mode, st->st_nlink, (uint64_t)st->st_size, st->st_ino);
}

void identity_statx(int fd, const char *path, struct statx *stx)
{
    if (!path || *path == '\0') /* Linux 6.11 and later also accept NULL */
        stx->stx_ino = inode_shown(fd, stx->stx_mode, stx->stx_nlink, stx->stx_size, stx->stx_ino);
}
