/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind the symbols in interposed.h, and nothing else. A call that does not concern us costs a
 * few loads and branches. munmap and others that change memory also search the views of the process: with
 * 4096 of them that takes less than 0.1 of the 4 microseconds of an mmap and munmap (bench/munmap.py).
 */
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda.h"
#include "guard.h"

struct Copy3d; /* below, of the CUDA runtime */

#define EXPORT __attribute__((visibility("default")))
#define OURS(type, name, parameters, ...)                                                                    \
    type our_##name parameters;                                                                              \
    EXPORT type(name)                                                                                        \
    parameters __attribute__((alias("our_" #name)));
#define OURS_TOO(type, name, parameters, other)                                                              \
    EXPORT type(name)                                                                                        \
    parameters __attribute__((alias("our_" #other)));
INTERPOSED_NEXT(OURS)
INTERPOSED_VARIADIC(OURS)
INTERPOSED_BUILT(OURS)
INTERPOSED_CUDA(OURS)
INTERPOSED_ALIAS(OURS_TOO)

int our_shm_open(const char *name, int flags, mode_t mode)
{
    cuda_look();
    if (!guard_enter())
        return real_shm_open(name, flags, mode);
    int fd = tensor_open(name, flags, mode);
    guard_leave(fd < 0);
    return fd;
}

int our_shm_unlink(const char *name)
{
    if (!guard_enter())
        return real_shm_unlink(name);
    int r = tensor_unlink(name);
    guard_leave(r < 0);
    return r;
}

static int resize_when_there_is_room(int fd, int segment, off_t size)
{
    int r = budget_request(&segment, (uint64_t)size);
    if (r < 0) { /* PyTorch raises an exception: "No space left on device" */
        real_close(segment);
        errno = -r;
        return -1;
    }
    if (!guard_enter()) {
        real_close(segment);
        return real_ftruncate(fd, size);
    }
    r = tensor_take(fd, segment, size);
    guard_leave(r < 0);
    return r;
}

int our_ftruncate(int fd, off_t size)
{
    int segment = -1;
    if (!pending_any() || !guard_enter())
        return real_ftruncate(fd, size);
    TensorResize next = tensor_resize(fd, size, &segment);
    int r = next == RESIZE_TAKE ? tensor_take(fd, segment, size) : 0;
    guard_leave(r < 0);
    if (next == RESIZE_PLAIN)
        return real_ftruncate(fd, size);
    if (next != RESIZE_ASK)
        return r;

    int cancel = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* or the segment would stay open forever */
    r = resize_when_there_is_room(fd, segment, size);
    pthread_setcancelstate(cancel, NULL);
    return r;
}

int our_posix_fallocate(int fd, off_t offset, off_t size)
{
    bool there = false;
    if (pending_any() && guard_enter()) {
        there = tensor_allocate(fd, offset, size);
        guard_leave(false);
    }
    return there ? 0 : real_posix_fallocate(fd, offset, size);
}

void *our_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (flags & MAP_FIXED && view_overlaps(address, size) && guard_enter()) {
        view_lose(address, size);
        guard_leave(false);
    }
    bool tensor = fd >= 0 && !address && protection == (PROT_READ | PROT_WRITE) && flags == MAP_SHARED &&
                  offset == 0 && (size >= SEGMENT_MIN_BYTES || pending_any());
    if (tensor)
        cuda_look();
    if (!tensor || !guard_enter()) {
        void *plain = real_mmap(address, size, protection, flags, fd, offset);
        native_mapped(plain, size, protection, flags, __builtin_return_address(0));
        return plain;
    }
    void *mapped = tensor_map(fd, size);
    bool ours = mapped != MAP_FAILED;
    if (!ours)
        mapped = real_mmap(address, size, protection, flags, fd, offset);
    if (mapped == MAP_FAILED && errno == ENOMEM) { /* the views that we keep may be what is too much */
        view_forget_unused();
        mapped = real_mmap(address, size, protection, flags, fd, offset);
    }
    view_sweep(now_msec());
    guard_leave(mapped == MAP_FAILED);
    if (ours) /* a mapping that CUDA itself makes must not call back into CUDA, which holds its locks then */
        pins_poll();
    return mapped;
}

int our_munmap(void *address, size_t size)
{
    native_unmapped(address);
    if (!view_overlaps(address, size))
        return real_munmap(address, size);
    pins_poll();
    if (!guard_enter())
        /* A handler that interrupted us unmaps a tensor while the tables may be half written: the tensor
         * stays mapped, and in use, forever. */
        return guard_is_inside() ? 0 : real_munmap(address, size);
    bool kept = view_release(address, size);
    view_sweep(now_msec());
    budget_tell_release();
    guard_leave(false);
    return kept ? 0 : real_munmap(address, size);
}

void *our_mremap(void *address, size_t size, size_t new_size, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): the analyzer does not see va_start */
    void *place = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    size_t taken = size > 0 ? size : 1; /* with a size of 0 it makes a second mapping, which has no hold */
    if ((view_overlaps(address, taken) || (place && view_overlaps(place, new_size))) && guard_enter()) {
        view_lose(address, taken);
        if (place)
            view_lose(place, new_size);
        guard_leave(false);
    }
    return real_mremap(address, size, new_size, flags, place);
}

int our_mprotect(void *address, size_t size, int protection)
{
    view_alter(address, size);
    return real_mprotect(address, size, protection);
}

int our_pkey_mprotect(void *address, size_t size, int protection, int key)
{
    view_alter(address, size);
    return real_pkey_mprotect(address, size, protection, key);
}

int our_madvise(void *address, size_t size, int advice)
{
    if (advice != MADV_DONTNEED &&
        advice != MADV_FREE) /* these do not last, and allocators call them often */
        view_alter(address, size);
    return real_madvise(address, size, advice);
}

int our_close(int fd)
{
    if (pending_any() && guard_enter()) {
        tensor_close(fd);
        guard_leave(false);
    }
    int r = real_close(fd);
    if (budget_is_wanted() && guard_enter()) { /* it may have been the last reference to a segment */
        budget_tell_release();
        guard_leave(false); /* restores the errno of the real close */
    }
    return r;
}

/* The thread of a loader sleeps here until the next batch comes. The worker that makes this batch may need
 * memory that waits for its copies in this process: so the thread polls them now and then. */
static int poll_in_turns(struct pollfd *files, nfds_t n, int msec)
{
    enum { TURN_MSEC = 5 };
    while (pins_wait() && (msec < 0 || msec > TURN_MSEC)) {
        int r = real_poll(files, n, TURN_MSEC);
        if (r != 0)
            return r;
        msec -= msec < 0 ? 0 : TURN_MSEC;
        pins_poll();
    }
    return real_poll(files, n, msec);
}

int our_fcntl(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): see mremap. If no argument was given, the kernel
     * ignores it. */
    void *argument = va_arg(list, void *);
    va_end(list);
    if (command == F_DUPFD_CLOEXEC)
        batch_copied(fd);
    if (command == F_DUPFD_CLOEXEC && pins_can_be() && guard_enter()) {
        view_sent(fd);
        guard_leave(false);
    }
    return real_fcntl(fd, command, argument);
}

sem_t *our_sem_open(const char *name, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    /* NOLINTBEGIN(clang-analyzer-valist.Uninitialized): see mremap */
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    unsigned value = flags & O_CREAT ? va_arg(list, unsigned) : 0;
    /* NOLINTEND(clang-analyzer-valist.Uninitialized) */
    va_end(list);
    sem_t *semaphore = real_sem_open(name, flags, mode, value);
    if (semaphore != SEM_FAILED) {
        python_part_offer(name);
        where_offer(name);
    }
    return semaphore;
}

int our_fstat(int fd, struct stat *st)
{
    int r = real_fstat(fd, st);
    if (r == 0)
        identity_stat(fd, st);
    return r;
}

/* On 64-bit machines both structures are the same. */
_Static_assert(sizeof(struct stat64) == sizeof(struct stat), "fstat64 fills in what fstat does");

int our_fstat64(int fd, struct stat64 *st)
{
    return our_fstat(fd, (struct stat *)st);
}

/* Programs that were built with a glibc before 2.33 call this as fstat(). */
int our___fxstat(int version, int fd, struct stat *st)
{
    int r = real___fxstat(version, fd, st);
    if (r == 0)
        identity_stat(fd, st);
    return r;
}

int our___fxstat64(int version, int fd, struct stat64 *st)
{
    return our___fxstat(version, fd, (struct stat *)st);
}

int our_statx(int fd, const char *path, int flags, unsigned mask, struct statx *stx)
{
    int r = real_statx(fd, path, flags, mask, stx);
    if (r == 0 && flags & AT_EMPTY_PATH)
        identity_statx(fd, path, stx);
    return r;
}

int our_poll(struct pollfd *files, nfds_t n, int msec)
{
    batch_end();
    int r =
        manager_waits_for_clients(files, n, msec) ? manager_wait(files, msec) : poll_in_turns(files, n, msec);
    where_poll(__builtin_return_address(0));
    return r;
}

ssize_t our_write(int fd, const void *data, size_t size)
{
    if (size > 1) /* PyTorch writes one byte to every segment that it creates */
        batch_end();
    bool shown = fd == STDOUT_FILENO || fd == STDERR_FILENO;
    if (shown)
        progress_line_make_way(fd);
    batch_written(size); /* before the reader can end this process */
    ssize_t n = real_write(fd, data, size);
    if (fd == STDERR_FILENO && n > 0)
        witness_hear(data, (size_t)n);
    if (shown && n > 0)
        progress_line_note(fd, data, (size_t)n);
    return n;
}

/* The C++ library reports with it why it ends the process, and libc's own calls do not go through write(). */
int our_fputs(const char *text, FILE *stream)
{
    if (stream == stderr)
        witness_hear(text, strlen(text));
    return real_fputs(text, stream);
}

int our_sigaction(int signo, const struct sigaction *action, struct sigaction *old)
{
    return witness_sigaction(signo, action, old);
}

sighandler_t our_signal(int signo, sighandler_t handler)
{
    if (!witness_watches(signo) || handler == SIG_ERR)
        return real_signal(signo, handler);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction old;
    sigaddset(&action.sa_mask, signo);
    return witness_sigaction(signo, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* Programs compiled for strict ISO C call this as signal(). */
sighandler_t our_sysv_signal(int signo, sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESETHAND | SA_NODEFER | SA_INTERRUPT};
    struct sigaction old;
    if (handler == SIG_ERR)
        errno = EINVAL;
    return handler == SIG_ERR || witness_sigaction(signo, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* This process has waited for the end of a child. */
static void child_ended(pid_t pid, int status)
{
    witness_child(pid, status);
    if (lane_any() && guard_enter()) {
        lane_child_end(pid);
        guard_leave(false);
    }
}

pid_t our_waitpid(pid_t pid, int *status, int options)
{
    int own = 0;
    int *told = status ? status : &own;
    pid_t child = real_waitpid(pid, told, options);
    if (child > 0)
        child_ended(child, *told);
    return child;
}

pid_t our_wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    int own = 0;
    int *told = status ? status : &own;
    pid_t child = real_wait4(pid, told, options, usage);
    if (child > 0)
        child_ended(child, *told);
    return child;
}

int our_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    int r = real_waitid(type, id, info, options);
    if (r == 0 && info && info->si_pid > 0 && info->si_code == CLD_EXITED)
        child_ended(info->si_pid, W_EXITCODE(info->si_status, 0));
    else if (r == 0 && info && info->si_pid > 0 &&
             (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED))
        child_ended(info->si_pid, W_EXITCODE(0, info->si_status));
    return r;
}

_Noreturn void our__exit(int code)
{
    witness_leave(code);
    real__exit(code);
}

/* --- Programs that this process starts. glibc implements each of these calls internally, so none of them
 * reaches another: every one is interposed. */

static int exec_path(const char *path, char *const *argv, char *const *environment)
{
    return exec_call(&(ExecCall){.kind = EXEC_PATH, .path = path, .argv = argv}, environment);
}

static int exec_search(const char *file, char *const *argv, char *const *environment)
{
    return exec_call(&(ExecCall){.kind = EXEC_SEARCH, .path = file, .argv = argv}, environment);
}

int our_execve(const char *path, char *const *argv, char *const *environment)
{
    return exec_path(path, argv, environment);
}

int our_execv(const char *path, char *const *argv)
{
    return exec_path(path, argv, environ);
}

int our_execvpe(const char *file, char *const *argv, char *const *environment)
{
    return exec_search(file, argv, environment);
}

int our_execvp(const char *file, char *const *argv)
{
    return exec_search(file, argv, environ);
}

int our_fexecve(int fd, char *const *argv, char *const *environment)
{
    return exec_call(&(ExecCall){.kind = EXEC_FD, .fd = fd, .argv = argv}, environment);
}

int our_execveat(int fd, const char *path, char *const *argv, char *const *environment, int flags)
{
    return exec_call(&(ExecCall){.kind = EXEC_AT, .fd = fd, .path = path, .argv = argv, .flags = flags},
                     environment);
}

/* The arguments of execl, execlp and execle, up to their NULL; for execle, an environment follows it. */
static int exec_words(ExecKind kind, const char *path, const char *first, va_list list, bool has_environment)
{
    size_t n = 0;
    va_list words;
    va_copy(words, list);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): see mremap */
    for (const char *word = first; word; word = va_arg(words, const char *))
        n++;
    va_end(words);
    char **argv = alloca((n + 1) * sizeof *argv);
    argv[0] = (char *)first;
    for (size_t i = 1; i <= n; i++)
        argv[i] = va_arg(list, char *); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
    char *const *environment = has_environment ? va_arg(list, char *const *) : environ;
    return exec_call(&(ExecCall){.kind = kind, .path = path, .argv = argv}, environment);
}

int our_execl(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    int r = exec_words(EXEC_PATH, path, first, list, false);
    va_end(list);
    return r;
}

int our_execlp(const char *file, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    int r = exec_words(EXEC_SEARCH, file, first, list, false);
    va_end(list);
    return r;
}

int our_execle(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    int r = exec_words(EXEC_PATH, path, first, list, true);
    va_end(list);
    return r;
}

int our_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                    const posix_spawnattr_t *attributes, char *const *argv, char *const *environment)
{
    return exec_call(&(ExecCall){.kind = SPAWN_PATH,
                                 .path = path,
                                 .argv = argv,
                                 .pid = pid,
                                 .actions = actions,
                                 .attributes = attributes},
                     environment);
}

int our_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const *argv, char *const *environment)
{
    return exec_call(&(ExecCall){.kind = SPAWN_SEARCH,
                                 .path = file,
                                 .argv = argv,
                                 .pid = pid,
                                 .actions = actions,
                                 .attributes = attributes},
                     environment);
}

int our_system(const char *command)
{
    return exec_system(command);
}

FILE *our_popen(const char *command, const char *mode)
{
    return exec_popen(command, mode);
}

/* --- The CUDA runtime. A call that does not concern us costs a few loads. */

static void *stream_of(CudaCall call, void *stream)
{
    bool own = call == CUDA_COPY_PTSZ || call == CUDA_COPY_2D_PTSZ;
    return own && !stream ? CUDA_STREAM_OF_THREAD : stream;
}

int our_cudaPointerGetAttributes(void *ret, const void *address)
{
    return pins_attributes(ret, address, __builtin_return_address(0));
}

typedef int (*CopyFunction)(void *target, const void *source, size_t size, int kind, void *stream);

static int copy_any(CudaCall call, const void *caller, void *target, const void *source, size_t size,
                    int kind, void *stream)
{
    CopyFunction real = (CopyFunction)cuda_real(call, caller);
    PinsCopy copy;
    if (!real)
        return CUDA_RUNTIME_MISSING;
    pins_copy_begin(&copy, target, size, source, size);
    bool captured = pins_copy_is_captured(&copy, stream_of(call, stream));
    int r = real(target, source, size, kind, stream);
    pins_copy_end(&copy, stream_of(call, stream),
                  r != CUDA_SUCCESS || captured ? PINS_UNKNOWN : PINS_STARTED);
    return r;
}

int our_cudaMemcpyAsync(void *target, const void *source, size_t size, int kind, void *stream)
{
    return copy_any(CUDA_COPY, __builtin_return_address(0), target, source, size, kind, stream);
}

int our_cudaMemcpyAsync_ptsz(void *target, const void *source, size_t size, int kind, void *stream)
{
    return copy_any(CUDA_COPY_PTSZ, __builtin_return_address(0), target, source, size, kind, stream);
}

typedef int (*Copy2dFunction)(void *target, size_t target_pitch, const void *source, size_t source_pitch,
                              size_t width, size_t height, int kind, void *stream);

static size_t rows_bytes(size_t pitch, size_t width, size_t height)
{
    size_t bytes = 0;
    if (height == 0 || __builtin_mul_overflow(pitch, height - 1, &bytes) ||
        __builtin_add_overflow(bytes, width, &bytes))
        return height == 0 ? 0 : SIZE_MAX;
    return bytes;
}

static int copy_2d_any(CudaCall call, const void *caller, void *target, size_t target_pitch,
                       const void *source, size_t source_pitch, size_t width, size_t height, int kind,
                       void *stream)
{
    Copy2dFunction real = (Copy2dFunction)cuda_real(call, caller);
    PinsCopy copy;
    if (!real)
        return CUDA_RUNTIME_MISSING;
    pins_copy_begin(&copy, target, rows_bytes(target_pitch, width, height), source,
                    rows_bytes(source_pitch, width, height));
    bool captured = pins_copy_is_captured(&copy, stream_of(call, stream));
    int r = real(target, target_pitch, source, source_pitch, width, height, kind, stream);
    pins_copy_end(&copy, stream_of(call, stream),
                  r != CUDA_SUCCESS || captured ? PINS_UNKNOWN : PINS_STARTED);
    return r;
}

int our_cudaMemcpy2DAsync(void *target, size_t target_pitch, const void *source, size_t source_pitch,
                          size_t width, size_t height, int kind, void *stream)
{
    return copy_2d_any(CUDA_COPY_2D, __builtin_return_address(0), target, target_pitch, source, source_pitch,
                       width, height, kind, stream);
}

int our_cudaMemcpy2DAsync_ptsz(void *target, size_t target_pitch, const void *source, size_t source_pitch,
                               size_t width, size_t height, int kind, void *stream)
{
    return copy_2d_any(CUDA_COPY_2D_PTSZ, __builtin_return_address(0), target, target_pitch, source,
                       source_pitch, width, height, kind, stream);
}

/*
 * Copies that PyTorch does not make. Their segments are never issued again: we cannot know when they are
 * done, because too little is known about their arguments, which have changed between versions.
 */
typedef struct Pitched { /* cudaPitchedPtr */
    void *address;
    size_t pitch, width, height;
} Pitched;

typedef struct Copy3d { /* cudaMemcpy3DParms */
    void *source_array;
    size_t source_place[3];
    Pitched source;
    void *target_array;
    size_t target_place[3];
    Pitched target;
    size_t extent[3];
    int kind;
} Copy3d;

static size_t planes_bytes(const Pitched *memory, const size_t place[3], const size_t extent[3])
{
    size_t rows = 0;
    if (__builtin_add_overflow(place[2], extent[2], &rows) ||
        __builtin_mul_overflow(rows, memory->height, &rows))
        return SIZE_MAX;
    return rows_bytes(memory->pitch, memory->pitch, rows);
}

typedef int (*Copy3dFunction)(const Copy3d *what, void *stream);

static int copy_3d_any(CudaCall call, const void *caller, const Copy3d *what, void *stream)
{
    Copy3dFunction real = (Copy3dFunction)cuda_real(call, caller);
    PinsCopy copy;
    if (!real)
        return CUDA_RUNTIME_MISSING;
    pins_copy_begin(&copy, what->target.address,
                    planes_bytes(&what->target, what->target_place, what->extent), what->source.address,
                    planes_bytes(&what->source, what->source_place, what->extent));
    int r = real(what, stream);
    pins_copy_end(&copy, stream, PINS_UNKNOWN);
    return r;
}

int our_cudaMemcpy3DAsync(const Copy3d *what, void *stream)
{
    return copy_3d_any(CUDA_COPY_3D, __builtin_return_address(0), what, stream);
}

int our_cudaMemcpy3DAsync_ptsz(const Copy3d *what, void *stream)
{
    return copy_3d_any(CUDA_COPY_3D_PTSZ, __builtin_return_address(0), what, stream);
}

/* CUDA 12 has one argument more than 13: it is always passed on. */
typedef int (*CopyBatchFunction)(void **targets, void **sources, const size_t *sizes, size_t n, void *a,
                                 void *b, size_t c, void *d, void *e);

static int copy_batch_any(CudaCall call, const void *caller, void **targets, void **sources,
                          const size_t *sizes, size_t n, void *a, void *b, size_t c, void *d, void *e)
{
    CopyBatchFunction real = (CopyBatchFunction)cuda_real(call, caller);
    if (!real)
        return CUDA_RUNTIME_MISSING;
    for (size_t i = 0; i < n; i++) {
        PinsCopy copy;
        pins_copy_begin(&copy, targets[i], sizes[i], sources[i], sizes[i]);
        pins_copy_end(&copy, NULL, PINS_UNKNOWN); /* from now on, and forever */
    }
    return real(targets, sources, sizes, n, a, b, c, d, e);
}

int our_cudaMemcpyBatchAsync(void **targets, void **sources, const size_t *sizes, size_t n, void *a, void *b,
                             size_t c, void *d, void *e)
{
    return copy_batch_any(CUDA_COPY_BATCH, __builtin_return_address(0), targets, sources, sizes, n, a, b, c,
                          d, e);
}

int our_cudaMemcpyBatchAsync_ptsz(void **targets, void **sources, const size_t *sizes, size_t n, void *a,
                                  void *b, size_t c, void *d, void *e)
{
    return copy_batch_any(CUDA_COPY_BATCH_PTSZ, __builtin_return_address(0), targets, sources, sizes, n, a, b,
                          c, d, e);
}

const void *cuda_symbol(CudaCall call)
{
#define SYMBOL(type, name, parameters, call) [call] = our_##name,
    static const void *const symbols[CUDA_CALLS] = {INTERPOSED_CUDA(SYMBOL)};
    return symbols[call];
}
