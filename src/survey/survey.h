/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is there: training processes with their roles, and the segments of shared memory with their holders.
 *
 * Process: one of the machine's processes, with its role:
 *
 *   - trainer: has PyTorch loaded and is neither of the following (torchrun's ranks are trainers, torchrun is
 *     not).
 *
 *   - worker: a process that makes batches for a trainer. A DataLoader worker has PyTorch loaded, a trainer
 *     above it, and catches SIGBUS, SIGFPE, SIGSEGV and SIGTERM, as PyTorch's worker loop has done since 0.2
 *     and nothing else does; or its name is pt_data_worker (since 2.6). The workers of batchgenerators
 *     (nnU-Net) are forked copies of the trainer with a thread that feeds a queue, and none that trains.
 *
 *   - manager: torch_shm_manager.
 *
 * Job: a trainer with the workers and managers below it. Known by the trainer's pid.
 *
 * Segment: a file of the tmpfs at /dev/shm, of another namespace's /dev/shm, or a memfd. It may have no name
 * left.
 *
 * Holder: a process with a descriptor of the segment open or the segment mapped. Descriptors in flight in a
 * socket and processes that we may not read are invisible: what they hold is in `unattributed`.
 *
 * Nothing here judges. Everything is allocated from the survey's arena.
 */
#pragma once

#include "lease.h"
#include "machine.h"
#include "proc-stat.h"

typedef enum Role {
    ROLE_OTHER,
    ROLE_TRAINER,
    ROLE_WORKER,
    ROLE_MANAGER,
} Role;

typedef enum StartMethod {
    START_UNKNOWN,
    START_FORK,
    START_SPAWN,
    START_FORKSERVER,
} StartMethod;

/* What the names of a process's threads tell. */
typedef struct ThreadSigns {
    uint32_t loaders; /* DataLoader workers that are threads (PyTorch after 2.13, worker_method="thread") */
    bool train;       /* autograd, a process group, or CUDA */
} ThreadSigns;

typedef struct Process {
    int pid;
    int inner_pid; /* its number in its own pid namespace; 0 unknown */
    int ppid;
    Role role;
    StartMethod start; /* of workers */
    int job;           /* the trainer's pid; 0: none */
    char comm[COMM_MAX];
    Text command; /* the arguments, blanks between them; "[comm]" when there are none. Raw bytes. */
    uint32_t uid;
    double started;          /* seconds since 1970 */
    uint64_t signals_caught; /* bit N-1 for signal N */
    uint64_t rss_bytes;
    uint64_t rss_shmem_bytes;
    uint64_t pss_bytes; /* U64_UNKNOWN when not asked for or not permitted */
    uint64_t uss_bytes; /* U64_UNKNOWN if not asked for or not permitted */
    uint64_t shm_bytes; /* allocated bytes of the segments it holds */
    uint32_t segments;  /* how many it holds */
    uint32_t fds;
    uint32_t threads;
    uint64_t open_files_soft; /* of training processes; U64_UNKNOWN */
    uint64_t open_files_hard;
    unsigned python;    /* of training processes: 3.N; 0 unknown */
    uint64_t maps;      /* mappings of training processes with SURVEY_MAPS; U64_UNKNOWN */
    bool torch;         /* has PyTorch loaded */
    ThreadSigns signs;  /* of processes with PyTorch */
    uint64_t torch_at;  /* where; 0 except on the live machine */
    bool cuda;          /* has a CUDA device open */
    bool shm_elsewhere; /* its /dev/shm is not ours; only managers and processes of containers are checked */
    bool has_memory;    /* no kernel thread, no zombie */
    bool readable;      /* its descriptors and mappings could be read */
} Process;

typedef enum SegmentKind {
    KIND_OTHER,
    KIND_TORCH,
    KIND_NCCL,
    KIND_PYTHON,
    KIND_GLOO,
    KIND_DALI,
    KIND_RAY,
    KIND_MPI,
    KIND_SEMAPHORE,
    KIND_SHMGUARD,
    SEGMENT_KINDS,
} SegmentKind;

typedef enum SegmentBacking {
    BACKING_SHM,
    BACKING_MEMFD,
} SegmentBacking;

/* What the name of a segment tells. */
typedef struct SegmentClass {
    SegmentKind kind;
    const char *origin; /* the inference server that gives such names; NULL */
    bool kept_open; /* its maker has it open or mapped for as long as any process needs it. Otherwise it may
                       wait under its name, closed, for the process that opens it next */
} SegmentClass;

typedef struct Segment {
    Text name; /* of the file below /dev/shm, or of the memfd. Raw bytes. */
    Device device;
    uint64_t inode;
    uint64_t size_bytes;
    uint64_t allocated_bytes;
    bool allocated_estimated; /* no stat available: the most that one process has resident, a lower bound */
    bool deleted;             /* a file without a name. False for a memfd, which never had one */
    bool on_mount;            /* a file of our /dev/shm: it counts in its `used` */
    SegmentBacking backing;
    SegmentKind kind; /* these three as in SegmentClass */
    const char *origin;
    bool kept_open;
    uint32_t uid;
    uint32_t mode;
    double changed; /* seconds since 1970 */
    FileOpen open;
    int *holders; /* pids in rising order */
    size_t n_holders;
    size_t holders_capacity;
} Segment;

typedef struct Survey {
    Arena arena;
    Machine machine;
    Process *processes; /* all, in rising order of pid */
    size_t n_processes;
    size_t processes_capacity;
    Segment *segments; /* in order of device and inode */
    size_t n_segments;
    size_t segments_capacity;
    size_t n_unreadable;         /* processes with memory whose descriptors we may not read */
    uint64_t attributed_bytes;   /* of the mount's used bytes, what visible holders explain */
    uint64_t unattributed_bytes; /* the rest; U64_UNKNOWN on a mount without a limit, where the kernel does
                                    not count */
    uint64_t memfd_bytes;
} Survey;

typedef enum SurveyFlags {
    SURVEY_PSS = 1 << 0,  /* PSS and USS of training processes and holders: a page-table walk each */
    SURVEY_MAPS = 1 << 1, /* the number of mappings of training processes */
    SURVEY_PSS_ALL = 1 << 2,
    SURVEY_LEASES = 1 << 3, /* ask the kernel about named segments without visible holders, where some process
                               is unreadable */
    SURVEY_MACHINE = 1 << 4, /* all parts of the machine (MachineParts) */
} SurveyFlags;

/*
 * pid 0: the machine. A pid: the machine as that process sees it (its control group, limits and disk); all
 * processes are still in the survey. -ESRCH: it has ended. ret is valid, and must be freed with survey_free,
 * only on success.
 */
int survey_take(const Root *root, int pid, unsigned flags, Survey *ret);
void survey_free(Survey *survey);
#define _cleanup_survey_ _cleanup_(survey_free)

/* NULL: not found. */
const Process *survey_process(const Survey *survey, int pid);

/* Whether pid is its parent, or its parent's, and so on. */
bool process_is_below(const Survey *survey, const Process *process, int pid);

/* A process that belongs in the default listing: it trains, or it holds a segment. */
bool process_is_listed(const Process *process);

SegmentClass segment_class(Text name, SegmentBacking backing);
const char *segment_kind_name(SegmentKind kind);
const char *role_name(Role role);
const char *start_method_name(StartMethod start);
