#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shmfs-remove.h"

/* Opens the directory that holds the last component of name, one step at a time and never through a link. */
static int parent_open(int dir, const char *name, const char **ret_base)
{
    _cleanup_close_ int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    if (at < 0)
        return -errno;
    Text rest = text_of(name);
    Text part;
    while (text_until(&rest, '/', &part)) {
        char component[NAME_MAX + 1];
        if (part.size == 0 || part.size > NAME_MAX || text_equal(part, ".") || text_equal(part, ".."))
            return -EINVAL;
        if (rest.size == 0) {
            if (part.data[part.size] != '\0') /* "a/": a directory, not a file */
                return -EINVAL;
            *ret_base = part.data;
            return TAKE_FD(at);
        }
        memcpy(component, part.data, part.size);
        component[part.size] = '\0';
        int next = openat(at, component, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return -errno;
        fd_close(at);
        at = next;
    }
    return -EINVAL;
}

static bool is_expected(const struct stat *st, const FileStat *expected)
{
    FileStat found = file_stat_of(st);
    return S_ISREG(found.mode) && device_equal(found.device, expected->device) &&
           found.inode == expected->inode && found.changed == expected->changed;
}

/* Takes the lease that is the proof. SHM_REMOVED here: go ahead. */
static int lease_take(int fd, ShmRemoval *ret)
{
    /* The signal that tells of an opener would be SIGIO, which kills. SIGURG is ignored unless caught, and
     * this needs no change to how the whole process treats signals. */
    if (fcntl(fd, F_SETSIG, SIGURG) < 0)
        return -errno;
    if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
        /* Anything else than what we took means that the lease is being broken: somebody is in open() now. */
        *ret = fcntl(fd, F_GETLEASE) == F_WRLCK ? SHM_REMOVED : SHM_KEPT_OPEN;
        return 0;
    }
    switch (errno) {
    case EAGAIN:
        *ret = SHM_KEPT_OPEN;
        return 0;
    case EACCES: /* not our file */
    case EPERM:
    case EINVAL: /* no leases on this file system, or leases are switched off */
    case ENOSYS:
        *ret = SHM_KEPT_UNSURE;
        return 0;
    default:
        return -errno;
    }
}

int shmfs_remove(int dir, const char *name, const FileStat *expected, ShmProof proof, ShmRemoval *ret,
                 uint64_t *ret_freed_bytes)
{
    const char *base = name;
    _cleanup_close_ int parent = parent_open(dir, name, &base);
    if (parent < 0)
        return parent;

    /* O_NONBLOCK: another tool's lease, or a FIFO in the file's place, must not make us wait. */
    _cleanup_close_ int fd = openat(parent, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && (errno == EWOULDBLOCK || errno == ELOOP || errno == ENXIO)) {
        *ret = errno == EWOULDBLOCK ? SHM_KEPT_OPEN : SHM_KEPT_CHANGED;
        *ret_freed_bytes = 0;
        return 0;
    }
    if (fd < 0)
        return -errno;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;

    ShmRemoval outcome = is_expected(&st, expected) ? SHM_REMOVED : SHM_KEPT_CHANGED;
    if (outcome == SHM_REMOVED && proof == SHM_PROOF_LEASE) {
        int r = lease_take(fd, &outcome);
        if (r < 0)
            return r;
    }
    if (outcome == SHM_REMOVED && unlinkat(parent, base, 0) < 0)
        return -errno;
    *ret = outcome;
    *ret_freed_bytes = outcome == SHM_REMOVED && st.st_nlink == 1 ? (uint64_t)st.st_blocks * 512 : 0;
    return 0;
}
