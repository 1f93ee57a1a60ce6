/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guard and the supervisor send each other: packets over a SOCK_SEQPACKET socket with the abstract
 * name in SHMGUARD_SOCKET, one connection per process, only between processes of the job, or of one user
 * (SO_PEERCRED). Descriptors travel as SCM_RIGHTS.
 *
 * PUT and SEGMENT are not answered: the sender continues at once. A process that asks for a name has learned
 * it after it was put, so the packet is in the supervisor's queue by then; if a GET finds nothing, the
 * supervisor reads all its queues before it says no.
 *
 * When a process dies, at any point, its connection closes. Names that it put stay until they are unlinked or
 * the job ends; its segments stay known until no process uses them, and for some seconds more: workers are
 * new in every epoch, and take over what those of the last one have left.
 */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define PROTOCOL_ENVIRONMENT "SHMGUARD_SOCKET"

/* In the environment of a program: the library leaves it and its descendants alone entirely. */
#define PROTOCOL_OFF_NAME "SHMGUARD"
#define PROTOCOL_OFF      PROTOCOL_OFF_NAME "=off"

/* The socket of a run within a run: it also receives testimonies, and nothing else. */
#define PROTOCOL_INNER "SHMGUARD_INNER"

/* If set, the library only testifies, and all calls for memory are plain ones. */
#define PROTOCOL_ONLY_WITNESS "SHMGUARD_ONLY_WITNESS"

/* "off": nothing is registered with CUDA. */
#define PROTOCOL_PIN "SHMGUARD_PIN"

/* "off": batches travel as PyTorch sends them. */
#define PROTOCOL_LANE "SHMGUARD_LANE"

/* "off": no dataset is made immortal. */
#define PROTOCOL_FREEZE "SHMGUARD_FREEZE"

#define SEGMENT_NAME "shmguard"      /* of memfds that are recycled */
#define SINGLE_NAME  "shmguard:once" /* of memfds that are not */

/*
 * The bytes of a segment's file on which a lock (OFD) has a meaning; the bytes themselves are not read or
 * written for that.
 */
enum {
    LOCK_USED,   /* shared: a process has the handed-out description. Exclusive: the supervisor takes the
                    pages */
    LOCK_PINNED, /* shared: a process may have registered the pages with CUDA: they must stay. Exclusive: the
                    supervisor takes the pages */
    LOCK_TOLD,   /* shared: processes that have the tensor show it by LOCK_KEPT */
    LOCK_KEPT,   /* shared: a process has the tensor, other than the one whose loader pins its batches */
    LOCK_MANY,   /* shared, by the handed-out description: more than one process may get the tensor */
    LOCK_POOLED, /* exclusive, by the pool's own description: a process may issue the segment */
};

/* The handed-out description also has a shared lock on the byte at LOCK_ISSUE + n, where n is the number of
 * the issue (identity.c). No program locks bytes there. */
#define LOCK_ISSUE (INT64_C(1) << 62)

/* Each producer of a segment in turn has so many numbers for its issues. The first one's begin with 0. */
enum { ISSUES_PER_PRODUCER = 1 << 14, PRODUCERS_MAX = 1 << 9 };

/* Changes with what the two sides expect of each other. A supervisor and a library that do not agree do
 * without each other. */
#define PROTOCOL_MAGIC UINT32_C(0x53484d49) /* SHMI */

enum { PROTOCOL_NAME_MAX = 256 };

/* supervisor → torch_shm_manager: all other processes of the job have ended. Ignored by default, so a manager
 * without the library is not affected. */
enum { MANAGER_SIGNAL = SIGURG };

