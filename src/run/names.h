/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What names of shared memory mean: "/torch_…" and "/psm_…" to the descriptor that whoever asks for the name
 * is given. Made for tens of thousands of names that come and go with every batch.
 *
 * A descriptor here is one of the handed-out description (guard.h), which carries the lock that says "in
 * use": it is closed when the name goes, and not before.
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

/* The name means fd from now on; what it meant before is closed. Takes fd, unless it returns -ENOMEM. */
int names_put(Names *names, const char *name, int fd, bool counted);

/* Closes what the name means. -ENOENT. */
int names_remove(Names *names, const char *name);
