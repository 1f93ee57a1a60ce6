/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"

/*
 * The way of descriptors from a DataLoader's worker to its trainer: one connection per worker, for as long as
 * it lives. With each batch it carries one packet: the batch's number and its descriptors. The message that
 * goes through PyTorch's queue names worker and number (python/lane.py).
 *
 * The invariant of guard.h holds without a step of ours: what is on its way is the handed-out description,
 * and a description in a socket keeps its lock. No party has to say that it has taken or left anything.
 *
 * A packet is sent before the message that names it is written, so it is there when the trainer looks for it:
 * neither side ever waits. If the socket is full, or too many descriptors of this user are on their way, the
 * worker sends the batch by value, which needs none.
 *
 * Where a process can die, or a message get lost:
 *
 * - The worker, before it sends the packet: nothing has happened. After it: the packet stays in the socket
 * and can be taken, which PyTorch's own way cannot offer. What no message names is closed with the
 * connection: when the trainer has waited for the worker's end, makes its next queue, or ends itself.
 *
 * - The trainer, at any time: the kernel closes the connection, and what is in it. The worker notices when it
 *   sends the next packet.
 *
 * - A message that is dropped unread leaves its packet in front of the next one, where it is found and set
 *   aside. KEPT_MAX packets are kept, in case a second thread of the trainer has read that message and not
 *   asked yet; older ones are closed.
 *
 * fork: a child of a trainer may go on reading its parent's loader, as it can without the lane. So it keeps
 * the trainer's ends, marked as inherited: it takes packets from them when it reads messages that name them,
 * and does nothing else with them. It has a listener of its own for workers of its own, and a worker closes
 * what it has inherited. What nobody takes lives as long as one of both has the connection: therefore the
 * trainer empties a connection before it closes it. If the trainer ends without that, a child keeps what was
 * on its way, as it keeps the batches that its parent had. A child of a worker closes the worker's end.
 * exec: close-on-exec.
 *
 * Descriptors are known by number, and a program may close them all: before each use, and before it is
 * closed, the number must still be our file.
 *
 * The listener is an abstract name that the kernel has chosen, so that there is no file. Any user can connect
 * to it: a connection of another user's process is closed unread. A worker in turn sends only to the very
 * process that has started it.
 */
enum { LANES_MAX = 4096, KEPT_MAX = 16, BACKLOG = 1024 };

typedef struct Head {
    uint64_t worker; /* its pid and when it connected, which no two of a trainer's workers share */
    uint64_t number; /* of the packet, from 1 */
} Head;

typedef struct Lane {
    OwnFd socket;
    pid_t pid;
    uint64_t worker; /* 0: no packet has come yet */
    bool inherited;  /* from the process that has forked this one, which has it, too */
} Lane;

typedef struct Packet {
    Head head;
    LaneFds fds;
} Packet;

typedef struct Kept {
    Head head; /* number 0: the entry is not in use */
    size_t n;
    OwnFd fds[LANE_FDS_MAX];
} Kept;

/* In the trainer: */
static OwnFd listener = {.fd = -1};
static bool listener_inherited;
static LaneName listener_name;
static atomic_bool listens;
static Lane lanes[LANES_MAX];
static size_t n_lanes;
static Kept kept[KEPT_MAX];
static size_t next_kept;

/* In a worker: */
static OwnFd trainer = {.fd = -1};
static Head sent;

/* Its pid; 0: it is of another user. */
static pid_t peer_of(int fd)
{
    struct ucred peer;
    return peer_read(fd, &peer) && peer.uid == geteuid() ? peer.pid : 0;
}

static void fds_close(LaneFds *fds)
{
    for (size_t i = 0; i < fds->n; i++)
        real_close(fds->fds[i]);
    fds->n = 0;
}

static void kept_close(Kept *packet)
{
    while (packet->n > 0)
        own_close(&packet->fds[--packet->n]);
    packet->head.number = 0;
}

