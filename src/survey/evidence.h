/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known about how a job ended: the supervisor fills it in while the job runs and after it;
 * judge/causes.h says what it means. Nothing here judges; what was not seen is unknown, not zero. Strings and
 * lists live in the arena of the code that filled it in.
 *
 * Words:
 *
 * command: what `shmguard run` was told to run. The job: the command and all processes below it.
 *
 * fault: SIGBUS, SIGSEGV, SIGABRT or SIGFPE, recorded in the process itself before any other handler sees it.
 *
 * said: the end of a process's standard error. Only processes that load the preload library report it.
 */
#pragma once

#include "survey.h"

typedef struct Sample {
    double seconds; /* since the command was started */
    uint64_t rss_bytes;
    uint64_t rss_shmem_bytes;
    uint64_t fds;  /* U64_UNKNOWN; before Linux 6.2 counted in turns, like maps */
    uint64_t maps; /* counted in turns, so it may be older than the rest; U64_UNKNOWN */
    uint32_t threads;
} Sample;

typedef enum FaultPlace {
    PLACE_UNKNOWN, /* the process could not be examined in time */
    PLACE_NOT_MAPPED,
    PLACE_ANONYMOUS, /* heap, stack */
    PLACE_FILE,      /* a file on a disk, or another tmpfs */
    PLACE_SHM,       /* a file of the process's /dev/shm */
    PLACE_MEMFD,
} FaultPlace;

typedef struct Fault {
    int signal;
    int code;         /* si_code */
    uint64_t address; /* of SIGBUS, SIGSEGV and SIGFPE when the kernel raised them */
    int sender;       /* pid of the sender of the signal; 0: the kernel */
    int thread;
    char thread_name[16];
    FaultPlace place; /* of address */
    const char *path; /* as the kernel writes it, NULL unless mapped from a file */
    bool deleted;
    uint64_t offset;         /* of address in the file */
    uint64_t file_bytes;     /* its size at that time; U64_UNKNOWN */
    uint64_t shm_size_bytes; /* of the process's /dev/shm at that time; U64_UNKNOWN */
    uint64_t shm_free_bytes;
    const char *stack; /* Python's, as faulthandler writes it; NULL: not available */
} Fault;

/* A process of the job that has ended, or has had a fault and will. */
typedef struct Ended {
    int pid;
    int ppid; /* when last seen; 0 unknown */
    Role role;
    char comm[COMM_MAX]; /* "" unknown */
    double seconds; /* since the command was started, when the end was noticed; for a fatal fault, its time */
    bool has_status;
    int signal; /* that ended it; 0: none */
    int code;   /* when no signal did */
    bool by_us; /* a stray, or a process that had to end: we sent the signal */
    bool has_fault;
    Fault fault; /* the last one */
    Text said;
    bool has_sample;
    Sample last;
} Ended;

/* Where the size of a budget comes from. */
typedef enum BudgetBasis {
    BUDGET_OF_NOTHING, /* there is none */
    BUDGET_OF_USER,
    BUDGET_OF_MACHINE, /* what could be spared at the start, here and in the next two */
    BUDGET_OF_GROUP,   /* a control group */
    BUDGET_OF_SLURM,   /* what Slurm has allotted */
} BudgetBasis;

/* Why the preload library does nothing for us in a process. */
typedef enum Absence {
    ABSENCE_NONE,
    ABSENCE_UNKNOWN,
    ABSENCE_OFF,                /* SHMGUARD=off */
    ABSENCE_NO_PRELOAD,         /* it was started without LD_PRELOAD */
    ABSENCE_OTHER_PRELOAD,      /* or with one that lacks the library */
    ABSENCE_NO_SOCKET,          /* or with the library and without SHMGUARD_SOCKET */
    ABSENCE_STATIC,             /* it loads no libraries */
    ABSENCE_FOREIGN,            /* its C library or word size differs from ours */
    ABSENCE_SECURE,             /* set-user-ID, or the like */
    ABSENCE_UNREADABLE_LIBRARY, /* its user cannot read the library, or its file system does not have it */
    ABSENCE_USER,               /* it runs as a user that we cannot serve */
    ABSENCE_INNER_RUN,          /* it is served by a run within this one */
    ABSENCE_UNREADABLE_PROCESS, /* we may not examine it: nothing is known */
    ABSENCES,
} Absence;

