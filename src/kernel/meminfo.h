/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/meminfo: the machine's memory. */
#pragma once

#include "root.h"

typedef struct MemInfo {
    uint64_t total_bytes;
    uint64_t free_bytes;
    uint64_t available_bytes; /* estimated by the kernel; before 3.14 taken as free + cached */
    uint64_t cached_bytes;
    uint64_t shmem_bytes; /* tmpfs, memfd, SysV and shared anonymous pages of the whole machine */
    uint64_t swap_total_bytes;
    uint64_t swap_free_bytes;
} MemInfo;

/* -EBADMSG: MemTotal is missing; other missing figures are U64_UNKNOWN. */
int meminfo_parse(Text text, MemInfo *ret);
int meminfo_read(const Root *root, MemInfo *ret);
