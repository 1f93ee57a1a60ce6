#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard.h"

/*
 * PyTorch makes a shared tensor with shm_open, ftruncate, mmap, and then does one of two things, in the same
 * thread and before anybody else hears of the name: shm_unlink (file_descriptor: the descriptor is passed
 * on), or close (file_system: the name is passed on). Until then the tensor is pending, and nobody can tell
 * the memfd that stands for it from a file.
 *
 *   unlinked   the name was never there, and never will be: nothing to do.
 *   closed     the name is needed. With a supervisor, it is told what the name means, and hands it to whoever
 * asks. Without one, the real file is made now and mapped over the same address: the mapping exists but
 * nobody has written to it yet (PyTorch writes its header after its constructor has closed the descriptor).
 * From then on this process is known to share by name, and its tensors go the plain way from the start.
 *
 * Python's shared_memory ("/psm_…") keeps its descriptor and passes the name on, so its name goes to the
 * supervisor at once, and without one it takes the plain way. Names that others make are theirs: programs
 * outside of the job may know them.
 */
enum { PENDING_MAX = 64 };

typedef struct Pending {
    int fd; /* -1: not in use */
    uint64_t inode;
    void *address; /* NULL until it is mapped */
    size_t size;
    char name[64];
    bool allocated; /* posix_fallocate was asked for */
} Pending;

static Pending pending[PENDING_MAX];
static atomic_uint n_pending; /* relaxed: it is the calling thread's own tensor that it asks about */
static bool shares_by_name;

bool pending_any(void)
{
    return atomic_load_explicit(&n_pending, memory_order_relaxed) > 0;
}

void pending_clear(void)
{
    memset(pending, 0, sizeof pending);
    atomic_store_explicit(&n_pending, 0, memory_order_relaxed);
}

/* "/torch_PID_…": no other library makes such names, and no program opens them by itself. */
static bool is_torch(const char *name)
{
    static const char prefix[] = "/torch_";
    return strncmp(name, prefix, sizeof prefix - 1) == 0 && name[sizeof prefix - 1] >= '0' &&
           name[sizeof prefix - 1] <= '9' && strlen(name) < sizeof pending[0].name;
}

