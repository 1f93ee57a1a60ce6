/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every symbol that the library interposes, once. This list yields
 *   - the exported name and the prototype of our_NAME, which stands behind it (symbols.c): a line without its
 *     function does not compile, and a function without its line has no prototype;
 *   - real_NAME (guard.h) and the search for the next definition (real.c);
 *   - the names in cuda.c;
 *   - the version script and the check of what is exported (guard.map.in).
 *
 * The preprocessor also reads it alone, so it includes nothing. A name is parenthesised where parameters
 * follow, because it may be a macro.
 */
#pragma once

/* X(type, name, (parameters)): has a next definition, which real_NAME calls. */
#define INTERPOSED_NEXT(X)                                                                                   \
    X(int, shm_open, (const char *name, int flags, mode_t mode))                                             \
    X(int, shm_unlink, (const char *name))                                                                   \
    X(int, ftruncate, (int fd, off_t size))                                                                  \
    X(int, posix_fallocate, (int fd, off_t offset, off_t size))                                              \
    X(void *, mmap, (void *address, size_t size, int protection, int flags, int fd, off_t offset))           \
    X(int, munmap, (void *address, size_t size))                                                             \
    X(int, mprotect, (void *address, size_t size, int protection))                                           \
    X(int, pkey_mprotect, (void *address, size_t size, int protection, int key))                             \
    X(int, madvise, (void *address, size_t size, int advice))                                                \
    X(int, close, (int fd))                                                                                  \
    X(int, fstat, (int fd, struct stat *st))                                                                 \
    X(int, __fxstat, (int version, int fd, struct stat *st))                                                 \
    X(int, statx, (int fd, const char *path, int flags, unsigned mask, struct statx *stx))                   \
    X(int, poll, (struct pollfd * files, nfds_t n, int msec))                                                \
    X(ssize_t, write, (int fd, const void *data, size_t size))                                               \
    X(int, fputs, (const char *text, FILE *stream))                                                          \
    X(int, sigaction, (int signo, const struct sigaction *action, struct sigaction *old))                    \
    X(sighandler_t, signal, (int signo, sighandler_t handler))                                               \
    X(pid_t, waitpid, (pid_t pid, int *status, int options))                                                 \
    X(pid_t, wait4, (pid_t pid, int *status, int options, struct rusage *usage))                             \
    X(int, waitid, (idtype_t type, id_t id, siginfo_t * info, int options))                                  \
    X(_Noreturn void, _exit, (int code))                                                                     \
    X(int, execve, (const char *path, char *const *argv, char *const *environment))                          \
    X(int, execvpe, (const char *file, char *const *argv, char *const *environment))                         \
    X(int, fexecve, (int fd, char *const *argv, char *const *environment))                                   \
    X(int, execveat, (int fd, const char *path, char *const *argv, char *const *environment, int flags))     \
    X(int, posix_spawn,                                                                                      \
      (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,                             \
       const posix_spawnattr_t *attributes, char *const *argv, char *const *environment))                    \
    X(int, posix_spawnp,                                                                                     \
      (pid_t * pid, const char *file, const posix_spawn_file_actions_t *actions,                             \
       const posix_spawnattr_t *attributes, char *const *argv, char *const *environment))                    \
    X(int, system, (const char *command))                                                                    \
    X(FILE *, popen, (const char *command, const char *mode))

/* X(type, name, (parameters), (parameters of real_NAME)): the same, but variadic. */
#define INTERPOSED_VARIADIC(X)                                                                               \
    X(void *, mremap, (void *address, size_t size, size_t new_size, int flags, ...),                         \
      (void *address, size_t size, size_t new_size, int flags, void *place))                                 \
    X(int, fcntl, (int fd, int command, ...), (int fd, int command, void *argument))                         \
    X(sem_t *, sem_open, (const char *name, int flags, ...),                                                 \
      (const char *name, int flags, mode_t mode, unsigned value))

/* X(type, name, (parameters)): made of those above. glibc calls each within itself, so every one is listed.
 */
#define INTERPOSED_BUILT(X)                                                                                  \
    X(int, fstat64, (int fd, struct stat64 *st))                                                             \
    X(int, __fxstat64, (int version, int fd, struct stat64 *st))                                             \
    X(sighandler_t, sysv_signal, (int signo, sighandler_t handler))                                          \
    X(int, execv, (const char *path, char *const *argv))                                                     \
    X(int, execvp, (const char *file, char *const *argv))                                                    \
    X(int, execl, (const char *path, const char *first, ...))                                                \
    X(int, execlp, (const char *file, const char *first, ...))                                               \
    X(int, execle, (const char *path, const char *first, ...))

/* X(type, name, (parameters), other): another name of our_OTHER. On 64-bit machines the large-file names are
 * the same functions. */
#define INTERPOSED_ALIAS(X)                                                                                  \
    X(int, ftruncate64, (int fd, off_t size), ftruncate)                                                     \
    X(int, posix_fallocate64, (int fd, off_t offset, off_t size), posix_fallocate)                           \
    X(void *, mmap64, (void *address, size_t size, int protection, int flags, int fd, off_t offset), mmap)   \
    X(int, fcntl64, (int fd, int command, ...), fcntl)                                                       \
    X(sighandler_t, __sysv_signal, (int signo, sighandler_t handler), sysv_signal)                           \
    X(_Noreturn void, _Exit, (int code), _exit)

/* X(type, name, (parameters), call): of the CUDA runtime, as a CudaCall (cuda.h). Code for which stream 0 is
 * the thread's own calls the names that end in _ptsz. */
#define INTERPOSED_CUDA(X)                                                                                   \
    X(int, cudaPointerGetAttributes, (void *ret, const void *address), CUDA_ATTRIBUTES)                      \
    X(int, cudaMemcpyAsync, (void *target, const void *source, size_t size, int kind, void *stream),         \
      CUDA_COPY)                                                                                             \
    X(int, cudaMemcpyAsync_ptsz, (void *target, const void *source, size_t size, int kind, void *stream),    \
      CUDA_COPY_PTSZ)                                                                                        \
    X(int, cudaMemcpy2DAsync,                                                                                \
      (void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,             \
       size_t height, int kind, void *stream),                                                               \
      CUDA_COPY_2D)                                                                                          \
    X(int, cudaMemcpy2DAsync_ptsz,                                                                           \
      (void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,             \
       size_t height, int kind, void *stream),                                                               \
      CUDA_COPY_2D_PTSZ)                                                                                     \
    X(int, cudaMemcpy3DAsync, (const struct Copy3d *what, void *stream), CUDA_COPY_3D)                       \
    X(int, cudaMemcpy3DAsync_ptsz, (const struct Copy3d *what, void *stream), CUDA_COPY_3D_PTSZ)             \
    X(int, cudaMemcpyBatchAsync,                                                                             \
      (void **targets, void **sources, const size_t *sizes, size_t n, void *a, void *b, size_t c, void *d,   \
       void *e),                                                                                             \
      CUDA_COPY_BATCH)                                                                                       \
    X(int, cudaMemcpyBatchAsync_ptsz,                                                                        \
      (void **targets, void **sources, const size_t *sizes, size_t n, void *a, void *b, size_t c, void *d,   \
       void *e),                                                                                             \
      CUDA_COPY_BATCH_PTSZ)

#define INTERPOSED(X)                                                                                        \
    INTERPOSED_NEXT(X)                                                                                       \
    INTERPOSED_VARIADIC(X)                                                                                   \
    INTERPOSED_BUILT(X)                                                                                      \
    INTERPOSED_ALIAS(X)                                                                                      \
    INTERPOSED_CUDA(X)
