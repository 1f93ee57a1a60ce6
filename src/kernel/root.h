/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the readers read: the running machine ("/"), or a tree that scripts/capture-root took from one.
 *
 * Some answers of a live machine are not file contents: the stat of what a descriptor points to, the statfs
 * of a mount, a few environment variables, the time. The capture writes them to files under ".capture/" in
 * the tree, and the functions below answer from there, so that no reader knows which kind of root it has.
 *
 *   .capture/stat     PATH DEV INO MODE NLINK UID SIZE BLOCKS MTIME CTIME
 *                     (one line per path; PATH octal-escaped as in mountinfo; DEV "MAJOR:MINOR"; MODE octal;
 *                     BLOCKS of 512 bytes; times in seconds)
 *   .capture/open     PATH 0|1: whether a process had that file in /dev/shm open, if the kernel told
 *   .capture/statfs   PATH TYPE BSIZE BLOCKS BFREE BAVAIL FILES FFREE
 *                     (one line per path; TYPE hexadecimal)
 *   .capture/env      NAME=VALUE, only of the names that sandbox.c asks for
 *   .capture/clock    REALTIME_SECONDS BOOTTIME_SECONDS
 *   .capture/ids      UID
 *   .capture/tried    NAME 0|1: what sandbox.c finds out by trying ("user_namespaces", "memfd")
 *
 * Paths are relative to the root, without a leading slash: "proc/meminfo".
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "buffer.h"
#include "text.h"

typedef struct Device {
    uint32_t major;
    uint32_t minor;
} Device;

static inline bool device_equal(Device a, Device b)
{
    return a.major == b.major && a.minor == b.minor;
}

/* "MAJOR:MINOR", decimal in mountinfo, hexadecimal in maps. -EBADMSG. */
int device_numbers_parse(Text a, unsigned base, Device *ret);

typedef struct FileStat {
    Device device;
    uint64_t inode;
    uint32_t mode;
    uint32_t nlink;
    uint32_t uid;
    uint64_t size_bytes;
    uint64_t allocated_bytes;
    double changed; /* the later of mtime and ctime, in seconds since 1970 */
} FileStat;

struct stat;
FileStat file_stat_of(const struct stat *st);

typedef struct FsStat {
    uint32_t type; /* the magic number, as TMPFS_MAGIC */
    uint64_t size_bytes;
    uint64_t free_bytes;
    uint64_t available_bytes; /* to users without privileges */
    uint64_t inodes;          /* 0: the file system has no limit */
    uint64_t inodes_free;
} FsStat;

typedef struct Root {
    int fd;
    bool live;
    Arena arena;                /* what a captured tree's tables live in */
    struct CapturedStat *stats; /* sorted by path */
    size_t n_stats;
    struct CapturedFs *filesystems;
    size_t n_filesystems;
    Text environment;
    double realtime;
    double boottime;
    uint32_t uid;
} Root;

/* Not before root_open has succeeded. */
#define _cleanup_root_ _cleanup_(root_close)
#define ROOT_NONE      ((Root){.fd = -EBADF})

/* NULL or "/" is the live machine. -ENOENT, -ENOTDIR, or -EINVAL: the directory has no proc, so it is not a
 * captured tree. */
int root_open(const char *path, Root *ret);
void root_close(Root *root);

/* open() below the root, close-on-exec. Links in a captured tree do not lead outside. Negative errno. */
int root_openat(const Root *root, const char *path, int flags);

/* Replaces buffer's content with the file's first `limit` bytes. */
enum { ROOT_FILE_MAX = 16 * 1024 * 1024 };
int root_read(const Root *root, const char *path, size_t limit, Buffer *buffer);

/* The target of a symbolic link, truncated to size - 1 bytes. Returns its length or negative errno. */
ssize_t root_link(const Root *root, const char *path, char *buf, size_t size);

bool root_exists(const Root *root, const char *path);

/* Follows links, including the magic ones of proc/PID/fd. */
int root_stat(const Root *root, const char *path, FileStat *ret);

/* Does not follow a link at the end of the path. (A captured tree has one answer for both.) */
int root_lstat(const Root *root, const char *path, FileStat *ret);
int root_statfs(const Root *root, const char *path, FsStat *ret);

/* For captured trees: 1 if a process had the file open, 0 if none had, -ENODATA if that is unknown. */
int root_captured_open(const Root *root, const char *path);

/* A directory to list, or NULL with errno. closedir() it. */
DIR *root_list(const Root *root, const char *path);

/* The variable of this process, or of the one that captured the tree. False: it is not set. */
bool root_environment(const Root *root, const char *name, Text *ret_value);

double root_realtime(const Root *root); /* seconds since 1970 */
double root_boottime(const Root *root); /* seconds since boot, suspended time included */
uint32_t root_uid(const Root *root);    /* the effective user id */

/* capture_*_parse: one line of .capture/stat and .capture/statfs. ret_path points into out_path (n bytes are
 * enough). */
int capture_stat_parse(Text line, char *out_path, Text *ret_path, FileStat *ret);
int capture_statfs_parse(Text line, char *out_path, Text *ret_path, FsStat *ret);
