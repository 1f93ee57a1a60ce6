/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "janitor.h"
#include "macro.h"
#include "maps.h"
#include "protocol.h"

/*
 * FREE_LOOKS: a segment that a running loader recycles is in use again sooner. EMPTY_LOOKS: before a pool
 * issues anything, it forgets segments that were idle for KEEP_MSEC (guard.h). So a segment that has stayed
 * empty for several times as long is in no pool any more, and watching it would only cost a descriptor. If it
 * is in one after all, its producer gives it back, only later.
 */
enum { FREE_LOOKS = 3, EMPTY_LOOKS = 10 };

void janitor_free(Janitor *janitor)
{
    for (size_t i = 0; i < janitor->n; i++)
        fd_close(janitor->items[i].fd);
    free(janitor->items);
    *janitor = (Janitor){0};
}

static void watched_remove(Janitor *janitor, size_t i)
{
    fd_close(janitor->items[i].fd);
    janitor->items[i] = janitor->items[--janitor->n];
}

static int lock_bytes(int fd, int command, off_t first, off_t last, short *type)
{
    struct flock lock = {.l_type = *type, .l_whence = SEEK_SET, .l_start = first, .l_len = last - first + 1};
    if (fcntl(fd, command, &lock) < 0)
        return -errno;
    *type = lock.l_type;
    return 0;
}

static bool is_unlocked(const WatchedSegment *watched, off_t first, off_t last)
{
    short type = F_WRLCK;
    return lock_bytes(watched->fd, F_OFD_GETLK, first, last, &type) == 0 && type == F_UNLCK;
}

static bool is_free(const WatchedSegment *watched)
{
    return is_unlocked(watched, LOCK_USED, LOCK_USED);
}

/* A GPU does not have its pages registered either. */
static bool is_loose(const WatchedSegment *watched)
{
    return is_unlocked(watched, LOCK_USED, LOCK_PINNED);
}

static int reopen(int fd)
{
    char path[sizeof "/proc/self/fd/" + 11];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    return own < 0 ? -errno : own;
}

static int watched_room(Janitor *janitor)
{
    if (janitor->n >= janitor->most)
        return -EMFILE;
    if (janitor->n < janitor->capacity)
        return 0;
    size_t capacity = MAX(janitor->capacity * 2, (size_t)64);
    WatchedSegment *items = reallocarray(janitor->items, capacity, sizeof *items);
    if (!items)
        return -ENOMEM;
    janitor->items = items;
    janitor->capacity = capacity;
    return 0;
}

static ssize_t watched_find(const Janitor *janitor, uint64_t device, uint64_t inode)
{
    for (size_t i = 0; i < janitor->n; i++)
        if (janitor->items[i].inode == inode && janitor->items[i].device == device)
            return (ssize_t)i;
    return -ENOENT;
}

ssize_t janitor_add(Janitor *janitor, int fd, uint64_t producer, int pid)
{
    /* Only files in memory can be sealed. Any other file must never be punched, and could block when it is
     * queried. And a process of another user must not make us write to a file that it may only read. */
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) < 0 ||
        st.st_nlink != 0)
        return -EINVAL;
    ssize_t known = watched_find(janitor, st.st_dev, st.st_ino);
    if (known >= 0) {
        if (producer) { /* a request for room was read first */
            janitor->items[known].producer = producer;
            janitor->items[known].producers = MAX(janitor->items[known].producers, 1U);
        }
        if (pid)
            janitor->items[known].pid = pid;
        return known;
    }
    int r = watched_room(janitor);
    if (r < 0)
        return r;
    int own = reopen(fd);
    if (own < 0)
        return own;
    janitor->items[janitor->n++] = (WatchedSegment){
        .fd = own,
        .device = st.st_dev,
        .inode = st.st_ino,
        .producer = producer,
        .producers = producer != 0,
        .pid = pid,
    };
    return (ssize_t)janitor->n - 1;
}

bool janitor_knows(const Janitor *janitor, int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && watched_find(janitor, st.st_dev, st.st_ino) >= 0;
}

