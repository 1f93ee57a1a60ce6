/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was seen over time: the figures of a job and of each of its processes, and what happened to them. A
 * sampler (sampler.h) takes moments; a history is many of them in memory; a recording (store/recording.h) is
 * many of them in a file. Nothing here judges.
 *
 * A figure that was not read in a moment is U64_UNKNOWN there: costly figures are read in turns.
 */
#pragma once

#include "sites.h"
#include "survey.h"

/* Of one process. In bytes, except where noted. */
typedef enum ProcessMetric {
    PROCESS_ANON,  /* resident: heap, stack, and the pages that it has shared with its parent since fork */
    PROCESS_FILE,  /* resident: file pages, which the kernel can read again */
    PROCESS_SHMEM, /* resident: shared memory that it has mapped and touched */
    PROCESS_SWAP,
    PROCESS_PSS,      /* read in turns, like the next four */
    PROCESS_USS,      /* resident and private: what would become free if the process ended */
    PROCESS_SHM,      /* allocated bytes of the segments that it holds */
    PROCESS_SEGMENTS, /* how many it holds; a number */
    PROCESS_MAPS,     /* a number */
    PROCESS_FDS,      /* a number; before Linux 6.2 in turns */
    PROCESS_THREADS,
    PROCESS_MINOR_FAULTS, /* since it started, like the next four */
    PROCESS_MAJOR_FAULTS,
    PROCESS_CPU_MSEC,
    PROCESS_CPU_WAIT_MSEC,    /* its main thread was ready to run, and no CPU was free for it */
    PROCESS_LOADER_WAIT_MSEC, /* of a trainer with the guard's lane: its main thread waited for a batch */
    PROCESS_METRICS,
} ProcessMetric;

/* Of the job, its machine, and its control group. In bytes, except where noted. */
typedef enum JobMetric {
    JOB_MEMORY_TOTAL,
    JOB_MEMORY_AVAILABLE,
    JOB_SWAP_FREE,
    JOB_GROUP_LIMIT, /* of the tightest control group above; unknown: none */
    JOB_GROUP_USED,  /* of that group */
    JOB_GROUP_FILE,  /* of that, file pages that can be dropped */
    JOB_OOM_KILLS,   /* in that group, or without one on the machine since boot; a number */
    JOB_SHM_SIZE,
    JOB_SHM_USED,
    JOB_GUARD_BYTES,   /* in the guard's segments; unknown without a guard, like all of these */
    JOB_GUARD_BUDGET,  /* unknown: no limit */
    JOB_GUARD_CREATED, /* segments, since the start; a number, like the next four */
    JOB_GUARD_REUSED,
    JOB_GUARD_WAITING, /* now */
    JOB_GUARD_WAITS,   /* since the start */
    JOB_GUARD_REFUSED,
    JOB_GUARD_FROZEN,      /* bytes of datasets made immortal, since the start */
    JOB_GUARD_WAITED_MSEC, /* in which at least one request waited, since the start */
    JOB_DISK_WAIT_MSEC,    /* in which at least one task of the machine waited for a disk, since boot */
    JOB_KIND_BYTES,        /* allocated in segments that the job holds, by kind; read in turns */
    JOB_METRICS = JOB_KIND_BYTES + SEGMENT_KINDS,
} JobMetric;

typedef enum EventKind {
    EVENT_BORN,  /* a process; those that were there from the start have none */
    EVENT_ENDED, /* text: how, if known */
    EVENT_OOM_KILL,
    EVENT_ATTEMPT, /* text: which */
    EVENT_MARK,    /* text: what the user wants to find again, such as "epoch 3" */
    EVENT_EPOCH,   /* judged (judge/verdicts/epochs.h), never recorded; text: which, and how that is known */
    EVENT_KINDS,
} EventKind;

typedef struct Event {
    double seconds;
    EventKind kind;
    int pid;       /* 0: the job */
    Role role;     /* of pid */
    char text[96]; /* UTF-8; may be empty */
} Event;

/* In order of time. */
typedef struct EventList {
    const Event *items;
    size_t n;
} EventList;

enum { RANK_UNKNOWN = -1 };

/* What the launcher and the scheduler call the job and its place. A text is "" if it is not known. */
typedef struct JobPlace {
    char job[64];
    char node[64];
    int node_number; /* RANK_UNKNOWN */
    int rank;        /* of the whole job, which is a rank of a larger one; RANK_UNKNOWN */
    int ranks;       /* of the larger one, in all; 0 unknown */
    int attempt;     /* of the launcher, from 1 on; 0 unknown */
} JobPlace;