typedef struct Unguarded {
    int pid;
    char comm[COMM_MAX];
    uint32_t uid; /* effective */
    Role role;
    Absence why;
} Unguarded;

/* In which of the job's Python or PyTorch processes the library was loaded, of those that lived long enough
 * to be examined. */
typedef struct Coverage {
    uint64_t guarded;     /* how many */
    Unguarded *unguarded; /* at most UNGUARDED_MAX; trainers and workers come first */
    size_t n_unguarded;
    size_t unguarded_capacity;
    uint32_t loaders; /* the most DataLoader workers that were threads of one process */
} Coverage;

enum { UNGUARDED_MAX = 64 };

/* A process whose requests for shared memory were refused. */
typedef struct Refusal {
    int pid;
    uint64_t requests;
    uint64_t unheard; /* of these, made by a thread other than the first: no caller is told of the refusal */
    uint64_t most_bytes; /* the largest request */
    bool told; /* it was a DataLoader worker that we then ended, so PyTorch raised an exception in the trainer
                */
} Refusal;

enum { REFUSALS_MAX = 32 };

typedef struct Evidence {
    int pid;  /* of the command */
    int code; /* 128 + signal when a signal ended it */
    int signal;
    int passed_on;   /* the last signal that told us to end the command; 0: none */
    int start_error; /* a positive errno: the command could not be started, and nothing else here is known */
    const char *command; /* its first word */
    double seconds;

    Ended *ended; /* in the order in which they were noticed; the command is one of them */
    size_t n_ended;
    size_t ended_capacity;

    uint64_t group_kills;       /* by the OOM killer in the job's control group while it ran; U64_UNKNOWN */
    uint64_t machine_kills;     /* on the whole machine; U64_UNKNOWN */
    OomKills kills;             /* the kernel log's, since the command was started */
    int kills_error;            /* 0, or why the log could not be read */
    uint64_t group_limit_bytes; /* U64_UNKNOWN: none */
    uint64_t group_used_most_bytes; /* in samples once a second, without inactive file pages, which the kernel
                                       drops first; U64_UNKNOWN */
    uint64_t available_least_bytes; /* memory of the machine, in samples once a second; U64_UNKNOWN */

    uint64_t shm_size_bytes;       /* of the job's /dev/shm; U64_UNKNOWN */
    uint64_t shm_free_least_bytes; /* in samples once a second; U64_UNKNOWN */
    uint64_t open_files_soft;      /* of the command; U64_UNKNOWN */
    uint64_t max_map_count;        /* U64_UNKNOWN */
    uint64_t fds_most;             /* of one process; U64_UNKNOWN */
    uint64_t maps_most;            /* of one process; U64_UNKNOWN */

    bool guarded;
    bool shared;          /* the guard has served something */
    uint64_t turned_away; /* connections of other users' processes that could not be shown to be the job's */
    Coverage coverage;
    uint64_t budget_bytes; /* U64_UNKNOWN: none */
    BudgetBasis budget_basis;
    uint64_t refused; /* requests for memory that were refused, because of the budget or because memory was
                         missing */
    uint64_t refused_bytes; /* of the last one */
    int refused_pid;
    bool refused_for_want;  /* memory was missing; otherwise the request was larger than the whole budget, or
                               no room became free in time */
    double refused_seconds; /* since the command was started, when the last one was */
    bool served_after;      /* shared tensors were made after the last one */
    Refusal refusals[REFUSALS_MAX]; /* the first processes with refused requests; further ones are counted in
                                       `refused` only */
    size_t n_refusals;
} Evidence;

/* Nothing is known yet. */
#define EVIDENCE_NONE                                                                                        \
    ((Evidence){.group_kills = U64_UNKNOWN,                                                                  \
                .machine_kills = U64_UNKNOWN,                                                                \
                .kills_error = -ENODATA,                                                                     \
                .group_limit_bytes = U64_UNKNOWN,                                                            \
                .group_used_most_bytes = U64_UNKNOWN,                                                        \
                .available_least_bytes = U64_UNKNOWN,                                                        \
                .shm_size_bytes = U64_UNKNOWN,                                                               \
                .shm_free_least_bytes = U64_UNKNOWN,                                                         \
                .open_files_soft = U64_UNKNOWN,                                                              \
                .max_map_count = U64_UNKNOWN,                                                                \
                .fds_most = U64_UNKNOWN,                                                                     \
                .maps_most = U64_UNKNOWN,                                                                    \
                .budget_bytes = U64_UNKNOWN})
