/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard.h"

/*
 * PyTorch creates a shared tensor with shm_open, ftruncate, mmap, and then does one of two things, in the
 * same thread and before any other process learns the name: shm_unlink (file_descriptor: the descriptor is
 * passed on), or close (file_system: the name is passed on). Until then the tensor is pending, and the memfd
 * behind it cannot be told from a file.
 *
 *   unlinked   the name never existed, and never will: nothing to do.
 *   closed     the name is needed. A supervisor is sent the name with its descriptor, and serves it to any
 * process that asks. Without a supervisor, or if it has no descriptor left for another name, the real file is
 * created now and mapped over the same address: the mapping exists but has not been written to yet (PyTorch
 * writes its header after its constructor has closed the descriptor). A process without a supervisor is from
 * then on known to share by name, and its tensors are plain files from the start.
 *
 * Python's shared_memory ("/psm_…") keeps its descriptor and passes the name on, so its name goes to the
 * supervisor at once; without one it is a plain file. Names of other libraries are left alone: programs
 * outside the job may know them.
 *
 * A name is in one place only, the supervisor's table or /dev/shm. To open a name, a process asks the
 * supervisor first, and then looks for the file.
 */
enum { PENDING_MAX = 64 };

typedef struct PendingTensor {
    int fd; /* -1: not in use */
    uint64_t device;
    uint64_t inode;
    void *address; /* NULL until it is mapped */
    size_t size;
    char name[64];
    bool allocated; /* posix_fallocate was asked for */
    bool segment;   /* fd is a segment of the pool, which must never be truncated */
} PendingTensor;

static PendingTensor pending[PENDING_MAX];
static atomic_uint n_pending; /* relaxed: a thread asks about its own tensor */
static bool shares_by_name;
static __thread int served __attribute__((tls_model("initial-exec"))) =
    -1; /* the descriptor of the name that was opened last */

bool pending_any(void)
{
    return atomic_load_explicit(&n_pending, memory_order_relaxed) > 0;
}

void pending_clear(void)
{
    memset(pending, 0, sizeof pending);
    atomic_store_explicit(&n_pending, 0, memory_order_relaxed);
}

/* "/torch_PID_…": no other library creates such names, and no program opens them by itself. */
static bool is_torch(const char *name)
{
    static const char prefix[] = "/torch_";
    return strncmp(name, prefix, sizeof prefix - 1) == 0 && name[sizeof prefix - 1] >= '0' &&
           name[sizeof prefix - 1] <= '9' && strlen(name) < sizeof pending[0].name;
}

static bool is_python(const char *name)
{
    return strncmp(name, "/psm_", 5) == 0;
}

/* The name as the supervisor knows it, with one leading slash: glibc skips all of them and requires none. A
 * name that is not that of a single file is left to glibc, which refuses it. */
