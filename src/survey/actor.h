/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is looked at repeatedly, and how its role becomes known: it may exec, load PyTorch, and take
 * its name and its handlers at any time after it was first seen. For code that keeps a list of such
 * processes; the rules are those of survey.h.
 */
#pragma once

#include "roles.h"

typedef struct Actor {
    int pid;
    int ppid;
    uint64_t start_ticks;
    char comm[COMM_MAX];
    char *command;         /* as command_read has it, NUL-terminated; NULL unknown */
    uint64_t command_hash; /* text_hash; 0 unknown */
    uint64_t signals_caught;
    bool torch;
    uint64_t torch_at;
    uint32_t threads;     /* when their names were read; 0: not yet */
    bool threads_renamed; /* a new thread takes its name a moment later: they are read again */
    ThreadSigns signs;
    unsigned looks; /* how often it was looked at for its command */
    Role role;
    StartMethod start; /* of workers */
    int job;           /* the trainer's pid; 0: none */
} Actor;

void actor_free(Actor *actor);

/* What was read about it. True: its role may have changed. A new name means another program: its command must
 * be read again. */
bool actor_note_name(Actor *actor, const char *comm, int ppid);
bool actor_note_signals(Actor *actor, uint64_t signals_caught);

/* The names of its threads are read when their number has changed, and at the next look. */
bool actor_note_threads(Actor *actor, const Root *root, uint32_t threads);

/* Its command is read when it is new, and again after an exec. True: its role may have changed. */
enum { YOUNG_LOOKS = 2 };
bool actor_learn(Actor *actor, const Root *root, Buffer *scratch);

/* Whether it has PyTorch: one question if its parent (NULL: unknown) has it, or a search through all of its
 * libraries. True: it was found. */
bool actor_inherit_torch(Actor *actor, const Actor *parent, const Root *root, Buffer *scratch);
bool actor_search_torch(Actor *actor, const Root *root, Buffer *scratch);

/* Reused memory for assigning roles. */
typedef struct Stage {
    Process *processes;
    size_t capacity;
} Stage;

/* Fills role, start and job of all actors, which are in rising order of pid; the i-th one begins at items + i
 * * item_size. -ENOMEM. */
int actors_assign(void *items, size_t n, size_t item_size, Stage *stage);