typedef enum MessageType {
    MESSAGE_WELCOME = 1, /* supervisor → guard, always first, with the descriptor of the counters' page */
    MESSAGE_SEGMENT, /* guard → supervisor, with the pool's description of a new segment; not answered */
    MESSAGE_PUT, /* guard → supervisor, with the handed-out description: name now means it; not answered */
    MESSAGE_CREATE,   /* the same, answered: 0, EEXIST, or EMFILE: create a file instead */
    MESSAGE_GET,      /* answered: 0 with the descriptor, or ENOENT */
    MESSAGE_UNLINK,   /* answered: 0 or ENOENT */
    MESSAGE_ANSWER,   /* supervisor → guard */
    MESSAGE_ROOM,     /* guard → supervisor, with a description of a segment: may this many bytes of it be
                         touched? Answered 0 when they may, or ENOSPC. Over a connection of its own */
    MESSAGE_RELEASED, /* a process waits for room, and some may have been released; not answered */
    MESSAGE_FAULT, /* a Testimony; answered when the supervisor has looked at the process. If the supervisor
                      runs as another user, with the sender's /proc/self/maps, which it may not be able to
                      open */
    MESSAGE_STACK, /* a Testimony: the Python stack of the preceding fault; not answered */
    MESSAGE_CHILD, /* a Testimony: a child of the sender ended badly; not answered */
    MESSAGE_SAID,  /* a Testimony: the end of what the sender wrote to standard error; not answered */
    MESSAGE_SITES, /* a Testimony: what grew in a window of the sender's; not answered */
    MESSAGE_ADOPT, /* is there a free segment of about so many bytes whose producer has gone? Answered 0 with
                      a description that has its LOCK_POOLED, or ENOENT */
    MESSAGE_WHERE, /* `shmguard where` → supervisor: find the line that leaks. Answered 0 */
} MessageType;

/* The thread that asks for room: it determines what happens after a refusal. */
typedef enum Asker {
    ASKER_FIRST_THREAD, /* the exception propagates to the program's own code, which may handle it */
    ASKER_OTHER_THREAD, /* in a queue's feeder thread, the exception is printed and the batch is lost */
    ASKER_FEEDER,       /* the same, in a process that may be a DataLoader worker */
    ASKER_OPTIONAL,     /* the lane, which does without: nothing is lost */
} Asker;

typedef struct Message {
    uint32_t magic;
    uint32_t type;
    int32_t error;                /* of an answer: 0 or a positive errno */
    uint32_t asker;               /* of ROOM: an Asker */
    uint64_t bytes;               /* of ROOM and ADOPT */
    uint64_t batch;               /* of ROOM: the number of the sender's batch that it belongs to */
    uint64_t issue;               /* of the answer to ADOPT: the number of its next issue */
    char name[PROTOCOL_NAME_MAX]; /* with its leading slash, NUL-terminated */
} Message;

/* fd -1: send no descriptor. False with errno. */
static inline bool message_send(int connection, const Message *message, int fd, int flags)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {(void *)message, sizeof *message};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        packet.msg_control = &control;
        packet.msg_controllen = sizeof control;
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    }
    ssize_t n = 0;
    do
        n = sendmsg(connection, &packet, MSG_NOSIGNAL | flags);
    while (n < 0 && errno == EINTR);
    return n == sizeof *message;
}

enum { TESTIMONY_TEXT_MAX = 8192 };

/*
 * What a process reports about its own end or a child's, or about what grows in it. Sent over a connection of
 * its own, made for it and closed after it, because it is sent by signal handlers and at exit: the guard's
 * state is not touched. The supervisor knows the sender from SO_PEERCRED.
 */
#define TESTIMONY_HEAD                                                                                       \
    uint32_t magic;                                                                                          \
    uint32_t type;                                                                                           \
    int32_t signal;   /* of a FAULT */                                                                       \
    int32_t code;     /* si_code */                                                                          \
    uint64_t address; /* si_addr */                                                                          \
    int32_t sender;   /* si_pid when a process sent the signal, else 0 */                                    \
    int32_t thread;                                                                                          \
    int32_t pid;    /* of a CHILD */                                                                         \
    int32_t status; /* as from waitpid */                                                                    \
    char thread_name[16];                                                                                    \
    uint32_t worker; /* 1: the sender handles SIGBUS, SIGSEGV and SIGFPE, and not SIGABRT, as DataLoader     \
                        workers do */                                                                        \
    uint32_t n       /* bytes of text; the packet ends after them */