void lane_inherit(void)
{
    atomic_store_explicit(&listens, false, memory_order_relaxed);
    listener_inherited = true;
    for (size_t i = 0; i < n_lanes; i++)
        lanes[i].inherited = true;
    own_close(&trainer);
    for (size_t i = 0; i < KEPT_MAX; i++) /* for threads of the parent */
        kept_close(&kept[i]);
}

bool lane_any(void)
{
    return atomic_load_explicit(&listens, memory_order_relaxed);
}

/* --- In the trainer --- */

static void lane_close(Lane *lane)
{
    for (size_t i = 0; i < KEPT_MAX; i++)
        if (kept[i].head.number != 0 && kept[i].head.worker == lane->worker)
            kept_close(&kept[i]);
    if (!lane->inherited && own_is_open(&lane->socket)) {
        char first; /* without room for them, descriptors are closed */
        while (recv(lane->socket.fd, &first, sizeof first, MSG_DONTWAIT) > 0)
            ;
    }
    own_close(&lane->socket);
    *lane = lanes[--n_lanes];
}

static void listener_close(void)
{
    own_close(&listener);
    listener_inherited = false;
}

void lane_disown(void)
{
    if (listener_inherited)
        listener_close();
    for (size_t i = n_lanes; i > 0; i--)
        if (lanes[i - 1].inherited)
            lane_close(&lanes[i - 1]);
}

static bool lane_is_dead(const Lane *lane)
{
    struct pollfd end = {.fd = lane->socket.fd};
    return !own_is_open(&lane->socket) || (real_poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLERR));
}

/* Whose lane it is, if its first packet has come. */
static void lane_learn(Lane *lane)
{
    Head head;
    if (lane->worker == 0 && own_is_open(&lane->socket) &&
        recv(lane->socket.fd, &head, sizeof head, MSG_PEEK | MSG_DONTWAIT) == sizeof head)
        lane->worker = head.worker;
}

static void lanes_accept(void)
{
    while (own_is_open(&listener)) {
        int fd = accept4(listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            break;
        Lane lane = {.pid = peer_of(fd)};
        if (lane.pid == 0 || n_lanes == LANES_MAX)
            real_close(fd);
        else if (own_keep(fd, &lane.socket))
            lanes[n_lanes++] = lane;
    }
    for (size_t i = 0; i < n_lanes; i++)
        lane_learn(&lanes[i]);
}

/* Whichever of both reads then: it finds all workers that have connected. One that connects later is found by
 * whichever reads first. */
void lane_before_fork(void)
{
    lanes_accept();
}

void lane_child_end(pid_t pid)
{
    lanes_accept();
    for (size_t i = n_lanes; i > 0; i--)
        if (lanes[i - 1].pid == pid && lane_is_dead(&lanes[i - 1]))
            lane_close(&lanes[i - 1]);
}

static bool listener_make(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t size = sizeof name;
    if (!own_keep(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), &listener))
        return false;
    /* With no name given, the kernel chooses one. */
    if (bind(listener.fd, (struct sockaddr *)&name, sizeof name.sun_family) < 0 ||
        listen(listener.fd, BACKLOG) < 0 || getsockname(listener.fd, (struct sockaddr *)&name, &size) < 0 ||
        size - offsetof(struct sockaddr_un, sun_path) > sizeof listener_name.text) {
        listener_close();
        return false;
    }
    listener_name.n = size - offsetof(struct sockaddr_un, sun_path);
    memcpy(listener_name.text, name.sun_path, listener_name.n);
    atomic_store_explicit(&listens, true, memory_order_relaxed);
    return true;
}

const LaneName *lane_listen(void)
{
    if (listener_inherited)
        listener_close();
    lanes_accept();
    for (size_t i = n_lanes; i > 0; i--)
        if (lane_is_dead(&lanes[i - 1]))
            lane_close(&lanes[i - 1]);
    return own_is_open(&listener) || listener_make() ? &listener_name : NULL;
}

static Lane *lane_find(uint64_t worker)
{
    for (size_t i = 0; i < n_lanes; i++)
        if (lanes[i].worker == worker)
            return own_is_open(&lanes[i].socket) ? &lanes[i] : NULL;
    return NULL;
}

