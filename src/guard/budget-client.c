/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"

/*
 * Before a process touches pages of a segment that did not exist, it asks the supervisor whether the job may
 * have them. The thread that asks sleeps until it may. The others continue, above all those that release what
 * it waits for: so no lock is held here, and the question has a connection of its own.
 *
 * The segment is already handed out, and its lock shows that to the supervisor. If this process dies while it
 * waits, the kernel drops the lock and closes the connection: there is nothing to repair. If the supervisor
 * dies, there is no ceiling any more. The supervisor alone decides how long a wait may be.
 */
enum { SOON_MSEC = 2, TURN_MSEC = 10 };

/* The welcome comes first, and is skipped. -EAGAIN: no answer within msec. */
static int room_await(int connection, int msec)
{
    for (;;) {
        Message answer;
        struct pollfd ready = {.fd = connection, .events = POLLIN};
        int r = real_poll(&ready, 1, msec);
        if (r == 0)
            return -EAGAIN;
        if (r < 0 && errno == EINTR)
            continue;
        ssize_t n = recv(connection, &answer, sizeof answer, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n != sizeof answer)
            return 0;
        if (answer.type == MESSAGE_ANSWER)
            return -answer.error;
    }
}

/*
 * Meanwhile a segment of our own may come back whose pages are registered with CUDA. The supervisor cannot
 * free those pages (pins.c), so the process that has them uses them. It can free all others, and gives the
 * room to the process that is next. The request ends with its connection.
 */
static bool take_back(int *fd, uint64_t bytes)
{
    if (!guard_enter())
        return false;
    int again = pool_issue_again(bytes);
    if (again >= 0) {
        real_close(*fd);
        *fd = again;
    }
    guard_leave(false);
    return again >= 0;
}

static __thread bool is_optional __attribute__((tls_model("initial-exec")));

void budget_optional(bool on)
{
    is_optional = on;
}

static Asker asker_now(void)
{
    if (is_optional)
        return ASKER_OPTIONAL;
    if (syscall(SYS_gettid) == getpid())
        return ASKER_FIRST_THREAD;
    return witness_may_be_worker() ? ASKER_FEEDER : ASKER_OTHER_THREAD;
}

int budget_request(int *fd, uint64_t bytes)
{
    Message message = {
        .magic = PROTOCOL_MAGIC,
        .type = MESSAGE_ROOM,
        .bytes = bytes,
        .batch = batch_number(),
        .asker = asker_now(),
    };
    int connection = supervisor_connect(0);
    bool asked = connection >= 0 && message_send(connection, &message, *fd, 0);
    int r = asked ? room_await(connection, SOON_MSEC) : 0;
    if (r == -EAGAIN) {
        void *thread = python_let_run();
        int turn = pins_can_be() ? TURN_MSEC : -1;
        while ((r = room_await(connection, turn)) == -EAGAIN && !take_back(fd, bytes))
            ;
        r = r == -EAGAIN ? 0 : r;
        python_go_on(thread);
    }
    if (connection >= 0)
        real_close(connection);
    return r;
}

bool budget_is_wanted(void)
{
    return atomic_load_explicit(&guard_counters()->waiting, memory_order_relaxed) > 0;
}

void budget_tell_release(void)
{
    if (budget_is_wanted())
        (void)broker_tell(MESSAGE_RELEASED, "", -1);
}
