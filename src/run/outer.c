/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "fd.h"
#include "macro.h"
#include "outer.h"
#include "protocol.h"

enum { PATIENCE_MSEC = 2000 };

static bool socket_connect(int fd, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {PATIENCE_MSEC / 1000, 0};
    size_t n = strlen(name);
    if (n == 0 || n >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path + 1, name, n);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return connect(fd, (struct sockaddr *)&address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0;
}

/* Any process can make a socket of that name. */
static bool peer_is_trusted(int fd, int *ret_pid)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || (peer.uid != geteuid() && peer.uid != 0))
        return false;
    *ret_pid = peer.pid;
    return true;
}

/* A process that is not served finds the connection closed. */
static bool is_welcome(int fd)
{
    Message welcome;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int r = poll(&ready, 1, PATIENCE_MSEC);
    return r == 0 || (r > 0 && recv(fd, &welcome, sizeof welcome, MSG_DONTWAIT) == sizeof welcome &&
                      welcome.magic == PROTOCOL_MAGIC && welcome.type == MESSAGE_WELCOME);
}

int outer_connect(const char *name, int *ret_pid)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || !socket_connect(fd, name) || !peer_is_trusted(fd, ret_pid) || !is_welcome(fd))
        return -ECONNREFUSED;
    return TAKE_FD(fd);
}

bool outer_find(Outer *ret)
{
    Outer outer = {.socket = getenv(PROTOCOL_ENVIRONMENT)};
    _cleanup_close_ int fd = outer.socket ? outer_connect(outer.socket, &outer.pid) : -EBADF;
    if (fd < 0)
        return false;
    *ret = outer;
    return true;
}