typedef struct Testimony {
    TESTIMONY_HEAD;
    char text[TESTIMONY_TEXT_MAX];
} Testimony;

/* What the sender has on its stack. That may be the program's own signal stack, which has only a few KiB: too
 * small for a text. */
typedef struct TestimonyHead {
    TESTIMONY_HEAD;
} TestimonyHead;

/* Why a process has no lane (src/guard/python/lane.py has the same numbers). */
typedef enum LaneWhy {
    LANE_OFF,     /* the user said so. Set by the supervisor */
    LANE_PYTHON,  /* an interpreter that the lane does not know */
    LANE_TORCH,   /* a PyTorch that it does not know, or that was changed */
    LANE_TRAINER, /* a worker whose trainer has no lane */
} LaneWhy;

/* Why a process has not frozen a dataset (src/guard/python/freeze.py has the same numbers). */
typedef enum FreezeWhy {
    FREEZE_OFF,     /* the user said so. Set by the supervisor */
    FREEZE_PYTHON,  /* an interpreter without immortal objects, or a version that is not known */
    FREEZE_BUILD,   /* a build of it that differs: free-threaded, for debugging, or unknown */
    FREEZE_TORCH,   /* a PyTorch that is not known */
    FREEZE_START,   /* workers are not started by fork */
    FREEZE_FULL,    /* as much as may be is frozen */
    FREEZE_DROPPED, /* the program has dropped a dataset that was frozen, or replaced what is in it */
    FREEZE_MEMORY,  /* there was none for looking */
} FreezeWhy;

/* What a process has frozen: by pid, until it ends. 0: free. Another process may take the place of one that
 * has ended. */
typedef struct FreezeShare {
    _Atomic int32_t pid;
    _Atomic uint64_t bytes;
} FreezeShare;

enum { FREEZE_SHARES = 64 };

/* How long a trainer's main thread has waited for its loaders, by pid. 0: free. Another process may take the
 * place of one that has ended. */
typedef struct LoaderWait {
    _Atomic int32_t pid;
    _Atomic uint64_t msec;
} LoaderWait;

enum { LOADER_WAITS = 64 };

/*
 * How far the search for the line that leaks has come (src/guard/python/where.py has the same numbers). The
 * word in the page is made of a number that makes each word a new one, the stage, and the phase of its
 * window. A process acts once on each word, soon after it sees it, and says at the end what it found.
 */
typedef enum WhereStage {
    WHERE_OFF,
    WHERE_CENSUS,      /* what grows, in the trainer and all workers */
    WHERE_PYTHON,      /* which line made the Python objects that stay, in one process */
    WHERE_PYTHON_DEEP, /* the same with more frames: the line is in a library, and the caller is wanted */
    WHERE_NATIVE,      /* under which line memory was allocated that stays, in one process */
} WhereStage;
typedef enum WherePhase { WHERE_BEGIN, WHERE_MIDDLE, WHERE_END } WherePhase;
enum { WHERE_PHASE_BITS = 2, WHERE_STAGE_BITS = 3 };

static inline uint32_t where_word(uint32_t number, WhereStage stage, WherePhase phase)
{
    return (number << WHERE_STAGE_BITS | (uint32_t)stage) << WHERE_PHASE_BITS | (uint32_t)phase;
}
static inline WhereStage where_stage(uint32_t word)
{
    return (WhereStage)(word >> WHERE_PHASE_BITS & ((1U << WHERE_STAGE_BITS) - 1));
}
static inline WherePhase where_phase(uint32_t word)
{
    return (WherePhase)(word & ((1U << WHERE_PHASE_BITS) - 1));
}