static void make_due(Janitor *janitor, WatchedSegment *watched)
{
    watched->due = true;
    janitor->busy = true;
}

void janitor_abandon(Janitor *janitor, uint64_t producer)
{
    for (size_t i = 0; i < janitor->n; i++)
        if (janitor->items[i].producer == producer)
            janitor->items[i].producer = 0;
}

static bool is_adoptable(const WatchedSegment *watched)
{
    return watched->producer == 0 && watched->producers > 0 && watched->producers < PRODUCERS_MAX;
}

uint32_t janitor_adoptable(const Janitor *janitor)
{
    uint32_t n = 0;
    for (size_t i = 0; i < janitor->n; i++)
        n += is_adoptable(&janitor->items[i]);
    return n;
}

/* How far the segment is from the size that is needed; UINT64_MAX: it is of no use. The pool can cut it or
 * make it longer, except if it is registered with CUDA (pool.c). */
static uint64_t misfit(const WatchedSegment *watched, uint64_t bytes, uid_t uid)
{
    struct stat st;
    if (fstat(watched->fd, &st) < 0 || st.st_uid != uid || st.st_blocks == 0)
        return UINT64_MAX;
    uint64_t size = (uint64_t)st.st_size;
    bool near = size / 8 <= bytes && bytes / 8 <= size;
    bool fits = size >= bytes && size - bytes <= bytes;
    if (!near || !(fits ? is_free(watched) : is_loose(watched)))
        return UINT64_MAX;
    return size >= bytes ? size - bytes : bytes - size;
}

int janitor_hand_on(Janitor *janitor, uint64_t bytes, uid_t uid, uint64_t producer, int pid,
                    uint64_t *ret_issue)
{
    WatchedSegment *best = NULL;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < janitor->n; i++) {
        WatchedSegment *watched = &janitor->items[i];
        uint64_t distance = is_adoptable(watched) ? misfit(watched, bytes, uid) : UINT64_MAX;
        if (distance < least && is_unlocked(watched, LOCK_POOLED, LOCK_POOLED)) {
            best = watched;
            least = distance;
        }
    }
    _cleanup_close_ int own = best ? reopen(best->fd) : -ENOENT;
    short type = F_WRLCK;
    if (own < 0 || lock_bytes(own, F_OFD_SETLK, LOCK_POOLED, LOCK_POOLED, &type) < 0)
        return -ENOENT;
    *ret_issue = (uint64_t)best->producers++ * ISSUES_PER_PRODUCER;
    best->producer = producer;
    best->pid = pid;
    best->free_looks = 0;
    best->due = false;
    return TAKE_FD(own);
}

uint64_t fd_held_bytes(int fd)
{
    struct stat st;
    return fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

void janitor_count(Janitor *janitor, uint64_t more)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < janitor->n; i++)
        bytes += janitor->items[i].held_bytes = fd_held_bytes(janitor->items[i].fd);
    janitor->bytes = bytes;
    janitor->bytes_peak = MAX(janitor->bytes_peak, bytes + more);
}

/* True: there is nothing left to watch. */
static bool look_at(Janitor *janitor, WatchedSegment *watched, bool short_of_memory)
{
    if (!is_loose(watched)) {
        watched->free_looks = watched->empty_looks = 0;
        return false;
    }
    watched->free_looks++;
    watched->empty_looks = watched->held_bytes == 0 ? watched->empty_looks + 1 : 0;
    if (watched->empty_looks >= EMPTY_LOOKS)
        return true;
    /* A segment whose producer has gone passes through here even when it is empty, and is closed on the way.
     */
    bool kept = watched->held_bytes > 0 && !short_of_memory && watched->free_looks < FREE_LOOKS;
    if (watched->producer == 0 ? !kept || !is_adoptable(watched) : !kept && watched->held_bytes > 0)
        make_due(janitor, watched);
    return false;
}

void janitor_look(Janitor *janitor, bool short_of_memory)
{
    for (size_t i = 0; i < janitor->n;)
        if (look_at(janitor, &janitor->items[i], short_of_memory))
            watched_remove(janitor, i);
        else
            i++;
}

