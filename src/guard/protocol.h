/*
 * What the guard says to the supervisor: packets over a SOCK_SEQPACKET socket of the abstract name in
 * SHMGUARD_SOCKET, one connection a process, only between processes of one user (SO_PEERCRED). Descriptors
 * travel as SCM_RIGHTS.
 *
 * PUT and SEGMENT are not answered: the sender goes on at once. Whoever asks for a name has heard of it after
 * it was put, so the packet is in the supervisor's queue by then; a GET that finds nothing makes it read all
 * its queues before it says no.
 *
 * When a process dies, at whatever point, its connection closes. Names that it put stay until they are
 * unlinked or the job ends; segments that it made stay known until nobody uses them.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define PROTOCOL_ENVIRONMENT "SHMGUARD_SOCKET"
#define PROTOCOL_MAGIC       UINT32_C(0x53484d47) /* SHMG */

enum { PROTOCOL_NAME_MAX = 256 };

typedef enum MessageType {
    MESSAGE_WELCOME = 1, /* supervisor → guard, first of all, with the descriptor of the counters' page */
    MESSAGE_SEGMENT, /* guard → supervisor, with the pool's description of a new segment; not answered */
    MESSAGE_PUT, /* guard → supervisor, with the handed-out description: name now means it; not answered */
    MESSAGE_CREATE, /* the same, answered: 0 or EEXIST */
    MESSAGE_GET,    /* answered: 0 with the descriptor, or ENOENT */
    MESSAGE_UNLINK, /* answered: 0 or ENOENT */
    MESSAGE_ANSWER, /* supervisor → guard */
} MessageType;

typedef struct Message {
    uint32_t magic;
    uint32_t type;
    int32_t error; /* of an answer: 0 or a positive errno */
    uint32_t unused;
    char name[PROTOCOL_NAME_MAX]; /* with its leading slash, NUL-terminated */
} Message;

/*
 * One page that every process of the job maps. Each figure only rises and is added to with relaxed atomics:
 * they are read for people, and nothing is decided by them. A process that is killed leaves what it has
 * added.
 */
typedef struct Counters {
    uint32_t magic;
    uint32_t version; /* 1 */
    _Atomic uint64_t segments_created;
    _Atomic uint64_t segments_reused;
    _Atomic uint64_t bytes_backed; /* asked for by PyTorch and served from segments, new and recycled */
    _Atomic uint64_t small_backed; /* tensors in memfds of their own: too small to be worth recycling */
    _Atomic uint64_t fallbacks;    /* tensors of PyTorch that took the plain way */
} Counters;
