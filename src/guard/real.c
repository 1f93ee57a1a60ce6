/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"
#include "linker-versions.h"

/*
 * The next definitions are looked up once, by the constructor. Before it has run (in another library's
 * constructor, in an allocator that starts up) dlsym could call us again through malloc, so until then the
 * system call is made directly. The pointers are set once and never change; relaxed loads suffice, because
 * either value is right.
 */
#define NEXT(type, name, parameters) static _Atomic(__typeof__(&real_##name)) next_##name;
#define NEXT_VARIADIC(type, name, parameters, real_parameters)                                               \
    static _Atomic(__typeof__(type(*) parameters)) next_##name;
INTERPOSED_NEXT(NEXT)
INTERPOSED_VARIADIC(NEXT_VARIADIC)

#define LOAD(next) atomic_load_explicit(&(next), memory_order_relaxed)
#define LOOK_UP(type, name, ...)                                                                             \
    atomic_store_explicit(&next_##name, (__typeof__(LOAD(next_##name)))dlsym(RTLD_NEXT, #name),              \
                          memory_order_relaxed);

/* For functions that no allocator calls while it starts up: looked up at once if the constructor has not run.
 */
#define FIND(name)                                                                                           \
    (LOAD(next_##name) ? LOAD(next_##name) : (__typeof__(LOAD(next_##name)))dlsym(RTLD_NEXT, #name))

static void *find_anywhere(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    (void)dlerror(); /* the program must not see our errors */
    return found;
}

/* Our own file, as the dynamic linker found it. */
static const char *library_path(void)
{
    Dl_info info;
    return dladdr((void *)library_path, &info) ? info.dli_fname : NULL;
}

__attribute__((constructor)) static void start(void)
{
    INTERPOSED_NEXT(LOOK_UP)
    INTERPOSED_VARIADIC(LOOK_UP)
    supervisor_find();
    manager_start();
    exec_start(library_path());
    pins_start();
    python_find(find_anywhere);
    python_part_start();
    witness_start();
    broker_find_counters();
}

/* As in glibc. False with errno if it is not a valid name of shared memory. */
static bool shm_path(const char *name, char *path, size_t size)
{
    while (*name == '/')
        name++;
    size_t n = strlen(name);
    if (n == 0 || n >= NAME_MAX || strchr(name, '/')) {
        errno = n >= NAME_MAX ? ENAMETOOLONG : EINVAL;
        return false;
    }
    snprintf(path, size, "/dev/shm/%s", name);
    return true;
}

int real_shm_open(const char *name, int flags, mode_t mode)
{
    if (LOAD(next_shm_open))
        return LOAD(next_shm_open)(name, flags, mode);
    char path[sizeof "/dev/shm/" + NAME_MAX];
    return shm_path(name, path, sizeof path) ? open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode)
                                             : -1;
}

int real_shm_unlink(const char *name)
{
    if (LOAD(next_shm_unlink))
        return LOAD(next_shm_unlink)(name);
    char path[sizeof "/dev/shm/" + NAME_MAX];
    return shm_path(name, path, sizeof path) ? unlink(path) : -1;
}

int real_ftruncate(int fd, off_t size)
{
    return LOAD(next_ftruncate) ? LOAD(next_ftruncate)(fd, size) : (int)syscall(SYS_ftruncate, fd, size);
}

int real_posix_fallocate(int fd, off_t offset, off_t size)
{
    if (LOAD(next_posix_fallocate))
        return LOAD(next_posix_fallocate)(fd, offset, size);
    int saved = errno;
    int r = syscall(SYS_fallocate, fd, 0, offset, size) == 0 ? 0 : errno;
    errno = saved; /* posix_fallocate returns the error and leaves errno alone */
    return r;
}

void *real_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (LOAD(next_mmap))
        return LOAD(next_mmap)(address, size, protection, flags, fd, offset);
    return (void *)(uintptr_t)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

int real_munmap(void *address, size_t size)
{
    return LOAD(next_munmap) ? LOAD(next_munmap)(address, size) : (int)syscall(SYS_munmap, address, size);
}

void *real_mremap(void *address, size_t size, size_t new_size, int flags, void *place)
{
    if (LOAD(next_mremap))
        return LOAD(next_mremap)(address, size, new_size, flags, place);
    return (void *)(uintptr_t)syscall(SYS_mremap, address, size, new_size, flags, place);
}

int real_mprotect(void *address, size_t size, int protection)
{
    return LOAD(next_mprotect) ? LOAD(next_mprotect)(address, size, protection)
                               : (int)syscall(SYS_mprotect, address, size, protection);
}

int real_pkey_mprotect(void *address, size_t size, int protection, int key)
{
    return LOAD(next_pkey_mprotect) ? LOAD(next_pkey_mprotect)(address, size, protection, key)
                                    : (int)syscall(SYS_pkey_mprotect, address, size, protection, key);
}

int real_madvise(void *address, size_t size, int advice)
{
    return LOAD(next_madvise) ? LOAD(next_madvise)(address, size, advice)
                              : (int)syscall(SYS_madvise, address, size, advice);
}

int real_close(int fd)
{
    return LOAD(next_close) ? LOAD(next_close)(fd) : (int)syscall(SYS_close, fd);
}

int real_fcntl(int fd, int command, void *argument)
{
    return LOAD(next_fcntl) ? LOAD(next_fcntl)(fd, command, argument)
                            : (int)syscall(SYS_fcntl, fd, command, argument);
}

/* glibc before 2.33 has only __fxstat; later versions keep it for programs that were built with those. */
int real_fstat(int fd, struct stat *ret)
{
    return LOAD(next_fstat) ? LOAD(next_fstat)(fd, ret) : stat_call(fd, ret);
}

int real___fxstat(int version, int fd, struct stat *ret)
{
    return LOAD(next___fxstat) ? LOAD(next___fxstat)(version, fd, ret) : real_fstat(fd, ret);
}

int real_statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret)
{
    return LOAD(next_statx) ? LOAD(next_statx)(fd, path, flags, mask, ret)
                            : (int)syscall(SYS_statx, fd, path, flags, mask, ret);
}

