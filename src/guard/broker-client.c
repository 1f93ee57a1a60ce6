/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guard.h"

/*
 * The connection to the supervisor. It is made when it is first needed. A forked child makes its own.
 *
 * No process waits in vain: a stopped supervisor answers when it continues, and when one dies the kernel
 * closes its end and wakes the waiting process. So there is no timeout, and no name is lost because the
 * supervisor was slow.
 *
 * A connection that is lost although the supervisor lives (the program closes all descriptors, or the
 * supervisor had none left for us) is made again. ATTEMPTS_MAX is for a program that closes them all the
 * time.
 *
 * One program does not wait: torch_shm_manager serves all processes one after another, and they give it up
 * after a second. It only unlinks, and ignores the result: the supervisor reads what it has sent when it
 * continues.
 */
enum { ATTEMPTS_MAX = 64, TRIES_MAX = 2, MANAGER_MSEC = 50, START_MSEC = 50 };

static OwnFd connection = {.fd = -1};
static unsigned attempts;
static bool lost;                               /* there was a supervisor, and it is gone */
static Counters nowhere;                        /* used without a supervisor; no process reads it */
static _Atomic(Counters *) counters = &nowhere; /* set once; also read without the lock */

Counters *guard_counters(void)
{
    return atomic_load_explicit(&counters, memory_order_acquire);
}

void broker_forget(void)
{
    own_close(&connection);
    attempts = 0;
}

bool broker_lost(void)
{
    return lost;
}

/* *ret_fd is -1 if the packet carried no descriptor. */
static bool receive_message(int from, Message *ret, int *ret_fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {ret, sizeof *ret};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct pollfd answer = {.fd = from, .events = POLLIN};
    if (manager_is() && real_poll(&answer, 1, MANAGER_MSEC) <= 0)
        return false;
    ssize_t n;
    do
        n = recvmsg(from, &packet, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    int fd = -1;
    struct cmsghdr *header = n < 0 ? NULL : CMSG_FIRSTHDR(&packet);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    if (n == sizeof *ret && ret->magic == PROTOCOL_MAGIC) {
        *ret_fd = fd;
        return true;
    }
    if (fd >= 0)
        real_close(fd);
    return false;
}

/* The manager does not wait for its welcome, so that may come first. */
static bool receive_answer(Message *ret, int *ret_fd)
{
    while (receive_message(connection.fd, ret, ret_fd)) {
        if (ret->type == MESSAGE_ANSWER)
            return true;
        if (*ret_fd >= 0)
            real_close(*ret_fd);
    }
    return false;
}

static void map_counters(int fd)
{
    void *page = real_mmap(NULL, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED && guard_counters() == &nowhere)
        atomic_store_explicit(&counters, page, memory_order_release);
    else if (page != MAP_FAILED)
        real_munmap(page, sizeof(Counters));
}

static bool welcomed(int from)
{
    Message welcome;
    int page = -1;
    if (!receive_message(from, &welcome, &page))
        return false;
    if (page >= 0) {
        map_counters(page);
        real_close(page);
    }
    return true;
}

/* Only the page is fetched, and we do not wait for a stopped supervisor. */
void broker_fetch_counters(void)
{
    int saved = errno;
    int fd = guard_counters() == &nowhere ? supervisor_connect(START_MSEC) : -1;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (fd >= 0 && real_poll(&ready, 1, START_MSEC) > 0)
        (void)welcomed(fd);
    if (fd >= 0)
        real_close(fd);
    errno = saved;
}

/* Before main, and only on a terminal: output of the program counts from the first word (progress-line.c),
 * long before it makes a tensor. */
void broker_find_counters(void)
{
    if ((isatty(STDOUT_FILENO) || isatty(STDERR_FILENO)) && !getenv(PROTOCOL_ONLY_WITNESS))
        broker_fetch_counters();
}

static bool connect_now(void)
{
    errno = 0;
    int fd = supervisor_connect(0);
    if (fd < 0) {
        lost = errno == ECONNREFUSED;
        return false;
    }
    attempts++;
    if (!own_keep(fd, &connection))
        return false;
    if (manager_is() || welcomed(connection.fd))
        return true;
    own_close(&connection);
    return false;
}

bool broker_reach(void)
{
    if (own_is_open(&connection))
        return true;
    connection.fd = -1;
    return supervisor_is() && !lost && attempts < ATTEMPTS_MAX && connect_now();
}

static Message message_of(MessageType type, const char *name)
{
    Message message = {.magic = PROTOCOL_MAGIC, .type = type};
    strncpy(message.name, name, sizeof message.name - 1);
    return message;
}

/* Sends and, if an answer is expected, waits for it. What did not arrive because the connection was lost is
 * sent again: the supervisor answers everything that it reads, unless it dies. */
static bool exchange(Message *message, int fd, bool answered, int *ret_fd)
{
    for (int i = 0; i < TRIES_MAX && broker_reach(); i++) {
        Message answer;
        if (message_send(connection.fd, message, fd, 0)) {
            if (!answered)
                return true;
            if (receive_answer(&answer, ret_fd)) {
                *message = answer;
                return true;
            }
            if (manager_is()) {
                own_close(&connection);
                return false;
            }
        } else if (errno == ETOOMANYREFS) /* this user has too many descriptors in flight */
            return false;
        own_close(&connection);
    }
    return false;
}

bool broker_tell(MessageType type, const char *name, int fd)
{
    Message message = message_of(type, name);
    return exchange(&message, fd, false, NULL);
}

int broker_adopt(uint64_t bytes, uint64_t *ret_issue)
{
    int fd = -1;
    Message message = message_of(MESSAGE_ADOPT, "");
    message.bytes = bytes;
    if (!exchange(&message, -1, true, &fd))
        return -1;
    *ret_issue = message.issue;
    return fd;
}

int broker_ask(MessageType type, const char *name, int fd, int *ret_fd)
{
    int received = -1;
    Message message = message_of(type, name);
    if (!exchange(&message, fd, true, &received))
        return -ENOTCONN;
    if (ret_fd)
        *ret_fd = received;
    else if (received >= 0)
        real_close(received);
    return -message.error;
}