static bool canonical(const char *name, char ret[static PROTOCOL_NAME_MAX])
{
    name += strspn(name, "/");
    size_t n = strlen(name);
    if (n == 0 || n >= NAME_MAX || strchr(name, '/'))
        return false;
    ret[0] = '/';
    memcpy(ret + 1, name, n + 1);
    return is_torch(ret) || is_python(ret);
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static PendingTensor *find_free(void)
{
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (pending[i].name[0] == '\0')
            return &pending[i];
    return NULL;
}

/* The descriptor's number may have been closed and reused in a way that we do not see, so the inode is
 * compared. */
static PendingTensor *find_pending(int fd)
{
    FileId id;
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (pending[i].name[0] != '\0' && pending[i].fd == fd && file_id(fd, &id) == 0 &&
            id.inode == pending[i].inode && id.device == pending[i].device)
            return &pending[i];
    return NULL;
}

static void remove_pending(PendingTensor *entry)
{
    *entry = (PendingTensor){0};
    atomic_fetch_sub_explicit(&n_pending, 1, memory_order_relaxed);
}

/* A pending tensor: a memfd that becomes a segment when its size is known. -1: make the plain call. */
static int open_pending(const char *name)
{
    (void)broker_reach();
    PendingTensor *entry = find_free();
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
    *entry = (PendingTensor){.fd = fd, .device = id.device, .inode = id.inode};
    memcpy(entry->name, name, strlen(name) + 1); /* is_torch has measured it */
    atomic_fetch_add_explicit(&n_pending, 1, memory_order_relaxed);
    return fd;
}

/* A name that the supervisor keeps from the start. -ENOTCONN: make the plain call. */
static int create_served(const char *name)
{
    int fd = memfd_make(SINGLE_NAME, 0);
    if (fd < 0)
        return -ENOTCONN;
    int r = broker_ask(MESSAGE_CREATE, name, fd, NULL);
    if (r == 0)
        return fd;
    real_close(fd);
    return r == -EMFILE ? -ENOTCONN : r; /* the supervisor has no room for the name, but /dev/shm may */
}

/*
 * The supervisor has one description for all processes. A process that opens a file expects a description of
 * its own, with its own access mode, position and flock: so the same memfd is opened again. The description
 * of a tensor is left as it is: it is the handed-out one.
 */
static int description_own(int fd, int flags)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, (flags & (O_ACCMODE | O_TRUNC)) | O_CLOEXEC | O_NOCTTY);
    if (own < 0) { /* without /proc, or without a free descriptor */
        if (!(flags & O_TRUNC) || real_ftruncate(fd, 0) == 0)
            return fd;
        own = -errno;
    }
    real_close(fd);
    return own;
}

static int open_served(const char *name, int flags)
{
    int fd = -1;
    bool exclusive = flags & O_CREAT && flags & O_EXCL;
    int r = exclusive ? -ENOENT : broker_ask(MESSAGE_GET, name, -1, &fd);
    if (r == 0 && fd < 0) /* this process had no descriptor left to receive it */
        return -EMFILE;
    if (r == -ENOENT && (flags & O_CREAT)) {
        fd = r = create_served(name);
        if (r == -EEXIST && !exclusive) /* another process was faster, or it is a file */
            return open_served(name, flags & ~O_CREAT);
    }
    if (r < 0)
        return r;
    return is_python(name) ? description_own(fd, flags) : fd;
}

int tensor_open(const char *name, int flags, mode_t mode)
{
    char known[PROTOCOL_NAME_MAX];
    if (!canonical(name, known))
        return real_shm_open(name, flags, mode);
    if (is_torch(known) && flags & O_CREAT && flags & O_EXCL) {
        int fd = (flags & O_ACCMODE) == O_RDWR ? open_pending(known) : -1;
        return fd >= 0 ? fd : real_shm_open(name, flags, mode);
    }
    int fd = open_served(known, flags);
    if (fd == -ENOTCONN || fd == -ENOENT) /* an earlier file, or one from outside the job */
        return real_shm_open(name, flags, mode);
    if (fd < 0) {
        errno = -fd;
        return -1;
    }
    served = fd;
    return fd;
}

int tensor_unlink(const char *name)
{
    char known[PROTOCOL_NAME_MAX];
    if (!canonical(name, known))
        return real_shm_unlink(name);
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (pending[i].name[0] != '\0' && strcmp(pending[i].name, known) == 0) {
            remove_pending(&pending[i]);
            return 0;
        }
    if (broker_ask(MESSAGE_UNLINK, known, -1, NULL) == 0)
        return 0;
    int r = real_shm_unlink(name);
    /* PyTorch ends the process if it cannot unlink a name that it has created. */
    return r < 0 && errno == ENOENT && broker_lost() ? 0 : r;
}

