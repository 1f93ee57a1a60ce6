/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"
#include "macro.h"
#include "maps.h"
#include "proc-path.h"
#include "remote-python.h"

/*
 * A final release: the layout of the table is that of the version. COOKIE: it begins with this, on a multiple
 * of eight, in the writable data of the program or of libpython.
 *
 * Why nothing is lost. The main thread's word of reasons to look up is changed by that process at the same
 * time, and we cannot change it atomically: a reason that comes between our reading and writing is lost. So
 * only the lowest byte is written, and with it all reasons that nobody would repeat: a signal, a call that
 * was asked for, an exception for the thread. The interpreter looks whether there is any. A request for its
 * lock is repeated after some milliseconds, one for a collection with the next object. A reason that we bring
 * back costs one look, but for a request for the lock: who hands it over to nobody waits until another thread
 * takes it. So that one is never written.
 *
 * The structures are static parts of the interpreter's data as long as it runs, and what we read of them is
 * only believed within bounds.
 */
#define COOKIE "xdebugpy"
#define FINAL  0xf0u

enum {
    COOKIE_BYTES = 8,
    SCANNED_MOST = 64 << 20,
    INTERPRETERS_MOST = 64,
    OFFSET_MOST = 1 << 24,
    PATH_LEAST = 64,
    DROP_LOCK = 1 << 0,
    SIGNALS = 1 << 1,
    CALLS = 1 << 2,
    EXCEPTION = 1 << 3,
};

/* In the table of 3.14. */
enum {
    AT_VERSION = 8,
    AT_FREE_THREADED = 16,
    AT_FINALIZING = 32,
    AT_INTERPRETERS = 40,
    AT_ID = 56,
    AT_NEXT = 64,
    AT_MAIN_THREAD = 80,
    AT_OBJECT_SIZE = 400,
    AT_SUPPORT = 712,
};

/* Of an ordinary 64-bit build. */
enum { OBJECT_BYTES = 16 };

enum { LOWEST_BYTE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 7 };

static uint64_t number_at(const void *table, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)table + offset, sizeof value);
    return value;
}

int remote_table_parse(const void *table, size_t n, int *ret_minor, RemoteOffsets *ret)
{
    if (n < REMOTE_TABLE_BYTES || memcmp(table, COOKIE, COOKIE_BYTES) != 0)
        return -EBADMSG;
    uint64_t version = number_at(table, AT_VERSION);
    if (version >> 24 != 3 || number_at(table, AT_FREE_THREADED) > 1)
        return -EBADMSG;
    *ret_minor = (int)(version >> 16 & 0xff);
    if (*ret_minor != REMOTE_MINOR || (version & 0xf0) != FINAL)
        return -EPROTONOSUPPORT;
    if (!number_at(table, AT_FREE_THREADED) && number_at(table, AT_OBJECT_SIZE) != OBJECT_BYTES)
        return -ENOTSUP;
    if (number_at(table, AT_FREE_THREADED))
        return -ENOTSUP;
    uint64_t support[6];
    for (size_t i = 0; i < ARRAY_SIZE(support); i++)
        support[i] = number_at(table, AT_SUPPORT + i * sizeof *support);
    RemoteOffsets offsets = {
        .finalizing = number_at(table, AT_FINALIZING),
        .interpreters = number_at(table, AT_INTERPRETERS),
        .id = number_at(table, AT_ID),
        .next = number_at(table, AT_NEXT),
        .main_thread = number_at(table, AT_MAIN_THREAD),
        .breaker = support[0],
        .enabled = support[2],
        .pending = support[1] + support[3],
        .path = support[1] + support[4],
        .path_size = support[5],
    };
    const uint64_t all[] = {offsets.finalizing,  offsets.interpreters, offsets.id,       offsets.next,
                            offsets.main_thread, offsets.breaker,      offsets.enabled,  support[1],
                            support[3],          support[4],           offsets.path_size};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        if (all[i] > OFFSET_MOST)
            return -EBADMSG;
    if (offsets.path_size < PATH_LEAST)
        return -EBADMSG;
    *ret = offsets;
    return 0;
}

static bool bytes_read(int memory, uint64_t address, void *ret, size_t n)
{
    return address > 0 && address <= INT64_MAX && pread(memory, ret, n, (off_t)address) == (ssize_t)n;
}

static bool bytes_write(int memory, uint64_t address, const void *bytes, size_t n)
{
    return pwrite(memory, bytes, n, (off_t)address) == (ssize_t)n;
}

/* --- The interpreter ---------------------------------------------------------------------------------- */

typedef struct RuntimeSearch {
    RemotePython *python;
    uint64_t runtime;
    RemoteOffsets offsets;
    int r; /* what the table said; -ENOEXEC: there is none */
} RuntimeSearch;

