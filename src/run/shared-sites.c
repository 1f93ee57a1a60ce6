/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "macro.h"
#include "shared-sites.h"
#include "shared-stats.h"

#define PUBLISHED_NAME  "shmguard-sites"
#define PUBLISHED_MAGIC UINT32_C(0x53484d53) /* SHMS */

enum { PUBLISHED_VERSION = 1, WINDOWS_MOST = 1 << 10 };

typedef struct PublishedHead {
    uint32_t magic;
    uint32_t version;
    uint32_t window_size;
    uint32_t n;
    uint32_t asked;
    uint32_t rounds;
    char failed[200];
} PublishedHead;

int shared_sites_make(void)
{
    return published_make(PUBLISHED_NAME);
}

void shared_sites_write(int fd, const SharedSites *sites)
{
    PublishedHead head = {.magic = PUBLISHED_MAGIC,
                          .version = PUBLISHED_VERSION,
                          .window_size = sizeof(SiteWindow),
                          .n = (uint32_t)sites->n,
                          .asked = sites->asked,
                          .rounds = sites->rounds};
    memcpy(head.failed, sites->failed, sizeof head.failed);
    struct iovec parts[] = {{&head, sizeof head}, {sites->windows, sites->n * sizeof *sites->windows}};
    if (fd >= 0 && pwritev(fd, parts, ARRAY_SIZE(parts), 0) < 0)
        return;
}

int shared_sites_find(const Root *root, int pid)
{
    return published_find(root, pid, "/memfd:" PUBLISHED_NAME);
}

/* Strings end, and enums are in range: it may be another program's file. */
static bool window_is_sound(SiteWindow *window)
{
    if (window->n_sites > SITES_MOST || window->stage < SITE_STAGE_CENSUS ||
        window->stage >= SITE_STAGES_END || !(window->duration > 0))
        return false;
    for (size_t i = 0; i < window->n_sites; i++) {
        Site *site = &window->sites[i];
        if (site->kind >= SITE_KINDS)
            return false;
        site->file[sizeof site->file - 1] = site->what[sizeof site->what - 1] = '\0';
    }
    return true;
}

int shared_sites_read(const Root *root, int pid, int number, SharedSites *ret)
{
    PublishedHead head;
    _cleanup_close_ int fd = published_open(root, pid, number, &head, sizeof head);
    if (fd < 0)
        return fd;
    if (head.magic != PUBLISHED_MAGIC || head.version != PUBLISHED_VERSION ||
        head.window_size != sizeof(SiteWindow) || head.n > WINDOWS_MOST)
        return -EPROTO;
    size_t size = head.n * sizeof(SiteWindow);
    _cleanup_free_ SiteWindow *windows = malloc(MAX(size, (size_t)1));
    if (!windows)
        return -ENOMEM;
    if (pread(fd, windows, size, sizeof head) != (ssize_t)size)
        return -EAGAIN;
    for (size_t i = 0; i < head.n; i++)
        if (!window_is_sound(&windows[i]))
            return -EPROTO;
    *ret = (SharedSites){.asked = head.asked, .rounds = head.rounds, .n = head.n};
    memcpy(ret->failed, head.failed, sizeof ret->failed - 1);
    ret->windows = TAKE_PTR(windows);
    return 0;
}
