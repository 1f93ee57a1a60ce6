/* SPDX-License-Identifier: Apache-2.0 */
/* Where we are: which container, which scheduler, which rights. Detection needs evidence, and says "unknown"
 * without it. */
#pragma once

#include "mounts.h"
#include "proc-status.h"
#include "root.h"

typedef enum EnvironmentKind {
    ENVIRONMENT_BARE,
    ENVIRONMENT_DOCKER,
    ENVIRONMENT_PODMAN,
    ENVIRONMENT_KUBERNETES,
    ENVIRONMENT_LXC,
    ENVIRONMENT_UNKNOWN, /* in a container of unknown kind */
} EnvironmentKind;

/* Answers that have three outcomes. */
typedef enum Tristate {
    NO,
    YES,
    DONT_KNOW,
} Tristate;

typedef struct Sandbox {
    EnvironmentKind kind;
    char runtime[32];         /* "docker", "containerd", "cri-o", "podman", "lxc", "" */
    bool slurm;               /* inside a Slurm job */
    bool root;                /* effective uid 0 */
    bool sys_admin;           /* CAP_SYS_ADMIN is effective */
    bool initial_userns;      /* the uid map is the machine's own */
    bool can_remount;         /* may change the size of /dev/shm from here */
    Tristate user_namespaces; /* user_namespaces_try; DONT_KNOW: it was not tried */
    bool initial_pidns;       /* every process of the machine has a number here */
    bool hidepid;             /* /proc hides other users' processes from us */
    bool sees_all;            /* initial_pidns, and /proc does not hide other users' processes */
    uint32_t seccomp;         /* 0 off, 1 strict, 2 filter */
    bool no_new_privs;
    Tristate remove_ipc; /* logind deletes the user's segments at logout */
    bool memfd; /* memfd_create works, as tried here or by the capture; true if the tree does not say */
} Sandbox;

/* Fills all but user_namespaces. */
void sandbox_read(const Root *root, const Mounts *mounts, const ProcStatus *self, Sandbox *ret);

/* Whether a process like this one may make a user namespace and mount in it. A child tries it; in a captured
 * tree, the capture tells, or else the sysctls. */
bool user_namespaces_try(const Root *root);

/* logind.conf and its drop-ins: the last RemoveIPC= under [Login] wins. DONT_KNOW: there is none. */
Tristate logind_parse_remove_ipc(Text text);

const char *environment_name(EnvironmentKind kind);
