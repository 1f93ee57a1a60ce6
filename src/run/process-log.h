/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that a job has had. All live ones are here; of the ended ones LOGGED_ENDED_MAX are kept, bad
 * ends in preference to good ones. The words and faults of LOGGED_WORDY_MAX processes are kept, with the same
 * preference. So a job that runs for months, or writes a lot, takes no more than a few MiB.
 *
 * A process is identified by its pid and start time, which is 0 for a process that was reported only after it
 * had ended. Pointers to processes are valid until the next call that adds or ends one.
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
    Fault fault; /* with path and stack from below */
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
    LoggedProcess *ended; /* in the order in which the ends were noticed */
    size_t n_ended;
    size_t ended_capacity;
} ProcessLog;

void process_log_free(ProcessLog *table);

LoggedProcess *process_log_live(const ProcessLog *table, int pid);

/* NULL without memory. There must be no live process with that pid. */
LoggedProcess *process_log_add(ProcessLog *table, int pid, uint64_t start_ticks);

/* The newest of that pid that has ended. */
LoggedProcess *process_log_ended(const ProcessLog *table, int pid);

/* Moves it to the ended. NULL: it was not kept, because all others matter more. */
LoggedProcess *process_log_end(ProcessLog *table, LoggedProcess *live, double seconds);

/* Sets `slot`, which is the process's path, stack or said, to a copy of the n bytes. False: there is no room.
 */
bool process_log_quote(ProcessLog *table, LoggedProcess *logged, char **slot, const char *text, size_t n);