static bool is_python(Text path)
{
    const char *slash = memrchr(path.data, '/', path.size);
    Text name = slash ? text_skip(path, (size_t)(slash + 1 - path.data)) : path;
    return slash && (text_starts(name, "python") || text_starts(name, "libpython"));
}

static int visit_data(const MapEntry *entry, void *context)
{
    RuntimeSearch *search = context;
    uint64_t size = entry->end - entry->start;
    if (entry->shared || entry->executable || !is_python(entry->path) || size > SCANNED_MOST)
        return 0;
    _cleanup_free_ char *data = malloc(size);
    if (!data)
        return -ENOMEM;
    ssize_t n = pread(search->python->memory, data, size, (off_t)entry->start);
    for (ssize_t i = 0; i + REMOTE_TABLE_BYTES <= n; i += COOKIE_BYTES) {
        int r = remote_table_parse(data + i, REMOTE_TABLE_BYTES, &search->python->minor, &search->offsets);
        if (r == -EBADMSG)
            continue;
        search->r = r;
        search->runtime = entry->start + (uint64_t)i;
        return 1;
    }
    return 0;
}

/* The main one: it runs in the main thread. */
static bool interpreter_find(int memory, const RuntimeSearch *search, uint64_t *ret)
{
    const RemoteOffsets *offsets = &search->offsets;
    uint64_t at = 0;
    int64_t id = -1;
    bool good = bytes_read(memory, search->runtime + offsets->interpreters, &at, sizeof at);
    for (int i = 0; good && at && i < INTERPRETERS_MOST; i++) {
        good = bytes_read(memory, at + offsets->id, &id, sizeof id);
        if (good && id == 0) {
            *ret = at;
            return true;
        }
        good = good && bytes_read(memory, at + offsets->next, &at, sizeof at);
    }
    return false;
}

static int main_thread_find(RemotePython *python, const RuntimeSearch *search)
{
    const RemoteOffsets *offsets = &search->offsets;
    uint64_t finalizing = 0;
    uint64_t interpreter = 0;
    uint64_t thread = 0;
    int32_t enabled = 0;
    if (!bytes_read(python->memory, search->runtime + offsets->finalizing, &finalizing, sizeof finalizing) ||
        finalizing || !interpreter_find(python->memory, search, &interpreter) ||
        !bytes_read(python->memory, interpreter + offsets->main_thread, &thread, sizeof thread) || !thread ||
        !bytes_read(python->memory, interpreter + offsets->enabled, &enabled, sizeof enabled))
        return -ESHUTDOWN;
    if (enabled != 1)
        return -ENOTTY;
    python->breaker = thread + offsets->breaker + LOWEST_BYTE;
    python->pending = thread + offsets->pending;
    python->path = thread + offsets->path;
    python->path_size = offsets->path_size;
    return 0;
}

int remote_python_open(const Root *root, int pid, RemotePython *ret)
{
    _cleanup_buffer_ Buffer scratch = {0};
    _cleanup_remote_python_ RemotePython python = REMOTE_PYTHON_NONE;
    RuntimeSearch search = {.python = &python, .r = -ENOEXEC};
    ret->minor = 0;
    python.memory = root_openat(root, PROC_PATH(pid, "mem"), O_RDWR);
    if (python.memory < 0)
        return python.memory == -ENOENT ? -ESRCH : python.memory;
    int r = maps_visit(root, pid, MAPS_ANY, &scratch, visit_data, &search);
    ret->minor = python.minor;
    if (r < 0)
        return r == -ENOENT ? -ESRCH : r;
    r = search.r < 0 ? search.r : main_thread_find(&python, &search);
    if (r < 0)
        return r;
    *ret = python;
    python.memory = -EBADF;
    return 0;
}

void remote_python_close(RemotePython *python)
{
    fd_close(python->memory);
    python->memory = -EBADF;
}

/* --- Asking ------------------------------------------------------------------------------------------- */

int remote_python_ask(const RemotePython *python, const char *path)
{
    size_t n = strlen(path) + 1;
    int32_t pending = 0;
    int32_t one = 1;
    uint8_t reasons = 0;
    if (n > python->path_size)
        return -ENAMETOOLONG;
    if (!bytes_read(python->memory, python->pending, &pending, sizeof pending))
        return -EIO;
    if (pending)
        return -EBUSY;
    if (!bytes_write(python->memory, python->path, path, n) ||
        !bytes_write(python->memory, python->pending, &one, sizeof one) ||
        !bytes_read(python->memory, python->breaker, &reasons, sizeof reasons))
        return -EIO;
    reasons = (uint8_t)((reasons & ~DROP_LOCK) | SIGNALS | CALLS | EXCEPTION);
    return bytes_write(python->memory, python->breaker, &reasons, sizeof reasons) ? 0 : -EIO;
}

void remote_python_withdraw(const RemotePython *python)
{
    int32_t none = 0;
    (void)bytes_write(python->memory, python->pending, &none, sizeof none);
}