TensorResize tensor_resize(int fd, off_t size, int *ret_segment)
{
    PendingTensor *entry = find_pending(fd);
    FileId id;
    if (entry && entry->segment && size >= 0 && file_id(fd, &id) == 0 && id.size >= (uint64_t)size)
        return RESIZE_DONE; /* segments may be longer than requested */
    /* Once it is mapped, replacing the file would separate the descriptor from the mapping. */
    bool fresh = entry && !entry->address && size >= SEGMENT_MIN_BYTES;
    int segment = fresh ? pool_issue((uint64_t)size) : -1;
    if (segment < 0) {
        if (entry && !entry->segment) {
            count(&guard_counters()->small_backed, 1);
            count(&guard_counters()->small_bytes, size > 0 ? (uint64_t)size : 0);
        }
        return RESIZE_PLAIN;
    }
    *ret_segment = segment;
    bool budgeted = atomic_load_explicit(&guard_counters()->budgeted, memory_order_relaxed) != 0;
    bool touched = file_id(segment, &id) == 0 && id.allocated >= (uint64_t)size;
    return budgeted && !touched && size >= LARGE_MIN_BYTES ? RESIZE_ASK : RESIZE_TAKE;
}

int tensor_take(int fd, int segment, off_t size)
{
    PendingTensor *entry = find_pending(fd);
    FileId id;
    bool taken = entry && file_id(segment, &id) == 0 && dup3(segment, fd, O_CLOEXEC) >= 0;
    real_close(segment);
    if (!taken)
        return real_ftruncate(fd, size);
    entry->device = id.device;
    entry->inode = id.inode;
    entry->segment = true;
    count(&guard_counters()->bytes_backed, (uint64_t)size);
    return 0;
}

bool tensor_allocate(int fd, off_t offset, off_t size)
{
    PendingTensor *entry = find_pending(fd);
    FileId id;
    if (!entry)
        return false;
    entry->allocated = true;
    /* The pages of a recycled segment exist: its writer touched them all, or PyTorch allocated them. */
    return offset == 0 && size > 0 && file_id(fd, &id) == 0 && id.allocated >= (uint64_t)size;
}

void *tensor_map(int fd, size_t size)
{
    PendingTensor *entry = pending_any() ? find_pending(fd) : NULL;
    Origin origin = entry ? ORIGIN_HERE : fd == served ? ORIGIN_NAME : ORIGIN_SENT;
    void *address = size >= SEGMENT_MIN_BYTES ? view_use(fd, size, origin) : MAP_FAILED;
    if (!entry)
        return address;
    if (address == MAP_FAILED) {
        pool_disown(entry->device, entry->inode); /* nothing shows when a plain mapping is gone */
        address = real_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (address != MAP_FAILED) {
        entry->address = address;
        entry->size = size;
    }
    return address;
}

/* Puts the real file in the place of the memfd. On failure the tensor stays as it is: intact, but it cannot
 * be opened by name. */
static bool make_real(const PendingTensor *entry)
{
    int fd = real_shm_open(entry->name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return false;
    bool ready = real_ftruncate(fd, (off_t)entry->size) == 0 &&
                 (!entry->allocated || real_posix_fallocate(fd, 0, (off_t)entry->size) == 0) &&
                 real_mmap(entry->address, entry->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                           0) != MAP_FAILED;
    if (ready)
        view_replaced(entry->address, entry->size);
    else
        real_shm_unlink(entry->name);
    real_close(fd);
    return ready;
}

static bool serve(const PendingTensor *entry, int fd)
{
    bool crowded = atomic_load_explicit(&guard_counters()->crowded, memory_order_relaxed) != 0;
    return crowded ? broker_ask(MESSAGE_CREATE, entry->name, fd, NULL) == 0
                   : broker_tell(MESSAGE_PUT, entry->name, fd);
}

void tensor_close(int fd)
{
    PendingTensor *entry = find_pending(fd);
    if (!entry)
        return;
    if (entry->address && !serve(entry, fd)) {
        shares_by_name = !broker_reach();
        count(&guard_counters()->fallbacks, 1);
        if (!make_real(entry)) /* /dev/shm is full: the supervisor keeps its last descriptors for this case */
            (void)broker_tell(MESSAGE_PUT, entry->name, fd);
    }
    remove_pending(entry);
}
