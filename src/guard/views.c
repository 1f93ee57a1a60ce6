/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/*
 * A view is found by its inode (to be used again) and by its address (to be released). Inodes of memfds are
 * 64 bits wide and are never reused since Linux 5.9. On older kernels a reused inode would stand for another
 * file; but a view's own mapping keeps its file alive, and two living files of one file system never share an
 * inode. So a view with the inode of the file at hand maps that very file.
 */
enum { VIEWS_MAX = 4096, BUCKETS = 8192, NONE = 0 };

typedef struct View {
    uint64_t device;
    uint64_t inode;
    _Atomic(char *) address; /* NULL: the entry is not in use */
    _Atomic size_t size;     /* of the mapping: all of the segment */
    size_t used;             /* the length that the program asked mmap for; 0: unused */
    void *hold;              /* while it is in use, or waits for its copies (pins.c) */
    void *keep;              /* one page of a description whose lock says: a process has this tensor */
    Pin *pin;                /* NULL: it is not registered */
    uint64_t unused_since;
    atomic_bool altered;    /* the program changed the mapping in a way that munmap would undo */
    bool pinnable;          /* its own description carries the lock that keeps its pages in place */
    bool sole;              /* no other process has the tensor that uses it, and it was sent once */
    Origin origin;          /* of that tensor */
    bool sent;              /* this process made the tensor and has sent it */
    uint16_t next_by_inode; /* index + 1, NONE at the end; also links the free entries */
} View;

static View views[VIEWS_MAX];
static uint16_t by_inode[BUCKETS];
static uint16_t free_views;                    /* list of entries that were given back */
static _Atomic uint16_t fresh_views;           /* entries that were ever taken */
static _Atomic uint16_t by_address[VIEWS_MAX]; /* indexes of the views, in the order of their addresses */
static _Atomic uint16_t n_by_address;
static _Atomic uint64_t order_changes; /* odd while by_address changes */

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static uint16_t *inode_bucket(uint64_t inode)
{
    return &by_inode[(inode * UINT64_C(0x9E3779B97F4A7C15)) >> 51];
}

/*
 * Which views lie in a range of addresses? Views do not overlap, so the order of their addresses is that of
 * their ends, too, and a binary search answers. Programs unmap other memory often, and that must cost little
 * however many tensors they have.
 *
 * The question is asked without the lock (view_overlaps): memory that is not a view must not wait for it,
 * whatever locks the caller holds and even if the caller is a signal handler. So the order may change during
 * the search. A change makes order_changes odd before its first step and even after its last. Each step is
 * stored with release and read with acquire, so a search that has seen any step of a change finds at its end
 * that order_changes is not what it was at the beginning. Its result is then discarded, and the entries are
 * looked at one by one, which does not depend on their order. A search in a half-changed order does no harm:
 * all that it reads are indexes of entries, and it takes no more steps than any other.
 *
 * A caller's own view is never missed. The caller was given it, so the change that inserted it happened
 * before, and the view stays until the caller releases it. A search that was not disturbed sees an order
 * that contains it; so do the entries, because an entry does not move. For the views of other threads either
 * answer is right; a wrong yes only costs the lock.
 *
 * A signal handler that interrupts a change in its own thread sees an odd order_changes and looks at the
 * entries. So does a child of vfork or clone that was started in the middle of a change by another thread.
 * fork waits for the lock, so its child has a whole order.
 */
static View *ordered(size_t i)
{
    return &views[atomic_load_explicit(&by_address[i], memory_order_acquire)];
}

static uintptr_t view_start(const View *view)
{
    return (uintptr_t)atomic_load_explicit(&view->address, memory_order_acquire);
}

static uintptr_t view_end(const View *view)
{
    return view_start(view) + atomic_load_explicit(&view->size, memory_order_acquire);
}

