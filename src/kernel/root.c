/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "clock.h"
#include "root.h"

typedef struct CapturedStat {
    Text path;
    FileStat stat;
    int open; /* as root_captured_open has it */
} CapturedStat;

typedef struct CapturedFs {
    Text path;
    FsStat stat;
} CapturedFs;

int device_numbers_parse(Text a, unsigned base, Device *ret)
{
    Text major;
    Device device = {0};
    if (!text_until(&a, ':', &major) || text_u32(major, base, &device.major) < 0 ||
        text_u32(a, base, &device.minor) < 0)
        return -EBADMSG;
    *ret = device;
    return 0;
}

/* The next word of *rest as a number. */
static int word_u64(Text *rest, unsigned base, uint64_t *ret)
{
    Text word;
    return text_word(rest, &word) ? text_u64(word, base, ret) : -EBADMSG;
}

static int word_seconds(Text *rest, double *ret)
{
    Text word;
    return text_word(rest, &word) ? text_decimal(word, ret) : -EBADMSG;
}

int capture_stat_parse(Text line, char *out_path, Text *ret_path, FileStat *ret)
{
    Text path;
    Text device;
    FileStat stat = {0};
    uint64_t mode = 0;
    uint64_t nlink = 0;
    uint64_t uid = 0;
    uint64_t blocks = 0;
    double modified = 0;
    double changed = 0;
    if (!text_word(&line, &path) || !text_word(&line, &device) ||
        device_numbers_parse(device, 10, &stat.device) < 0 || word_u64(&line, 10, &stat.inode) < 0 ||
        word_u64(&line, 8, &mode) < 0 || word_u64(&line, 10, &nlink) < 0 || word_u64(&line, 10, &uid) < 0 ||
        word_u64(&line, 10, &stat.size_bytes) < 0 || word_u64(&line, 10, &blocks) < 0 ||
        word_seconds(&line, &modified) < 0 || word_seconds(&line, &changed) < 0)
        return -EBADMSG;
    if (mode > UINT32_MAX || nlink > UINT32_MAX || uid > UINT32_MAX ||
        __builtin_mul_overflow(blocks, 512, &stat.allocated_bytes))
        return -EBADMSG;
    stat.mode = (uint32_t)mode;
    stat.nlink = (uint32_t)nlink;
    stat.uid = (uint32_t)uid;
    stat.changed = MAX(modified, changed);
    *ret = stat;
    *ret_path = (Text){out_path, text_unescape_octal(path, out_path)};
    return 0;
}

int capture_statfs_parse(Text line, char *out_path, Text *ret_path, FsStat *ret)
{
    Text path;
    uint64_t type = 0;
    uint64_t unit = 0;
    FsStat stat = {0};
    if (!text_word(&line, &path) || word_u64(&line, 16, &type) < 0 || word_u64(&line, 10, &unit) < 0 ||
        word_u64(&line, 10, &stat.size_bytes) < 0 || word_u64(&line, 10, &stat.free_bytes) < 0 ||
        word_u64(&line, 10, &stat.available_bytes) < 0 || word_u64(&line, 10, &stat.inodes) < 0 ||
        word_u64(&line, 10, &stat.inodes_free) < 0)
        return -EBADMSG;
    if (type > UINT32_MAX || __builtin_mul_overflow(stat.size_bytes, unit, &stat.size_bytes) ||
        __builtin_mul_overflow(stat.free_bytes, unit, &stat.free_bytes) ||
        __builtin_mul_overflow(stat.available_bytes, unit, &stat.available_bytes))
        return -EBADMSG;
    stat.type = (uint32_t)type;
    *ret = stat;
    *ret_path = (Text){out_path, text_unescape_octal(path, out_path)};
    return 0;
}

