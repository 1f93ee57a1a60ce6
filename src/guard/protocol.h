/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guard says to the supervisor: packets over a SOCK_SEQPACKET socket of the abstract name in
 * SHMGUARD_SOCKET, one connection a process, only between processes of the job, or of one user (SO_PEERCRED).
 * Descriptors travel as SCM_RIGHTS.
 *
 * PUT and SEGMENT are not answered: the sender goes on at once. Whoever asks for a name has heard of it after
 * it was put, so the packet is in the supervisor's queue by then; a GET that finds nothing makes it read all
 * its queues before it says no.
 *
 * When a process dies, at whatever point, its connection closes. Names that it put stay until they are
 * unlinked or the job ends; segments that it made stay known until nobody uses them.
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

/* In the environment of a program: the library leaves it and its descendants wholly alone. */
#define PROTOCOL_OFF_NAME "SHMGUARD"
#define PROTOCOL_OFF      PROTOCOL_OFF_NAME "=off"

/* The socket of a run within a run: it is sent testimonies, too, and nothing else. */
#define PROTOCOL_INNER "SHMGUARD_INNER"

/* Set: the library only testifies, and memory goes the plain way. */
#define PROTOCOL_ONLY_WITNESS "SHMGUARD_ONLY_WITNESS"

/* "off": nothing is registered with CUDA. */
#define PROTOCOL_PIN "SHMGUARD_PIN"

#define SEGMENT_NAME "shmguard"      /* of memfds that are recycled */
#define SINGLE_NAME  "shmguard:once" /* of memfds that are not */

/*
 * The bytes of a segment's file on which locks (OFD) say something; none of them is read or written for that.
 */
enum {
    LOCK_USED,   /* shared: somebody has the handed-out description. Exclusive: the supervisor takes the pages
                  */
    LOCK_PINNED, /* shared: somebody may have registered the pages with CUDA: they must stay. Likewise */
    LOCK_TOLD,   /* shared: processes that have the tensor show it by the next */
    LOCK_KEPT,   /* shared: one has it, and it is not the one whose loader pins its batches */
    LOCK_MANY,   /* shared, by the handed-out description: more than one may come to have it */
};

/* The handed-out description also has a shared lock on the byte at LOCK_ISSUE + n, where n counts the times
 * that the segment was issued before (identity.c). No program locks bytes there. */
#define LOCK_ISSUE (INT64_C(1) << 62)

#define PROTOCOL_MAGIC UINT32_C(0x53484d47) /* SHMG */

enum { PROTOCOL_NAME_MAX = 256 };

/* supervisor → torch_shm_manager: all other processes of the job have ended. Ignored by default, so that one
 * without the library does not mind. */
enum { MANAGER_SIGNAL = SIGURG };

typedef enum MessageType {
    MESSAGE_WELCOME = 1, /* supervisor → guard, first of all, with the descriptor of the counters' page */
    MESSAGE_SEGMENT, /* guard → supervisor, with the pool's description of a new segment; not answered */
    MESSAGE_PUT, /* guard → supervisor, with the handed-out description: name now means it; not answered */
    MESSAGE_CREATE,   /* the same, answered: 0, EEXIST, or EMFILE: make a file of it */
    MESSAGE_GET,      /* answered: 0 with the descriptor, or ENOENT */
    MESSAGE_UNLINK,   /* answered: 0 or ENOENT */
    MESSAGE_ANSWER,   /* supervisor → guard */
    MESSAGE_ROOM,     /* guard → supervisor, with a description of a segment: may this many bytes of it be
                         touched?     Answered when they may, or ENOSPC. Over a connection of its own */
    MESSAGE_RELEASED, /* somebody waits for room, and some may have come free; not answered */
    MESSAGE_FAULT, /* a Testimony; answered when the supervisor has looked at the process. To a supervisor of
                      another user with the sender's /proc/self/maps, which that may not be able to open */
    MESSAGE_STACK, /* a Testimony: the Python stack of the fault before it; not answered */
    MESSAGE_CHILD, /* a Testimony: a child of the sender ended badly; not answered */
    MESSAGE_SAID,  /* a Testimony: the end of what the sender wrote to standard error; not answered */
} MessageType;

