/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"

/*
 * What only a process itself can report about its end: where in memory it faulted, where in Python it was,
 * what it wrote to standard error last, and how its children ended.
 *
 * All of it may run in a signal handler, between any two instructions of the process: it takes no lock,
 * allocates no memory and reads none of the guard's tables. A testimony goes over a connection of its own,
 * which is made, used and closed in one function. Without a supervisor nothing is touched at all: no handler,
 * no record.
 *
 * Faults. Our handler stands in front of the program's own, from the start, for four signals. The program
 * does not see it: sigaction() and signal() return what they would return without us, and a handler that it
 * installs is called after the record was made, with the mask and the flags that it asked for. If it has
 * none, the signal's default is installed and happens: the same fault occurs again, or the same signal is
 * sent again.
 *   - A handler that restores the default and raises the signal again, as PyTorch's does, gets the real
 *     default: a second record would hide the first.
 *   - Some runtimes handle faults as part of their normal work (they catch SIGSEGV): only the first
 *     RECORDS_MAX faults of a process are reported.
 *   - We wait until the supervisor has looked at the process, but not for long: it may be stopped.
 *
 * exec sets handlers to the default; the library starts again in the new program. A forked child inherits
 * handlers and these variables, and none is half written: each is one atomic word. A child of vfork has
 * handlers of its own, but these variables are its parent's: Python sets all its handlers to the default
 * there. So the child changes none of them.
 *
 * Stack. The program's own signal stack may have 8 KiB, of which the kernel's frame takes up to half, and
 * anything may lie below it: our frames are small, and texts are in .bss.
 *
 * Threads. A thread that is cancelled in waitpid has not waited: cancellation is off while we report.
 */
enum {
    RECORDS_MAX = 8,
    PATIENCE_MSEC = 2000,
    CHILD_PATIENCE_MSEC = 50, /* there may be thousands of them, and this process goes on */
    SAID_BYTES = TESTIMONY_TEXT_MAX,
};

static const int watched[] = {SIGBUS, SIGSEGV, SIGABRT, SIGFPE};
enum { N_WATCHED = sizeof watched / sizeof watched[0] };

typedef void (*Handler)(int, siginfo_t *, void *);

typedef struct Next {
    _Atomic(Handler) handler; /* the program's; NULL: SIG_DFL */
    atomic_bool plain;        /* it was installed without SA_SIGINFO */
} Next;

static bool listened_to; /* there is a supervisor, and our handlers are in place */
static Next nexts[N_WATCHED];
static atomic_int records;
static _Atomic pid_t home;                     /* the process that `said` belongs to */
static atomic_flag dumping = ATOMIC_FLAG_INIT; /* one thread at a time uses `dump` */
static char dump[TESTIMONY_TEXT_MAX];
static __thread bool handling __attribute__((tls_model("initial-exec")));
static __thread sigjmp_buf *escape __attribute__((tls_model("initial-exec")));

/* --- Testimonies -------------------------------------------------------------------------------------- */

/* Until the supervisor answers, is gone, or takes too long. Its welcome comes first. */
static void await_answer(int fd)
{
    Message message = {0};
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    for (int packets = 0; packets < 2 && message.type != MESSAGE_ANSWER; packets++)
        if (real_poll(&ready, 1, PATIENCE_MSEC) <= 0 || recv(fd, &message, sizeof message, MSG_DONTWAIT) <= 0)
            return;
}

/* From outside this is not visible: with our handlers every process of the job catches these signals. */
bool witness_may_be_worker(void)
{
    bool may = true;
    for (int i = 0; i < N_WATCHED; i++)
        may &= watched[i] == SIGABRT || atomic_load(&nexts[i].handler) != NULL;
    return may;
}

static bool is_worker(void)
{
    bool is = witness_may_be_worker();
    for (int i = 0; i < N_WATCHED; i++)
        is &= watched[i] != SIGABRT || atomic_load(&nexts[i].handler) == NULL;
    return is;
}

_Static_assert(sizeof(TestimonyHead) == offsetof(Testimony, text), "the text follows at once");

/* Root in a container may not open this file of another user's process, so we pass it an open descriptor. */
static int maps_open(int connection, const TestimonyHead *testimony)
{
    return testimony->type == MESSAGE_FAULT && supervisor_is_other_user(connection)
               ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
               : -1;
}

