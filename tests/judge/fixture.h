/* SPDX-License-Identifier: Apache-2.0 */
/* A machine in good health, to be spoilt by each test where it wants. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "survey.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

enum { FIXTURE_PROCESSES = 512, FIXTURE_SEGMENTS = 4096, FIXTURE_HOLDERS = 4 };

typedef struct Fixture {
    Survey survey;
    Arena arena;
    Process processes[FIXTURE_PROCESSES];
    Segment segments[FIXTURE_SEGMENTS];
    int holders[FIXTURE_SEGMENTS][FIXTURE_HOLDERS];
    char names[FIXTURE_SEGMENTS][64];
} Fixture;

static inline Fixture *fixture_new(void)
{
    Fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->survey.processes = f->processes;
    f->survey.segments = f->segments;
    f->survey.machine = (Machine){
        .memory = {.total_bytes = 64 * GIB,
                   .free_bytes = 40 * GIB,
                   .available_bytes = 48 * GIB,
                   .swap_total_bytes = 8 * GIB,
                   .swap_free_bytes = 8 * GIB},
        .shm = {.state = SHM_OK,
                .device = {0, 25},
                .size_bytes = 32 * GIB,
                .available_bytes = 32 * GIB,
                .inodes = 1000000,
                .inodes_free = 999000,
                .mounted = true},
        .cgroup = {.version = 2,
                   .memory_limit_bytes = U64_UNKNOWN,
                   .memory_used_bytes = 10 * GIB,
                   .memory_room_bytes = U64_UNKNOWN,
                   .memory_shmem_bytes = 0,
                   .swap_limit_bytes = U64_UNKNOWN},
        .limits = {.open_files_soft = 1024, .open_files_hard = 1048576},
        .max_map_count = 65530,
        .has_pressure = true,
        .sandbox = {.kind = ENVIRONMENT_BARE,
                    .initial_userns = true,
                    .initial_pidns = true,
                    .sees_all = true,
                    .user_namespaces = YES,
                    .memfd = true},
        .cpus_seen = 16,
        .cpus = 16,
        .has_disk = true,
        .disk = {.type = 0xEF53,
                 .size_bytes = 500 * GIB,
                 .free_bytes = 300 * GIB,
                 .available_bytes = 280 * GIB},
        .disk_path = "/home/ada/run",
        .realtime = 1700000000,
        .boottime = 500000,
        .uid = 1000,
    };
    return f;
}

static inline void fixture_free(Fixture *f)
{
    arena_free(&f->arena);
    free(f);
}

/* In rising order of pid, as the survey has them. */
static inline Process *fixture_process(Fixture *f, int pid, int ppid, Role role, int job)
{
    assert_true(f->survey.n_processes < FIXTURE_PROCESSES);
    Process *process = &f->processes[f->survey.n_processes++];
    *process = (Process){.pid = pid,
                         .ppid = ppid,
                         .role = role,
                         .start = role == ROLE_WORKER ? START_FORK : START_UNKNOWN,
                         .job = job,
                         .comm = "python3",
                         .command = TEXT("python3 train.py"),
                         .uid = 1000,
                         .rss_bytes = 400 * MIB,
                         .rss_shmem_bytes = 20 * MIB,
                         .pss_bytes = 100 * MIB,
                         .uss_bytes = 60 * MIB,
                         .fds = 25,
                         .threads = 4,
                         .open_files_soft = 1024,
                         .open_files_hard = 1048576,
                         .maps = 1700,
                         .torch = role != ROLE_OTHER,
                         .readable = true};
    return process;
}

/* A trainer and its workers, numbered after it. */
static inline Process *fixture_job(Fixture *f, int trainer, int workers)
{
    Process *process = fixture_process(f, trainer, 1, ROLE_TRAINER, trainer);
    for (int i = 1; i <= workers; i++)
        fixture_process(f, trainer + i, trainer, ROLE_WORKER, trainer);
    return process;
}

/* A file of /dev/shm without a name, held by one process (0: by nobody). */
static inline Segment *fixture_segment(Fixture *f, const char *name, SegmentKind kind, uint64_t bytes,
                                       int holder)
{
    size_t i = f->survey.n_segments++;
    assert_true(i < FIXTURE_SEGMENTS);
    snprintf(f->names[i], sizeof f->names[i], "%s", name);
    f->segments[i] = (Segment){.name = text_of(f->names[i]),
                               .device = {0, 25},
                               .inode = 1000 + i,
                               .size_bytes = bytes,
                               .allocated_bytes = bytes,
                               .deleted = holder != 0,
                               .on_mount = true,
                               .backing = BACKING_SHM,
                               .kind = kind,
                               .uid = 1000,
                               .mode = 0100600,
                               .changed = f->survey.machine.realtime - 3600,
                               .holders = f->holders[i]};
    if (holder)
        f->holders[i][f->segments[i].n_holders++] = holder;
    return &f->segments[i];
}

static inline void fixture_hold(Segment *segment, int pid)
{
    assert_true(segment->n_holders < FIXTURE_HOLDERS);
    segment->holders[segment->n_holders++] = pid;
}

/* A tensor that `maker` made and `holder` holds. */
static inline Segment *fixture_tensor(Fixture *f, int maker, uint64_t bytes, int holder)
{
    char name[64];
    snprintf(name, sizeof name, "torch_%d_12345_%zu", maker, f->survey.n_segments);
    Segment *segment = fixture_segment(f, name, KIND_TORCH, bytes, holder);
    f->survey.machine.shm.used_bytes += bytes;
    return segment;
}

/* A job whose workers have each made two batches of `bytes`. */
static inline void fixture_busy_job(Fixture *f, int trainer, int workers, uint64_t bytes)
{
    fixture_job(f, trainer, workers);
    for (int i = 1; i <= workers; i++)
        for (int j = 0; j < 2; j++)
            fixture_tensor(f, trainer + i, bytes, trainer + i);
}
