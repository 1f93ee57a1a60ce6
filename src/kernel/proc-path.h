/* SPDX-License-Identifier: Apache-2.0 */
/* The files of one process. Pid 0 is the reading process itself: proc/self, which is a link in a captured
 * tree, too. */
#pragma once

#include "root.h"

enum { PROC_PATH_MAX = 80 };

/* "proc/PID/NAME". A name that does not fit is truncated, and then not found. Returns buf. */
char *proc_path(int pid, const char *name, char buf[static PROC_PATH_MAX]);
#define PROC_PATH(pid, name) proc_path((pid), (name), (char[PROC_PATH_MAX]){0})

/* The process may end at any moment: -ENOENT or -ESRCH then. */
int proc_read(const Root *root, int pid, const char *name, Buffer *buffer);
