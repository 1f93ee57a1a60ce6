/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/*
 * The producer's segments. The program may close a descriptor of the pool without our knowledge (closerange
 * in a daemon), and its number may then belong to another file: before each use the inode is compared, and an
 * entry that no longer matches is forgotten.
 */
enum { POOL_MAX = 256 };

/* Asking whether a segment is free takes half a microsecond. A new one takes about as long per page, in each
 * of two processes: so this many questions cost at most an eighth of what they save. */
enum { PROBES_MIN = 8, PROBE_BYTES = 16384 };

/* A tensor that lives this long is not a batch in transit: if the pool is half full, its place is given up.
 */
enum { LONG_MSEC = 10000 };

typedef struct PoolSegment {
    int fd; /* of the pool's own description; 0: the entry is not in use */
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    uint64_t issued;   /* msec */
    uint64_t last_use; /* msec: when it was issued, or last seen in use */
    uint64_t turn;     /* increases with every issue: the smallest was issued longest ago */
    uint64_t issue;    /* the number of its next issue */
    uint64_t issue_end;
} PoolSegment;

static PoolSegment segments[POOL_MAX];
static size_t n_segments; /* entries are [0, n): removing one moves the last into its place */
static uint64_t turns;

/*
 * The size of a file: in steps of an eighth, so that batches that differ a little in size share segments.
 * Pages beyond the requested size are not touched by its tensor.
 */
static uint64_t segment_size(uint64_t size)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t step = (UINT64_C(1) << (63 - __builtin_clzll(size))) / 8;
    step = step > page ? step : page;
    uint64_t rounded = 0;
    return __builtin_add_overflow(size, step - 1, &rounded) ? 0 : rounded / step * step;
}

static bool still_ours(const PoolSegment *segment)
{
    FileId id;
    return file_id(segment->fd, &id) == 0 && id.inode == segment->inode && id.device == segment->device &&
           id.size == segment->size;
}

static void drop(PoolSegment *segment)
{
    if (still_ours(segment))
        real_close(segment->fd);
    *segment = segments[--n_segments];
    segments[n_segments] = (PoolSegment){0};
}

/* The supervisor may still have the same description, unread in its socket: so the lock is given up
 * explicitly.
 */
static void forget(PoolSegment *segment)
{
    if (still_ours(segment))
        lock_give_up(segment->fd, LOCK_TOLD);
    drop(segment);
}

/*
 * Which batch a segment belongs to. A loader's worker makes all tensors of a batch one after the other; then
 * its thread waits for the next order in poll(), or, if a queue's own thread shares them, sends the batch
 * with write(). If a dataset makes such a call while a batch is being assembled, one batch counts as two
 * here: the order in which memory is granted (run/budget.h) is then less good, and nothing else changes.
 */
static __thread bool midway __attribute__((tls_model("initial-exec")));
static _Atomic uint64_t batches;

void batch_end(void)
{
    midway = false;
}

uint64_t batch_number(void)
{
    return atomic_load_explicit(&batches, memory_order_relaxed);
}

/*
 * How many batches a DataLoader's workers have sent, as a figure for people. The thread of a worker's queue
 * copies the descriptor of each tensor in a batch, and then writes the message that carries them; of a long
 * message the first four bytes, its length, are written separately. So a write after a copy, by the same
 * thread, is one batch, however many tensors it has and however small they are. Descriptors of tensors that
 * are shared by name are not copied: their batches are not counted.
 */
enum { MESSAGE_LENGTH_BYTES = 4 };
static __thread bool sending __attribute__((tls_model("initial-exec")));

void batch_copied(int fd)
{
    FileId id;
    int saved = errno;
    if (syscall(SYS_gettid) != getpid() && witness_may_be_worker() && file_id(fd, &id) == 0 && id.regular &&
        id.links == 0 && real_fcntl(fd, F_GET_SEALS, NULL) >= 0)
        sending = true;
    errno = saved;
}

void batch_by_lane(void)
{
    sending = true;
}

void batch_written(size_t n)
{
    if (!sending || n <= MESSAGE_LENGTH_BYTES)
        return;
    sending = false;
    atomic_fetch_add_explicit(&guard_counters()->batches, 1, memory_order_relaxed);
}

static void batch_go_on(void)
{
    if (!midway)
        atomic_fetch_add_explicit(&batches, 1, memory_order_relaxed);
    midway = true;
}

void pool_forget(void)
{
    atomic_store_explicit(&batches, 0, memory_order_relaxed);
    while (n_segments > 0)
        drop(&segments[n_segments - 1]); /* the parent's promise (LOCK_TOLD) stays */
}

void pool_disown(uint64_t device, uint64_t inode)
{
    for (size_t i = 0; pins_can_be() && i < n_segments; i++)
        if (segments[i].inode == inode && segments[i].device == device) {
            forget(&segments[i]);
            return;
        }
}

