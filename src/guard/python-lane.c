/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"
#include "python-part.h"

/* What the texts of the lane (python/lane.py, lane_worker.py) may call. docs/lane.md says what it does. */

enum { VIEW_WRITE = 0x200 }; /* PyBUF_WRITE */

static Object *part_listen(Object *self, Object *arguments)
{
    (void)self, (void)arguments;
    LaneName name = {0};
    if (guard_enter()) {
        const LaneName *ours = lane_listen();
        if (ours)
            name = *ours;
        guard_leave(false);
    }
    return PyBytes_FromStringAndSize(name.text, (ssize_t)name.n);
}

static Object *part_connect(Object *self, Object *arguments)
{
    (void)self;
    Object *bytes = NULL;
    char *text = NULL;
    ssize_t n = 0;
    LaneName name = {0};
    int pid = 0;
    uint64_t worker = 0;
    if (!PyArg_ParseTuple(arguments, "Oi", &bytes, &pid) || PyBytes_AsStringAndSize(bytes, &text, &n) < 0)
        return NULL;
    if (n > 0 && (size_t)n <= sizeof name.text && pid > 0 && guard_enter()) {
        name.n = (size_t)n;
        memcpy(name.text, text, name.n);
        worker = lane_connect(&name, pid);
        guard_leave(false);
    }
    return PyLong_FromUnsignedLongLong(worker);
}

static Object *part_parts_max(Object *self, Object *arguments)
{
    (void)self, (void)arguments;
    return PyLong_FromLong((long)lane_parts_max());
}

static Object *part_send(Object *self, Object *arguments)
{
    (void)self;
    LaneFds fds = {0};
    ssize_t n = PyTuple_Size(arguments);
    uint64_t packet = 0;
    if (n > LANE_FDS_MAX)
        return PyLong_FromLong(0);
    for (; (ssize_t)fds.n < n; fds.n++)
        fds.fds[fds.n] = (int)PyLong_AsLong(PyTuple_GetItem(arguments, (ssize_t)fds.n));
    if (PyErr_Occurred())
        return NULL;
    if (guard_enter()) {
        packet = lane_send(&fds);
        guard_leave(false);
    }
    return PyLong_FromUnsignedLongLong(packet);
}

/* Into a list of the caller's, which has them whatever a signal handler raises when this returns. */
static Object *part_take(Object *self, Object *arguments)
{
    (void)self;
    LaneFds fds = {0};
    unsigned long long worker = 0;
    unsigned long long packet = 0;
    Object *list = NULL;
    if (!PyArg_ParseTuple(arguments, "OKK", &list, &worker, &packet))
        return NULL;
    bool taken = false;
    errno = ECONNRESET;
    if (guard_enter()) {
        taken = lane_take(worker, packet, &fds);
        guard_leave(!taken);
    }
    if (!taken)
        return PyErr_SetFromErrno(*PyExc_OSError);
    for (size_t i = 0; i < fds.n; i++) {
        Object *number = PyErr_Occurred() ? NULL : PyLong_FromLong(fds.fds[i]);
        if (!number || PyList_Append(list, number) < 0) /* there is no memory */
            real_close(fds.fds[i]);
        if (number)
            Py_DecRef(number);
    }
    return PyErr_Occurred() ? NULL : PyLong_FromLong(0);
}

static Object *part_shut(Object *self, Object *arguments)
{
    (void)self;
    for (ssize_t i = 0; i < PyTuple_Size(arguments); i++) {
        int fd = (int)PyLong_AsLong(PyTuple_GetItem(arguments, i));
        if (fd >= 0)
            our_close(fd);
    }
    return PyErr_Occurred() ? NULL : PyLong_FromLong(0);
}

