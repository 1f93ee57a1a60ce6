/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fds.h"
#include "mapped-file.h"
#include "proc-path.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20 /* Linux 5.12 */
#endif

static int stat_at_hand(int directory, const char *path, FileStat *ret)
{
    struct statx st;
    if (statx(directory, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | AT_EMPTY_PATH, STATX_BASIC_STATS, &st) <
        0)
        return -errno;
    *ret = (FileStat){
        .device = {st.stx_dev_major, st.stx_dev_minor},
        .inode = st.stx_ino,
        .mode = st.stx_mode,
        .nlink = st.stx_nlink,
        .uid = st.stx_uid,
        .size_bytes = st.stx_size,
        .allocated_bytes = st.stx_blocks * 512,
        .changed = (double)MAX(st.stx_mtime.tv_sec, st.stx_ctime.tv_sec),
    };
    return 0;
}

static int link_stat(const Root *root, const char *path, FileStat *ret)
{
    return root->live ? stat_at_hand(root->fd, path, ret) : root_stat(root, path, ret);
}

/* For files of overlayfs and btrfs, maps shows the underlying device, and stat an anonymous one. */
static bool is_mapped(const FileStat *stat, const MapEntry *entry)
{
    return stat->inode == entry->inode &&
           (device_equal(stat->device, entry->device) || stat->device.major == 0);
}

/* The directories of a mapped file are in the kernel's cache, and the answer must come from there. */
static int path_stat(const Root *root, int pid, const MapEntry *entry, FileStat *ret)
{
    if (!root->live || entry->deleted || !text_starts(entry->path, "/") || entry->path.size >= PATH_MAX)
        return -ENODATA;
    char path[PATH_MAX];
    memcpy(path, entry->path.data, entry->path.size);
    path[entry->path.size] = '\0';
    _cleanup_close_ int top = root_openat(root, PROC_PATH(pid, "root"), O_PATH | O_DIRECTORY);
    if (top < 0)
        return top;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_CACHED};
    _cleanup_close_ int fd = (int)syscall(SYS_openat2, top, path, &how, sizeof how);
    FileStat stat = {0};
    if (fd < 0 || stat_at_hand(fd, "", &stat) < 0 || !is_mapped(&stat, entry))
        return -ENODATA;
    *ret = stat;
    return 0;
}

typedef struct DescriptorSearch {
    const Root *root;
    int pid;
    const MapEntry *entry;
    unsigned left; /* a process may have a million descriptors, and a process waits for our answer */
    FileStat *found;
} DescriptorSearch;

static int visit_descriptor(const FdEntry *fd, void *context)
{
    DescriptorSearch *search = context;
    if (search->left-- == 0)
        return -ENODATA;
    if (!text_starts(fd->target, "/")) /* a pipe, a socket */
        return 0;
    char name[PROC_PATH_MAX];
    FileStat stat = {0};
    snprintf(name, sizeof name, "fd/%d", fd->fd);
    if (link_stat(search->root, PROC_PATH(search->pid, name), &stat) < 0 || !is_mapped(&stat, search->entry))
        return 0;
    *search->found = stat;
    return 1;
}

int mapped_file_stat(const Root *root, int pid, const MapEntry *entry, FileStat *ret)
{
    char name[PROC_PATH_MAX];
    snprintf(name, sizeof name, "map_files/%llx-%llx", (unsigned long long)entry->start,
             (unsigned long long)entry->end);
    if (link_stat(root, PROC_PATH(pid, name), ret) == 0 || path_stat(root, pid, entry, ret) == 0)
        return 0;
    DescriptorSearch search = {.root = root, .pid = pid, .entry = entry, .left = 4096, .found = ret};
    return fds_visit(root, pid, visit_descriptor, &search, NULL) > 0 ? 0 : -ENODATA;
}
