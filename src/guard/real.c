#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"

/* dlsym moved from libdl to libc in glibc 2.34; the old version is in both. */
#if defined(__x86_64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
#endif

/*
 * The next definitions are looked up once, by the constructor. Before it has run (another library's
 * constructor, an allocator that starts up) dlsym could come back to us through malloc, so until then the
 * system call is made directly. The pointers are set once and never change; relaxed loads suffice, since
 * either value is right.
 */
static _Atomic(int (*)(const char *, int, mode_t)) next_shm_open;
static _Atomic(int (*)(const char *)) next_shm_unlink;
static _Atomic(int (*)(int, off_t)) next_ftruncate;
static _Atomic(int (*)(int, off_t, off_t)) next_posix_fallocate;
static _Atomic(void *(*)(void *, size_t, int, int, int, off_t)) next_mmap;
static _Atomic(int (*)(void *, size_t)) next_munmap;
static _Atomic(void *(*)(void *, size_t, size_t, int, ...)) next_mremap;
static _Atomic(int (*)(int)) next_close;

#define LOAD(next) atomic_load_explicit(&(next), memory_order_relaxed)
#define LOOK_UP(name)                                                                                        \
    atomic_store_explicit(&next_##name, (__typeof__(LOAD(next_##name)))dlsym(RTLD_NEXT, #name),              \
                          memory_order_relaxed)

__attribute__((constructor)) static void look_up(void)
{
    LOOK_UP(shm_open);
    LOOK_UP(shm_unlink);
    LOOK_UP(ftruncate);
    LOOK_UP(posix_fallocate);
    LOOK_UP(mmap);
    LOOK_UP(munmap);
    LOOK_UP(mremap);
    LOOK_UP(close);
}

/* As glibc does it. False with errno for what is no name of shared memory. */
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
    errno = saved; /* it returns the error and leaves errno alone */
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

int real_close(int fd)
{
    return LOAD(next_close) ? LOAD(next_close)(fd) : (int)syscall(SYS_close, fd);
}
