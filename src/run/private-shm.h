/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private /dev/shm for the job: a tmpfs in a mount namespace that ends with the last process of the job.
 *
 * NCCL, Gloo, MPI and DALI use /dev/shm without the guard. With CAP_SYS_ADMIN a mount namespace is enough;
 * other users need a user namespace around it, in which they keep their user id and gain no rights. The job
 * then cannot see the machine's /dev/shm, and no process outside sees the job's.
 *
 * Whether this is allowed cannot be computed, only tried, and a process that got half of it cannot go back.
 * So the order is private_shm_look, private_shm_decide, private_shm_try in a process that ends, and then
 * private_shm_enter in the process that will become the command.
 */
#pragma once

#include "survey.h"
#include "units.h"

/* What the decision needs in addition to the Machine. */
typedef struct ShmHints {
    char hidden[64]; /* a file in /dev/shm, escaped, that the job may intend to use; "" none */
    uint32_t
        local_ranks; /* processes of a parallel job that were started on this node beside us; 0 unknown */
    uint64_t capabilities;      /* our effective ones */
    uint64_t namespaces_most;   /* user.max_user_namespaces; U64_UNKNOWN */
    uint64_t namespaces_free;   /* kernel.unprivileged_userns_clone, on Debian; U64_UNKNOWN */
    uint64_t namespaces_fenced; /* kernel.apparmor_restrict_unprivileged_userns, on Ubuntu; U64_UNKNOWN */
} ShmHints;

void private_shm_look(const Root *root, ShmHints *ret);

typedef enum ShmAnswer {
    SHM_SHARED,  /* the machine's, and there is nothing to report */
    SHM_REFUSED, /* the machine's, although a private one was requested or needed: `why` */
    SHM_PRIVATE, /* to be tried */
} ShmAnswer;

enum { SHM_WHY_MAX = 256 };

typedef struct PrivateShm {
    ShmAnswer answer;
    bool must;             /* a size was asked for */
    bool user_namespace;   /* else CAP_SYS_ADMIN does it */
    uint64_t bytes;        /* of SHM_PRIVATE */
    char why[SHM_WHY_MAX]; /* why it is needed ("" if a size was requested), or why not */
} PrivateShm;

/* Pure. WISH_AUTO: if it is needed, does no harm, and is possible. WISH_SIZE: always; the job must not start
 * without it. */
void private_shm_decide(const SizeWish *wish, const Machine *machine, const ShmHints *hints, PrivateShm *ret);

/* How far private_shm_enter got. */
typedef enum ShmStep {
    SHM_STEP_PROCESS, /* starting a process to try it in */
    SHM_STEP_USER,    /* the user namespace */
    SHM_STEP_IDS,     /* the same ids in it */
    SHM_STEP_MOUNTS,  /* the mount namespace */
    SHM_STEP_SPREAD,  /* keeping its mounts from spreading to the machine */
    SHM_STEP_TMPFS,
    SHM_STEP_RIGHTS, /* giving up the rights of the new namespace */
} ShmStep;

/*
 * In a single-threaded process that is about to exec or exit: gives it the private /dev/shm. On failure
 * (negative errno, with the step in *ret_step) the process may be in a namespace in which it has no user id,
 * and must end. Allocates nothing.
 */
int private_shm_enter(const PrivateShm *shm, ShmStep *ret_step);

/* Tries it in a process that ends at once. On failure shm becomes SHM_REFUSED and says why; `machine` and
 * `hints` help to explain it. Leaves nothing behind. */
int private_shm_try(PrivateShm *shm, const Machine *machine, const ShmHints *hints);

/* What a step's failure means. Pure. */
void private_shm_explain(ShmStep step, int error, const Machine *machine, const ShmHints *hints,
                         char why[static SHM_WHY_MAX]);
