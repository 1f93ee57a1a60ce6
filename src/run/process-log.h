/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that a job has had. Those that live are all there; of those that have ended LOGGED_ENDED_MAX
 * are kept, bad ends rather than good ones. What they said and where they faulted is kept of LOGGED_WORDY_MAX
 * of them, likewise. So a job that runs for months, or says what it likes, takes no more than a few MiB.
 *
 * A process is known by its pid and the time of its start, which is 0 for one that was told of only after it
 * had gone. Pointers to processes are valid until the next call that adds or ends one.
 */
#pragma once

#include "evidence.h"
#include "presence.h"

enum { LOGGED_ENDED_MAX = 512, LOGGED_WORDY_MAX = 256 };

typedef struct LoggedProcess {
    int pid;
    int ppid;
    uint64_t start_ticks;
    char comm[COMM_MAX];
    Role role;

    bool torch; /* these three as the last ProcessMoment had them */
    uint64_t command_hash;
    uint32_t uid;
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
    Sample last;
} LoggedProcess;

typedef struct ProcessLog {
    LoggedProcess *live; /* in rising order of pid */
    size_t n_live;
    size_t live_capacity;
    LoggedProcess *ended; /* in the order in which it was noticed */
    size_t n_ended;
    size_t ended_capacity;
} ProcessLog;

void process_log_free(ProcessLog *table);

LoggedProcess *process_log_live(const ProcessLog *table, int pid);

/* NULL without memory. There must be none of that pid. */
LoggedProcess *process_log_add(ProcessLog *table, int pid, uint64_t start_ticks);

/* The newest of that pid that has ended. */
LoggedProcess *process_log_ended(const ProcessLog *table, int pid);

/* Moves it among the ended. NULL when it was not kept: all that are there matter more. */
LoggedProcess *process_log_end(ProcessLog *table, LoggedProcess *live, double seconds);

/* Sets one of seen's path, stack and said to a copy of the n bytes. False: there is no room for it. */
bool process_log_quote(ProcessLog *table, LoggedProcess *logged, char **slot, const char *text, size_t n);
