/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the search for the line that leaks has found in a run, for `shmguard where` and `shmguard watch`. It
 * is published as the figures are (shared-stats.h), in a memfd of its own.
 */
#pragma once

#include "root.h"
#include "sites.h"

typedef struct SharedSites {
    uint32_t asked;   /* times that the search was asked for */
    uint32_t rounds;  /* of these, the last one that was answered */
    char failed[200]; /* why a process could not look; "" */
    SiteWindow *windows;
    size_t n;
} SharedSites;

int shared_sites_make(void); /* a descriptor, or negative errno */
void shared_sites_write(int fd, const SharedSites *sites);

/* As shared_stats_find. */
int shared_sites_find(const Root *root, int pid);

/* As shared_stats_read. ret->windows is the caller's, by free(). -ENOMEM. */
int shared_sites_read(const Root *root, int pid, int number, SharedSites *ret);
