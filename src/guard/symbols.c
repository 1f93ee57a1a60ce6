/* Every symbol that the library interposes, and nothing else. A call that is none of our business costs a
 * load and a branch. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int shm_open(const char *name, int flags, mode_t mode)
{
    if (!guard_enter())
        return real_shm_open(name, flags, mode);
    int fd = names_open(name, flags, mode);
    guard_leave(fd < 0);
    return fd;
}

EXPORT int shm_unlink(const char *name)
{
    if (!guard_enter())
        return real_shm_unlink(name);
    int r = names_unlink(name);
    guard_leave(r < 0);
    return r;
}

static int resize_when_there_is_room(int fd, int segment, off_t size)
{
    int r = room_ask(segment, (uint64_t)size);
    if (r < 0) { /* PyTorch says so, in words: "No space left on device" */
        real_close(segment);
        errno = -r;
        return -1;
    }
    if (!guard_enter()) {
        real_close(segment);
        return real_ftruncate(fd, size);
    }
    r = names_take(fd, segment, size);
    guard_leave(r < 0);
    return r;
}

EXPORT int ftruncate(int fd, off_t size)
{
    int segment = -1;
    if (!pending_any() || !guard_enter())
        return real_ftruncate(fd, size);
    NamesResize next = names_resize(fd, size, &segment);
    int r = next == RESIZE_TAKE ? names_take(fd, segment, size) : 0;
    guard_leave(r < 0);
    if (next == RESIZE_PLAIN)
        return real_ftruncate(fd, size);
    if (next != RESIZE_ASK)
        return r;

    int cancel = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* or the segment would stay open for ever */
    r = resize_when_there_is_room(fd, segment, size);
    pthread_setcancelstate(cancel, NULL);
    return r;
}

EXPORT int posix_fallocate(int fd, off_t offset, off_t size)
{
    bool there = false;
    if (pending_any() && guard_enter()) {
        there = names_allocate(fd, offset, size);
        guard_leave(false);
    }
    return there ? 0 : real_posix_fallocate(fd, offset, size);
}

EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (flags & MAP_FIXED && view_near(address, size) && guard_enter()) {
        view_lose(address, size);
        guard_leave(false);
    }
    bool tensor = fd >= 0 && !address && protection == (PROT_READ | PROT_WRITE) && flags == MAP_SHARED &&
                  offset == 0 && (size >= SEGMENT_MIN_BYTES || pending_any());
    if (!tensor || !guard_enter())
        return real_mmap(address, size, protection, flags, fd, offset);
    void *mapped = names_map(fd, size);
    if (mapped == MAP_FAILED)
        mapped = real_mmap(address, size, protection, flags, fd, offset);
    if (mapped == MAP_FAILED && errno == ENOMEM) { /* what we keep for the next time may be what is missing */
        view_forget_unused();
        mapped = real_mmap(address, size, protection, flags, fd, offset);
    }
    view_sweep(now_msec());
    guard_leave(mapped == MAP_FAILED);
    return mapped;
}

EXPORT int munmap(void *address, size_t size)
{
    if (!view_near(address, size))
        return real_munmap(address, size);
    if (!guard_enter())
        /* A handler that interrupted us unmaps a tensor while the tables may be half written: it stays
         * mapped, and in use, for ever. */
        return guard_is_inside() ? 0 : real_munmap(address, size);
    bool kept = view_release(address, size);
    view_sweep(now_msec());
    room_released();
    guard_leave(false);
    return kept ? 0 : real_munmap(address, size);
}

EXPORT void *mremap(void *address, size_t size, size_t new_size, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it does not know that va_start has been here */
    void *place = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    if ((view_near(address, size) || (place && view_near(place, new_size))) && guard_enter()) {
        view_lose(address, size);
        if (place)
            view_lose(place, new_size);
        guard_leave(false);
    }
    return real_mremap(address, size, new_size, flags, place);
}

EXPORT int close(int fd)
{
    if (pending_any() && guard_enter()) {
        names_close(fd);
        guard_leave(false);
    }
    int r = real_close(fd);
    if (room_is_wanted() && guard_enter()) { /* it may have been the last that held a segment */
        room_released();
        guard_leave(false); /* to the errno of the real close */
    }
    return r;
}

EXPORT int poll(struct pollfd *files, nfds_t n, int msec)
{
    batch_end();
    return real_poll(files, n, msec);
}

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
    if (size > 1) /* PyTorch writes one byte to every segment that it makes */
        batch_end();
    bool shown = fd == STDOUT_FILENO || fd == STDERR_FILENO;
    if (shown)
        line_make_way(fd);
    ssize_t n = real_write(fd, data, size);
    if (fd == STDERR_FILENO && n > 0)
        witness_hear(data, (size_t)n);
    if (shown && n > 0)
        line_note(fd, ((const char *)data)[n - 1]);
    return n;
}

/* The C++ library says by it why it ends the process, and from inside of libc nothing comes by write(). */
EXPORT int fputs(const char *text, FILE *stream)
{
    if (stream == stderr)
        witness_hear(text, strlen(text));
    return real_fputs(text, stream);
}

EXPORT int sigaction(int signo, const struct sigaction *action, struct sigaction *old)
{
    return witness_sigaction(signo, action, old);
}

EXPORT sighandler_t signal(int signo, sighandler_t handler)
{
    if (!witness_watches(signo) || handler == SIG_ERR)
        return real_signal(signo, handler);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction old;
    sigaddset(&action.sa_mask, signo);
    return witness_sigaction(signo, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* What signal() is in programs compiled for ISO C alone. */
EXPORT sighandler_t sysv_signal(int signo, sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESETHAND | SA_NODEFER | SA_INTERRUPT};
    struct sigaction old;
    if (handler == SIG_ERR)
        errno = EINVAL;
    return handler == SIG_ERR || witness_sigaction(signo, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

EXPORT sighandler_t __sysv_signal(int signo, sighandler_t handler) __attribute__((alias("sysv_signal")));

EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
    int own = 0;
    int *told = status ? status : &own;
    pid_t child = real_waitpid(pid, told, options);
    if (child > 0)
        witness_child(child, *told);
    return child;
}

EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    int own = 0;
    int *told = status ? status : &own;
    pid_t child = real_wait4(pid, told, options, usage);
    if (child > 0)
        witness_child(child, *told);
    return child;
}

EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    int r = real_waitid(type, id, info, options);
    if (r == 0 && info && info->si_pid > 0 && info->si_code == CLD_EXITED)
        witness_child(info->si_pid, W_EXITCODE(info->si_status, 0));
    else if (r == 0 && info && info->si_pid > 0 &&
             (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED))
        witness_child(info->si_pid, W_EXITCODE(0, info->si_status));
    return r;
}

EXPORT _Noreturn void _exit(int code)
{
    witness_leave(code);
    real__exit(code);
}

EXPORT _Noreturn void _Exit(int code) __attribute__((alias("_exit")));

/* On 64-bit machines the large-file names are the same functions. */
EXPORT int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));
EXPORT int posix_fallocate64(int fd, off_t offset, off_t size) __attribute__((alias("posix_fallocate")));
EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));
