/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor saw of a job: its processes once a second, what they testify (protocol.h), how they
 * ended, and what the kernel counted meanwhile. At the end it is the Evidence that a cause is judged by.
 *
 * Looking costs little: under 0.5% of one core for 64 processes at one look a second. What is dear is looked
 * at in turns: the mappings of one process every two seconds are counted, and a few are searched for PyTorch,
 * by which roles are known.
 *
 * It does not grow with time: of each process there is the last sample, of the whole job the peaks, and of
 * the ended and of what they said no more than process-log.h keeps.
 */
#pragma once

#include "broker.h"
#include "evidence.h"
#include "figures.h"
#include "history.h"
#include "protocol.h"

typedef struct Journal Journal;

/* Before the command is started. `root` must stay. Remembers the counters of the OOM killer as they are now,
 * and that the children we have are not the command's. -ENOMEM. */
int journal_open(const Root *root, Journal **ret);
void journal_free(Journal *journal);

/* Before the command is started: its processes are to have the library, and are looked at for it. Both
 * strings must stay. */
void journal_expect(Journal *journal, const char *library, const char *socket);

/* The command was started: it is below us, and has its mounts and limits. Until then nothing is looked at. */
void journal_begin(Journal *journal, int pid);

/* Once a second, and when it is about to be ended. */
void journal_tick(Journal *journal);

/* Another thread has looked at the job, and this is what it saw. While such moments keep coming, the ticks do
 * not look at processes. */
void journal_take(Journal *journal, const Moment *moment);

/* Between two ticks, for whoever wants peaks that last less than a second: the memory of the processes that
 * are known, and the job's /dev/shm. */
void journal_peek(Journal *journal);

/* A packet came from process `pid`. Of a FAULT, whose sender waits for the answer: looks at the process now,
 * with the help of `maps` where we may not (negative: it sent none). False: it makes no sense, or comes from
 * a process that is none of the job's. */
bool journal_testify(Journal *journal, int pid, const Testimony *testimony, size_t size, int maps);

/*
 * Whose a process of another user is that connects to us. It is the job's when it is below us and runs as
 * that user. Its number may belong to another process by now: then that one is the job's, too, and of the
 * same user, who controls both.
 */
Peer journal_peer(Journal *journal, int pid, uint32_t uid);

/* We are about to end this process. */
void journal_ending(Journal *journal, int pid);

/* We waited for a process of the job; `by_us`: it was we who ended it. Stops are no ends, and ignored. */
void journal_reaped(Journal *journal, int pid, int status, bool by_us);

Peaks journal_peaks(const Journal *journal);

/* Of the processes that were seen, those that have ended as far as process-log.h keeps them. ret lives in
 * arena. -ENOMEM. */
int journal_processes(const Journal *journal, Arena *arena, ProcessPeak **ret, size_t *ret_n);

/* Of a process that lives; ROLE_OTHER: none is known. */
Role journal_role(const Journal *journal, int pid);

/* The live process of which `bytes` says most; pid 0: of none. */
Keeper journal_keeper(const Journal *journal, uint64_t (*bytes)(void *context, int pid), void *context);

/* How many live that train, and that work for those. */
void journal_roles(const Journal *journal, uint64_t *ret_trainers, uint64_t *ret_workers);

/* After the last process has ended. The caller fills in what it knows about the command, the budget and the
 * guard. ret lives in arena. -ENOMEM. */
int journal_finish(Journal *journal, Arena *arena, Evidence *ret);
