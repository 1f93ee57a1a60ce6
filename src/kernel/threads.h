/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/task/TID/comm: the names of a process's threads. */
#pragma once

#include "root.h"

/* Anything but 0 ends the visit, which returns it. */
typedef int (*ThreadVisit)(Text name, void *context);

/* Visits all threads, the first included. Negative errno; a captured tree may have none (-ENOENT). */
int threads_visit(const Root *root, int pid, ThreadVisit visit, void *context);