#define JOB_PLACE_UNKNOWN ((JobPlace){.node_number = RANK_UNKNOWN, .rank = RANK_UNKNOWN})

/* One process at one time. */
typedef struct ProcessMoment {
    int pid;
    int ppid;
    uint64_t start_ticks; /* with the pid it identifies one process */
    double started;       /* seconds since 1970 */
    Role role;            /* may become known some time after the process is first seen */
    StartMethod start;    /* of workers */
    int job;              /* the trainer's pid; 0: none */
    char comm[COMM_MAX];
    const char *command; /* as command_read has it; valid until the sampler's next look */
    int rank;            /* of a trainer, as its launcher has it; RANK_UNKNOWN */
    int attempt;         /* of that launcher, from 1 on; 0 unknown */
    uint64_t values[PROCESS_METRICS];

    /* Only a sampler fills these in; they are not recorded. */
    uint32_t uid;          /* effective */
    bool torch;            /* PyTorch was found in it */
    uint32_t loaders;      /* its DataLoader workers that are threads */
    uint64_t command_hash; /* a change means that it runs another program now; 0 unknown */
    uint64_t rss_bytes;    /* these two as in ProcStatus */
    uint64_t rss_peak_bytes;
} ProcessMoment;

typedef struct Moment {
    double seconds; /* since the sampler's first look; of a monotonic clock */
    uint64_t values[JOB_METRICS];
    const ProcessMoment *processes; /* in rising order of pid */
    size_t n_processes;
    size_t n_unlisted;   /* processes beyond the most that are looked at */
    const Event *events; /* since the moment before */
    size_t n_events;
} Moment;

/* Figures over time: seconds[i] rises, and values[metric][i] belongs to it. */
typedef struct Series {
    size_t n;
    size_t capacity;
    size_t n_metrics;
    double *seconds;
    uint64_t **values;
} Series;

typedef struct ProcessTrack {
    ProcessMoment last; /* its command lives as long as the history */
    double first_seconds;
    double ended_seconds; /* of the first moment without it; INFINITY: it was there at the end */
    Series series;        /* of PROCESS_METRICS */
    size_t older;         /* the next track of the same bucket, plus one; 0: none */
} ProcessTrack;

typedef struct History {
    double began;    /* seconds since 1970, of second 0 */
    double interval; /* requested seconds between two moments */
    char *command;   /* of the job; "" for a machine */
    int pid;         /* of the job's first process; 0 for a machine */
    JobPlace place;
    uint64_t open_files;  /* the soft limit of the trainer, which its workers inherit; 0 unknown */
    Series series;        /* of JOB_METRICS */
    ProcessTrack *tracks; /* in the order in which they were first seen */
    size_t n_tracks;
    size_t tracks_capacity;
    Event *events; /* in order of time */
    size_t n_events;
    size_t events_capacity;
    SiteWindow *windows; /* of the search for the line that leaks, in order of time */
    size_t n_windows;
    size_t windows_capacity;
    size_t *buckets; /* by pid: the newest track there, plus one; 0: none */
    size_t n_buckets;
    size_t *live; /* the tracks that have not ended */
    size_t n_live;
    size_t live_capacity;
} History;

/* `command` is copied. -ENOMEM. */
int history_init(History *history, const char *command, int pid, double began, double interval);
void history_free(History *history);
#define _cleanup_history_ _cleanup_(history_free)

/* Adds a moment later than all others. What it points to is copied. -ENOMEM: part of it may have been added.
 */
int history_add(History *history, const Moment *moment);
int history_add_event(History *history, const Event *event); /* no earlier than the others */

int history_add_site_window(History *history, const SiteWindow *window);

/* Drops what is older, for histories that run for days. Processes that ended before that time are dropped,
 * too. It is cheap enough to call after each moment: figures may stay until a quarter of a series is too old.
 * Pointers to tracks are invalid afterwards. */
void history_forget(History *history, double before_seconds);

/* The newest of that pid; NULL. */
const ProcessTrack *history_track(const History *history, int pid);

/* "anon", "shm_used", "segments_torch", …: the columns of a recording, the names in JSON. */
const char *process_metric_name(ProcessMetric metric);
const char *job_metric_name(JobMetric metric);
const char *event_kind_name(EventKind kind);
