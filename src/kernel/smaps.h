/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/PID/smaps_rollup and /proc/PID/smaps: memory divided among its users. Costly: the kernel walks the
 * page tables (about 1 ms for a PyTorch process), so read it rarely.
 */
#pragma once

#include "maps.h"
#include "root.h"

typedef struct Smaps {
    uint64_t rss_bytes;
    uint64_t pss_bytes;
    uint64_t pss_shmem_bytes; /* U64_UNKNOWN in smaps, and before Linux 5.8 */
    uint64_t private_bytes; /* clean and dirty, including hugetlb: what would become free if the process ended
                               (USS) */
    uint64_t swap_bytes;
} Smaps;

/* smaps_rollup. -EBADMSG: Rss or Pss is missing. */
int smaps_rollup_parse(Text text, Smaps *ret);
int smaps_rollup_read(const Root *root, int pid, Smaps *ret); /* before 4.14: summed from smaps */

/* smaps, one mapping after another. Takes the next one off *rest; false at the end. Lines that make no sense
 * are skipped. */
bool smaps_next(Text *rest, MapEntry *ret_entry, Smaps *ret_sizes);
int smaps_read(const Root *root, int pid, Buffer *buffer);
