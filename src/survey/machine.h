/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as one job sees it: memory, /dev/shm, its control group, limits, rights, and the kills of the
 * OOM killer. */
#pragma once

#include "cgroup.h"
#include "kmsg.h"
#include "meminfo.h"
#include "mounts.h"
#include "pressure.h"
#include "rlimits.h"
#include "root.h"
#include "sandbox.h"
#include "shmfs.h"

typedef struct Machine {
    MemInfo memory;
    ShmMount shm;
    Cgroup cgroup;          /* of the given job, or of this process */
    RLimits limits;         /* of the same process */
    uint64_t max_map_count; /* U64_UNKNOWN */
    uint64_t oom_kills;     /* since boot; U64_UNKNOWN */
    bool has_pressure;
    Pressure pressure;
    Sandbox sandbox;
    OomKills kills;     /* from the kernel log */
    int kills_error;    /* 0, or why the log could not be read; -ENODATA: it was not asked for */
    uint32_t cpus_seen; /* that the scheduler may use (affinity); 0 unknown */
    double cpus;        /* granted: affinity, cpuset and quota together; 0 unknown */
    bool has_disk;
    FsStat disk; /* the file system of the job's working directory: where checkpoints go */
    const char *disk_path;
    double realtime;
    double boottime;
    uint32_t uid;
} Machine;

/* What few commands need, and what is not free: a child that tries namespaces, and the whole kernel log,
 * which is a megabyte of text that we may not be permitted to read. */
typedef enum MachineParts {
    MACHINE_NAMESPACES = 1 << 0, /* sandbox.user_namespaces */
    MACHINE_KERNEL_LOG = 1 << 1, /* kills and kills_error */
} MachineParts;

/* pid 0: as this process sees it. Whatever else is missing is unknown in ret. -ENOENT: there is no proc. */
int machine_read(const Root *root, int pid, unsigned parts, Arena *arena, Machine *ret);

/* What a job that starts now may use: what the machine has available, or what a control group above us has
 * left, whichever is less. U64_UNKNOWN. */
uint64_t memory_room_bytes(const Machine *machine);
