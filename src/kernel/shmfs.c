/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shmfs.h"

enum { SHM_DEPTH_MAX = 4 };

/*
 * Where the files really are. On old systems /dev/shm is a link to /run/shm: the mount table knows only the
 * target, and in a captured tree the link must not lead outside. Returns buf.
 */
static const char *shm_path(const Root *root, char buf[static PATH_MAX])
{
    char target[PATH_MAX - sizeof "dev/"];
    ssize_t n = root_link(root, SHM_PATH, target, sizeof target);
    if (n <= 0)
        snprintf(buf, PATH_MAX, SHM_PATH);
    else if (target[0] == '/')
        snprintf(buf, PATH_MAX, "%s", target + strspn(target, "/"));
    else if (strncmp(target, "../", 3) == 0)
        snprintf(buf, PATH_MAX, "%s", target + 3);
    else
        snprintf(buf, PATH_MAX, "dev/%s", target);
    return buf;
}
#define SHM_REAL_PATH(root) shm_path((root), (char[PATH_MAX]){0})

/* Whether this user may create files in the directory. A captured tree has no groups: rights of the group do
 * not count. */
static bool user_may_create(const Root *root, const char *path, const FileStat *stat)
{
    if (root->live)
        return faccessat(root->fd, path, W_OK | X_OK, AT_EACCESS) == 0 || (errno != EACCES && errno != EPERM);
    uint32_t uid = root_uid(root);
    unsigned need = uid == stat->uid ? S_IWUSR | S_IXUSR : S_IWOTH | S_IXOTH;
    return uid == 0 || (stat->mode & need) == need;
}

/*
 * job_container/tmpfs mounts directories of BasePath/JOB/.JOB over those of the job, such as "_tmp" over
 * /tmp, and an ordinary tmpfs over /dev/shm (_mount_private_dirs and _mount_private_shm of the plugin).
 * Before Slurm 23.02, it mounts BasePath/JOB/.JOB itself over /tmp. These cannot be mistaken, and are there
 * unless Dirs= leaves all others out.
 */
static bool is_of_slurm_job(const Mount *mount)
{
    Text path = text_of(mount->root);
    Text before = {0};
    for (Text part; text_until(&path, '/', &part); before = part) {
        Text id = text_skip(part, 1);
        bool same = before.size > 0 && before.size == id.size && text_digits(before).size == before.size &&
                    memcmp(before.data, id.data, id.size) == 0;
        bool old = path.size == 0 && strcmp(mount->mount_point, "/tmp") == 0;
        if (same && text_starts(part, ".") && (old || text_starts(path, "_")))
            return true;
    }
    return false;
}

ShmOwner shm_owner_find(const Mounts *mounts, bool kubernetes, bool slurm)
{
    Text value;
    const Mount *shm = mounts_at(mounts, "/" SHM_PATH);
    if (!shm || strcmp(shm->type, "tmpfs") != 0 || strcmp(shm->root, "/") != 0)
        return SHM_OWNER_UNKNOWN;
    for (size_t i = 0; slurm && i < mounts->n; i++)
        if (is_of_slurm_job(&mounts->items[i]))
            return SHM_OF_JOB;
    /* Engines call theirs "shm"; that of a machine, mounted by path, is nosuid. */
    bool plain = strcmp(shm->source, "tmpfs") == 0 && !mount_option(shm->options, "nosuid", &value);
    return kubernetes && plain ? SHM_OF_POD : SHM_OWNER_UNKNOWN;
}

void shmfs_read(const Root *root, const Mounts *mounts, ShmMount *ret)
{
    *ret = (ShmMount){.state = SHM_UNKNOWN};
    const char *path = SHM_REAL_PATH(root);
    FileStat stat;
    FsStat fs;
    bool has_stat = root_stat(root, path, &stat) >= 0;
    int r = has_stat && !S_ISDIR(stat.mode) ? -ENOTDIR : root_statfs(root, path, &fs);
    if (r < 0) {
        /* In a captured tree the directory may exist without further information. */
        if (r == -ENOTDIR || (r == -ENOENT && (root->live || !root_exists(root, path))))
            ret->state = SHM_ABSENT;
        return;
    }

    ret->state = fs.type == TMPFS_MAGIC ? SHM_OK : SHM_NOT_TMPFS;
    ret->size_bytes = fs.size_bytes;
    ret->used_bytes = fs.size_bytes - MIN(fs.free_bytes, fs.size_bytes);
    ret->available_bytes = fs.available_bytes;
    if (fs.size_bytes == 0) { /* a tmpfs without a limit does not tell its use */
        ret->used_bytes = U64_UNKNOWN;
        ret->available_bytes = U64_UNKNOWN;
    }
    ret->inodes = fs.inodes;
    ret->inodes_free = fs.inodes_free;
    if (has_stat) {
        ret->device = stat.device;
        ret->no_access = !user_may_create(root, path, &stat);
    }

    char mount_point[PATH_MAX + 1];
    snprintf(mount_point, sizeof mount_point, "/%s", path);
    const Mount *mount = mounts_at(mounts, mount_point);
    if (!mount)
        return;
    Text value;
    ret->mounted = true;
    ret->sized = mount_option(mount->super_options, "size", &value);
    if (!has_stat)
        ret->device = mount->device;
    ret->read_only =
        mount_option(mount->options, "ro", &value) || mount_option(mount->super_options, "ro", &value);
    /* With within_size and advise, huge pages are used only for files that fill them, or on request. */
    ret->huge = mount_option(mount->super_options, "huge", &value) &&
                (text_equal(value, "always") || text_equal(value, "force"));
}

typedef struct ShmWalk {
    const Root *root;
    ShmVisit visit;
    void *context;
    Device device;
    char path[PATH_MAX]; /* of the file at hand, below the root */
    size_t prefix;       /* bytes of it that lead to the mount, including the slash */
} ShmWalk;

/* fd is the directory that walk->path names, which is `length` bytes long; it is always closed. */
static int walk_directory(ShmWalk *walk, int fd, size_t length, unsigned depth)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        fd_close(fd);
        return -ENOMEM;
    }
    int r = 0;
    for (struct dirent *entry; r == 0 && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int n = snprintf(walk->path + length, sizeof walk->path - length, "/%s", entry->d_name);
        FileStat stat;
        if ((size_t)n >= sizeof walk->path - length || root_lstat(walk->root, walk->path, &stat) < 0 ||
            !device_equal(stat.device, walk->device))
            continue; /* gone meanwhile, or another mount */
        if (S_ISREG(stat.mode))
            r = walk->visit(walk->path + walk->prefix, &stat, walk->context);
        else if (S_ISDIR(stat.mode) && depth < SHM_DEPTH_MAX) {
            /* Every user may write here: the directory may have become a link by now. */
            int below = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (below >= 0)
                r = walk_directory(walk, below, length + (size_t)n, depth + 1);
        }
    }
    closedir(dir);
    return r;
}

int shmfs_visit(const Root *root, ShmVisit visit, void *context)
{
    ShmWalk walk = {.root = root, .visit = visit, .context = context};
    size_t length = strlen(shm_path(root, walk.path));
    walk.prefix = length + 1;
    FileStat stat;
    int r = root_stat(root, walk.path, &stat);
    if (r < 0)
        return r;
    walk.device = stat.device;
    int fd = root_openat(root, walk.path, O_RDONLY | O_DIRECTORY);
    return fd < 0 ? fd : walk_directory(&walk, fd, length, 0);
}