/* What PyTorch asks fstat for, without letting other threads run meanwhile. */
static Object *part_file_of(Object *self, Object *arguments)
{
    (void)self;
    int fd = -1;
    struct stat file;
    if (!PyArg_ParseTuple(arguments, "i", &fd))
        return NULL;
    if (our_fstat(fd, &file) < 0)
        return PyErr_SetFromErrno(*PyExc_OSError);
    Object *numbers = PyTuple_New(2);
    if (numbers) {
        PyTuple_SetItem(numbers, 0, PyLong_FromUnsignedLongLong(file.st_ino));
        PyTuple_SetItem(numbers, 1, PyLong_FromUnsignedLongLong(file.st_dev));
    }
    return numbers;
}

/* --- Messages, as Python's Connection frames them: a size of four bytes, or -1 and one of eight --- */

/* One write of so few bytes is done at once or not at all, if the pipe has room for them and no other process
 * writes to it: a forked one may, and has the same semaphore then. */
static bool message_write(int fd, const char *text, size_t n)
{
    char message[PIPE_BUF];
    uint32_t head = htonl((uint32_t)n);
    struct pollfd pipe = {.fd = fd, .events = POLLOUT};
    if (n > sizeof message - sizeof head || real_poll(&pipe, 1, 0) != 1 || pipe.revents != POLLOUT)
        return false;
    memcpy(message, &head, sizeof head);
    memcpy(message + sizeof head, text, n);
    return real_write(fd, message, sizeof head + n) > 0;
}

/* The semaphore is taken here and not in Python, where a signal handler could raise while we have it. */
static Object *part_deliver(Object *self, Object *arguments)
{
    static int (*take)(sem_t *);
    static int (*post)(sem_t *);
    (void)self;
    int fd = -1;
    unsigned long long semaphore = 0;
    Object *bytes = NULL;
    char *text = NULL;
    ssize_t n = 0;
    if (!PyArg_ParseTuple(arguments, "iKO", &fd, &semaphore, &bytes) ||
        PyBytes_AsStringAndSize(bytes, &text, &n) < 0)
        return NULL;
    if (!take || !post) { /* Python has them, in a library that moved with glibc 2.34 */
        take = (int (*)(sem_t *))python_symbol("sem_trywait");
        post = (int (*)(sem_t *))python_symbol("sem_post");
    }
    sem_t *lock = (sem_t *)(uintptr_t)semaphore;
    bool written = false;
    if (take && post && take(lock) == 0) {
        written = message_write(fd, text, (size_t)n);
        post(lock);
    }
    return PyLong_FromLong(written);
}

/* The next message. A short one is here as a whole, because it was written at once. Of a longer one, only the
 * size has been read: the worker may have written some bytes, and wait for room for the rest. If not even the
 * size is here, nothing has been read. */
enum { SHORT_BYTES = PIPE_BUF - sizeof(uint32_t) };
typedef enum ArrivalKind {
    ARRIVAL_SHORT,
    ARRIVAL_LONG,
    ARRIVAL_LATE,
    ARRIVAL_PART,
    ARRIVAL_FAILED,
} ArrivalKind;
typedef struct Arrival {
    ArrivalKind kind;
    uint32_t size;
    char text[SHORT_BYTES];
} Arrival;

/* FAILED with errno. */
static void arrival_read(int fd, int msec, Arrival *ret)
{
    struct pollfd pipe = {.fd = fd, .events = POLLIN};
    uint32_t head = 0;
    int there = 0;
    int ready = our_poll(&pipe, 1, msec);
    ret->kind = ready < 0 || (ready > 0 && ioctl(fd, FIONREAD, &there) < 0) ? ARRIVAL_FAILED
                : ready == 0                                                ? ARRIVAL_LATE
                : (size_t)there < sizeof head                               ? ARRIVAL_PART
                                                                            : ARRIVAL_LONG;
    if (ret->kind != ARRIVAL_LONG)
        return;
    if (read(fd, &head, sizeof head) != sizeof head) {
        ret->kind = ARRIVAL_FAILED;
        return;
    }
    ret->size = ntohl(head);
    if (ret->size <= sizeof ret->text)
        ret->kind = read(fd, ret->text, ret->size) == (ssize_t)ret->size ? ARRIVAL_SHORT : ARRIVAL_FAILED;
}

