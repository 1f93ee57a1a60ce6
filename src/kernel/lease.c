/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lease.h"
#include "shmfs.h"

static FileOpen lease_set(int fd, int type)
{
    /* By default an opener is announced by SIGIO, which kills. SIGURG is ignored unless it is caught. */
    if (fcntl(fd, F_SETSIG, SIGURG) < 0)
        return OPEN_CANNOT_TELL;
    if (fcntl(fd, F_SETLEASE, type) == 0)
        return OPEN_NOWHERE;
    return errno == EAGAIN ? OPEN_SOMEWHERE : OPEN_CANNOT_TELL;
}

FileOpen lease_take(int fd)
{
    return lease_set(fd, F_WRLCK);
}

/* NFS and SMB grant a lease if the server has delegated the file to us, and otherwise answer EAGAIN, whether
 * it is written to or not (nfs4_add_lease and cifs_setlease in the kernel). */
static bool refusal_tells(int fd)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return false;
    switch ((uint32_t)fs.f_type) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
        return false;
    default:
        return true;
    }
}

FileOpen lease_ask_writers(int fd)
{
    FileOpen open = lease_set(fd, F_RDLCK);
    if (open == OPEN_NOWHERE)
        (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    return open == OPEN_SOMEWHERE && !refusal_tells(fd) ? OPEN_CANNOT_TELL : open;
}

bool lease_held(int fd)
{
    return fcntl(fd, F_GETLEASE) == F_WRLCK;
}

int shm_file_open(const Root *root, Text name, int *ret_directory)
{
    char part[256];
    _cleanup_close_ int directory = openat(root->fd, SHM_PATH, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    for (Text component; text_until(&name, '/', &component);) {
        if (component.size == 0 || component.size >= sizeof part || text_equal(component, ".") ||
            text_equal(component, ".."))
            return -EXDEV;
        memcpy(part, component.data, component.size);
        part[component.size] = '\0';
        bool last = name.size == 0;
        int flags = last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY;
        int fd = openat(directory, part, flags | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return -errno;
        if (last) {
            if (ret_directory)
                *ret_directory = TAKE_FD(directory);
            return fd;
        }
        fd_close(directory);
        directory = fd;
    }
    return -ENOENT;
}

static FileOpen captured_ask(const Root *root, Text name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, SHM_PATH "/%.*s", (int)name.size, name.data) >= (int)sizeof path)
        return OPEN_CANNOT_TELL;
    int open = root_captured_open(root, path);
    return open < 0 ? OPEN_CANNOT_TELL : open ? OPEN_SOMEWHERE : OPEN_NOWHERE;
}

FileOpen lease_ask(const Root *root, Text name)
{
    if (!root->live)
        return captured_ask(root, name);
    _cleanup_close_ int fd = shm_file_open(root, name, NULL);
    return fd < 0 ? OPEN_CANNOT_TELL : lease_take(fd);
}
