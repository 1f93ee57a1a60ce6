/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of a run, for observers such as `shmguard watch`: a few numbers in a memfd that only the
 * supervisor writes, once a second. They are found by name among the supervisor's descriptors, so only users
 * who may inspect that process can read them, and they vanish with it.
 *
 * The reader uses read(), never a mapping, so truncating the file cannot kill it. A read may see half of an
 * update, which does no harm: each figure stands for itself and is only shown to people.
 */
#pragma once

#include "figures.h"
#include "root.h"

/* A page of that name, and which of a process's descriptors it is, by "/memfd:NAME". Negative errno. */
int published_make(const char *name);
int published_find(const Root *root, int pid, const char *target);

/* Opens that descriptor's file and reads its head. It may be another file by now: nothing that is opened in
 * this way can block. The descriptor, or negative errno: -EAGAIN if nothing was published yet, -EPROTO if it
 * is too short. */
int published_open(const Root *root, int pid, int number, void *ret_head, size_t size);

/* The supervisor's side. A descriptor, or negative errno. */
int shared_stats_make(void);
void shared_stats_write(int fd, const GuardFigures *figures);

/* Which of that process's descriptors is the page. -ENOENT: it has none, so it is not the supervisor of a
 * guarded run; otherwise, why it cannot be read. */
int shared_stats_find(const Root *root, int pid);

/*
 * Fills segments_created, segments_reused, bytes_now, budget_bytes, waiting, waits, refused and batches; the
 * rest is zero. -EAGAIN: nothing was written yet; -EPROTO: another version of this program wrote it, or it is
 * another file by now. The page is not kept open: its reader would be taken for a holder of shared memory.
 */
int shared_stats_read(const Root *root, int pid, int number, GuardFigures *ret);
