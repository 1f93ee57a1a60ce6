/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "guard.h"

/* Set once, by the constructor, and only read afterwards: by signal handlers and without the lock. */
typedef struct Address {
    struct sockaddr_un name;
    socklen_t size; /* 0: no supervisor */
} Address;

static Address address;
static Address inner; /* of a run within the run, which also receives testimonies */

static void address_set(const char *variable, Address *ret)
{
    const char *name = getenv(variable);
    size_t n = name ? strlen(name) : 0;
    if (n == 0 || n >= sizeof ret->name.sun_path)
        return;
    ret->name.sun_family = AF_UNIX;
    memcpy(ret->name.sun_path + 1, name, n); /* abstract: the name starts with a NUL and has no file */
    ret->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

void supervisor_find(void)
{
    if (getauxval(AT_SECURE) != 0 || guard_is_switched_off())
        return;
    address_set(PROTOCOL_ENVIRONMENT, &address);
    if (supervisor_is())
        address_set(PROTOCOL_INNER, &inner);
}

bool supervisor_is(void)
{
    return address.size > 0;
}

bool peer_read(int fd, struct ucred *ret)
{
    socklen_t size = sizeof *ret;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &size) == 0;
}

static bool peer_is(int fd, uid_t uid)
{
    struct ucred peer;
    return peer_read(fd, &peer) && peer.uid == uid;
}

/* Any user can create an abstract name: the other side must be this user or root. */
static bool peer_is_right(int fd)
{
    return peer_is(fd, geteuid()) || peer_is(fd, 0);
}

bool supervisor_is_other_user(int fd)
{
    return !peer_is(fd, geteuid());
}

static int address_connect(const Address *to, int patience_msec)
{
    int fd = to->size == 0 ? -1 : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* A stopped supervisor accepts connections until its queue is full; then connect waits, at most this
     * long. */
    struct timeval patience = {patience_msec / 1000, (suseconds_t)patience_msec % 1000 * 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int r = 0;
    do
        r = connect(fd, (const struct sockaddr *)&to->name, to->size);
    while (r < 0 && errno == EINTR);
    if (r == 0 && peer_is_right(fd))
        return fd;
    real_close(fd);
    return -1;
}

int supervisor_connect(int patience_msec)
{
    return address_connect(&address, patience_msec);
}

int supervisor_connect_inner(int patience_msec)
{
    return address_connect(&inner, patience_msec);
}
