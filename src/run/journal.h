/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor knows about a job: its processes once a second, what they testify (protocol.h), how
 * they ended, and what the kernel counted meanwhile. At the end this is the Evidence from which a cause is
 * judged.
 *
 * Processes are looked at through a sampler (survey/sampler.h), for less than 0.5% of one core with 64
 * processes at one look per second; while a recorder looks at the job anyway, the journal takes its samples.
 *
 * It does not grow with time: it keeps the last sample of each live process, the peaks of the whole job, and
 * of ended processes and their words no more than process-log.h keeps.
 */
#pragma once

#include "broker.h"
#include "evidence.h"
#include "figures.h"
#include "history.h"
#include "protocol.h"

typedef struct Journal Journal;

/* Before the command is started. `root` must stay. Remembers the current counters of the OOM killer, and
 * which children we already have: they are not the command's. -ENOMEM. */
int journal_open(const Root *root, Journal **ret);
void journal_free(Journal *journal);

/* Before the command is started: its processes should have the library, and are searched for it. Both strings
 * must stay. */
void journal_expect(Journal *journal, const char *library, const char *socket);

/* The command was started: it is below us, and has its mounts and limits. Before this, nothing is looked at.
 */
void journal_begin(Journal *journal, int pid);

/* Once a second, and before the command is ended. */
void journal_tick(Journal *journal);

/* Another thread has looked at the job, and this is what it saw. While such moments keep coming, the ticks do
 * not look at processes. */
void journal_take(Journal *journal, const Moment *moment);

/* Between two ticks, for peaks shorter than a second: the memory of the known processes, and the job's
 * /dev/shm. */
void journal_peek(Journal *journal);

/* A packet came from process `pid`. For a FAULT, whose sender waits for the answer, the process is examined
 * now, with the help of `maps` where we may not read it ourselves (negative: it sent none). False: the packet
 * makes no sense, or comes from a process that does not belong to the job. */
bool journal_testify(Journal *journal, int pid, const Testimony *testimony, size_t size, int maps);

/*
 * Whether a process of another user that connects to us belongs to the job. It does if it is below us and
 * runs as that user. Its number may belong to another process by now: that one belongs to the job, too, and
 * to the same user, who controls both.
 */
Peer journal_peer(Journal *journal, int pid, uint32_t uid);

/* We are about to end this process. */
void journal_ending(Journal *journal, int pid);

/* We have waited for a process of the job; `by_us`: we ended it. Stops are not ends, and are ignored. */
void journal_reaped(Journal *journal, int pid, int status, bool by_us);

Peaks journal_peaks(const Journal *journal);

/* The processes that were seen; of the ended ones, those that process-log.h keeps. ret lives in arena.
 * -ENOMEM. */
int journal_processes(const Journal *journal, Arena *arena, ProcessPeak **ret, size_t *ret_n);

/* Of a live process; ROLE_OTHER: unknown. */
Role journal_role(const Journal *journal, int pid);

/* The live process for which `bytes` returns most; pid 0: 0 for all. */
Keeper journal_keeper(const Journal *journal, uint64_t (*bytes)(void *context, int pid), void *context);

/* The number of live trainers and workers. */
void journal_roles(const Journal *journal, uint64_t *ret_trainers, uint64_t *ret_workers);

/* After the last process has ended. The caller fills in what it knows about the command, the budget and the
 * guard. ret lives in arena. -ENOMEM. */
int journal_finish(Journal *journal, Arena *arena, Evidence *ret);
