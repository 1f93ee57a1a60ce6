/* SPDX-License-Identifier: Apache-2.0 */
/* Limits: of a process (/proc/PID/limits) and of the machine (sysctls). */
#pragma once

#include "root.h"

typedef struct RLimits {
    uint64_t open_files_soft; /* U64_UNKNOWN - 1 and below are figures; "unlimited" is RLIMIT_UNLIMITED */
    uint64_t open_files_hard;
    uint64_t address_space_soft;
    uint64_t locked_soft;
} RLimits;

#define RLIMIT_UNLIMITED (U64_UNKNOWN - 1)

/* -EBADMSG: "Max open files" is missing. */
int rlimits_parse(Text text, RLimits *ret);
int rlimits_read(const Root *root, int pid, RLimits *ret); /* pid 0: this process */

/* A sysctl with one number, such as "vm/max_map_count". -ENOENT, or -EBADMSG if it is not a number. */
int sysctl_read(const Root *root, const char *name, uint64_t *ret);
