/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/mountinfo. */
#pragma once

#include "root.h"

typedef struct Mount {
    uint32_t id;
    uint32_t parent; /* the id of the mount that it is mounted on */
    Device device;
    char *mount_point; /* unescaped */
    char *type;        /* "tmpfs" */
    char *source;
    char *options;       /* of the mount point: "rw,nosuid" */
    char *super_options; /* of the file system: "rw,size=65536k,nr_inodes=1000" */
    char *root;          /* the part of the file system that is mounted: "/" except for a bind mount */
} Mount;

typedef struct Mounts {
    Mount *items;
    size_t n;
    size_t capacity;
} Mounts;

int mounts_parse(Text text, Arena *arena, Mounts *ret); /* lines that make no sense are skipped */
int mounts_read(const Root *root, int pid, Arena *arena, Mounts *ret); /* pid 0: this process */

/* The topmost mount at exactly this path; NULL: none. */
const Mount *mounts_at(const Mounts *mounts, const char *path);

/* An option of a comma-separated list: true for "size" in "rw,size=64k", with ret_value "64k" ("" for a bare
 * word). */
bool mount_option(const char *options, const char *name, Text *ret_value);
