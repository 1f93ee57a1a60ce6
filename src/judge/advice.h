/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this user can do on this machine. Fixes are ranked by what they need: those that the user can do alone
 * and now come first. Pure: everything comes from the Machine.
 */
#pragma once

#include "machine.h"

typedef enum FixNeeds {
    NEEDS_NOTHING, /* the user can do it now */
    NEEDS_ROOT,    /* root, which this user has or can ask sudo for */
    NEEDS_RESTART, /* the container or the job must be restarted with another option */
    NEEDS_ADMIN,   /* an administrator must do it */
} FixNeeds;

typedef struct Fix {
    const char *what;    /* one sentence */
    const char *command; /* ready to paste, or NULL */
    FixNeeds needs;
} Fix;

typedef struct Fixes {
    Fix *items;
    size_t n;
    size_t capacity;
} Fixes;

const char *fix_needs_name(FixNeeds needs);

/* Whether `shmguard run` can be offered: the preload library is there and the machine lets it work. */
typedef struct GuardOffer {
    bool ready;
    const char *why_not; /* one clause, when not ready */
} GuardOffer;

/* Copies both texts; command may be NULL. This and the functions below return 0 or -ENOMEM; the fixes added
 * before an error stay. */
int fix_add(Arena *arena, Fixes *fixes, FixNeeds needs, const char *what, const char *command);

/* A stable sort by FixNeeds. It puts first what this user can do, because NEEDS_ROOT is only used where the
 * user can become root, and NEEDS_ADMIN otherwise. */
void fixes_rank(Fixes *fixes);

/* All ways to cope with a /dev/shm smaller than `bytes`: the next three functions together. */
int advise_shm_size(const Machine *machine, const GuardOffer *guard, uint64_t bytes, Arena *arena,
                    Fixes *fixes);
int advise_guard(const GuardOffer *guard, Arena *arena, Fixes *fixes); /* adds nothing if it is not ready */
int advise_smaller_batches(Arena *arena, Fixes *fixes);
/* A /dev/shm of at least `bytes`, but never more than half of the memory that is granted. Adds nothing if the
 * mount is that large already. */
int advise_shm_mount(const Machine *machine, uint64_t bytes, Arena *arena, Fixes *fixes);

/* A /dev/shm of `bytes` for a job that may run in a container elsewhere. Leaves out what advise_shm_mount
 * says for `machine`, which may be NULL. */
int advise_shm_container(const Machine *machine, uint64_t bytes, Arena *arena, Fixes *fixes);

/* The options and lines, ready to paste, that give a /dev/shm of at least `bytes`. -ENOMEM. */
typedef struct ShmFlags {
    const char *engine; /* an option of docker run and podman run */
    const char *compose;
    const char *kubernetes;
    const char *remount;
    const char *fstab; /* the line */
} ShmFlags;
int shm_flags_make(const Machine *machine, uint64_t bytes, Arena *arena, ShmFlags *ret);

int advise_shm_writable(const Machine *machine, Arena *arena,
                        Fixes *fixes); /* read-only, or we may not write */
int advise_shm_inodes(const Machine *machine, Arena *arena, Fixes *fixes);
/* Whether the guard can make objects of Python 3.N immortal (docs/freeze.md). */
typedef enum Freezes {
    FREEZES_UNKNOWN,
    FREEZES_NEVER,
    FREEZES_MAYBE, /* the version has immortal objects */
} Freezes;
Freezes python_freezes(unsigned python); /* 0: unknown */

int advise_less_memory(const Machine *machine, Arena *arena,
                       Fixes *fixes); /* RAM or the control group is short */
int advise_swap(const Machine *machine, Arena *arena, Fixes *fixes);
int advise_cpus(const Machine *machine, uint32_t cpus, Arena *arena, Fixes *fixes); /* more CPUs */
int advise_open_files(const Machine *machine, Arena *arena, Fixes *fixes); /* the next two together */
int advise_file_limit(const Machine *machine, Arena *arena, Fixes *fixes);
int advise_share_by_name(Arena *arena, Fixes *fixes);
int advise_max_map_count(const Machine *machine, Arena *arena, Fixes *fixes);
int advise_remove_ipc(const Machine *machine, Arena *arena, Fixes *fixes);

/* The soft limit of open files to ask for if `soft` is too low; `hard` is the highest possible one without
 * root. Both may be U64_UNKNOWN or RLIMIT_UNLIMITED. A result not above `soft` means that it cannot be
 * raised.
 */
uint64_t open_files_target(uint64_t soft, uint64_t hard);

/* What this job may use: RAM or the control group's limit, whichever is smaller. U64_UNKNOWN. */
uint64_t memory_granted_bytes(const Machine *machine);

/* Whether this user is root or can expect to have sudo. It is not proposed where it cannot work
 * (no_new_privs) or users do not have it (a Slurm node, an application container). */
bool root_within_reach(const Machine *machine);
const char *sudo_prefix(const Machine *machine); /* "" for root, else "sudo " */

/* One word for a shell, quoted if necessary. NULL: no memory. */
const char *shell_quote(Arena *arena, Text word);