/* Whether no process has the handed-out description: the question of the invariant, answered by the kernel.
 */
static bool is_free(const PoolSegment *segment)
{
    return !is_locked(segment->fd, LOCK_USED, true);
}

/* A new description with its shared locks. Fails while the supervisor gives the pages back. */
static int hand_out(int own, uint64_t device, uint64_t inode, uint64_t issue)
{
    int fd = description_reopen(own, device, inode);
    if (fd >= 0 && !(lock_share(fd, LOCK_USED) && identity_set(fd, issue))) {
        real_close(fd);
        return -1;
    }
    return fd;
}

int memfd_make(const char *name, uint64_t size)
{
    /* vm.memfd_noexec=2 refuses memfds without the flag, kernels before 6.3 refuse the flag. */
    int fd = (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC);
    if (fd >= 0 && size > 0 && real_ftruncate(fd, (off_t)size) < 0) {
        real_close(fd);
        return -1;
    }
    return fd;
}

/* Each entry takes a descriptor: at most an eighth of the process's limit. */
static size_t pool_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur / 8 > POOL_MAX)
        return POOL_MAX;
    return (size_t)files.rlim_cur / 8;
}

/* A segment that is in use when it is forgotten lives as long as it is used, and is not recycled. */
static void pool_sweep(uint64_t now)
{
    bool crowded = n_segments >= pool_limit() / 2;
    for (size_t i = 0; i < n_segments;) {
        PoolSegment *segment = &segments[i];
        bool ours = still_ours(segment);
        if (ours && !is_free(segment))
            segment->last_use = now; /* its time starts when it comes back */
        if (!ours || now - segment->last_use >= KEEP_MSEC || (crowded && now - segment->issued >= LONG_MSEC))
            forget(segment);
        else
            i++;
    }
}

/* Takes ownership of own, the pool's own description. */
static PoolSegment *add_segment(int own, const FileId *id, uint64_t issue, uint64_t now)
{
    if (pins_can_be())
        (void)lock_share(own, LOCK_TOLD); /* if it is refused, no process relies on it */
    segments[n_segments] = (PoolSegment){
        .fd = fd_move_up(own),
        .device = id->device,
        .inode = id->inode,
        .size = id->size,
        .issued = now,
        .last_use = now,
        .turn = ++turns,
        .issue = issue,
        .issue_end = (issue / ISSUES_PER_PRODUCER + 1) * ISSUES_PER_PRODUCER,
    };
    return &segments[n_segments++];
}

/* A new segment, handed out; it is recycled only if the pool has room for it. -1: none, or it would be small
 * and not recycled: a plain memfd costs less. */
static int issue_new(uint64_t size, uint64_t now)
{
    bool kept = n_segments < pool_limit();
    if (!kept && size < LARGE_MIN_BYTES)
        return -1;
    int own = memfd_make(kept ? SEGMENT_NAME : SINGLE_NAME, size);
    FileId id;
    if (own < 0)
        return -1;
    bool ready = file_id(own, &id) == 0 && (!kept || lock_alone(own, LOCK_POOLED));
    int fd = ready ? hand_out(own, id.device, id.inode, 0) : -1;
    if (fd < 0) { /* without /proc nothing can be handed out */
        real_close(own);
        return -1;
    }
    broker_tell(MESSAGE_SEGMENT, "", own);
    atomic_fetch_add_explicit(&guard_counters()->segments_created, 1, memory_order_relaxed);
    if (kept)
        (void)add_segment(own, &id, 1, now);
    else
        real_close(own);
    return fd;
}

/*
 * Tensors that differ in size, as the images of a detection: any free segment is better than a new one. One
 * that is at most an eighth too large is used as it is; that much memory may be wasted. Others get the size
 * of the tensor: what is cut off is free memory at once, and what is added costs a page fault per page, as in
 * a new segment. The pages in between exist. Sizes that are far apart do not mix: cutting a large segment for
 * a small tensor would throw away more than it saves.
 *
 * No process notices. A free segment has no users, so no tensor lies in the part that is cut off, and only
 * the producer changes the size. Unused views stay mapped. One that is longer than the file is touched only
 * where its tensor is; one that is shorter than its tensor is replaced (views.c). PyTorch sends the size of
 * each tensor, and accepts a file that is larger. What is added later is zeros.
 *
 * The size of a segment that is registered with CUDA stays, because the GPU would continue to read the pages
 * that were cut off. It is used as it is even if half of it is wasted: a new one would take more.
 */
typedef struct Sizes {
    uint64_t least;
    uint64_t most;
} Sizes;

/* Of the segments that were not tried yet, the one that was issued longest ago: batches come back in the
 * order in which they left. */
