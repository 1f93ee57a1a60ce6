#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard.h"

/*
 * A view is known by its inode (to be used again) and by its address (to be released). Inodes of memfds are
 * 64 bits wide and are never used again since Linux 5.9; on older kernels an inode that came back has another
 * file behind it, so a view is used again only when the memory it shows belongs to the file at hand: the
 * first mapping of an inode keeps that file alive, and two living files of one file system never share an
 * inode.
 */
enum { VIEWS_MAX = 4096, BUCKETS = 8192, NONE = 0 };

typedef struct View {
    uint64_t device;
    uint64_t inode;
    char *address; /* NULL: the entry is not in use */
    size_t size;   /* of the mapping: all of the segment */
    size_t used;   /* the length that mmap was asked for; 0: unused */
    void *hold;
    uint64_t unused_since;
    uint16_t next_by_inode;   /* index + 1, NONE at the end */
    uint16_t next_by_address; /* likewise; also chains the free entries */
} View;

static View views[VIEWS_MAX];
static uint16_t by_inode[BUCKETS];
static uint16_t by_address[BUCKETS];
static uint16_t free_views;  /* chain of entries that were given back */
static uint16_t fresh_views; /* entries that were never taken */

/* All views there ever were lie in between. Relaxed: whoever releases a view was given it, and so has seen
 * its bounds. */
static _Atomic uintptr_t lowest = UINTPTR_MAX;
static _Atomic uintptr_t highest;

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static uint16_t *inode_bucket(uint64_t inode)
{
    return &by_inode[(inode * UINT64_C(0x9E3779B97F4A7C15)) >> 51];
}

static uint16_t *address_bucket(const void *address)
{
    return &by_address[((uintptr_t)address >> 12) * UINT64_C(0x9E3779B97F4A7C15) >> 51];
}

bool view_near(const void *address, size_t size)
{
    return (uintptr_t)address < atomic_load_explicit(&highest, memory_order_relaxed) &&
           (uintptr_t)address + size > atomic_load_explicit(&lowest, memory_order_relaxed);
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
    uint16_t index = free_views;
    if (index != NONE)
        free_views = views[index - 1].next_by_address;
    else if (fresh_views < VIEWS_MAX)
        index = ++fresh_views;
    else
        return NULL;
    View *view = &views[index - 1];
    uint16_t *inode = inode_bucket(id->inode);
    uint16_t *where = address_bucket(address);
    *view = (View){.device = id->device,
                   .inode = id->inode,
                   .address = address,
                   .size = size,
                   .next_by_inode = *inode,
                   .next_by_address = *where};
    *inode = *where = index;
    if ((uintptr_t)address < atomic_load_explicit(&lowest, memory_order_relaxed))
        atomic_store_explicit(&lowest, (uintptr_t)address, memory_order_relaxed);
    if ((uintptr_t)address + size > atomic_load_explicit(&highest, memory_order_relaxed))
        atomic_store_explicit(&highest, (uintptr_t)address + size, memory_order_relaxed);
    return view;
}

static void remove_view(View *view)
{
    uint16_t index = (uint16_t)(view - views + 1);
    uint16_t *link = inode_bucket(view->inode);
    while (*link != index)
        link = &views[*link - 1].next_by_inode;
    *link = view->next_by_inode;
    link = address_bucket(view->address);
    while (*link != index)
        link = &views[*link - 1].next_by_address;
    *link = view->next_by_address;
    *view = (View){.next_by_address = free_views};
    free_views = index;
}

static void drop_view(View *view)
{
    char *address = view->address;
    size_t size = view->size;
    remove_view(view);
    real_munmap(address, size);
}

void view_sweep(uint64_t now)
{
    static uint64_t swept;
    if (now - swept < KEEP_MSEC / 4)
        return;
    swept = now;
    for (size_t i = 0; i < fresh_views; i++)
        if (views[i].address && views[i].used == 0 && now - views[i].unused_since >= KEEP_MSEC)
            drop_view(&views[i]);
}

void view_forget_unused(void)
{
    for (size_t i = 0; i < fresh_views; i++)
        if (views[i].address && views[i].used == 0)
            drop_view(&views[i]);
}

/* Maps the whole segment through a description of our own. */
static View *make_view(int fd, const FileId *id)
{
    int own = description_reopen(fd);
    if (own < 0)
        return NULL;
    char *address = real_mmap(NULL, id->size, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    real_close(own);
    if (address == MAP_FAILED)
        return NULL;
    View *view = add_view(id, address, id->size);
    if (!view)
        real_munmap(address, id->size);
    return view;
}

void *view_use(int fd, size_t size)
{
    FileId id;
    if (file_id(fd, &id) < 0 || id.size < size || id.links != 0 || !id.regular)
        return MAP_FAILED;
    View *view = find_view(&id);
    if (view ? view->used > 0 : !segment_is(fd, &id))
        return MAP_FAILED;
    if (view && view->size < size) { /* not one that we made in this size */
        drop_view(view);
        view = NULL;
    }
    if (!view && !(view = make_view(fd, &id)))
        return MAP_FAILED;
    void *hold = real_mmap(NULL, page_bytes(), PROT_NONE, MAP_SHARED, fd, 0);
    if (hold == MAP_FAILED) {
        view->unused_since = now_msec();
        return MAP_FAILED;
    }
    view->hold = hold;
    view->used = size;
    return view->address;
}

static View *find_at(const void *address)
{
    for (uint16_t i = *address_bucket(address); i != NONE; i = views[i - 1].next_by_address)
        if (views[i - 1].address == address)
            return &views[i - 1];
    return NULL;
}

/* Somebody unmaps a part of a view: it is his now. Its hold stays for ever, so that the segment is never
 * issued again. */
static void lose_overlapped(const char *address, size_t size)
{
    for (size_t i = 0; i < fresh_views; i++)
        if (views[i].address && address < views[i].address + views[i].size &&
            views[i].address < address + size)
            remove_view(&views[i]);
}

bool view_release(void *address, size_t size)
{
    View *view = find_at(address);
    if (!view || view->used != size) {
        lose_overlapped(address, size);
        return false;
    }
    void *hold = view->hold;
    view->used = 0;
    view->hold = NULL;
    view->unused_since = now_msec();
    real_munmap(hold, page_bytes());
    return true;
}

void view_replaced(void *address, size_t size)
{
    View *view = find_at(address);
    if (!view)
        return;
    size_t page = page_bytes();
    size_t kept = (size + page - 1) / page * page;
    void *hold = view->hold;
    size_t whole = view->size;
    remove_view(view);
    if (whole > kept)
        real_munmap((char *)address + kept, whole - kept);
    real_munmap(hold, page);
}
