#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "guard.h"

/* Set once, by the constructor, and only read afterwards: from signal handlers and without the lock. */
static struct sockaddr_un address;
static socklen_t address_size; /* 0: there is no supervisor */

void supervisor_find(void)
{
    const char *name = getenv(PROTOCOL_ENVIRONMENT);
    size_t n = name ? strlen(name) : 0;
    if (n == 0 || n >= sizeof address.sun_path || getauxval(AT_SECURE) != 0 || guard_is_switched_off())
        return;
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, name, n); /* abstract: the name begins with a NUL and has no file */
    address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

bool supervisor_is(void)
{
    return address_size > 0;
}

/* Anybody can make an abstract name: the other side must be this user, or root. */
static bool peer_is_right(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

int supervisor_connect(int patience_msec)
{
    int fd = address_size == 0 ? -1 : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* One that is stopped lets callers in until its queue is full; then they wait, and connect heeds this. */
    struct timeval patience = {patience_msec / 1000, (suseconds_t)patience_msec % 1000 * 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int r = 0;
    do
        r = connect(fd, (const struct sockaddr *)&address, address_size);
    while (r < 0 && errno == EINTR);
    if (r == 0 && peer_is_right(fd))
        return fd;
    real_close(fd);
    return -1;
}
