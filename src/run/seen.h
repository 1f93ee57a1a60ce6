/*
 * The processes that a job has had. Those that live are all there; of those that have ended SEEN_ENDED_MAX
 * are kept, bad ends rather than good ones. What they said and where they faulted is kept of SEEN_WORDY_MAX
 * of them, likewise. So a job that runs for months, or says what it likes, takes no more than a few MiB.
 *
 * A process is known by its pid and the time of its start, which is 0 for one that was told of only after it
 * had gone. Pointers to processes are valid until the next call that adds or ends one.
 */
#pragma once

#include "actor.h"
#include "evidence.h"
#include "presence.h"

enum { SEEN_ENDED_MAX = 512, SEEN_WORDY_MAX = 256 };

typedef struct Seen {
    Actor actor;    /* its command is known only while it lives */
    uint64_t inode; /* as JobProcess has it; 0 unknown */

    uint32_t uid; /* effective, as of the last sample */
    Presence presence;

    double ended; /* when that was noticed */
    bool has_status;
    int status; /* as waitpid has it */
    bool by_us;
    bool is_command;

    bool has_fault;
    double faulted;
    Fault fault; /* its path and stack are these */
    char *path;
    char *stack;
    char *said;
    size_t said_size;

    bool has_sample;
    uint64_t rss_peak_bytes; /* these three as ProcessPeak has them */
    uint64_t shm_peak_bytes;
    uint64_t own_peak_bytes;
    bool fds_to_count; /* the kernel does not say how many */
    Sample last;
} Seen;

typedef struct SeenTable {
    Seen *live; /* in rising order of pid */
    size_t n_live;
    size_t live_capacity;
    Seen *ended; /* in the order in which it was noticed */
    size_t n_ended;
    size_t ended_capacity;
} SeenTable;

void seen_free(SeenTable *table);

Seen *seen_live(const SeenTable *table, int pid);

/* NULL without memory. There must be none of that pid. */
Seen *seen_add(SeenTable *table, int pid, uint64_t start_ticks);

/* The newest of that pid that has ended. */
Seen *seen_ended(const SeenTable *table, int pid);

/* Moves it among the ended. NULL when it was not kept: all that are there matter more. */
Seen *seen_end(SeenTable *table, Seen *live, double seconds);

/* Sets one of seen's path, stack and said to a copy of the n bytes. False: there is no room for it. */
bool seen_quote(SeenTable *table, Seen *seen, char **slot, const char *text, size_t n);
