/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for the line that leaks in a training without the guard, by asking its interpreters from outside
 * (remote-python.h): CPython 3.14. Nobody in the job reads a word then, so each change of the word is brought
 * to each process that it concerns, as a file that the process runs (python/where_remote.py).
 */
#pragma once

#include "shared-sites.h"

typedef struct WhereRemote WhereRemote;

/*
 * pid: the trainer, one of its workers, or what started several trainers. `root` must stay. Errors as those
 * of remote_python_open about this process, with *ret_minor.
 */
int where_remote_open(const Root *root, int pid, int *ret_minor, WhereRemote **ret);

/* To be called several times a second. Whether the search goes on. */
bool where_remote_step(WhereRemote *remote, double now);

/* What was found so far. Valid until the next step. */
const SharedSites *where_remote_sites(const WhereRemote *remote);

/* Ends the search in all processes, and waits for that, for two seconds at most. */
void where_remote_close(WhereRemote *remote);
