/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory and CPU that the control group grants, version 1 or 2, along the whole path: the tightest
 * ancestor decides, and a container often shows only its own part of the path.
 */
#pragma once

#include "mounts.h"
#include "root.h"

typedef struct Cgroup {
    int version;          /* 0: no memory controller is visible */
    char path[512];       /* of this process, as /proc/PID/cgroup has it */
    char limited_by[512]; /* the group with the tightest memory limit; "" without a limit. A group above the
                             mounted part ends in "/..": its use is unknown */
    uint64_t memory_limit_bytes; /* U64_UNKNOWN: none */
    uint64_t memory_used_bytes;  /* of the limiting group (without a limit, of its own group); U64_UNKNOWN */
    uint64_t
        memory_reclaimable_bytes; /* inactive file pages in it, which the kernel drops first; 0 unknown */
    uint64_t memory_room_bytes;   /* the least that any group along the path has left after all file pages are
                                     dropped; U64_UNKNOWN: no limit, or none with a known use */
    uint64_t memory_shmem_bytes;  /* tmpfs and memfd pages in it; U64_UNKNOWN */
    uint64_t swap_limit_bytes;    /* U64_UNKNOWN: none */
    uint64_t oom_kills;           /* of the limiting group (version 1 counts a kill only in the victim's
                                     own: there summed from this process's group up to it); U64_UNKNOWN */
    double cpu_quota;             /* CPUs, the smallest along the path; 0: none */
    uint32_t cpuset_cpus;         /* 0: unknown */
} Cgroup;

/* One line of /proc/PID/cgroup: "4:memory:/a/b", "0::/x". -EBADMSG. */
typedef struct CgroupLine {
    uint32_t hierarchy;
    Text controllers; /* "memory", "cpu,cpuacct", "" for version 2, "name=systemd" */
    Text path;
} CgroupLine;
int cgroup_line_parse(Text line, CgroupLine *ret);

/* A limit file: a number of bytes or "max"; version 1's huge figure for "none" (PAGE_COUNTER_MAX) means no
 * limit, too. */
int cgroup_limit_parse(Text text, uint64_t *ret_bytes); /* U64_UNKNOWN: no limit. -EBADMSG */

/* "KEY NUMBER" lines, as in memory.stat and memory.events. -ENODATA: the key is missing. */
int cgroup_key_parse(Text text, const char *key, uint64_t *ret);

/* cpu.max: "200000 100000" → 2.0; "max 100000" → 0. -EBADMSG */
int cgroup_cpu_max_parse(Text text, double *ret_cpus);

/* -ENODATA if the process is in no group that we can see, or the error from /proc/PID/cgroup; ret->version is
 * 0 then, and ret is filled in anyway. */
int cgroup_read(const Root *root, int pid, const Mounts *mounts, Cgroup *ret); /* pid 0: this process */