static void testify_to(int fd, TestimonyHead *testimony, const char *text, size_t n)
{
    if (fd < 0)
        return;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec parts[] = {{testimony, sizeof *testimony}, {(char *)text, n}};
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 2};
    int maps = maps_open(fd, testimony);
    if (maps >= 0) {
        memcpy(CMSG_DATA(&control.header), &maps, sizeof maps);
        packet.msg_control = &control;
        packet.msg_controllen = sizeof control;
    }
    if (sendmsg(fd, &packet, MSG_NOSIGNAL) > 0 && testimony->type == MESSAGE_FAULT)
        await_answer(fd);
    if (maps >= 0)
        real_close(maps);
    real_close(fd);
}

static void testify(TestimonyHead *testimony, const char *text, size_t n)
{
    int cancel = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int patience_msec = testimony->type == MESSAGE_CHILD ? CHILD_PATIENCE_MSEC : PATIENCE_MSEC;
    testimony->magic = PROTOCOL_MAGIC;
    testimony->worker = is_worker();
    testimony->n = (uint32_t)n;
    testify_to(supervisor_connect(patience_msec), testimony, text, n);
    testify_to(supervisor_connect_inner(patience_msec), testimony, text, n);
    pthread_setcancelstate(cancel, NULL);
}

/* --- Where in Python ---------------------------------------------------------------------------------- */

/* The interpreter's structures may be corrupt: a fault while they are read ends the reading. */
static size_t stack_read(char *ret, size_t size)
{
    int ends[2];
    if (!python_has_stack() || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return 0;
    sigjmp_buf back;
    sigset_t faults;
    sigset_t before;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    sigprocmask(SIG_UNBLOCK, &faults, &before);
    if (sigsetjmp(back, 0) == 0) {
        escape = &back;
        python_write_stack(ends[1]);
    }
    escape = NULL;
    sigprocmask(SIG_SETMASK, &before, NULL);
    ssize_t n = read(ends[0], ret, size);
    real_close(ends[0]);
    real_close(ends[1]);
    return n > 0 ? (size_t)n : 0;
}

static void tell_stack(void)
{
    if (atomic_flag_test_and_set(&dumping))
        return;
    size_t n = stack_read(dump, sizeof dump);
    if (n > 0)
        testify(&(TestimonyHead){.type = MESSAGE_STACK}, dump, n);
    atomic_flag_clear(&dumping);
}

/* --- Faults ------------------------------------------------------------------------------------------- */

/* False in a child of vfork, or of clone without our fork handler: the variables may be its parent's. */
static bool is_home(void)
{
    return atomic_load(&home) == getpid();
}

static int watched_index(int signo)
{
    for (int i = 0; i < N_WATCHED; i++)
        if (watched[i] == signo)
            return listened_to ? i : -1;
    return -1;
}

static void tell_fault(int signo, const siginfo_t *info)
{
    /* Compared first: in programs that handle faults as normal work, a count of all of them would overflow.
     */
    if (atomic_load(&records) >= RECORDS_MAX || atomic_fetch_add(&records, 1) >= RECORDS_MAX)
        return;
    bool sent = info->si_code <= 0;
    TestimonyHead testimony = {
        .type = MESSAGE_FAULT,
        .signal = signo,
        .code = info->si_code,
        .address = sent ? 0 : (uint64_t)(uintptr_t)info->si_addr,
        .sender = sent ? info->si_pid : 0,
        .thread = (int32_t)syscall(SYS_gettid),
    };
    prctl(PR_GET_NAME, testimony.thread_name);
    testify(&testimony, "", 0);
    tell_stack();
    witness_leave(1);
}

static void default_take(int signo, const siginfo_t *info)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    real_sigaction(signo, &standard, NULL);
    /* A signal that the kernel raised for an instruction comes again when the instruction runs again. */
    if (info->si_code <= 0 || (signo == SIGBUS && info->si_code == BUS_MCEERR_AO))
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signo);
}

static void on_fault(int signo, siginfo_t *info, void *context)
{
    if (escape)
        siglongjmp(*escape, 1);
    int saved = errno;
    Handler next = atomic_load(&nexts[watched_index(signo)].handler);
    bool before = handling;
    if (!before && is_home()) {
        handling = true;
        tell_fault(signo, info);
    }
    errno = saved;
    if (next)
        next(signo, info, context); /* a handler that takes only the number ignores the rest */
    else
        default_take(signo, info);
    handling = before; /* a handler that jumps out leaves it set: no more faults of its thread are reported */
}

