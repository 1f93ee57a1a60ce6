/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor's loop waits for: a descriptor, and what to do when it is readable. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

#include "fd.h"

typedef struct Source {
    int fd;
    void (*ready)(struct Source *source);
} Source;

#define SOURCE_OWNER(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

static inline int source_watch(Source *source, int epoll)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

/* Closing alone does not remove it while a forked child has the same description. */
static inline void source_close(Source *source, int epoll)
{
    (void)epoll_ctl(epoll, EPOLL_CTL_DEL, source->fd, NULL);
    fd_close(source->fd);
    source->fd = -EBADF;
}
