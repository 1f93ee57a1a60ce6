/* SPDX-License-Identifier: Apache-2.0 */
/* A tree in a temporary directory that is read like a captured one. Write the files first, then open it. */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "root.h"

typedef struct TempRoot {
    char path[64];
    Root root;
} TempRoot;

static inline TempRoot temp_root_make(void)
{
    TempRoot temp = {.path = "/tmp/shmguard-test-XXXXXX", .root = ROOT_NONE};
    assert_non_null(mkdtemp(temp.path));
    return temp;
}

/* Fills `full` with the file's path on disk, and creates the folders above it. */
static inline void temp_root_place(const TempRoot *temp, const char *path, char full[static 512])
{
    assert_true(snprintf(full, 512, "%s/%s", temp->path, path) < 512);
    for (char *slash = full + strlen(temp->path); (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
}

static inline void temp_root_write(const TempRoot *temp, const char *path, const char *text)
{
    char full[512];
    temp_root_place(temp, path, full);
    int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static inline void temp_root_link(const TempRoot *temp, const char *target, const char *path)
{
    char full[512];
    temp_root_place(temp, path, full);
    assert_int_equal(symlink(target, full), 0);
}

static inline const Root *temp_root_open(TempRoot *temp)
{
    assert_int_equal(root_open(temp->path, &temp->root), 0);
    return &temp->root;
}

static inline int temp_root_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void temp_root_free(TempRoot *temp)
{
    root_close(&temp->root);
    nftw(temp->path, temp_root_remove, 16, FTW_DEPTH | FTW_PHYS);
}
