/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lease.h"
#include "shmfs-remove.h"

static bool is_expected(const struct stat *st, const FileStat *expected)
{
    FileStat found = file_stat_of(st);
    return S_ISREG(found.mode) && device_equal(found.device, expected->device) &&
           found.inode == expected->inode && found.changed == expected->changed;
}

static ShmRemoval lease_confirm(int fd)
{
    switch (lease_take(fd)) {
    case OPEN_NOWHERE:
        return lease_held(fd) ? SHM_REMOVED : SHM_KEPT_OPEN;
    case OPEN_SOMEWHERE:
        return SHM_KEPT_OPEN;
    case OPEN_NOT_ASKED:
    case OPEN_CANNOT_TELL:
        break;
    }
    return SHM_KEPT_UNSURE;
}

/* The last component of a name that shm_file_open has accepted; -ENOENT if it belongs to another file by now.
 */
static int last_unlink(int directory, Text name, const struct stat *opened)
{
    const char *slash = memrchr(name.data, '/', name.size);
    Text last = slash ? (Text){slash + 1, name.size - (size_t)(slash + 1 - name.data)} : name;
    char base[NAME_MAX + 1];
    if (last.size == 0 || last.size > NAME_MAX)
        return -EXDEV;
    memcpy(base, last.data, last.size);
    base[last.size] = '\0';
    struct stat st;
    if (fstatat(directory, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (st.st_ino != opened->st_ino || st.st_dev != opened->st_dev)
        return -ENOENT;
    return unlinkat(directory, base, 0) < 0 ? -errno : 0;
}

int shmfs_remove(const Root *root, Text name, const FileStat *expected, ShmRemoval *ret,
                 uint64_t *ret_freed_bytes)
{
    _cleanup_close_ int directory = -EBADF;
    _cleanup_close_ int fd = shm_file_open(root, name, &directory);
    if (fd == -EWOULDBLOCK || fd == -ELOOP || fd == -ENXIO) {
        /* Another tool's lease, or a link or a socket in the file's place. */
        *ret = fd == -EWOULDBLOCK ? SHM_KEPT_OPEN : SHM_KEPT_CHANGED;
        *ret_freed_bytes = 0;
        return 0;
    }
    if (fd < 0)
        return fd;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;

    ShmRemoval outcome = is_expected(&st, expected) ? lease_confirm(fd) : SHM_KEPT_CHANGED;
    if (outcome == SHM_REMOVED) {
        int r = last_unlink(directory, name, &st);
        if (r < 0)
            return r;
    }
    *ret = outcome;
    *ret_freed_bytes = outcome == SHM_REMOVED && st.st_nlink == 1 ? (uint64_t)st.st_blocks * 512 : 0;
    return 0;
}
