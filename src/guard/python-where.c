/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guard.h"
#include "python-frames.h"
#include "python-part.h"

/*
 * The search for the line that leaks, in the processes of the job (docs/where.md). The supervisor's word is
 * in the page that all processes map (protocol.h). A process looks at it where Python waits for the next
 * batch, or for the next order: both the trainer and its workers wait in poll. So it costs a process that is
 * not asked two loads per batch, and one that has no queues of multiprocessing two loads per poll.
 *
 * A process acts on a word once: `seen` is the last one. The text of the part (python/where.py) is compiled
 * when it is first needed, and runs in the main thread, under the interpreter's lock, between two
 * instructions of the program. All that is kept between two words is in that module, and in native-sites.c.
 *
 * fork: a child has seen nothing, and samples nothing; the copy of the module drops its window, which is
 * another process's. exec, SIGKILL: nothing stays, and a window that is not ended is never reported. If the
 * supervisor is gone, its word stays as it is: a process that traces goes on doing so until it ends; so the
 * supervisor, when it crashes, ends the search first (where.h).
 *
 * WARM_POLLS: a process begins with its third batch or so. What it makes for the first ones stays, and does
 * not grow.
 */
enum { WARM_POLLS = 6, PATIENCE_MSEC = 200, OFFERS_MOST = 8 };

static _Atomic uint32_t seen;
static atomic_uint polls; /* since this process was first asked */
static atomic_bool made;  /* this process, or the one that forked it, has acted on a word */

static void forget(void)
{
    atomic_store(&seen, 0);
    atomic_store(&polls, 0);
    native_forget();
}

/* A process with the guard's memory has the page anyway. Otherwise it is fetched here; a supervisor that is
 * busy may need another try. */
void where_offer(const char *semaphore)
{
    static atomic_int offers;
    if (strncmp(semaphore, "/mp-", 4) != 0 || !supervisor_is())
        return;
    int before = atomic_load(&offers);
    if (before >= OFFERS_MOST || !atomic_compare_exchange_strong(&offers, &before, before + 1))
        return;
    if (before == 0 && pthread_atfork(NULL, NULL, forget) != 0)
        atomic_store(&offers, OFFERS_MOST); /* children would not notice that they are others */
    else
        broker_fetch_counters();
}

static uint32_t word_now(void)
{
    return atomic_load_explicit(&guard_counters()->where, memory_order_relaxed);
}

static void notice(uint32_t word, const void *caller)
{
    int saved = errno;
    if (where_stage(word) == WHERE_OFF && !atomic_load(&made))
        atomic_store(&seen, word);
    else if (atomic_fetch_add(&polls, 1) >= WARM_POLLS)
        python_part_request(&where_part, caller);
    errno = saved;
}

void where_poll(const void *caller)
{
    uint32_t word = word_now();
    if (word != atomic_load_explicit(&seen, memory_order_relaxed))
        notice(word, caller);
}

/* --- What the part may call --- */

static Object *part_word(Object *self, Object *arguments)
{
    (void)self, (void)arguments;
    /* The supervisor says whom it asks before it changes the word. */
    uint32_t word = atomic_load_explicit(&guard_counters()->where, memory_order_acquire);
    atomic_store(&seen, word);
    atomic_store(&made, true);
    Object *pair = PyTuple_New(2);
    if (!pair)
        return NULL;
    PyTuple_SetItem(pair, 0, PyLong_FromLong(where_stage(word)));
    PyTuple_SetItem(pair, 1, PyLong_FromLong(where_phase(word)));
    return pair;
}

/* worker: whether this process is one. */
static Object *part_claim(Object *self, Object *arguments)
{
    (void)self;
    Counters *counters = guard_counters();
    int worker = 0;
    if (!PyArg_ParseTuple(arguments, "p", &worker))
        return NULL;
    int32_t pid = atomic_load(&counters->where_pid);
    int32_t none = 0;
    bool ours = pid > 0 ? pid == getpid()
                        : worker && atomic_compare_exchange_strong(&counters->where_worker, &none, getpid());
    return PyLong_FromLong(ours);
}

static Object *part_release(Object *self, Object *arguments)
{
    (void)self, (void)arguments;
    int32_t pid = getpid();
    (void)atomic_compare_exchange_strong(&guard_counters()->where_worker, &pid, 0);
    return PyLong_FromLong(0);
}

static bool say(const char *text, size_t n)
{
    TestimonyHead head = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_SITES, .n = (uint32_t)n};
    struct iovec packet[] = {{&head, offsetof(Testimony, text)}, {(void *)text, n}};
    int fd = n > TESTIMONY_TEXT_MAX ? -1 : supervisor_connect(PATIENCE_MSEC);
    if (fd < 0)
        return false;
    bool sent = sendmsg(fd, &(struct msghdr){.msg_iov = packet, .msg_iovlen = 2}, MSG_NOSIGNAL) > 0;
    real_close(fd);
    return sent;
}

static Object *part_say(Object *self, Object *arguments)
{
    (void)self;
    Object *bytes = NULL;
    char *text = NULL;
    ssize_t n = 0;
    if (!PyArg_ParseTuple(arguments, "O", &bytes) || PyBytes_AsStringAndSize(bytes, &text, &n) < 0)
        return NULL;
    return PyLong_FromLong(say(text, (size_t)n));
}

static Object *part_native_begin(Object *self, Object *arguments)
{
    (void)self;
    PythonExpected expected[FRAMES_EXPECTED] = {0};
    int n = 0;
    if (!PyArg_ParseTuple(arguments, "ississississi", &n, &expected[0].file, &expected[0].name,
                          &expected[0].line, &expected[1].file, &expected[1].name, &expected[1].line,
                          &expected[2].file, &expected[2].name, &expected[2].line, &expected[3].file,
                          &expected[3].name, &expected[3].line))
        return NULL;
    return PyLong_FromLong(n > 0 && n <= FRAMES_EXPECTED && native_begin(expected, (size_t)n));
}

static Object *part_native_middle(Object *self, Object *arguments)
{
    (void)self, (void)arguments;
    native_middle();
    return PyLong_FromLong(0);
}

static Object *part_native_end(Object *self, Object *arguments)
{
    (void)self, (void)arguments;
    static char text[TESTIMONY_TEXT_MAX]; /* under the interpreter's lock */
    return PyBytes_FromStringAndSize(text, (ssize_t)native_end(text, sizeof text));
}

static Method methods[] = {
    {"word", part_word, METHOD_ARGUMENTS, NULL},
    {"claim", part_claim, METHOD_ARGUMENTS, NULL},
    {"release", part_release, METHOD_ARGUMENTS, NULL},
    {"say", part_say, METHOD_ARGUMENTS, NULL},
    {"native_begin", part_native_begin, METHOD_ARGUMENTS, NULL},
    {"native_middle", part_native_middle, METHOD_ARGUMENTS, NULL},
    {"native_end", part_native_end, METHOD_ARGUMENTS, NULL},
    {NULL, NULL, 0, NULL},
};

static bool where_is_wanted(void)
{
    return true;
}

static void python_decline(void)
{
    static const char text[] = "failed\tpython\n";
    (void)say(text, sizeof text - 1);
}

/* Its home is the lane's, for the same reason. */
const PythonPart where_part = {
    .text = python_where,
    .name = "_shmguard_where",
    .home = "torch.multiprocessing.reductions",
    .needs = "torch.utils.data._utils.worker",
    .minor_least = 9,
    .minor_most = 14,
    .methods = methods,
    .is_wanted = where_is_wanted,
    .decline = python_decline,
    .on_request = true,
};
