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
typedef struct Guard {
    bool ready;
    const char *why_not; /* one clause, when not ready */
} Guard;

/* -ENOMEM, with fixes as far as they came; the other functions likewise. */
int fix_add(Arena *arena, Fixes *fixes, FixNeeds needs, const char *what, const char *command);

/* Sorts by FixNeeds, keeping the order within. */
void fixes_rank(Fixes *fixes);

/* The ways to a /dev/shm of at least `bytes` in this environment, smaller parameters and `shmguard run`
 * included. */
int advise_shm_size(const Machine *machine, const Guard *guard, uint64_t bytes, Arena *arena, Fixes *fixes);
int advise_less_memory(const Machine *machine, Arena *arena,
                       Fixes *fixes); /* RAM or the control group is short */
int advise_open_files(const Machine *machine, Arena *arena, Fixes *fixes);
int advise_max_map_count(const Machine *machine, Arena *arena, Fixes *fixes);
int advise_remove_ipc(const Machine *machine, Arena *arena, Fixes *fixes);
