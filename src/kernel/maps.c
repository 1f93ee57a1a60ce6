/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "maps.h"
#include "proc-path.h"

/* The kernel's interface of Linux 6.11, which older headers lack. */
typedef struct ProcmapQuery {
    uint64_t size;
    uint64_t flags;
    uint64_t address;
    uint64_t start;
    uint64_t end;
    uint64_t permissions;
    uint64_t page_bytes;
    uint64_t offset;
    uint64_t inode;
    uint32_t device_major;
    uint32_t device_minor;
    uint32_t name_size; /* in: room for the name; out: its length with the NUL */
    uint32_t build_id_size;
    uint64_t name;
    uint64_t build_id;
} ProcmapQuery;
_Static_assert(sizeof(ProcmapQuery) == 104, "the size is part of the request's number");

#define PROCMAP_QUERY _IOWR('f', 17, ProcmapQuery)

enum {
    PROCMAP_EXECUTABLE = 0x04,
    PROCMAP_SHARED = 0x08,
    PROCMAP_OR_NEXT = 0x10,
    PROCMAP_FILE = 0x20,
};

enum { CHUNK_BYTES = 64 * 1024 };

static int range_parse(Text range, MapEntry *entry)
{
    Text start;
    if (!text_until(&range, '-', &start) || text_u64(start, 16, &entry->start) < 0 ||
        text_u64(range, 16, &entry->end) < 0 || entry->start >= entry->end)
        return -EBADMSG;
    return 0;
}

static int permissions_parse(Text word, MapEntry *entry)
{
    static const char *const letters[] = {"r-", "w-", "x-", "sp"};
    if (word.size != ARRAY_SIZE(letters))
        return -EBADMSG;
    for (size_t i = 0; i < ARRAY_SIZE(letters); i++)
        if (word.data[i] != letters[i][0] && word.data[i] != letters[i][1])
            return -EBADMSG;
    entry->executable = word.data[2] == 'x';
    entry->shared = word.data[3] == 's';
    return 0;
}

static void path_set(Text path, MapEntry *entry)
{
    static const char mark[] = " (deleted)";
    entry->deleted = text_ends(path, mark);
    entry->path = (Text){path.data, path.size - (entry->deleted ? sizeof mark - 1 : 0)};
}

int maps_parse_line(Text line, MapEntry *ret)
{
    MapEntry entry = {0};
    Text range;
    Text permissions;
    Text offset;
    Text device;
    Text inode;
    if (!text_word(&line, &range) || range_parse(range, &entry) < 0 || !text_word(&line, &permissions) ||
        permissions_parse(permissions, &entry) < 0 || !text_word(&line, &offset) ||
        text_u64(offset, 16, &entry.offset) < 0 || !text_word(&line, &device) ||
        device_numbers_parse(device, 16, &entry.device) < 0 || !text_word(&line, &inode) ||
        text_u64(inode, 10, &entry.inode) < 0)
        return -EBADMSG;
    /* Blanks before the path are padding; those at its end are part of it. */
    while (line.size > 0 && line.data[0] == ' ')
        line = (Text){line.data + 1, line.size - 1};
    path_set(line, &entry);
    *ret = entry;
    return 0;
}

static bool entry_wanted(const MapEntry *entry, MapsWhich which)
{
    if (which == MAPS_ANY)
        return true;
    bool file = entry->inode != 0 || entry->device.major != 0 || entry->device.minor != 0;
    return file && (which == MAPS_SHARED_FILES ? entry->shared : entry->executable);
}

/* Checks the one letter that rules most lines out before the line is parsed: a PyTorch process has more than
 * a thousand of them. */
static bool line_promising(Text line, MapsWhich which)
{
    Text range;
    if (!text_until(&line, ' ', &range) || line.size < 4)
        return false;
    if (which == MAPS_ANY)
        return true;
    return which == MAPS_SHARED_FILES ? line.data[3] == 's' : line.data[2] == 'x';
}

