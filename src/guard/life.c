#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"

/*
 * Order of life. The library works before its constructor has run (real.c) and after all destructors: it has
 * none, and its tables are static. At exit the kernel drops all locks. At exec everything is close-on-exec or
 * a mapping.
 *
 * fork: the mutex is taken across it, so the child sees whole tables. In the child
 *   - the pool is forgotten: the parent issues those segments, and two who issue would be one too many;
 *   - unused views are unmapped, and those that only wait for the parent's copies; views in use stay, with
 * their holds, because the child may reach the tensors; nothing is registered with CUDA any more (pins.c);
 *   - what is pending is forgotten: it belongs to threads that the child does not have.
 *
 * vfork, and clone without these handlers: such a child may share our memory and still have descriptors of
 * its own, so that a close() in it says nothing about ours. It is told by its pid, and everything in it goes
 * the plain way.
 *
 * Threads: cancellation is off while the lock is held. A signal handler that interrupts its owner finds
 * `inside` set and passes by.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside __attribute__((tls_model("initial-exec")));
static __thread int saved_errno __attribute__((tls_model("initial-exec")));
static __thread int saved_cancel __attribute__((tls_model("initial-exec")));

/* Changed with the lock held. pthread_once would do for the first, but its version differs between glibcs. */
static bool started;
static bool off;
static _Atomic pid_t owner; /* the process that these tables speak of; asked before the lock, for in a child
                               of vfork or _Fork the lock may belong to a thread that is not there */
static bool was_inside;     /* the forking thread, before fork_prepare */

/*
 * Between prepare and the end of fork other libraries' handlers run, and signals that were held back: they
 * must find the forking thread inside, or they would wait for the lock that it holds itself.
 */
static void fork_prepare(void)
{
    bool before = inside;
    inside = true;
    /* A handler that forks while its thread is inside: the lock is ours already, and the tables may be half
     * written. */
    if (!before)
        pthread_mutex_lock(&lock);
    was_inside = before;
}

static void fork_parent(void)
{
    bool before = was_inside;
    if (!before)
        pthread_mutex_unlock(&lock);
    inside = before;
}

static void fork_child(void)
{
    if (was_inside) /* it goes on inside and leaves by itself; owner stays the parent, so that was its last
                       time in */
        return;
    int saved = errno;
    owner = getpid();
    pool_forget();
    view_forget_inherited();
    pending_clear();
    broker_forget();
    pthread_mutex_unlock(&lock);
    inside = false;
    errno = saved;
}

/* Asked first by the constructor: what the program does to its environment later changes nothing. */
bool guard_is_switched_off(void)
{
    static atomic_int answer; /* 0: not asked yet */
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (known == 0) {
        const char *wish = getenv(PROTOCOL_OFF_NAME);
        known = wish && strcmp(wish, "off") == 0 ? 1 : -1;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known > 0;
}

static void start(void)
{
    started = true;
    owner = getpid();
    /* Without the handlers two processes would issue the same segments: then stay out of it. */
    off = getauxval(AT_SECURE) != 0 || guard_is_switched_off() || getenv(PROTOCOL_ONLY_WITNESS) ||
          pthread_atfork(fork_prepare, fork_parent, fork_child) != 0;
}

bool guard_enter(void)
{
    pid_t known = atomic_load_explicit(&owner, memory_order_relaxed);
    if (inside || (known != 0 && known != getpid()))
        return false;
    int saved = errno;
    int cancel = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    inside = true; /* before the lock: a handler that comes in between must not wait for us */
    pthread_mutex_lock(&lock);
    saved_errno = saved;
    saved_cancel = cancel;
    if (!started)
        start();
    if (!off && owner == getpid())
        return true;
    guard_leave(false);
    return false;
}

bool guard_is_inside(void)
{
    return inside;
}

void guard_leave(bool failed)
{
    int error = failed ? errno : saved_errno;
    int cancel = saved_cancel;
    pthread_mutex_unlock(&lock);
    inside = false;
    pthread_setcancelstate(cancel, NULL);
    errno = error;
}

uint64_t now_msec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

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
    if (high < 0) /* the limit of open files may be lower */
        return fd;
    real_close(fd);
    return high;
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
