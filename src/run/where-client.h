/* SPDX-License-Identifier: Apache-2.0 */
/* `shmguard where`: asks the supervisor of a running job for the line that leaks. */
#pragma once

#include "root.h"

/*
 * pid: any process of the job, or its supervisor. *ret_supervisor: where the answer will be published
 * (shared-sites.h). -ESRCH: no such process; -EACCES, -EPERM: another user's; -ENOENT: it has no guard;
 * -ECONNREFUSED: its supervisor has ended; -ETIMEDOUT: the supervisor does not answer.
 */
int where_request(const Root *root, int pid, int *ret_supervisor);
