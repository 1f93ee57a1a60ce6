/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What glibc lacks before 2.32, for a program that must start with 2.17. Where the build finds a function
 * missing, it defines WITHOUT_x and includes this header first (meson.build). The names are macros with
 * parameters, because some headers declare these functions anyway, and the guard defines statx itself.
 */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifdef WITHOUT_getrandom
#define getrandom(buf, size, flags) syscall(SYS_getrandom, buf, size, flags)
#endif

#ifdef WITHOUT_memfd_create
#include <linux/memfd.h>
#define memfd_create(name, flags) ((int)syscall(SYS_memfd_create, name, flags))
#endif

#ifdef WITHOUT_pthread_clockjoin_np
static inline int old_clockjoin(pthread_t thread, void **ret, clockid_t clock, const struct timespec *until)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    for (;;) {
        int r = pthread_tryjoin_np(thread, ret);
        if (r != EBUSY)
            return r;
        struct timespec now;
        clock_gettime(clock, &now);
        if (now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
            return ETIMEDOUT;
        nanosleep(&pause, NULL);
    }
}
#define pthread_clockjoin_np(thread, ret, clock, until) old_clockjoin(thread, ret, clock, until)
#endif

#ifdef WITHOUT_reallocarray
static inline void *old_reallocarray(void *array, size_t n, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(array, bytes);
}
#define reallocarray(array, n, size) old_reallocarray(array, n, size)
#endif

#ifdef WITHOUT_sigabbrev_np
static inline const char *old_sigabbrev(int signo)
{
    static const char *const names[] = {
        [SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
        [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
        [SIGKILL] = "KILL", [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
        [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
        [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
        [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
        [SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
        [SIGPOLL] = "POLL", [SIGPWR] = "PWR",       [SIGSYS] = "SYS",
    };
    return signo > 0 && signo < (int)(sizeof names / sizeof *names) ? names[signo] : NULL;
}
#define sigabbrev_np(signo) old_sigabbrev(signo)
#endif

#ifdef WITHOUT_statx
#include <linux/stat.h>
#define AT_STATX_DONT_SYNC                0x4000
#define statx(fd, path, flags, mask, ret) ((int)syscall(SYS_statx, fd, path, flags, mask, ret))
#endif