/* False with errno. EMFILE: this process has no room for all of its descriptors; they are gone. */
static bool packet_receive(int from, Packet *ret)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * LANE_FDS_MAX)];
    } control;
    struct iovec part = {&ret->head, sizeof ret->head};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ret->fds.n = 0;
    ssize_t n = 0;
    do
        n = recvmsg(from, &packet, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return false;
    struct cmsghdr *header = CMSG_FIRSTHDR(&packet);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        ret->fds.n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(ret->fds.fds, CMSG_DATA(header), ret->fds.n * sizeof(int));
    }
    if (n == sizeof ret->head && !(packet.msg_flags & MSG_CTRUNC))
        return true;
    fds_close(&ret->fds);
    errno = n == sizeof ret->head ? EMFILE : ECONNRESET;
    return false;
}

static bool kept_take(Head wanted, LaneFds *ret)
{
    for (size_t i = 0; i < KEPT_MAX; i++)
        if (kept[i].head.number == wanted.number && kept[i].head.worker == wanted.worker) {
            for (ret->n = 0; ret->n < kept[i].n && own_is_open(&kept[i].fds[ret->n]); ret->n++)
                ret->fds[ret->n] = kept[i].fds[ret->n].fd;
            kept[i].head.number = kept[i].n = 0;
            return true;
        }
    return false;
}

static void kept_add(const Packet *packet)
{
    Kept *entry = &kept[next_kept];
    next_kept = (next_kept + 1) % KEPT_MAX;
    kept_close(entry);
    entry->head = packet->head;
    for (size_t i = 0; i < packet->fds.n; i++)
        if (own_keep(packet->fds.fds[i], &entry->fds[entry->n]))
            entry->n++;
}

bool lane_take(uint64_t worker, uint64_t number, LaneFds *ret)
{
    Head wanted = {worker, number};
    if (kept_take(wanted, ret))
        return true;
    if (!lane_find(worker))
        lanes_accept();
    Lane *lane = lane_find(worker);
    if (!lane) {
        errno = ECONNRESET;
        return false;
    }
    Packet packet;
    while (packet_receive(lane->socket.fd, &packet)) {
        if (packet.head.number == number) {
            *ret = packet.fds;
            return true;
        }
        kept_add(&packet);
    }
    return false;
}

/* --- In a worker --- */

uint64_t lane_connect(const LaneName *name, pid_t pid)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    lane_disown();
    own_close(&trainer);
    sent = (Head){.worker = (uint64_t)getpid() << 32 |
                            (uint32_t)((uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000)};
    memcpy(to.sun_path, name->text, name->n);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    if (connect(fd, (const struct sockaddr *)&to,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name->n)) < 0 ||
        peer_of(fd) != pid) {
        real_close(fd);
        return 0;
    }
    return own_keep(fd, &trainer) ? sent.worker : 0;
}

size_t lane_parts_max(void)
{
    enum { LEAST = 8, PACKETS = 256 }; /* so many on their way take half of what is allowed, or less */
    struct rlimit files;
    size_t allowed = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur / PACKETS : 0;
    return allowed < LEAST ? LEAST : allowed < LANE_FDS_MAX - 1 ? allowed : LANE_FDS_MAX - 1;
}

uint64_t lane_send(const LaneFds *fds)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * LANE_FDS_MAX)];
    } control = {0};
    Head head = {sent.worker, sent.number + 1};
    struct iovec part = {&head, sizeof head};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
    size_t size = fds->n * sizeof(int);
    packet.msg_controllen = CMSG_SPACE(size);
    control.header =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(size)};
    memcpy(CMSG_DATA(&control.header), fds->fds, size);
    if (!own_is_open(&trainer) || sendmsg(trainer.fd, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return 0;
    for (size_t i = 0; pins_can_be() && i < fds->n; i++)
        view_sent(fds->fds[i]);
    return ++sent.number;
}
