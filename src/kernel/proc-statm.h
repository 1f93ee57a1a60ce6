/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/statm: the cheapest sizes available. In pages there, in bytes here. */
#pragma once

#include "root.h"

typedef struct ProcStatm {
    uint64_t size_bytes;
    uint64_t resident_bytes;
    uint64_t shared_bytes; /* file and shmem pages */
} ProcStatm;

int proc_statm_parse(Text text, uint64_t page_bytes, ProcStatm *ret); /* -EBADMSG */
int proc_statm_read(const Root *root, int pid, ProcStatm *ret);
