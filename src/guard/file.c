/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"

int stat_call(int fd, struct stat *ret)
{
#ifdef SYS_fstat
    return (int)syscall(SYS_fstat, fd, ret);
#else
    return (int)syscall(SYS_newfstatat, fd, "", ret, AT_EMPTY_PATH);
#endif
}

int file_id(int fd, FileId *ret)
{
    struct stat st;
    if (stat_call(fd, &st) < 0)
        return -1;
    *ret = (FileId){
        .device = st.st_dev,
        .inode = st.st_ino,
        .size = (uint64_t)st.st_size,
        .allocated = (uint64_t)st.st_blocks * 512,
        .special = S_ISCHR(st.st_mode) ? st.st_rdev : 0,
        .links = (uint32_t)st.st_nlink,
        .regular = S_ISREG(st.st_mode),
    };
    return 0;
}

int fd_move_up(int fd)
{
    enum { LOWEST = 64 };
    int high = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST);
    if (high < 0) /* the limit of open files may be below LOWEST */
        return fd;
    real_close(fd);
    return high;
}

bool own_is_open(const OwnFd *own)
{
    FileId id;
    return own->fd >= 0 && file_id(own->fd, &id) == 0 && id.inode == own->inode && id.device == own->device;
}

void own_close(OwnFd *own)
{
    if (own_is_open(own))
        real_close(own->fd);
    own->fd = -1;
}

bool own_keep(int fd, OwnFd *ret)
{
    FileId id;
    *ret = (OwnFd){.fd = -1};
    if (fd < 0)
        return false;
    fd = fd_move_up(fd);
    if (file_id(fd, &id) < 0) {
        real_close(fd);
        return false;
    }
    *ret = (OwnFd){fd, id.device, id.inode};
    return true;
}

static void fd_path(int fd, char path[static 40])
{
    snprintf(path, 40, "/proc/self/fd/%d", fd);
}

int description_reopen(int fd, uint64_t device, uint64_t inode)
{
    char path[40];
    FileId id;
    fd_path(fd, path);
    int own = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (own >= 0 && (file_id(own, &id) < 0 || id.inode != inode || id.device != device)) {
        real_close(own);
        errno = ESTALE;
        return -1;
    }
    return own;
}

static bool lock_byte(int fd, int command, off_t byte, short *type)
{
    struct flock asked = {.l_type = *type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    if (fcntl(fd, command, &asked) < 0)
        return false;
    *type = asked.l_type;
    return true;
}

bool lock_share(int fd, off_t byte)
{
    short type = F_RDLCK;
    return lock_byte(fd, F_OFD_SETLK, byte, &type);
}

bool lock_alone(int fd, off_t byte)
{
    short type = F_WRLCK;
    return lock_byte(fd, F_OFD_SETLK, byte, &type);
}

void lock_give_up(int fd, off_t byte)
{
    short type = F_UNLCK;
    (void)lock_byte(fd, F_OFD_SETLK, byte, &type);
}

bool is_locked(int fd, off_t byte, bool otherwise)
{
    short type = F_WRLCK;
    return lock_byte(fd, F_OFD_GETLK, byte, &type) ? type != F_UNLCK : otherwise;
}

bool segment_is(int fd, const FileId *id)
{
    static const char prefix[] = "/memfd:" SEGMENT_NAME " (deleted)";
    char path[40];
    char target[sizeof prefix];
    if (!id->regular || id->links != 0)
        return false;
    fd_path(fd, path);
    ssize_t n = readlink(path, target, sizeof target);
    return n == sizeof prefix - 1 && memcmp(target, prefix, sizeof prefix - 1) == 0;
}
