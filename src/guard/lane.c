/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
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
 * worker sends the batch as PyTorch does.
 *
 * Where a process can die, or a message get lost:
 *
 * - The worker, before it sends the packet: nothing has happened. After it: the packet stays in the socket
 * and can be taken, which PyTorch's own way cannot offer. If no message names it, it is closed with the
 *   connection, when the next worker connects, or when the trainer ends.
 *
 * - The trainer, at any time: the kernel closes the connection, and what is in it. The worker notices when it
 *   sends the next packet.
 *
 * - A message that is dropped unread leaves its packet in front of the next one, where it is found and set
 *   aside. KEPT_MAX packets are kept, in case a second thread of the trainer has read that message and not
 *   asked yet; older ones are closed.
 *
 * fork: a child has neither connection nor listener; both are closed in it. Otherwise it would keep, for as
 * long as it lives, what its parent closes. exec: close-on-exec.
 *
 * Descriptors are known by number, and a program may close them all: before each use the number must still be
 * our socket.
 *
 * The listener is an abstract name that the kernel has chosen, so that there is no file. Any user can connect
 * to it: a connection of another user's process is closed unread. A worker in turn sends only to the very
 * process that has started it.
 */
enum { LANES_MAX = 512, KEPT_MAX = 16, BACKLOG = 256 };

typedef struct Socket {
    int fd; /* -1: none */
    FileId id;
} Socket;

typedef struct Head {
    uint64_t worker; /* its pid and when it connected, which no two of a trainer's workers share */
    uint64_t number; /* of the packet, from 1 */
} Head;

typedef struct Lane {
    Socket socket;
    uint64_t worker; /* 0: no packet has come yet */
} Lane;

typedef struct Packet {
    Head head; /* number 0: the entry is not in use */
    LaneFds fds;
} Packet;

/* In the trainer: */
static Socket listener = {.fd = -1};
static LaneName listener_name;
static Lane lanes[LANES_MAX];
static size_t n_lanes;
static Packet kept[KEPT_MAX];
static size_t next_kept;

/* In a worker: */
static Socket trainer = {.fd = -1};
static Head sent;

static bool socket_is_ours(const Socket *known)
{
    FileId id;
    return known->fd >= 0 && file_id(known->fd, &id) == 0 && id.inode == known->id.inode &&
           id.device == known->id.device;
}

static void socket_close(Socket *known)
{
    if (socket_is_ours(known))
        real_close(known->fd);
    known->fd = -1;
}

/* Takes ownership of fd. */
static bool socket_keep(int fd, Socket *ret)
{
    *ret = (Socket){.fd = fd < 0 ? -1 : fd_move_up(fd)};
    if (ret->fd >= 0 && file_id(ret->fd, &ret->id) == 0)
        return true;
    if (ret->fd >= 0)
        real_close(ret->fd);
    ret->fd = -1;
    return false;
}

static bool peer_is(int fd, pid_t pid)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid() &&
           (pid == 0 || peer.pid == pid);
}

static void fds_close(LaneFds *fds)
{
    for (size_t i = 0; i < fds->n; i++)
        real_close(fds->fds[i]);
    fds->n = 0;
}

void lane_forget(void)
{
    socket_close(&listener);
    socket_close(&trainer);
    while (n_lanes > 0)
        socket_close(&lanes[--n_lanes].socket);
    for (size_t i = 0; i < KEPT_MAX; i++) {
        fds_close(&kept[i].fds);
        kept[i].head.number = 0;
    }
}

/* --- In the trainer --- */

const LaneName *lane_listen(void)
{
    if (socket_is_ours(&listener))
        return &listener_name;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t size = sizeof name.sun_family; /* the kernel chooses */
    if (!socket_keep(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), &listener))
        return NULL;
    int r = bind(listener.fd, (struct sockaddr *)&name, size);
    size = sizeof name;
    if (r < 0 || listen(listener.fd, BACKLOG) < 0 ||
        getsockname(listener.fd, (struct sockaddr *)&name, &size) < 0 ||
        size - offsetof(struct sockaddr_un, sun_path) > sizeof listener_name.text) {
        socket_close(&listener);
        return NULL;
    }
    listener_name.n = size - offsetof(struct sockaddr_un, sun_path);
    memcpy(listener_name.text, name.sun_path, listener_name.n);
    return &listener_name;
}

static void lane_close(Lane *lane)
{
    for (size_t i = 0; i < KEPT_MAX; i++)
        if (kept[i].head.number != 0 && kept[i].head.worker == lane->worker) {
            fds_close(&kept[i].fds);
            kept[i].head.number = 0;
        }
    socket_close(&lane->socket);
    *lane = lanes[--n_lanes];
}

/* Whose lane it is, if its first packet has come. */
static void lane_learn(Lane *lane)
{
    Head head;
    if (lane->worker == 0 &&
        recv(lane->socket.fd, &head, sizeof head, MSG_PEEK | MSG_DONTWAIT) == sizeof head)
        lane->worker = head.worker;
}

/* A loader stops its workers only when it wants no more batches, so what a dead one has sent is not wanted by
 * the time the next ones start. */
static void lanes_close_dead(void)
{
    for (size_t i = n_lanes; i > 0; i--) {
        struct pollfd end = {.fd = lanes[i - 1].socket.fd};
        if (!socket_is_ours(&lanes[i - 1].socket) ||
            (real_poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLERR)))
            lane_close(&lanes[i - 1]);
    }
}

static void lanes_accept(void)
{
    bool first = true;
    while (socket_is_ours(&listener)) {
        Lane lane = {0};
        int fd = accept4(listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            break;
        if (first)
            lanes_close_dead();
        first = false;
        if (!peer_is(fd, 0) || n_lanes == LANES_MAX)
            real_close(fd);
        else if (socket_keep(fd, &lane.socket))
            lanes[n_lanes++] = lane;
    }
    for (size_t i = 0; i < n_lanes; i++)
        if (socket_is_ours(&lanes[i].socket))
            lane_learn(&lanes[i]);
}

static Lane *lane_find(uint64_t worker)
{
    for (size_t i = 0; i < n_lanes; i++)
        if (lanes[i].worker == worker)
            return socket_is_ours(&lanes[i].socket) ? &lanes[i] : NULL;
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
            *ret = kept[i].fds;
            kept[i].head.number = kept[i].fds.n = 0;
            return true;
        }
    return false;
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
    static Packet packet;
    while (packet_receive(lane->socket.fd, &packet)) {
        if (packet.head.number == number) {
            *ret = packet.fds;
            return true;
        }
        fds_close(&kept[next_kept].fds);
        kept[next_kept] = packet;
        next_kept = (next_kept + 1) % KEPT_MAX;
    }
    return false;
}

/* --- In a worker --- */

uint64_t lane_connect(const LaneName *name, pid_t pid)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    socket_close(&trainer);
    sent = (Head){.worker = (uint64_t)getpid() << 32 |
                            (uint32_t)((uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000)};
    memcpy(to.sun_path, name->text, name->n);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    if (connect(fd, (const struct sockaddr *)&to,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name->n)) < 0 ||
        !peer_is(fd, pid)) {
        real_close(fd);
        return 0;
    }
    return socket_keep(fd, &trainer) ? sent.worker : 0;
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
    if (!socket_is_ours(&trainer) || sendmsg(trainer.fd, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return 0;
    for (size_t i = 0; pins_can_be() && i < fds->n; i++)
        view_sent(fds->fds[i]);
    return ++sent.number;
}