/* Escapes newlines as the text does. The result is name itself, or in scratch. */
static int name_escape(Text name, Buffer *scratch, Text *ret)
{
    if (!text_contains(name, "\n")) {
        *ret = name;
        return 0;
    }
    buffer_clear(scratch);
    TEXT_FOR_EACH_LINE (part, name) {
        bool last = part.data + part.size == name.data + name.size;
        int r = buffer_append(scratch, part.data, part.size);
        if (r >= 0 && !last)
            r = buffer_append_text(scratch, "\\012");
        if (r < 0)
            return r;
    }
    *ret = (Text){scratch->data, scratch->size};
    return 0;
}

/* The first mapping of that kind that ends after address: 1 with *ret filled, 0 if there is none. */
static int query_next(int fd, MapsWhich which, uint64_t address, char name[static PATH_MAX], Buffer *scratch,
                      MapEntry *ret)
{
    static const uint64_t filters[] = {
        [MAPS_SHARED_FILES] = PROCMAP_FILE | PROCMAP_SHARED,
        [MAPS_EXECUTABLE_FILES] = PROCMAP_FILE | PROCMAP_EXECUTABLE,
        [MAPS_ANY] = 0,
    };
    ProcmapQuery query = {
        .size = sizeof query,
        .flags = PROCMAP_OR_NEXT | filters[which],
        .address = address,
        .name = (uintptr_t)name,
        .name_size = PATH_MAX,
    };
    if (ioctl(fd, PROCMAP_QUERY, &query) < 0)
        return errno == ENOENT ? 0 : -errno;
    MapEntry entry = {
        .start = query.start,
        .end = query.end,
        .shared = query.permissions & PROCMAP_SHARED,
        .executable = query.permissions & PROCMAP_EXECUTABLE,
        .device = {query.device_major, query.device_minor},
        .inode = query.inode,
        .offset = query.offset,
    };
    Text path;
    int r = name_escape((Text){name, query.name_size > 0 ? query.name_size - 1 : 0}, scratch, &path);
    if (r < 0)
        return r;
    path_set(path, &entry);
    *ret = entry;
    return 1;
}

/* Visits what the text lists from address on. */
static int visit_text(int fd, MapsWhich which, uint64_t address, Buffer *scratch, MapsVisit visit,
                      void *context)
{
    buffer_clear(scratch);
    for (;;) {
        size_t limit = scratch->size + CHUNK_BYTES;
        int r = buffer_read_fd(scratch, fd, limit);
        if (r < 0)
            return r;
        bool end = scratch->size < limit;
        Text whole = text_whole_lines((Text){scratch->data, scratch->size});
        TEXT_FOR_EACH_LINE (line, whole) {
            MapEntry entry;
            if (!line_promising(line, which) || maps_parse_line(line, &entry) < 0 || entry.start < address ||
                !entry_wanted(&entry, which))
                continue;
            r = visit(&entry, context);
            if (r != 0)
                return r;
        }
        if (end)
            return 0;
        if (scratch->size - whole.size > ROOT_FILE_MAX)
            return -EBADMSG;
        scratch->size -= whole.size;
        memmove(scratch->data, scratch->data + whole.size, scratch->size);
    }
}

static int maps_open(const Root *root, int pid)
{
    return root_openat(root, PROC_PATH(pid, "maps"), O_RDONLY | O_NONBLOCK);
}

int maps_visit_at(const Root *root, int pid, MapsWhich which, uint64_t address, Buffer *scratch,
                  MapsVisit visit, void *context)
{
    if (!root->live)
        return 0;
    _cleanup_close_ int fd = maps_open(root, pid);
    if (fd < 0)
        return fd;
    char name[PATH_MAX];
    MapEntry entry = {0};
    if (query_next(fd, which, address, name, scratch, &entry) <= 0 || entry.start > address)
        return 0;
    return visit(&entry, context);
}

