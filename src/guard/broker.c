#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "guard.h"

/*
 * The connection to the supervisor. It is made when it is first needed, and given up for good at the first
 * sign of trouble: a supervisor that does not answer within seconds is gone as far as this process is
 * concerned. A forked child makes its own.
 */
enum { ANSWER_SECONDS = 10 };

static int connection = -1;
static uint64_t connection_inode;
static bool tried;
static Counters nowhere; /* counted in vain, without a supervisor */
static Counters *counters = &nowhere;

Counters *guard_counters(void)
{
    return counters;
}

static bool connection_is_ours(void)
{
    FileId id;
    return connection >= 0 && file_id(connection, &id) == 0 && id.inode == connection_inode;
}

static void give_up(void)
{
    if (connection_is_ours())
        real_close(connection);
    connection = -1;
}

void broker_forget(void)
{
    give_up();
    tried = false;
}

static bool send_message(const Message *message, int fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {(void *)message, sizeof *message};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        packet.msg_control = &control;
        packet.msg_controllen = sizeof control;
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    }
    ssize_t n;
    do
        n = sendmsg(connection, &packet, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == sizeof *message;
}

/* *ret_fd is -1 when the packet brought none. */
static bool receive_message(Message *ret, int *ret_fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {ret, sizeof *ret};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;
    do
        n = recvmsg(connection, &packet, MSG_CMSG_CLOEXEC);
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

static void map_counters(int fd)
{
    void *page = real_mmap(NULL, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED && counters == &nowhere)
        counters = page;
    else if (page != MAP_FAILED)
        real_munmap(page, sizeof(Counters));
}

static bool connect_once(void)
{
    if (tried)
        return connection_is_ours();
    tried = true;
    const char *name = getenv(PROTOCOL_ENVIRONMENT);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = name ? strlen(name) : 0;
    if (n == 0 || n >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path + 1, name, n); /* abstract: the name begins with a NUL and has no file */

    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    connection = fd_move_up(fd);
    FileId id;
    struct timeval patience = {.tv_sec = ANSWER_SECONDS};
    struct ucred peer;
    socklen_t peer_size = sizeof peer;
    Message welcome;
    int page = -1;
    if (file_id(connection, &id) < 0) {
        real_close(connection);
        connection = -1;
        return false;
    }
    connection_inode = id.inode;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    /* Anybody can make an abstract name: the other side must be this user, or root. */
    if (connect(connection, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0 ||
        getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) < 0 ||
        (peer.uid != geteuid() && peer.uid != 0) || !receive_message(&welcome, &page)) {
        give_up();
        return false;
    }
    if (page >= 0) {
        map_counters(page);
        real_close(page);
    }
    return true;
}

void broker_greet(void)
{
    (void)connect_once();
}

static Message message_of(MessageType type, const char *name)
{
    Message message = {.magic = PROTOCOL_MAGIC, .type = type};
    strncpy(message.name, name, sizeof message.name - 1);
    return message;
}

bool broker_tell(MessageType type, const char *name, int fd)
{
    if (!connect_once())
        return false;
    Message message = message_of(type, name);
    if (send_message(&message, fd))
        return true;
    give_up();
    return false;
}

int broker_ask(MessageType type, const char *name, int fd, int *ret_fd)
{
    int received = -1;
    Message message = message_of(type, name);
    if (!connect_once())
        return -ENOTCONN;
    if (!send_message(&message, fd) || !receive_message(&message, &received)) {
        give_up();
        return -ENOTCONN;
    }
    if (ret_fd)
        *ret_fd = received;
    else if (received >= 0)
        real_close(received);
    return -message.error;
}
