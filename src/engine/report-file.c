/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report-file.h"

enum { BESIDE_MAX = 40 };

/* Creates a new file in the directory, and returns its name in `name`. */
static int beside_open(int directory, char name[static BESIDE_MAX])
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -EIO;
    snprintf(name, BESIDE_MAX, ".shmguard-%016llx", (unsigned long long)random);
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return fd < 0 ? -errno : fd;
}

static int direct_open(const char *path, ReportFile *ret)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe may have no reader yet */
    if (fd < 0)
        return -errno;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    *ret = REPORT_FILE_NONE;
    ret->direct = fd;
    return 0;
}

static int place_open(const char *path, ReportFile *ret)
{
    char parent[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash + 1 - path) : 0;
    if (path[n] == '\0')
        return -EISDIR;
    if (n >= sizeof parent)
        return -ENAMETOOLONG;
    if (n > 0) {
        memcpy(parent, path, n);
        parent[n] = '\0';
    }
    _cleanup_close_ int directory = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    char beside[BESIDE_MAX];
    int fd = beside_open(directory, beside);
    if (fd < 0)
        return fd;
    fd_close(fd);
    unlinkat(directory, beside, 0);
    char *name = strdup(path + n);
    if (!name)
        return -ENOMEM;
    *ret = (ReportFile){.directory = TAKE_FD(directory), .direct = -EBADF, .name = name};
    return 0;
}

int report_file_open(const char *path, ReportFile *ret)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT ? place_open(path, ret) : -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return direct_open(path, ret);
    if (access(path, W_OK) < 0)
        return -errno;
    char real[PATH_MAX];
    return realpath(path, real) ? place_open(real, ret)
                                : -errno; /* replaces the target of a link, not the link */
}

void report_file_close(ReportFile *file)
{
    fd_close(file->directory);
    fd_close(file->direct);
    free(file->name);
    *file = REPORT_FILE_NONE;
}

static int stream_fill(int fd, bool keep, int (*fill)(FILE *out, const void *context), const void *context)
{
    FILE *out = fdopen(fd, "w");
    if (!out) {
        fd_close(fd);
        return -ENOMEM;
    }
    int r = fill(out, context);
    errno = EIO;
    if (r >= 0 && (fflush(out) != 0 || ferror(out) || (keep && fsync(fd) < 0)))
        r = -errno;
    if (fclose(out) != 0 && r >= 0)
        r = -errno;
    return r;
}

int report_file_write(const ReportFile *file, int (*fill)(FILE *out, const void *context),
                      const void *context)
{
    if (file->direct >= 0) {
        int fd = fcntl(file->direct, F_DUPFD_CLOEXEC, 0);
        return fd < 0 ? -errno : stream_fill(fd, false, fill, context);
    }
    char beside[BESIDE_MAX];
    int fd = beside_open(file->directory, beside);
    if (fd < 0)
        return fd;
    int r = stream_fill(fd, !file->fleeting, fill, context);
    if (r >= 0 && renameat(file->directory, beside, file->directory, file->name) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(file->directory, beside, 0);
    return r;
}
