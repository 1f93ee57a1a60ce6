/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"

/*
 * Lifetime. The library works before its constructor has run (real.c) and after all destructors: it has none,
 * and its tables are static. At exit the kernel drops all locks. At exec everything is close-on-exec or a
 * mapping.
 *
 * fork: the mutex is taken across it, so the child sees whole tables. In the child
 *   - the pool is forgotten: the parent issues those segments, and only one process may issue a segment;
 *   - unused views are unmapped, and those that only wait for the parent's copies; views in use stay, with
 * their holds, because the child may reach the tensors; nothing is registered with CUDA any more (pins.c);
 *   - pending tensors are forgotten: they belong to threads that the child does not have;
 *   - the lane's ends in a trainer stay: the child may go on reading (lane.c).
 *
 * vfork, and clone without these handlers: the child may share our memory and still have descriptors of its
 * own, so that a close() in it says nothing about ours. It is recognised by its pid, and all its calls are
 * plain ones.
 *
 * Threads: cancellation is off while the lock is held. A signal handler that interrupts its owner finds
 * `inside` set and passes by.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside __attribute__((tls_model("initial-exec")));
static __thread int saved_errno __attribute__((tls_model("initial-exec")));
static __thread int saved_cancel __attribute__((tls_model("initial-exec")));

/* Changed with the lock held. pthread_once would do for `started`, but its symbol version differs between
 * glibc versions. */
static bool started;
static bool off;
static _Atomic pid_t
    owner;              /* the process that these tables describe; read before the lock is taken, because in
                           a child of vfork or _Fork the lock may belong to a thread that does not exist */
static bool was_inside; /* whether the forking thread was inside before fork_prepare */

static void tables_check(void)
{
#ifdef GUARD_CHECKS
    pool_check();
    views_check();
    pins_check();
#endif
}

/*
 * Between prepare and the end of fork, handlers of other libraries run, and handlers of signals that were
 * blocked: they must find the forking thread inside, or they would wait for the lock that it holds itself.
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
    if (!before && lane_any() && owner == getpid()) {
        int cancel = 0;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        lane_before_fork();
        pthread_setcancelstate(cancel, NULL);
    }
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
    if (was_inside) /* it continues inside and leaves by itself; owner stays the parent, so it cannot enter
                       again */
        return;
    int saved = errno;
    owner = getpid();
    pool_forget();
    view_forget_inherited();
    pending_clear();
    broker_forget();
    lane_inherit();
    tables_check();
    pthread_mutex_unlock(&lock);
    inside = false;
    errno = saved;
}

/* The constructor calls it first: what the program does to its environment later changes nothing. */
bool guard_is_switched_off(void)
{
    static atomic_int answer; /* 0: not known yet */
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
    /* Without the handlers two processes would issue the same segments: then the guard is off. */
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
    inside = true; /* before the lock: a handler that runs in between must not wait for us */
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
    tables_check();
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
