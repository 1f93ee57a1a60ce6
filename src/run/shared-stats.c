/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fds.h"
#include "proc-path.h"
#include "shared-stats.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

#define PUBLISHED_NAME  "shmguard-figures"
#define PUBLISHED_MAGIC UINT32_C(0x53484d46) /* SHMF */

enum { PUBLISHED_VERSION = 2 };

typedef struct Published {
    uint32_t magic;
    uint32_t version;
    uint64_t segments_created;
    uint64_t segments_reused;
    uint64_t bytes_now;
    uint64_t budget_bytes;
    uint64_t waiting;
    uint64_t waits;
    uint64_t refused;
    uint64_t batches;
} Published;

int published_make(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
        fd = memfd_create(name, MFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int shared_stats_make(void)
{
    return published_make(PUBLISHED_NAME);
}

void shared_stats_write(int fd, const GuardFigures *figures)
{
    Published page = {
        .magic = PUBLISHED_MAGIC,
        .version = PUBLISHED_VERSION,
        .segments_created = figures->segments_created,
        .segments_reused = figures->segments_reused,
        .bytes_now = figures->bytes_now,
        .budget_bytes = figures->budget_bytes,
        .waiting = figures->waiting,
        .waits = figures->waits,
        .refused = figures->refused,
        .batches = figures->batches,
    };
    /* Without memory for the page the figures are not published: the run does not depend on that. */
    if (fd >= 0 && pwrite(fd, &page, sizeof page, 0) < 0)
        return;
}

typedef struct PublishedSearch {
    const char *target;
    int number;
} PublishedSearch;

static int is_published(const FdEntry *entry, void *context)
{
    PublishedSearch *search = context;
    if (!text_equal(entry->target, search->target))
        return 0;
    search->number = entry->fd;
    return 1;
}

int published_find(const Root *root, int pid, const char *target)
{
    PublishedSearch search = {.target = target};
    int r = fds_visit(root, pid, is_published, &search, NULL);
    return r < 0 ? r : r == 0 ? -ENOENT : search.number;
}

int shared_stats_find(const Root *root, int pid)
{
    return published_find(root, pid, "/memfd:" PUBLISHED_NAME);
}

int published_open(const Root *root, int pid, int number, void *ret_head, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%d/fd/%d", pid, number);
    _cleanup_close_ int fd = root_openat(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fd;
    ssize_t n = pread(fd, ret_head, size, 0);
    if (n < 0)
        return -errno;
    if (n == 0)
        return -EAGAIN;
    return n == (ssize_t)size ? TAKE_FD(fd) : -EPROTO;
}

int shared_stats_read(const Root *root, int pid, int number, GuardFigures *ret)
{
    Published page;
    _cleanup_close_ int fd = published_open(root, pid, number, &page, sizeof page);
    if (fd < 0)
        return fd;
    if (page.magic != PUBLISHED_MAGIC || page.version != PUBLISHED_VERSION)
        return -EPROTO;
    *ret = (GuardFigures){
        .segments_created = page.segments_created,
        .segments_reused = page.segments_reused,
        .bytes_now = page.bytes_now,
        .budget_bytes = page.budget_bytes,
        .waiting = page.waiting,
        .waits = page.waits,
        .refused = page.refused,
        .batches = page.batches,
    };
    return 0;
}
