/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "fds.h"
#include "proc-path.h"

void fd_target_parse(Text link, FdEntry *ret)
{
    static const char mark[] = " (deleted)";
    ret->deleted = text_ends(link, mark);
    ret->target = (Text){link.data, link.size - (ret->deleted ? sizeof mark - 1 : 0)};
}

static int fd_number_parse(Text name, int *ret)
{
    uint64_t value = 0;
    if (text_u64(name, 10, &value) < 0 || value > INT32_MAX)
        return -EINVAL;
    *ret = (int)value;
    return 0;
}

static int directory_visit(DIR *directory, FdVisit visit, void *context, uint32_t *ret_count)
{
    uint32_t count = 0;
    for (;;) {
        char link[PATH_MAX];
        FdEntry entry;
        errno = 0;
        const struct dirent *item = readdir(directory);
        if (!item && errno != 0)
            return -errno;
        if (!item)
            break;
        if (fd_number_parse(text_of(item->d_name), &entry.fd) < 0)
            continue;
        ssize_t n = readlinkat(dirfd(directory), item->d_name, link, sizeof link);
        if (n < 0 && errno == ENAMETOOLONG)
            n = 0; /* it is open nevertheless */
        if (n < 0 && (errno == EACCES || errno == EPERM))
            return -errno;
        if (n < 0)
            continue; /* closed meanwhile, or not a link */
        count++;
        fd_target_parse((Text){link, (size_t)n}, &entry);
        int r = visit(&entry, context);
        if (r != 0)
            return r;
    }
    if (ret_count)
        *ret_count = count;
    return 0;
}

int fds_visit(const Root *root, int pid, FdVisit visit, void *context, uint32_t *ret_count)
{
    DIR *directory = root_list(root, PROC_PATH(pid, "fd"));
    if (!directory)
        return -errno;
    int r = directory_visit(directory, visit, context, ret_count);
    closedir(directory);
    return r;
}

int fds_count_quick(const Root *root, int pid, uint64_t *ret)
{
    FileStat stat;
    int r = root->live ? root_stat(root, PROC_PATH(pid, "fd"), &stat) : -EOPNOTSUPP;
    if (r < 0)
        return r;
    if (stat.size_bytes == 0)
        return -EOPNOTSUPP;
    *ret = stat.size_bytes;
    return 0;
}

int fds_count(const Root *root, int pid, uint64_t *ret)
{
    if (fds_count_quick(root, pid, ret) == 0)
        return 0;
    DIR *directory = root_list(root, PROC_PATH(pid, "fd"));
    if (!directory)
        return -errno;
    uint64_t count = 0;
    errno = 0;
    for (const struct dirent *item; (item = readdir(directory));) {
        int fd = 0;
        count += fd_number_parse(text_of(item->d_name), &fd) == 0;
    }
    int r = -errno;
    closedir(directory);
    if (r == 0)
        *ret = count;
    return r;
}

int fd_stat(const Root *root, int pid, int fd, FileStat *ret)
{
    char name[PROC_PATH_MAX];
    snprintf(name, sizeof name, "fd/%d", fd);
    return root_stat(root, PROC_PATH(pid, name), ret);
}