/*
 * The main thread's waits are those of the training: with pin_memory=True another thread waits for the next
 * batch most of the time, and that delays nobody. Killed between any two lines, a process leaves a place that
 * the next one finds free; after fork the child's pid is another, and it takes a place of its own.
 */
static void loader_waited(uint64_t msec)
{
    Counters *counters = counters_reached();
    int32_t self = getpid();
    LoaderWait *ours = NULL;
    if (syscall(SYS_gettid) != self)
        return;
    for (size_t i = 0; i < LOADER_WAITS && !ours; i++)
        if (atomic_load_explicit(&counters->loader_waits[i].pid, memory_order_relaxed) == self)
            ours = &counters->loader_waits[i];
    for (size_t i = 0; i < LOADER_WAITS && !ours; i++) {
        LoaderWait *wait = &counters->loader_waits[i];
        int32_t pid = atomic_load_explicit(&wait->pid, memory_order_relaxed);
        bool is_free = pid == 0 || (kill(pid, 0) != 0 && errno == ESRCH);
        if (is_free && atomic_compare_exchange_strong(&wait->pid, &pid, self)) {
            atomic_store_explicit(&wait->msec, 0, memory_order_relaxed);
            ours = wait;
        }
    }
    if (ours)
        atomic_fetch_add_explicit(&ours->msec, msec, memory_order_relaxed);
}

/* How long to wait at a time. While copies are polled, too, a signal may come when poll does not wait. */
static int turn_msec(uint64_t end)
{
    enum { TURN_MSEC = 100 };
    uint64_t now = now_msec();
    int left = now < end ? (int)(end - now) : 0;
    return pins_wait() && left > TURN_MSEC ? TURN_MSEC : left;
}

/* Bytes, or the size of a longer message, which is still to be read. */
static Object *part_receive(Object *self, Object *arguments)
{
    enum { LATE = -1, PART = -2, HUGE = -3 }; /* lane.py has the same */
    (void)self;
    int fd = -1;
    double seconds = 0;
    Arrival arrival;
    if (!PyArg_ParseTuple(arguments, "id", &fd, &seconds))
        return NULL;
    uint64_t began = now_msec();
    uint64_t end = began + (seconds < INT_MAX / 1e3 ? (uint64_t)(seconds * 1e3 + 0.999) : INT_MAX);
    /* A message that is here already is read at once: to let other threads run costs a change to and fro. */
    for (int msec = 0;; msec = turn_msec(end)) {
        void *thread = msec > 0 ? python_let_run() : NULL;
        arrival_read(fd, msec, &arrival);
        int error = errno;
        python_go_on(thread);
        errno = error;
        if (arrival.kind == ARRIVAL_FAILED && errno != EINTR)
            return PyErr_SetFromErrno(*PyExc_OSError);
        if (arrival.kind != ARRIVAL_FAILED && (arrival.kind != ARRIVAL_LATE || now_msec() >= end))
            break;
        if (PyErr_CheckSignals() < 0)
            return NULL;
    }
    loader_waited(now_msec() - began);
    if (arrival.kind == ARRIVAL_SHORT)
        return PyBytes_FromStringAndSize(arrival.text, (ssize_t)arrival.size);
    return PyLong_FromLong(arrival.kind == ARRIVAL_LATE   ? LATE
                           : arrival.kind == ARRIVAL_PART ? PART
                           : arrival.size == UINT32_MAX   ? HUGE
                                                          : (long)arrival.size);
}

static Object *part_memory(Object *self, Object *arguments)
{
    (void)self;
    unsigned long long address = 0;
    ssize_t size = 0;
    if (!PyArg_ParseTuple(arguments, "Kn", &address, &size))
        return NULL;
    if (address != 0 && size > 0)
        return PyMemoryView_FromMemory((char *)(uintptr_t)address, size, VIEW_WRITE);
    PyErr_SetNone(*PyExc_ValueError);
    return NULL;
}

