/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a supervisor tells of its run to whoever looks at it from outside (`shmguard watch`): a few figures in
 * a memfd that it alone writes, once a second. They are found by its name among the supervisor's descriptors,
 * so only who may look into the process can read them, and they are gone when it is.
 *
 * The reader takes them by a read, never by a mapping: nobody can make it die by cutting the file. A read may
 * see half of an update, which is no harm: each figure stands for itself and is shown to people.
 */
#pragma once

#include "figures.h"
#include "root.h"

/* The supervisor's side. A descriptor, or negative errno. */
int shared_stats_make(void);
void shared_stats_write(int fd, const GuardFigures *figures);

/* Which of that process's descriptors is the page. -ENOENT: it has none, it is no supervisor of a guarded
 * run; otherwise why it cannot be read. */
int shared_stats_find(const Root *root, int pid);

/*
 * Of the figures: segments_created, segments_reused, bytes_now, budget_bytes, waiting, waits and refused; the
 * rest is zero. -EAGAIN: nothing was written yet; -EPROTO: by another version of this program, or it is
 * another file by now. The page is not kept open: its reader would be taken for a holder of shared memory.
 */
int shared_stats_read(const Root *root, int pid, int number, GuardFigures *ret);