static int path_order(Text a, Text b)
{
    int order = memcmp(a.data, b.data, MIN(a.size, b.size));
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int stat_order(const void *a, const void *b)
{
    return path_order(((const CapturedStat *)a)->path, ((const CapturedStat *)b)->path);
}

static CapturedStat *stat_find(const Root *root, Text path)
{
    CapturedStat key = {.path = path};
    return root->n_stats == 0 ? NULL : bsearch(&key, root->stats, root->n_stats, sizeof key, stat_order);
}

static int capture_load_open(Root *root, Buffer *text)
{
    if (root_read(root, ".capture/open", ROOT_FILE_MAX, text) < 0)
        return 0;
    _cleanup_buffer_ Buffer unescaped = {0};
    TEXT_FOR_EACH_LINE (line, ((Text){text->data, text->size})) {
        Text path;
        Text answer;
        buffer_clear(&unescaped);
        if (!text_word(&line, &path) || !text_word(&line, &answer))
            continue;
        if (buffer_append(&unescaped, path.data, path.size) < 0)
            return -ENOMEM;
        path.size = text_unescape_octal(path, unescaped.data);
        path.data = unescaped.data;
        CapturedStat *found = stat_find(root, path);
        if (found && (text_equal(answer, "0") || text_equal(answer, "1")))
            found->open = text_equal(answer, "1");
    }
    return 0;
}

/* Tables of a captured tree. A missing file leaves its table empty: questions that it would answer fail with
 * ENOENT. */
static int capture_load(Root *root)
{
    _cleanup_buffer_ Buffer text = {0};
    size_t capacity = 0;

    if (root_read(root, ".capture/stat", ROOT_FILE_MAX, &text) >= 0) {
        TEXT_FOR_EACH_LINE (line, ((Text){text.data, text.size})) {
            char *path = arena_alloc(&root->arena, line.size + 1);
            CapturedStat entry = {.open = -ENODATA};
            if (!path)
                return -ENOMEM;
            if (capture_stat_parse(line, path, &entry.path, &entry.stat) < 0)
                continue;
            CapturedStat *slot = ARENA_PUSH(&root->arena, root->stats, root->n_stats, capacity);
            if (!slot)
                return -ENOMEM;
            *slot = entry;
        }
        if (root->n_stats > 0)
            qsort(root->stats, root->n_stats, sizeof *root->stats, stat_order);
        int r = capture_load_open(root, &text);
        if (r < 0)
            return r;
    }

    capacity = 0;
    if (root_read(root, ".capture/statfs", ROOT_FILE_MAX, &text) >= 0)
        TEXT_FOR_EACH_LINE (line, ((Text){text.data, text.size})) {
            char *path = arena_alloc(&root->arena, line.size + 1);
            CapturedFs entry;
            if (!path)
                return -ENOMEM;
            if (capture_statfs_parse(line, path, &entry.path, &entry.stat) < 0)
                continue;
            CapturedFs *slot = ARENA_PUSH(&root->arena, root->filesystems, root->n_filesystems, capacity);
            if (!slot)
                return -ENOMEM;
            *slot = entry;
        }

    if (root_read(root, ".capture/env", ROOT_FILE_MAX, &text) >= 0) {
        char *copy = arena_copy(&root->arena, text.data, text.size);
        if (!copy)
            return -ENOMEM;
        root->environment = (Text){copy, text.size};
    }
    if (root_read(root, ".capture/clock", 256, &text) >= 0) {
        Text rest = {text.data, text.size};
        if (word_seconds(&rest, &root->realtime) < 0 || word_seconds(&rest, &root->boottime) < 0)
            root->realtime = root->boottime = 0;
    }
    uint64_t uid = 0;
    if (root_read(root, ".capture/ids", 256, &text) >= 0) {
        Text rest = {text.data, text.size};
        if (word_u64(&rest, 10, &uid) < 0 || uid > UINT32_MAX)
            uid = 0;
    }
    root->uid = (uint32_t)uid;
    return 0;
}

int root_open(const char *path, Root *ret)
{
    Root root = {.live = !path || strcmp(path, "/") == 0};
    root.fd = open(root.live ? "/" : path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root.fd < 0)
        return -errno;
    int r = root_exists(&root, "proc") ? 0 : -EINVAL;
    if (r >= 0 && !root.live)
        r = capture_load(&root);
    if (r < 0) {
        root_close(&root);
        return r;
    }
    *ret = root;
    return 0;
}

void root_close(Root *root)
{
    fd_close(root->fd);
    arena_free(&root->arena);
    *root = ROOT_NONE;
}

/*
 * A captured tree may come from anywhere: its links must not lead outside. The kernel ensures that since 5.6;
 * on older kernels links are followed as on the live machine.
 */
int root_openat(const Root *root, const char *path, int flags)
{
    flags |=
        O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY); /* openat2 refuses flags that do not belong together */
    if (!root->live) {
        struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_IN_ROOT};
        int fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof how);
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) /* old sandboxes answer EPERM to unknown calls */
            return fd < 0 ? -errno : fd;
    }
    int fd = openat(root->fd, path, flags);
    return fd < 0 ? -errno : fd;
}