/* The position of the first view that ends behind this address. */
static size_t order_search(const void *address)
{
    size_t low = 0;
    size_t high = atomic_load_explicit(&n_by_address, memory_order_acquire);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (view_end(ordered(middle)) > (uintptr_t)address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The first view in this range. A range that wraps around has none, and the kernel refuses it. */
static View *first_in(const void *address, size_t size)
{
    size_t i = order_search(address);
    bool found = i < atomic_load_explicit(&n_by_address, memory_order_acquire) &&
                 view_start(ordered(i)) < (uintptr_t)address + size;
    return found ? ordered(i) : NULL;
}

/* The next entry in this range, one by one. */
static View *next_in(size_t *from, const void *address, size_t size)
{
    size_t n = atomic_load_explicit(&fresh_views, memory_order_relaxed);
    while (*from < n) {
        View *view = &views[(*from)++];
        uintptr_t start = view_start(view);
        if (start != 0 && (uintptr_t)address < view_end(view) && start < (uintptr_t)address + size)
            return view;
    }
    return NULL;
}

bool view_overlaps(const void *address, size_t size)
{
    if (atomic_load_explicit(&n_by_address, memory_order_relaxed) == 0)
        return false;
    uint64_t changes = atomic_load_explicit(&order_changes, memory_order_acquire);
    bool found = first_in(address, size) != NULL;
    if (changes % 2 == 0 && atomic_load_explicit(&order_changes, memory_order_relaxed) == changes)
        return found;
    size_t from = 0;
    return next_in(&from, address, size) != NULL;
}

/* If an entry is given to another view meanwhile, the mark costs that one a new mapping. */
void view_alter(const void *address, size_t size)
{
    View *view = NULL;
    size_t from = 0;
    while (view_overlaps(address, size) && (view = next_in(&from, address, size)))
        atomic_store_explicit(&view->altered, true, memory_order_relaxed);
}

static void order_set(size_t i, uint16_t index)
{
    atomic_store_explicit(&by_address[i], index, memory_order_release);
}

/* All that a search reads is written between these two. */
static void order_change_begin(void)
{
    atomic_store_explicit(&order_changes, order_changes + 1, memory_order_relaxed);
}

static void order_change_end(void)
{
    atomic_store_explicit(&order_changes, order_changes + 1, memory_order_release);
}

static void order_insert(View *view, char *address, size_t size)
{
    size_t n = n_by_address;
    size_t at = order_search(address);
    order_change_begin();
    atomic_store_explicit(&view->size, size, memory_order_release);
    atomic_store_explicit(&view->address, address, memory_order_release);
    for (size_t i = n; i > at; i--)
        order_set(i, by_address[i - 1]);
    order_set(at, (uint16_t)(view - views));
    atomic_store_explicit(&n_by_address, (uint16_t)(n + 1), memory_order_release);
    order_change_end();
}

static void order_remove(View *view)
{
    size_t n = n_by_address;
    size_t at = order_search(view->address);
    order_change_begin();
    for (size_t i = at; i + 1 < n; i++)
        order_set(i, by_address[i + 1]);
    atomic_store_explicit(&n_by_address, (uint16_t)(n - 1), memory_order_release);
    atomic_store_explicit(&view->address, NULL, memory_order_release);
    order_change_end();
}

static View *find_view(const FileId *id)
{
    for (uint16_t i = *inode_bucket(id->inode); i != NONE; i = views[i - 1].next_by_inode) {
        View *view = &views[i - 1];
        if (view->inode == id->inode && view->device == id->device)
            return view;
    }
    return NULL;
}

static View *add_view(const FileId *id, char *address, size_t size)
{
    view_lose(address, size); /* a view that was there was unmapped by a system call, which we do not see */
    uint16_t index = free_views;
    if (index != NONE)
        free_views = views[index - 1].next_by_inode;
    else if (fresh_views < VIEWS_MAX)
        index = ++fresh_views;
    else
        return NULL;
    View *view = &views[index - 1];
    uint16_t *inode = inode_bucket(id->inode);
    view->device = id->device;
    view->inode = id->inode;
    view->next_by_inode = *inode;
    *inode = index;
    order_insert(view, address, size);
    return view;
}

static void remove_view(View *view)
{
    uint16_t index = (uint16_t)(view - views + 1);
    uint16_t *link = inode_bucket(view->inode);
    while (*link != index)
        link = &views[*link - 1].next_by_inode;
    *link = view->next_by_inode;
    order_remove(view);
    if (view->pin)
        pin_orphan(view->pin);
    view->used = 0;
    view->hold = view->keep = NULL;
    view->pin = NULL;
    view->pinnable = view->sole = view->sent = false;
    view->altered = false;
    view->next_by_inode = free_views;
    free_views = index;
}

static void drop_view(View *view)
{
    char *address = view->address;
    size_t size = view->size;
    remove_view(view);
    real_munmap(address, size);
}

static bool is_unused(const View *view)
{
    return view->address && view->used == 0 && !view->hold;
}

/* A registered view cannot be dropped here, while the lock is held: it is marked, and pins.c drops it later.
 */
static void part_with(View *view)
{
    if (!view->pin)
        drop_view(view);
    else if (!pin_is_shut(view->pin))
        (void)pin_leave(view->pin);
}

void view_sweep(uint64_t now)
{
    static uint64_t swept;
    /* The supervisor cannot give registered memory back: if a process waits for room, it goes sooner. */
    uint64_t keep = budget_is_wanted() && pins_wanted() ? KEEP_MSEC / 8 : KEEP_MSEC;
    if (now - swept < keep / 4)
        return;
    swept = now;
    for (size_t i = 0; i < fresh_views; i++) /* registering costs more than mapping */
        if (is_unused(&views[i]) && now - views[i].unused_since >= (views[i].pin ? keep * 2 : keep))
            part_with(&views[i]);
}

void view_forget_unused(void)
{
    for (size_t i = 0; i < fresh_views; i++)
        if (is_unused(&views[i]))
            part_with(&views[i]);
}

void view_forget_inherited(void)
{
    pins_forget();
    for (size_t i = 0; i < fresh_views; i++) {
        views[i].pin = NULL;
        views[i].sole = false;
        views[i].origin = ORIGIN_SENT;
        if (!views[i].address || views[i].used > 0)
            continue;
        if (views[i].hold)
            real_munmap(views[i].hold, page_bytes());
        drop_view(&views[i]);
    }
}

/*
 * Maps the whole segment through a description of our own. If the view may be registered, that description
 * carries a lock, which lives as long as the mapping: the supervisor must not take the pages away, because
 * the GPU would continue to read them while all processes had new ones.
 */
static View *make_view(int fd, const FileId *id, bool pinnable)
{
    (void)broker_reach(); /* maps the counters, which say whether a process waits for what we release */
    int own = description_reopen(fd, id->device, id->inode);
    if (own < 0)
        return NULL;
    pinnable = pinnable && lock_share(own, LOCK_PINNED);
    char *address = real_mmap(NULL, id->size, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    real_close(own);
    if (address == MAP_FAILED)
        return NULL;
    View *view = add_view(id, address, id->size);
    if (view)
        view->pinnable = pinnable;
    else
        real_munmap(address, id->size);
    return view;
}

/*
 * The pages exist, and this process is about to write to all of them: it would take a page fault for each.
 * The kernel maps 16 at a time, writable because they are shared memory, if they are read. Linux before 5.14
 * does not know the advice.
 */
static void map_pages(const View *view, const FileId *id, size_t size)
{
    if (id->allocated >= size)
        (void)real_madvise(view->address, size, MADV_POPULATE_READ);
}

/*
 * No other process has the tensor: its producer, or a process that passed it on, would show that it still has
 * it. A tensor that a worker has sent is unmapped there as soon as it is pickled, unless the worker keeps it.
 *
 * Nor is the tensor on its way to any process, including this one: a dataset that returns a tensor twice
 * would send it twice. A process that sends it a second time, or sends a tensor that it did not make, has it
 * mapped and locks LOCK_MANY first. So LOCK_KEPT is queried first: if no process has the tensor, none can
 * send it any more. The query needs a description of our own, because a description does not conflict with
 * its own locks.
 */
static bool is_sole(int fd, const FileId *id)
{
    int own = description_reopen(fd, id->device, id->inode);
    bool sole = own >= 0 && !is_locked(own, LOCK_KEPT, true) && is_locked(own, LOCK_TOLD, false) &&
                !is_locked(own, LOCK_MANY, true);
    if (own >= 0)
        real_close(own);
    return sole;
}

/* For a tensor that is shared by name, PyTorch itself counts in the first word how many processes have it or
 * will get it. */
static bool is_the_last(const View *view)
{
    return view->origin != ORIGIN_NAME || atomic_load((_Atomic int *)(void *)view->address) == 1;
}

void view_sent(int fd)
{
    FileId id;
    if (file_id(fd, &id) < 0 || id.size < LARGE_MIN_BYTES || id.links != 0 || !id.regular)
        return;
    View *view = find_view(&id);
    bool first = view && view->used > 0 && view->origin == ORIGIN_HERE && !view->sent;
    if (first)
        view->sent = true;
    else if (view || segment_is(fd, &id))
        (void)lock_share(fd, LOCK_MANY); /* only shared locks are taken there, so it cannot be refused */
}

/* As long as this page is mapped, here or in a child, a process has the tensor. */
static void *make_keep(int fd, const FileId *id)
{
    int own = description_reopen(fd, id->device, id->inode);
    void *keep = own >= 0 && lock_share(own, LOCK_KEPT)
                     ? real_mmap(NULL, page_bytes(), PROT_NONE, MAP_SHARED, own, 0)
                     : MAP_FAILED;
    if (own >= 0)
        real_close(own);
    return keep == MAP_FAILED ? NULL : keep;
}

void *view_use(int fd, size_t size, Origin origin)
{
    FileId id;
    bool made_here = origin == ORIGIN_HERE;
    if (file_id(fd, &id) < 0 || id.size < size || id.links != 0 || !id.regular)
        return MAP_FAILED;
    View *view = find_view(&id);
    /* The driver refuses a copy from memory of which only the beginning is registered. So the tensor gets
     * another mapping, and the view is registered again, in this size, when it comes back. */
    bool torn = view && view->pin && !pin_fits(view->pin, size);
    if (torn && is_unused(view))
        part_with(view);
    bool tells = size >= LARGE_MIN_BYTES && pins_can_be() && (made_here || !pins_wanted());
    if (view ? torn || view->used > 0 || (view->pin && pin_is_shut(view->pin)) : !segment_is(fd, &id)) {
        if (view)
            pool_disown(id.device,
                        id.inode); /* more than one mapping: it is not known which processes have it */
        return MAP_FAILED;
    }
    /* Only a segment that was recycled is worth registering: it will probably be recycled again. */
    bool sole =
        size >= LARGE_MIN_BYTES && view && !view->hold && !made_here && pins_wanted() && is_sole(fd, &id);
    /* The view is too small, cannot be registered as now needed, or was altered: make another. */
    if (view && !view->hold && !view->pin &&
        (view->size < size || (sole && !view->pinnable) || view->altered)) {
        drop_view(view);
        view = NULL;
    }
    bool fresh = !view;
    if (view ? view->size < size : !(view = make_view(fd, &id, sole)))
        return MAP_FAILED;
    if (fresh && made_here)
        map_pages(view, &id, size);
    if (view->hold) /* it waits for its copies, so it is still the same handed-out description */
        pin_use_again(view->pin);
    else {
        void *hold = real_mmap(NULL, page_bytes(), PROT_NONE, MAP_SHARED, fd, 0);
        if (hold == MAP_FAILED) {
            view->unused_since = now_msec();
            return MAP_FAILED;
        }
        view->hold = hold;
    }
    if (tells && !(view->keep = make_keep(fd, &id)))
        pool_disown(id.device, id.inode);
    view->sole = sole && view->pinnable;
    view->origin = origin;
    view->sent = false;
    view->used = size;
    return view->address;
}

static View *find_at(const void *address)
{
    View *view = first_in(address, 1);
    return view && view->address == address ? view : NULL;
}

void view_lose(const void *address, size_t size)
{
    View *view = NULL;
    while ((view = first_in(address, size)))
        remove_view(view);
}

static void let_go(View *view)
{
    void *hold = view->hold;
    view->hold = NULL;
    view->unused_since = now_msec();
    real_munmap(hold, page_bytes());
    if (view->altered && !view->pin) /* the driver itself alters registered memory, and undoes it */
        drop_view(view);
}

bool view_release(void *address, size_t size)
{
    View *view = find_at(address);
    if (!view || view->used != size) {
        view_lose(address, size);
        return false;
    }
    void *keep = view->keep;
    view->used = 0;
    view->keep = NULL;
    view->sole = false;
    if (keep)
        real_munmap(keep, page_bytes());
    if (!view->pin || pin_release(view->pin))
        let_go(view);
    return true;
}

bool view_look(const void *address, ViewUse *ret)
{
    const View *view = first_in(address, 1);
    if (!view)
        return false;
    *ret = (ViewUse){.address = view->address, .used = view->used, .pin = view->pin};
    ret->sole = view->sole && is_the_last(view);
    return view->used > 0;
}

void view_set_pin(const char *address, Pin *pin)
{
    View *view = find_at(address);
    if (view)
        view->pin = pin;
}

void view_let_go(const char *address)
{
    View *view = find_at(address);
    if (view && view->used == 0 && view->hold)
        let_go(view);
}

void view_drop_at(const char *address)
{
    View *view = find_at(address);
    if (!view)
        return;
    view->pin = NULL;
    drop_view(view);
}

void view_replaced(void *address, size_t size)
{
    View *view = find_at(address);
    if (!view)
        return;
    size_t page = page_bytes();
    size_t kept = (size + page - 1) / page * page;
    void *hold = view->hold;
    void *keep = view->keep;
    size_t whole = view->size;
    remove_view(view);
    if (keep)
        real_munmap(keep, page);
    if (whole > kept)
        real_munmap((char *)address + kept, whole - kept);
    real_munmap(hold, page);
}

#ifdef GUARD_CHECKS
static bool is_found_by_inode(const View *view)
{
    uint16_t i = *inode_bucket(view->inode);
    for (size_t steps = 0; i != NONE && &views[i - 1] != view && steps < VIEWS_MAX; steps++)
        i = views[i - 1].next_by_inode;
    return i != NONE && &views[i - 1] == view;
}

static void view_check(const View *view)
{
    assert(view->size > 0 && view->used <= view->size);
    assert(is_found_by_inode(view));
    assert(!view->hold == (view->used == 0 && !(view->pin && pin_is_waiting(view->pin))));
    assert(!view->keep || view->used > 0);
    assert(!view->sole || (view->used > 0 && view->pinnable));
    assert(!view->pin || pin_is_at(view->pin, view->address));
}

void views_check(void)
{
    uintptr_t end = 1; /* so that no view lies at NULL */
    size_t n_free = 0;
    assert(order_changes % 2 == 0);
    assert(n_by_address <= fresh_views && fresh_views <= VIEWS_MAX);
    for (size_t i = 0; i < n_by_address; i++) {
        const View *view = ordered(i);
        assert(view_start(view) >= end);
        view_check(view);
        end = view_end(view);
    }
    for (uint16_t i = free_views; i != NONE; i = views[i - 1].next_by_inode) {
        assert(i <= fresh_views && n_free < fresh_views);
        assert(!views[i - 1].address && !views[i - 1].hold && !views[i - 1].keep && !views[i - 1].pin);
        n_free++;
    }
    assert(n_free + n_by_address == fresh_views);
}
#endif