static bool is_python(const char *name)
{
    return strncmp(name, "/psm_", 5) == 0 && strlen(name) < PROTOCOL_NAME_MAX;
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static Pending *find_free(void)
{
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (pending[i].name[0] == '\0')
            return &pending[i];
    return NULL;
}

/* The descriptor's number may have been closed and given out again in a way that we do not see: the inode
 * tells. */
static Pending *find_pending(int fd)
{
    FileId id;
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (pending[i].name[0] != '\0' && pending[i].fd == fd)
            return file_id(fd, &id) == 0 && id.inode == pending[i].inode ? &pending[i] : NULL;
    return NULL;
}

static void remove_pending(Pending *entry)
{
    *entry = (Pending){0};
    atomic_fetch_sub_explicit(&n_pending, 1, memory_order_relaxed);
}

/* A tensor in the making: a memfd that becomes a segment when its size is known. -1: the plain way. */
static int open_pending(const char *name)
{
    broker_greet();
    Pending *entry = find_free();
    FileId id;
    int fd = entry && !shares_by_name ? memfd_make(SINGLE_NAME, 0) : -1;
    if (fd >= 0 && file_id(fd, &id) < 0) {
        real_close(fd);
        fd = -1;
    }
    if (fd < 0) {
        count(&guard_counters()->fallbacks, 1);
        return -1;
    }
    *entry = (Pending){.fd = fd, .inode = id.inode};
    memcpy(entry->name, name, strlen(name) + 1); /* is_torch has measured it */
    atomic_fetch_add_explicit(&n_pending, 1, memory_order_relaxed);
    return fd;
}

/* A name that the supervisor keeps from the start. -ENOTCONN: the plain way. */
static int create_served(const char *name)
{
    int fd = memfd_make(SINGLE_NAME, 0);
    if (fd < 0)
        return -ENOTCONN;
    int r = broker_ask(MESSAGE_CREATE, name, fd, NULL);
    if (r == 0)
        return fd;
    real_close(fd);
    return r;
}

static int open_served(const char *name, int flags)
{
    int fd = -1;
    int r = broker_ask(MESSAGE_GET, name, -1, &fd);
    if (r == 0 && fd < 0) /* the kernel had no descriptor left to put it into */
        return -EMFILE;
    if (r == 0 && (flags & O_CREAT) && (flags & O_EXCL)) {
        real_close(fd);
        return -EEXIST;
    }
    if (r == -ENOENT && (flags & O_CREAT)) {
        r = create_served(name);
        if (r != -EEXIST)
            return r;
        return flags & O_EXCL ? r : open_served(name, flags & ~O_CREAT); /* somebody was faster */
    }
    if (r < 0)
        return r;
    /* The description is shared with whoever else opened the name; a position of its own it never needs. */
    if ((flags & O_TRUNC) && real_ftruncate(fd, 0) < 0) {
        real_close(fd);
        return -EACCES;
    }
    return fd;
}

int names_open(const char *name, int flags, mode_t mode)
{
    bool torch = is_torch(name);
    int fd = -ENOTCONN;
    if (torch && (flags & (O_ACCMODE | O_CREAT | O_EXCL)) == (O_RDWR | O_CREAT | O_EXCL)) {
        fd = open_pending(name);
        return fd >= 0 ? fd : real_shm_open(name, flags, mode);
    }
    if ((torch || is_python(name)) && (flags & O_ACCMODE) == O_RDWR)
        fd = open_served(name, flags);
    if (fd == -ENOTCONN || fd == -ENOENT) /* a file from before, or from outside */
        return real_shm_open(name, flags, mode);
    if (fd < 0) {
        errno = -fd;
        return -1;
    }
    return fd;
}

int names_unlink(const char *name)
{
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (pending[i].name[0] != '\0' && strcmp(pending[i].name, name) == 0) {
            remove_pending(&pending[i]);
            return 0;
        }
    if ((is_torch(name) || is_python(name)) && broker_ask(MESSAGE_UNLINK, name, -1, NULL) == 0)
        return 0;
    return real_shm_unlink(name);
}

int names_resize(int fd, off_t size)
{
    Pending *entry = find_pending(fd);
    FileId id;
    int segment = entry && size >= SEGMENT_MIN_BYTES ? pool_issue((uint64_t)size) : -1;
    if (segment < 0) {
        if (entry)
            count(&guard_counters()->small_backed, 1);
        return real_ftruncate(fd, size);
    }
    if (file_id(segment, &id) < 0 || dup3(segment, fd, O_CLOEXEC) < 0) {
        real_close(segment);
        return real_ftruncate(fd, size);
    }
    real_close(segment);
    entry->inode = id.inode;
    count(&guard_counters()->bytes_backed, (uint64_t)size);
    return 0;
}

int names_allocate(int fd, off_t offset, off_t size)
{
    Pending *entry = find_pending(fd);
    FileId id;
    if (entry)
        entry->allocated = true;
    /* The pages of a segment that was used before are there: its writer touched them all, or PyTorch
     * allocated them. */
    if (entry && offset == 0 && size > 0 && file_id(fd, &id) == 0 && id.allocated >= (uint64_t)size)
        return 0;
    return real_posix_fallocate(fd, offset, size);
}

void *names_map(int fd, size_t size)
{
    Pending *entry = pending_any() ? find_pending(fd) : NULL;
    void *address = size >= SEGMENT_MIN_BYTES ? view_use(fd, size) : MAP_FAILED;
    if (!entry)
        return address;
    if (address == MAP_FAILED)
        address = real_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address != MAP_FAILED) {
        entry->address = address;
        entry->size = size;
    }
    return address;
}

/* Puts the real file in the place of the memfd. What fails leaves the tensor as it is: whole, but not to be
 * opened by name. */
static void make_real(const Pending *entry)
{
    int fd = real_shm_open(entry->name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return;
    bool ready = real_ftruncate(fd, (off_t)entry->size) == 0 &&
                 (!entry->allocated || real_posix_fallocate(fd, 0, (off_t)entry->size) == 0) &&
                 real_mmap(entry->address, entry->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                           0) != MAP_FAILED;
    if (ready)
        view_replaced(entry->address, entry->size);
    else
        real_shm_unlink(entry->name);
    real_close(fd);
}

void names_close(int fd)
{
    Pending *entry = find_pending(fd);
    if (!entry)
        return;
    if (entry->address && !broker_tell(MESSAGE_PUT, entry->name, fd)) {
        shares_by_name = true;
        make_real(entry);
    }
    remove_pending(entry);
}