int maps_visit(const Root *root, int pid, MapsWhich which, Buffer *scratch, MapsVisit visit, void *context)
{
    _cleanup_close_ int fd = maps_open(root, pid);
    if (fd < 0)
        return fd;
    uint64_t address = 0;
    while (root->live) {
        char name[PATH_MAX];
        MapEntry entry;
        int r = query_next(fd, which, address, name, scratch, &entry);
        if (r == 0)
            return 0;
        if (r < 0)
            break; /* an older kernel, or a path longer than PATH_MAX: the text has the rest */
        r = visit(&entry, context);
        if (r != 0)
            return r;
        address = entry.end;
    }
    return visit_text(fd, which, address, scratch, visit, context);
}

typedef struct Covering {
    uint64_t address;
    MapEntry *entry;
} Covering;

static int visit_covering(const MapEntry *entry, void *context)
{
    const Covering *covering = context;
    if (entry->end <= covering->address)
        return 0;
    if (entry->start > covering->address)
        return -ENOENT; /* they ascend */
    *covering->entry = *entry;
    return 1;
}

int maps_find(const Root *root, int pid, uint64_t address, Buffer *scratch, MapEntry *ret)
{
    _cleanup_close_ int fd = maps_open(root, pid);
    return fd < 0 ? fd : maps_find_in(root, fd, address, scratch, ret);
}

int maps_find_in(const Root *root, int fd, uint64_t address, Buffer *scratch, MapEntry *ret)
{
    char name[PATH_MAX];
    MapEntry entry = {0};
    int r = root->live ? query_next(fd, MAPS_ANY, address, name, scratch, &entry) : -ENOTTY;
    if (r == 0 || (r > 0 && entry.start > address))
        return 0;
    if (r > 0) {
        if (entry.path.data == name) {
            buffer_clear(scratch);
            r = buffer_append(scratch, name, entry.path.size);
            entry.path.data = buffer_text(scratch);
        }
        if (r >= 0)
            *ret = entry;
        return r < 0 ? r : 1;
    }
    Covering covering = {address, ret};
    r = visit_text(fd, MAPS_ANY, 0, scratch, visit_covering, &covering);
    return r == -ENOENT ? 0 : r;
}

/* A fifth of the cost of the text: the kernel prints no paths. -ENOTTY and others if the ioctl is not
 * available. */
static int query_count(int fd, uint64_t *ret)
{
    uint64_t count = 0;
    ProcmapQuery query = {.size = sizeof query, .flags = PROCMAP_OR_NEXT};
    while (ioctl(fd, PROCMAP_QUERY, &query) == 0) {
        count++;
        query = (ProcmapQuery){.size = sizeof query, .flags = PROCMAP_OR_NEXT, .address = query.end};
    }
    if (errno != ENOENT || count == 0)
        return -errno;
    *ret = count;
    return 0;
}

int maps_can_query(const Root *root)
{
    uint64_t count = 0;
    _cleanup_close_ int fd = maps_open(root, 0);
    return fd < 0 ? fd : query_count(fd, &count) == 0;
}

int maps_count(const Root *root, int pid, uint64_t *ret)
{
    _cleanup_close_ int fd = maps_open(root, pid);
    if (fd < 0)
        return fd;
    if (root->live && query_count(fd, ret) == 0)
        return 0;
    char chunk[16 * 1024];
    uint64_t lines = 0;
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        for (const char *at = chunk, *end = chunk + n; (at = memchr(at, '\n', (size_t)(end - at))); at++)
            lines++;
    }
    *ret = lines;
    return 0;
}

int maps_stat(const Root *root, int pid, const MapEntry *entry, FileStat *ret)
{
    char name[PROC_PATH_MAX];
    snprintf(name, sizeof name, "map_files/%llx-%llx", (unsigned long long)entry->start,
             (unsigned long long)entry->end);
    return root_stat(root, PROC_PATH(pid, name), ret);
}
