/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"
#include "proc-path.h"
#include "proc-status.h"
#include "vmstat.h"

/* Affinity, cpuset and quota each restrict; the smallest one applies. 0 means "unknown" in all of them. */
static double cpus_granted(uint32_t affinity, const Cgroup *cgroup)
{
    double cpus = affinity;
    if (cgroup->cpuset_cpus > 0 && (cpus == 0 || cgroup->cpuset_cpus < cpus))
        cpus = cgroup->cpuset_cpus;
    if (cgroup->cpu_quota > 0 && (cpus == 0 || cgroup->cpu_quota < cpus))
        cpus = cgroup->cpu_quota;
    return cpus;
}

static int read_disk(const Root *root, int pid, Arena *arena, Machine *machine)
{
    const char *path = PROC_PATH(pid, "cwd");
    char target[4096];
    if (root_statfs(root, path, &machine->disk) < 0)
        return 0;
    ssize_t n = root_link(root, path, target, sizeof target);
    machine->has_disk = true;
    machine->disk_path = arena_copy(arena, n < 0 ? "." : target, n < 0 ? 1 : (size_t)n);
    return machine->disk_path ? 0 : -ENOMEM;
}

int machine_read(const Root *root, int pid, unsigned parts, Arena *arena, Machine *ret)
{
    Machine machine = {
        .max_map_count = U64_UNKNOWN,
        .oom_kills = U64_UNKNOWN,
        .kills_error = -ENODATA,
        .realtime = root_realtime(root),
        .boottime = root_boottime(root),
        .uid = root_uid(root),
    };
    /* Without meminfo there is no usable proc; nothing below is required. */
    int r = meminfo_read(root, &machine.memory);
    if (r < 0)
        return r;

    /* The mounts are our own even for another process: /dev/shm is examined from here. */
    Mounts mounts = {0};
    if (mounts_read(root, 0, arena, &mounts) == -ENOMEM)
        return -ENOMEM;
    shmfs_read(root, &mounts, &machine.shm);
    cgroup_read(root, pid, &mounts, &machine.cgroup);
    if (rlimits_read(root, pid, &machine.limits) < 0)
        machine.limits = (RLimits){U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN};
    sysctl_read(root, "vm/max_map_count", &machine.max_map_count);
    vmstat_read_oom_kills(root, &machine.oom_kills);
    machine.has_pressure = pressure_read(root, "memory", &machine.pressure) >= 0;

    ProcStatus self = {0};
    proc_status_read(root, 0, &self);
    sandbox_read(root, &mounts, &self, &machine.sandbox);
    machine.shm.owner =
        shm_owner_find(&mounts, machine.sandbox.kind == ENVIRONMENT_KUBERNETES, machine.sandbox.slurm);
    if (parts & MACHINE_NAMESPACES)
        machine.sandbox.user_namespaces = user_namespaces_try(root) ? YES : NO;

    ProcStatus job = self;
    if (pid > 0)
        proc_status_read(root, pid, &job);
    machine.cpus_seen = job.cpus_allowed;
    machine.cpus = cpus_granted(job.cpus_allowed, &machine.cgroup);

    if (parts & MACHINE_KERNEL_LOG)
        machine.kills_error = kmsg_read(root, arena, &machine.kills);
    if (machine.kills_error == -ENOMEM)
        return -ENOMEM;
    r = read_disk(root, pid, arena, &machine);
    if (r < 0)
        return r;
    *ret = machine;
    return 0;
}

uint64_t memory_room_bytes(const Machine *machine)
{
    /* A limit whose use is unknown is still a bound; unknown is the largest number. */
    uint64_t group = MIN(machine->cgroup.memory_room_bytes, machine->cgroup.memory_limit_bytes);
    return MIN(machine->memory.available_bytes, group);
}
