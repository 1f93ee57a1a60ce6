/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the names of shared memory mean: from "/torch_…" and "/psm_…" to the descriptor that a process gets
 * when it asks for the name. Made for tens of thousands of names that come and go with every batch.
 *
 * A descriptor here refers to the handed-out description (guard.h), which carries the lock that says "in
 * use": it is closed when the name is removed, and not before.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Name {
    char *text; /* NULL: the slot is empty */
    uint64_t hash;
    int fd;
    bool counted; /* as a segment, which counts its bytes already */
} Name;

/* {0} is an empty table. */
typedef struct Names {
    Name *slots;
    size_t n;
    size_t capacity; /* 0 or a power of two, never more than three quarters full */
} Names;

void names_free(Names *names);

/* The descriptor, still the table's, or -ENOENT. */
int names_find(const Names *names, const char *name);

/* The name means fd from now on; its old meaning is closed. Takes fd, unless it returns -ENOMEM. */
int names_put(Names *names, const char *name, int fd, bool counted);

/* Closes the name's descriptor. -ENOENT. */
int names_remove(Names *names, const char *name);
