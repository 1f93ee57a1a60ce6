/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do, for this user, here. A fix is ranked by what it needs: what the user can do alone and now comes
 * first. Pure: everything comes from the Machine.
 */
#pragma once

#include "machine.h"

typedef enum FixNeeds {
    NEEDS_NOTHING, /* the user can do it now */
    NEEDS_ROOT,    /* root, which this user has or can ask sudo for */
    NEEDS_RESTART, /* the container or the job must be started anew with another option */
    NEEDS_ADMIN,   /* somebody else must do it */
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

/* Copies both texts; command may be NULL. -ENOMEM, with fixes as far as they came; the other functions
 * likewise. */
int fix_add(Arena *arena, Fixes *fixes, FixNeeds needs, const char *what, const char *command);

/* Sorts by FixNeeds, keeping the order within. That is the order in which this user can help himself, because
 * a fix that takes root is only marked so where root can be had, and otherwise needs an admin. */
void fixes_rank(Fixes *fixes);

/* The ways to a /dev/shm of at least `bytes` in this environment, smaller parameters and `shmguard run`
 * included: the three that follow, together. */
int advise_shm_size(const Machine *machine, const GuardOffer *guard, uint64_t bytes, Arena *arena,
                    Fixes *fixes);
int advise_guard(const GuardOffer *guard, Arena *arena, Fixes *fixes); /* nothing when it is not ready */
int advise_smaller_batches(Arena *arena, Fixes *fixes);
/* Never more than half of the memory that is granted, and nothing at all when the mount is that large
 * already.
 */
int advise_shm_mount(const Machine *machine, uint64_t bytes, Arena *arena, Fixes *fixes);

/* How each tool is told of a /dev/shm of at least `bytes`, ready to paste. -ENOMEM. */
typedef struct ShmFlags {
    const char *engine; /* an option of docker run and podman run */
    const char *compose;
    const char *kubernetes;
    const char *remount;
    const char *fstab; /* the line */
} ShmFlags;
int shm_flags_make(const Machine *machine, uint64_t bytes, Arena *arena, ShmFlags *ret);

int advise_shm_writable(const Machine *machine, Arena *arena, Fixes *fixes); /* read-only, or not for us */
int advise_shm_inodes(const Machine *machine, Arena *arena, Fixes *fixes);
int advise_less_memory(const Machine *machine, Arena *arena,
                       Fixes *fixes); /* RAM or the control group is short */
int advise_swap(const Machine *machine, Arena *arena, Fixes *fixes);
int advise_cpus(const Machine *machine, uint32_t cpus, Arena *arena, Fixes *fixes); /* to be granted more */
int advise_open_files(const Machine *machine, Arena *arena, Fixes *fixes);
int advise_max_map_count(const Machine *machine, Arena *arena, Fixes *fixes);
int advise_remove_ipc(const Machine *machine, Arena *arena, Fixes *fixes);

/* The soft limit of open files to ask for where `soft` is too low and `hard` is the most to be had without
 * root. U64_UNKNOWN and RLIMIT_UNLIMITED are welcome. Not above soft: there is no room. */
uint64_t open_files_target(uint64_t soft, uint64_t hard);

/* What this job may use: RAM or the control group's limit, whichever is smaller. U64_UNKNOWN. */
uint64_t memory_granted_bytes(const Machine *machine);

/* Whether this user is root or may hope for sudo: a sudo that cannot work (no_new_privs) or that nobody gives
 * to users (a Slurm node, an application container) is not to be proposed. */
bool root_within_reach(const Machine *machine);
const char *sudo_prefix(const Machine *machine); /* "" for root, else "sudo " */

/* One word for a shell, quoted where it must be. NULL: no memory. */
const char *shell_quote(Arena *arena, Text word);