int real_poll(struct pollfd *files, nfds_t n, int msec)
{
    if (LOAD(next_poll))
        return LOAD(next_poll)(files, n, msec);
    struct timespec patience = {.tv_sec = msec / 1000, .tv_nsec = msec % 1000 * 1000000L};
    return (int)syscall(SYS_ppoll, files, n, msec < 0 ? NULL : &patience, NULL, (size_t)0);
}

ssize_t real_write(int fd, const void *data, size_t size)
{
    return LOAD(next_write) ? LOAD(next_write)(fd, data, size) : syscall(SYS_write, fd, data, size);
}

int real_fputs(const char *text, FILE *stream)
{
    return LOAD(next_fputs)                                        ? LOAD(next_fputs)(text, stream)
           : fwrite(text, 1, strlen(text), stream) == strlen(text) ? 1
                                                                   : EOF;
}

/* glibc's own, under the name that no library interposes: the system call needs glibc's restorer. */
int __sigaction(int signo, const struct sigaction *action, struct sigaction *ret_old);

int real_sigaction(int signo, const struct sigaction *action, struct sigaction *ret_old)
{
    return (LOAD(next_sigaction) ? LOAD(next_sigaction) : __sigaction)(signo, action, ret_old);
}

sighandler_t real_signal(int signo, sighandler_t handler)
{
    if (LOAD(next_signal))
        return LOAD(next_signal)(signo, handler);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction old;
    return __sigaction(signo, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

pid_t real_waitpid(pid_t pid, int *status, int options)
{
    return LOAD(next_waitpid) ? LOAD(next_waitpid)(pid, status, options)
                              : (pid_t)syscall(SYS_wait4, pid, status, options, NULL);
}

pid_t real_wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    return LOAD(next_wait4) ? LOAD(next_wait4)(pid, status, options, usage)
                            : (pid_t)syscall(SYS_wait4, pid, status, options, usage);
}

int real_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    return LOAD(next_waitid) ? LOAD(next_waitid)(type, id, info, options)
                             : (int)syscall(SYS_waitid, type, id, info, options, NULL);
}

void real__exit(int code)
{
    if (LOAD(next__exit))
        LOAD(next__exit)(code);
    for (;;)
        syscall(SYS_exit_group, code);
}

int real_execve(const char *path, char *const *argv, char *const *environment)
{
    return LOAD(next_execve) ? LOAD(next_execve)(path, argv, environment)
                             : (int)syscall(SYS_execve, path, argv, environment);
}

int real_execvpe(const char *file, char *const *argv, char *const *environment)
{
    return FIND(execvpe)(file, argv, environment);
}

int real_fexecve(int fd, char *const *argv, char *const *environment)
{
    return FIND(fexecve)(fd, argv, environment);
}

/* glibc before 2.34 does not have it. */
int real_execveat(int fd, const char *path, char *const *argv, char *const *environment, int flags)
{
    return LOAD(next_execveat) ? LOAD(next_execveat)(fd, path, argv, environment, flags)
                               : (int)syscall(SYS_execveat, fd, path, argv, environment, flags);
}

int real_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const *argv, char *const *environment)
{
    return FIND(posix_spawn)(pid, path, actions, attributes, argv, environment);
}

int real_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes, char *const *argv, char *const *environment)
{
    return FIND(posix_spawnp)(pid, file, actions, attributes, argv, environment);
}

int real_system(const char *command)
{
    return FIND(system)(command);
}

FILE *real_popen(const char *command, const char *mode)
{
    return FIND(popen)(command, mode);
}

/* glibc before 2.34 has it in libpthread, which a program may load late. */
sem_t *real_sem_open(const char *name, int flags, mode_t mode, unsigned value)
{
    __typeof__(LOAD(next_sem_open)) next = FIND(sem_open);
    if (next)
        return next(name, flags, mode, value);
    errno = ENOSYS;
    return SEM_FAILED;
}