static Object *part_optional(Object *self, Object *arguments)
{
    (void)self;
    int on = 0;
    if (!PyArg_ParseTuple(arguments, "p", &on))
        return NULL;
    budget_optional(on != 0);
    return PyLong_FromLong(0);
}

static Object *part_room(Object *self, Object *arguments)
{
    (void)self;
    ssize_t size = 0;
    return PyArg_ParseTuple(arguments, "n", &size) ? PyByteArray_FromStringAndSize(NULL, size) : NULL;
}

static Object *part_count(Object *self, Object *arguments)
{
    (void)self;
    int taken = 0;
    unsigned long long by_value = 0;
    unsigned long long others = 0;
    if (!PyArg_ParseTuple(arguments, "pKK", &taken, &by_value, &others))
        return NULL;
    Counters *counters = counters_reached();
    batch_by_lane();
    atomic_fetch_add_explicit(taken ? &counters->lane_batches : &counters->lane_declined, 1,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->lane_value_bytes, by_value, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->lane_segment_bytes, others, memory_order_relaxed);
    return PyLong_FromLong(0);
}

static void decline(LaneWhy why)
{
    atomic_fetch_or_explicit(&counters_reached()->lane_whys, 1U << (unsigned)why, memory_order_relaxed);
}

static Object *part_decline(Object *self, Object *arguments)
{
    (void)self;
    int why = 0;
    if (!PyArg_ParseTuple(arguments, "i", &why))
        return NULL;
    decline((LaneWhy)why);
    return PyLong_FromLong(0);
}

static Object *part_worker_text(Object *self, Object *arguments)
{
    (void)self, (void)arguments;
    return PyBytes_FromStringAndSize(python_lane_worker, (ssize_t)strlen(python_lane_worker));
}

static Method methods[] = {
    {"listen", part_listen, METHOD_ARGUMENTS, NULL},
    {"connect", part_connect, METHOD_ARGUMENTS, NULL},
    {"parts_max", part_parts_max, METHOD_ARGUMENTS, NULL},
    {"send", part_send, METHOD_ARGUMENTS, NULL},
    {"take", part_take, METHOD_ARGUMENTS, NULL},
    {"shut", part_shut, METHOD_ARGUMENTS, NULL},
    {"file_of", part_file_of, METHOD_ARGUMENTS, NULL},
    {"deliver", part_deliver, METHOD_ARGUMENTS, NULL},
    {"receive", part_receive, METHOD_ARGUMENTS, NULL},
    {"memory", part_memory, METHOD_ARGUMENTS, NULL},
    {"room", part_room, METHOD_ARGUMENTS, NULL},
    {"optional", part_optional, METHOD_ARGUMENTS, NULL},
    {"count", part_count, METHOD_ARGUMENTS, NULL},
    {"decline", part_decline, METHOD_ARGUMENTS, NULL},
    {"worker_text", part_worker_text, METHOD_ARGUMENTS, NULL},
    {NULL, NULL, 0, NULL},
};

static bool lane_is_wanted(void)
{
    return !python_part_is_off(PROTOCOL_LANE);
}

static void python_decline(void)
{
    decline(LANE_PYTHON);
}

/* Its home is where messages find what they refer to: where PyTorch's own messages look. Programs that take
 * modules out of sys.modules cannot do without that one. */
const PythonPart lane_part = {
    .text = python_lane,
    .name = "_shmguard",
    .home = "torch.multiprocessing.reductions",
    .needs = "torch.utils.data._utils.worker",
    .minor_least = 8,
    .minor_most = 13,
    .methods = methods,
    .is_wanted = lane_is_wanted,
    .decline = python_decline,
    .in_loaders = true,
};