static PoolSegment *next_in_turn(const Sizes *sizes, uint64_t last)
{
    PoolSegment *found = NULL;
    for (size_t i = 0; i < n_segments; i++)
        if (segments[i].size >= sizes->least && segments[i].size <= sizes->most && segments[i].turn <= last &&
            (!found || segments[i].turn < found->turn))
            found = &segments[i];
    return found;
}

/* Makes a free segment fit for a tensor of this size. */
static bool fit(PoolSegment *segment, uint64_t size)
{
    uint64_t larger = segment->size - size; /* wraps around if it is smaller */
    if (larger <= size / 8)
        return true;
    if (is_locked(segment->fd, LOCK_PINNED, true))
        return larger <= size;
    if (real_ftruncate(segment->fd, (off_t)size) < 0)
        return false;
    segment->size = size;
    return true;
}

/* A free segment. -1: it cannot be made to fit, or the supervisor is giving its pages back. */
static int issue_free(PoolSegment *segment, uint64_t size, uint64_t now)
{
    int fd = fit(segment, size) ? hand_out(segment->fd, segment->device, segment->inode, segment->issue) : -1;
    if (fd < 0)
        return -1;
    segment->issue++;
    segment->issued = segment->last_use = now;
    atomic_fetch_add_explicit(&guard_counters()->segments_reused, 1, memory_order_relaxed);
    return fd;
}

static int issue_again(uint64_t size, uint64_t now, bool only_pinned)
{
    const Sizes best_first[] = {
        {size, size},
        {size, size + size / 8},
        {size / 2, size * 2},
        {size / 8, size * 8},
    };
    uint64_t last = turns;
    uint64_t probes = size / PROBE_BYTES > PROBES_MIN ? size / PROBE_BYTES : PROBES_MIN;
    for (size_t i = 0; i < sizeof best_first / sizeof best_first[0] && probes > 0;) {
        PoolSegment *segment = next_in_turn(&best_first[i], last);
        if (!segment) {
            i++;
            continue;
        }
        probes--;
        segment->turn = ++turns; /* a segment in use goes to the end of the queue */
        if (!is_free(segment))
            continue;
        if (!still_ours(segment) || segment->issue == segment->issue_end ||
            !identity_fits(segment->inode, segment->issue)) {
            forget(segment);
            continue;
        }
        bool wanted = !only_pinned || is_locked(segment->fd, LOCK_PINNED, false);
        int fd = wanted ? issue_free(segment, size, now) : -1;
        if (fd >= 0)
            return fd;
    }
    return -1;
}

/* A segment that a process of this job has left: its pages exist, and the trainer still has it mapped, and
 * perhaps registered with CUDA. The lock came with it. */
static int issue_adopted(uint64_t size, uint64_t now)
{
    uint64_t issue = 0;
    FileId id;
    if (atomic_load_explicit(&guard_counters()->adoptable, memory_order_relaxed) == 0 ||
        n_segments >= pool_limit())
        return -1;
    int own = broker_adopt(size, &issue);
    if (own < 0)
        return -1;
    if (file_id(own, &id) == 0 && segment_is(own, &id) && identity_fits(id.inode, issue) &&
        id.size >= SEGMENT_MIN_BYTES && id.size == segment_size(id.size))
        return issue_free(add_segment(own, &id, issue, now), size, now);
    real_close(own);
    return -1;
}

int pool_issue(uint64_t size)
{
    static uint64_t swept;
    batch_go_on();
    uint64_t now = now_msec();
    if (now - swept >= KEEP_MSEC / 4) {
        swept = now;
        pool_sweep(now);
    }
    size = segment_size(size);
    if (size == 0)
        return -1;
    int fd = issue_again(size, now, false);
    if (fd < 0)
        fd = issue_adopted(size, now);
    return fd >= 0 ? fd : issue_new(size, now);
}

int pool_issue_again(uint64_t size)
{
    FileId id;
    int fd = issue_again(segment_size(size), now_msec(), true);
    if (fd < 0 || (file_id(fd, &id) == 0 && id.allocated >= size))
        return fd;
    real_close(fd);
    return -1;
}

#ifdef GUARD_CHECKS
void pool_check(void)
{
    assert(n_segments <= POOL_MAX);
    for (size_t i = 0; i < n_segments; i++) {
        const PoolSegment *segment = &segments[i];
        assert(segment->fd >= 0 && segment->inode != 0);
        assert(segment->size >= SEGMENT_MIN_BYTES && segment->size == segment_size(segment->size));
        assert(segment->issued <= segment->last_use);
        assert(segment->issue <= segment->issue_end &&
               segment->issue_end <= segment->issue + ISSUES_PER_PRODUCER);
        assert(segment->turn > 0 && segment->turn <= turns);
        for (size_t j = 0; j < i; j++) {
            assert(segments[j].inode != segment->inode || segments[j].device != segment->device);
            assert(segments[j].turn != segment->turn);
        }
    }
    assert(n_segments == POOL_MAX || segments[n_segments].inode == 0);
}
#endif