int witness_sigaction(int signo, const struct sigaction *action, struct sigaction *ret_old)
{
    int i = watched_index(signo);
    if (i < 0)
        return real_sigaction(signo, action, ret_old);
    struct sigaction ours = action ? *action : (struct sigaction){0};
    struct sigaction old;
    Handler next_old = atomic_load(&nexts[i].handler);
    bool plain_old = atomic_load(&nexts[i].plain);
    bool direct = action && (action->sa_handler == SIG_IGN || (action->sa_handler == SIG_DFL && handling) ||
                             !is_home());
    bool behind = action && !direct;
    /* The program has read our handler by a call that is not interposed, and installs it again: then the
     * handler behind it stays. */
    bool known = behind && action->sa_sigaction == on_fault;
    if (behind) {
        bool standard = known ? !next_old : action->sa_handler == SIG_DFL;
        ours.sa_sigaction = on_fault;
        ours.sa_flags |= standard ? SA_SIGINFO | SA_ONSTACK : SA_SIGINFO;
    }
    if (behind && !known) {
        atomic_store(&nexts[i].plain, !(action->sa_flags & SA_SIGINFO));
        atomic_store(&nexts[i].handler, action->sa_handler == SIG_DFL ? NULL : action->sa_sigaction);
    }
    if (real_sigaction(signo, action ? &ours : NULL, &old) < 0) {
        if (behind) {
            atomic_store(&nexts[i].handler, next_old);
            atomic_store(&nexts[i].plain, plain_old);
        }
        return -1;
    }
    if (ret_old && (old.sa_flags & SA_SIGINFO) && old.sa_sigaction == on_fault) {
        old.sa_sigaction = next_old;
        if (plain_old)
            old.sa_flags &= ~SA_SIGINFO;
        if (!next_old)
            old.sa_flags &= ~SA_ONSTACK;
    }
    if (ret_old)
        *ret_old = old;
    return 0;
}

bool witness_watches(int signo)
{
    return watched_index(signo) >= 0;
}

/* --- Last output -------------------------------------------------------------------------------------- */

/* A ring; `said_bytes` only increases. Output of threads that write at the same time may mix, as on a
 * terminal.
 */
static char said[SAID_BYTES];
static atomic_size_t said_bytes;

void witness_hear(const char *text, size_t n)
{
    if (!listened_to || n == 0)
        return;
    if (n > SAID_BYTES) {
        text += n - SAID_BYTES;
        n = SAID_BYTES;
    }
    size_t at = atomic_fetch_add_explicit(&said_bytes, n, memory_order_relaxed) % SAID_BYTES;
    size_t first = n < SAID_BYTES - at ? n : SAID_BYTES - at;
    memcpy(said + at, text, first);
    memcpy(said, text + first, n - first);
}

void witness_leave(int code)
{
    size_t n = atomic_load(&said_bytes);
    /* A child of vfork shares this memory, and its contents are the parent's. */
    if (code == 0 || n == 0 || !listened_to || !is_home() || atomic_flag_test_and_set(&dumping))
        return;
    size_t kept = n < SAID_BYTES ? n : SAID_BYTES;
    size_t start = n < SAID_BYTES ? 0 : n % SAID_BYTES;
    memcpy(dump, said + start, kept - start);
    memcpy(dump + kept - start, said, start);
    testify(&(TestimonyHead){.type = MESSAGE_SAID}, dump, kept);
    atomic_store(&said_bytes, 0);
    atomic_flag_clear(&dumping);
}

static void on_exit_code(int code, void *unused)
{
    (void)unused;
    witness_leave(code);
}

static void fork_child(void)
{
    atomic_store(&home, getpid());
    atomic_store(&said_bytes, 0);
    atomic_store(&records, 0);
    atomic_flag_clear(&dumping); /* it may have been set by a thread that the child does not have */
    handling = false;            /* the parent has reported its fault, or has jumped out of a handler */
}

/* --- Children ----------------------------------------------------------------------------------------- */

/* PyTorch queries a dead worker again and again before it waits for it: one report is enough. */
void witness_child(pid_t pid, int status)
{
    static _Atomic pid_t last;
    bool bad = WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
    if (!bad || !listened_to || atomic_exchange(&last, pid) == pid)
        return;
    int saved = errno;
    testify(&(TestimonyHead){.type = MESSAGE_CHILD, .pid = pid, .status = status}, "", 0);
    errno = saved;
}

/* --- Start -------------------------------------------------------------------------------------------- */

void witness_start(void)
{
    if (!supervisor_is())
        return;
    atomic_store(&home, getpid());
    if (pthread_atfork(NULL, NULL, fork_child) != 0 || on_exit(on_exit_code, NULL) != 0)
        return;
    listened_to = true;
    for (int i = 0; i < N_WATCHED; i++) {
        struct sigaction now;
        struct sigaction standard = {.sa_handler = SIG_DFL};
        if (real_sigaction(watched[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            (void)witness_sigaction(watched[i], &standard, NULL);
    }
}