/*
 * One page that every process of the job maps. The figures only increase, by relaxed atomic additions: they
 * are shown to people, and no decision depends on them. What a process has added stays when it is killed.
 *
 * The supervisor sets `crowded` while half of its descriptors are in use. Names are then not PUT but CREATEd,
 * so that each process has at most one in flight, and the supervisor can refuse before a descriptor is lost
 * on its way. Relaxed is enough: a process that sees it late has put one name more, and there is room for
 * those.
 */
typedef struct Counters {
    uint32_t magic;
    uint32_t version; /* 1 */
    _Atomic uint64_t segments_created;
    _Atomic uint64_t segments_reused;
    _Atomic uint64_t bytes_backed; /* requested by PyTorch and served from segments, new and recycled */
    _Atomic uint64_t small_backed; /* tensors in memfds of their own: too small to be worth recycling */
    _Atomic uint64_t fallbacks;    /* tensors of PyTorch that got plain shared memory */
    _Atomic uint32_t crowded;      /* 0 or 1 */
    _Atomic uint32_t budgeted;     /* 1: a process must ask for room. Set by the supervisor */
    _Atomic uint32_t waiting;      /* requests for room that wait: a process that releases memory sends
                                      RELEASED. Set by the supervisor */
    _Atomic uint64_t terminal;     /* st_rdev of the terminal with the progress line; 0: none. Set by the
                                      supervisor */
    _Atomic uint32_t line;         /* 1: the line is drawn. A process erases it before it writes there */
    _Atomic uint32_t unfinished;   /* 1: the job's last output there did not end on an empty line */
    _Atomic uint64_t wrote_msec;   /* when the job last wrote there; 0: not seen */
    _Atomic uint64_t small_bytes;  /* of small_backed */
    _Atomic uint64_t pinned_bytes; /* of tensors that the GPU could read in place */
    _Atomic uint32_t below;        /* lines that the job wrote below the cursor */
    _Atomic uint32_t adrift;       /* 1: the job moves the cursor in ways that cannot be followed */
    _Atomic uint64_t batches;      /* sent by DataLoader workers; batches shared by name are not counted,
                                      unless they take the lane */
    _Atomic uint64_t lane_batches;
    _Atomic uint64_t lane_value_bytes;   /* of their small tensors */
    _Atomic uint64_t lane_segment_bytes; /* of their tensors and arrays in segments of their own */
    _Atomic uint64_t lane_declined;      /* batches that the lane left to PyTorch */
    _Atomic uint32_t lane_whys;          /* bits, by LaneWhy: why processes have no lane */
    _Atomic uint32_t adoptable; /* segments whose producer has gone: a process asks for one (ADOPT) before it
                                   makes a new one. Set by the supervisor */
    _Atomic uint32_t freeze_whys; /* bits, by FreezeWhy */
    _Atomic uint64_t freeze_objects;
    _Atomic uint64_t freeze_bytes;
    _Atomic uint64_t freeze_usec;
    _Atomic uint64_t freeze_left_bytes; /* of datasets that the program has dropped since, or replaced */
    _Atomic uint64_t freeze_limit;      /* of all processes together; 0: not known. Set by the supervisor */
    _Atomic uint64_t freezing_since;    /* CLOCK_MONOTONIC in msec: a process has been freezing since then */
    _Atomic uint64_t freezing_msec;     /* and still was at this time */
    _Atomic uint64_t freezing_objects;
    FreezeShare freeze_shares[FREEZE_SHARES];
    _Atomic uint32_t where;       /* the word of the search; 0: none. Set by the supervisor */
    _Atomic int32_t where_pid;    /* the process that is asked; 0: any one worker. Set by the supervisor */
    _Atomic int32_t where_worker; /* that worker: the first one to put its pid here. 0: none yet */
    LoaderWait loader_waits[LOADER_WAITS];
} Counters;
