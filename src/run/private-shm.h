/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A /dev/shm of the job's own: a tmpfs in a mount namespace that ends with the last process of the job.
 *
 * NCCL, Gloo, MPI and DALI use /dev/shm past the guard. With CAP_SYS_ADMIN a mount namespace is enough; other
 * users need a user namespace around it, in which they keep their user id and gain no rights. What lies in
 * the machine's /dev/shm cannot be seen from the job then, and nobody outside sees what lies in the job's.
 *
 * Whether it is granted cannot be computed, only tried, and a process that got half of it cannot go back. So
 * the order is private_shm_look, private_shm_decide, private_shm_try in a process that ends, and then
 * private_shm_enter in the one that is to become the command.
 */
#pragma once

#include "survey.h"
#include "units.h"

/* What the decision takes besides the Machine. */
typedef struct ShmHints {
    char hidden[64]; /* a file of /dev/shm, escaped, that the job could mean to use; "" none */
    uint32_t
        local_ranks; /* processes of a parallel job that were started on this node beside us; 0 unknown */
    uint64_t capabilities;      /* our effective ones */
    uint64_t namespaces_most;   /* user.max_user_namespaces; U64_UNKNOWN */
    uint64_t namespaces_free;   /* kernel.unprivileged_userns_clone, on Debian; U64_UNKNOWN */
    uint64_t namespaces_fenced; /* kernel.apparmor_restrict_unprivileged_userns, on Ubuntu; U64_UNKNOWN */
} ShmHints;

void private_shm_look(const Root *root, ShmHints *ret);

typedef enum ShmAnswer {
    SHM_SHARED,  /* the machine's, and there is nothing to say about it */
    SHM_REFUSED, /* the machine's, although a private one was asked for or needed: `why` */
    SHM_PRIVATE, /* to be tried */
} ShmAnswer;

enum { SHM_WHY_MAX = 256 };

typedef struct PrivateShm {
    ShmAnswer answer;
    bool must;             /* a size was asked for */
    bool user_namespace;   /* else CAP_SYS_ADMIN does it */
    uint64_t bytes;        /* of SHM_PRIVATE */
    char why[SHM_WHY_MAX]; /* one clause: why it is needed ("" when a size was asked for), or why not */
} PrivateShm;

/* Pure. WISH_AUTO: when it is needed, harms nobody, and can be had. WISH_SIZE: in any case, without it the
 * job is not to start. */
void private_shm_decide(const SizeWish *wish, const Machine *machine, const ShmHints *hints, PrivateShm *ret);

/* How far private_shm_enter came. */
typedef enum ShmStep {
    SHM_STEP_PROCESS, /* no process to try it in */
    SHM_STEP_USER,    /* the user namespace */
    SHM_STEP_IDS,     /* the same ids in it */
    SHM_STEP_MOUNTS,  /* the mount namespace */
    SHM_STEP_SPREAD,  /* no mount of it goes back to the machine */
    SHM_STEP_TMPFS,
    SHM_STEP_RIGHTS, /* those of the new namespace are given up */
} ShmStep;

/*
 * In a process of a single thread that is about to exec or to end: it gets the private /dev/shm. On failure
 * (negative errno, with the step in *ret_step) the process may be in a namespace in which it has no user id,
 * and has to end. Allocates nothing.
 */
int private_shm_enter(const PrivateShm *shm, ShmStep *ret_step);

/* Does so in a process that ends at once. On failure shm becomes SHM_REFUSED and says why; `machine` and
 * `hints` help to find the words. Nothing of it stays behind. */
int private_shm_try(PrivateShm *shm, const Machine *machine, const ShmHints *hints);

/* What a step's failure means, as one clause. Pure. */
void private_shm_explain(ShmStep step, int error, const Machine *machine, const ShmHints *hints,
                         char why[static SHM_WHY_MAX]);
