/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes train: the rules of survey.h, for code that keeps its own list of processes. */
#pragma once

#include "survey.h"

/*
 * Fills role, job and start of the survey's processes, which are in rising order of pid, from their pid,
 * ppid, comm, command, signals_caught, torch, threads and signs. Pure.
 */
void processes_assign_roles(Survey *survey);

/*
 * Whether the process has PyTorch loaded, and where: 1 with *ret_at, 0 if not, negative errno if it cannot be
 * read. torch_is_at only asks whether it is at that address, where a forked process has its libraries if its
 * parent has them there: one question instead of hundreds (0, too, if that question cannot be asked).
 */
int torch_find(const Root *root, int pid, Buffer *scratch, uint64_t *ret_at);
int torch_is_at(const Root *root, int pid, uint64_t at, Buffer *scratch);

/* Nothing when they cannot be read. */
ThreadSigns thread_signs_read(const Root *root, int pid);

/* The arguments with blanks between them, truncated; "[comm]" if there are none. Replaces out's content. */
int command_read(const Root *root, int pid, const char *comm, Buffer *out);