static void give_back(const WatchedSegment *watched)
{
    struct stat st;
    short type = F_WRLCK;
    if (lock_bytes(watched->fd, F_OFD_SETLK, LOCK_USED, LOCK_PINNED, &type) < 0)
        return; /* it was issued meanwhile */
    if (fstat(watched->fd, &st) == 0 && st.st_size > 0)
        (void)fallocate(watched->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size);
    type = F_UNLCK;
    (void)lock_bytes(watched->fd, F_OFD_SETLK, LOCK_USED, LOCK_PINNED, &type);
}

void janitor_work(Janitor *janitor)
{
    for (size_t i = 0; i < janitor->n; i++) {
        WatchedSegment *watched = &janitor->items[i];
        if (!watched->due)
            continue;
        watched->due = false;
        give_back(watched);
        /* Without its producer no process can lock it again, unless one in the job still has it open: then it
         * is not free, and stays. */
        if (watched->producer == 0 && is_loose(watched))
            watched_remove(janitor, i);
        return;
    }
    janitor->busy = false;
}

uint64_t janitor_used(Janitor *janitor)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < janitor->n; i++) {
        WatchedSegment *watched = &janitor->items[i];
        struct stat st = {0};
        (void)fstat(watched->fd, &st);
        watched->in_use = !is_free(watched);
        watched->held_bytes = (uint64_t)st.st_blocks * 512;
        /* It may have been cut for a smaller tensor before it was seen free. */
        watched->promised_bytes = watched->in_use ? MIN(watched->promised_bytes, (uint64_t)st.st_size) : 0;
        bytes += MAX(watched->held_bytes, watched->promised_bytes);
    }
    return bytes;
}

uint64_t janitor_in_use(const Janitor *janitor)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < janitor->n; i++)
        if (janitor->items[i].in_use)
            bytes += MAX(janitor->items[i].held_bytes, janitor->items[i].promised_bytes);
    return bytes;
}

uint64_t janitor_promised(const Janitor *janitor)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < janitor->n; i++)
        if (janitor->items[i].promised_bytes > janitor->items[i].held_bytes)
            bytes += janitor->items[i].promised_bytes - janitor->items[i].held_bytes;
    return bytes;
}

void janitor_promise(Janitor *janitor, uint64_t device, uint64_t inode, uint64_t bytes)
{
    ssize_t i = watched_find(janitor, device, inode);
    if (i >= 0)
        janitor->items[i].promised_bytes = bytes;
}

bool janitor_reclaim(Janitor *janitor, uint64_t bytes)
{
    uint64_t given = 0;
    for (size_t i = 0; i < janitor->n && given < bytes; i++) {
        WatchedSegment *watched = &janitor->items[i];
        if (watched->held_bytes == 0 || !is_loose(watched))
            continue;
        give_back(watched);
        given += watched->held_bytes;
    }
    return given > 0;
}

typedef struct Count {
    const Janitor *janitor;
    uint64_t page_bytes;
    uint64_t bytes;
} Count;

/* A process that recycles segments keeps their mappings. Use shows in the hold, a page of its own (guard.h);
 * for a memfd that is not recycled, in any mapping. */
static int visit_mapping(const MapEntry *entry, void *context)
{
    Count *count = context;
    bool single = text_equal(entry->path, "/memfd:" SINGLE_NAME);
    bool hold =
        text_equal(entry->path, "/memfd:" SEGMENT_NAME) && entry->end - entry->start == count->page_bytes;
    if (!single && !hold)
        return 0;
    ssize_t i = watched_find(count->janitor, makedev(entry->device.major, entry->device.minor), entry->inode);
    if (i >= 0 && count->janitor->items[i].in_use)
        count->bytes += count->janitor->items[i].held_bytes;
    return 0;
}

uint64_t janitor_kept_by(const Janitor *janitor, const Root *root, int pid)
{
    _cleanup_buffer_ Buffer scratch = {0};
    Count count = {.janitor = janitor, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
    (void)maps_visit(root, pid, MAPS_SHARED_FILES, &scratch, visit_mapping, &count);
    return count.bytes;
}