/* The thread that asks for room: it says what becomes of a refusal. */
typedef enum Asker {
    ASKER_FIRST_THREAD, /* the exception goes up the program's own calls, which may handle it */
    ASKER_OTHER_THREAD, /* in a queue's feeder thread, the exception is printed and the batch is lost */
    ASKER_FEEDER,       /* the same, in a process that may be a DataLoader worker */
} Asker;

typedef struct Message {
    uint32_t magic;
    uint32_t type;
    int32_t error;                /* of an answer: 0 or a positive errno */
    uint32_t asker;               /* of ROOM: an Asker */
    uint64_t bytes;               /* of ROOM, as the next */
    uint64_t batch;               /* which of the sender's it is a part of, as they follow each other */
    char name[PROTOCOL_NAME_MAX]; /* with its leading slash, NUL-terminated */
} Message;

/* fd -1: none goes with it. False with errno. */
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
 * What a process says about its own end or a child's. Sent over a connection of its own, made for it and
 * closed after it, because it is sent from signal handlers and at exit: no state of the guard's is touched.
 * The supervisor knows the sender from SO_PEERCRED.
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
    int32_t status; /* as waitpid has it */                                                                  \
    char thread_name[16];                                                                                    \
    uint32_t worker; /* 1: the sender handles SIGBUS, SIGSEGV and SIGFPE, and not SIGABRT, as DataLoader     \
                        workers do */                                                                        \
    uint32_t n       /* bytes of text; the packet ends after them */

typedef struct Testimony {
    TESTIMONY_HEAD;
    char text[TESTIMONY_TEXT_MAX];
} Testimony;

/* What the sender makes on its stack. That may be the program's own for signals, which is a few KiB in all:
 * no place for a text. */
typedef struct TestimonyHead {
    TESTIMONY_HEAD;
} TestimonyHead;

/*
 * One page that every process of the job maps. Each figure only rises and is added to with relaxed atomics:
 * they are read for people, and nothing is decided by them. A process that is killed leaves what it has
 * added.
 *
 * `crowded` is the supervisor's: half of its descriptors are in use. While it is set, names are not PUT but
 * CREATEd, so that each process has one in flight at most, and the supervisor can refuse before a descriptor
 * is lost on its way. Relaxed too: one who sees it late has put a name more, and there is room for those.
 */
typedef struct Counters {
    uint32_t magic;
    uint32_t version; /* 1 */
    _Atomic uint64_t segments_created;
    _Atomic uint64_t segments_reused;
    _Atomic uint64_t bytes_backed; /* asked for by PyTorch and served from segments, new and recycled */
    _Atomic uint64_t small_backed; /* tensors in memfds of their own: too small to be worth recycling */
    _Atomic uint64_t fallbacks;    /* tensors of PyTorch that took the plain way */
    _Atomic uint32_t crowded;      /* 0 or 1 */
    _Atomic uint32_t budgeted;     /* 1: room must be asked for. The supervisor's, as the next */
    _Atomic uint32_t waiting;      /* requests for room that wait: whoever lets go says so */
    _Atomic uint64_t terminal;   /* st_rdev of the one with the line of progress; 0: none. The supervisor's */
    _Atomic uint32_t line;       /* 1: the line is drawn. Whoever writes there takes it away */
    _Atomic uint32_t unfinished; /* 1: what the job wrote there last did not lead to an empty line */
    _Atomic uint64_t wrote_msec; /* when the job last wrote there; 0: not seen */
    _Atomic uint64_t small_bytes;  /* of small_backed */
    _Atomic uint64_t pinned_bytes; /* of tensors that the GPU could read where their worker wrote them */
    _Atomic uint32_t below;        /* lines that the job wrote below the cursor */
    _Atomic uint32_t adrift;       /* 1: the job moves the cursor in ways that are not followed */
    _Atomic uint64_t batches;      /* that DataLoader workers have sent; of those shared by name, none */
} Counters;