int root_read(const Root *root, const char *path, size_t limit, Buffer *buffer)
{
    buffer_clear(buffer);
    /* O_NONBLOCK: a captured tree may contain anything, even a FIFO, and must not block us. */
    _cleanup_close_ int fd = root_openat(root, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return fd;
    return buffer_read_fd(buffer, fd, limit);
}

ssize_t root_link(const Root *root, const char *path, char *buf, size_t size)
{
    _cleanup_close_ int fd = root->live ? -EBADF : root_openat(root, path, O_PATH | O_NOFOLLOW);
    if (!root->live && fd < 0)
        return fd;
    ssize_t n = root->live ? readlinkat(root->fd, path, buf, size - 1) : readlinkat(fd, "", buf, size - 1);
    if (n < 0) /* ENOENT here means that the descriptor is not a link */
        return !root->live && errno == ENOENT ? -EINVAL : -errno;
    buf[n] = '\0';
    return n;
}

bool root_exists(const Root *root, const char *path)
{
    if (root->live)
        return faccessat(root->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    _cleanup_close_ int fd = root_openat(root, path, O_PATH | O_NOFOLLOW);
    return fd >= 0;
}

FileStat file_stat_of(const struct stat *st)
{
    double modified = (double)st->st_mtim.tv_sec + (double)st->st_mtim.tv_nsec / 1e9;
    double changed = (double)st->st_ctim.tv_sec + (double)st->st_ctim.tv_nsec / 1e9;
    return (FileStat){
        .device = {major(st->st_dev), minor(st->st_dev)},
        .inode = st->st_ino,
        .mode = st->st_mode,
        .nlink = (uint32_t)st->st_nlink,
        .uid = st->st_uid,
        .size_bytes = (uint64_t)st->st_size,
        .allocated_bytes = (uint64_t)st->st_blocks * 512,
        .changed = MAX(modified, changed),
    };
}

static int root_stat_flags(const Root *root, const char *path, int flags, FileStat *ret)
{
    if (!root->live) {
        const CapturedStat *found = stat_find(root, text_of(path));
        if (!found)
            return -ENOENT;
        *ret = found->stat;
        return 0;
    }
    struct stat st;
    if (fstatat(root->fd, path, &st, flags) < 0)
        return -errno;
    *ret = file_stat_of(&st);
    return 0;
}

int root_stat(const Root *root, const char *path, FileStat *ret)
{
    return root_stat_flags(root, path, 0, ret);
}

int root_lstat(const Root *root, const char *path, FileStat *ret)
{
    return root_stat_flags(root, path, AT_SYMLINK_NOFOLLOW, ret);
}

int root_statfs(const Root *root, const char *path, FsStat *ret)
{
    if (!root->live) {
        for (size_t i = 0; i < root->n_filesystems; i++)
            if (text_equal(root->filesystems[i].path, path)) {
                *ret = root->filesystems[i].stat;
                return 0;
            }
        return -ENOENT;
    }
    _cleanup_close_ int fd = openat(root->fd, path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct statfs st;
    if (fstatfs(fd, &st) < 0)
        return -errno;
    uint64_t unit = (uint64_t)st.f_bsize;
    *ret = (FsStat){
        .type = (uint32_t)st.f_type,
        .size_bytes = st.f_blocks * unit,
        .free_bytes = st.f_bfree * unit,
        .available_bytes = st.f_bavail * unit,
        .inodes = st.f_files,
        .inodes_free = st.f_ffree,
    };
    return 0;
}

int root_captured_open(const Root *root, const char *path)
{
    const CapturedStat *found = stat_find(root, text_of(path));
    return found ? found->open : -ENODATA;
}

DIR *root_list(const Root *root, const char *path)
{
    int fd = root_openat(root, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        errno = -fd;
        return NULL;
    }
    DIR *dir = fdopendir(fd);
    if (!dir)
        fd_close(fd);
    return dir;
}

bool root_environment(const Root *root, const char *name, Text *ret_value)
{
    if (root->live) {
        const char *value = getenv(name);
        if (value)
            *ret_value = text_of(value);
        return value != NULL;
    }
    size_t n = strlen(name);
    TEXT_FOR_EACH_LINE (line, root->environment)
        if (text_starts(line, name) && line.size > n && line.data[n] == '=') {
            *ret_value = (Text){line.data + n + 1, line.size - n - 1};
            return true;
        }
    return false;
}

double root_realtime(const Root *root)
{
    return root->live ? clock_seconds(CLOCK_REALTIME) : root->realtime;
}

double root_boottime(const Root *root)
{
    return root->live ? clock_seconds(CLOCK_BOOTTIME) : root->boottime;
}

uint32_t root_uid(const Root *root)
{
    return root->live ? geteuid() : root->uid;
}
