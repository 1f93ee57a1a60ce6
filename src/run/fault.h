/* SPDX-License-Identifier: Apache-2.0 */
/* What can be learned about a fault from outside, while the process that had it waits. */
#pragma once

#include "evidence.h"
#include "protocol.h"

/*
 * From a sane FAULT of process pid. `look`: examine the process, too; otherwise, and where it cannot be read,
 * the place is unknown. `maps`: the descriptor that it sent as its /proc/PID/maps, for when we may not open
 * that ourselves; negative: none. ret->path lives in scratch, which is reused memory.
 */
void fault_read(const Root *root, int pid, const Testimony *testimony, bool look, int maps, Buffer *scratch,
                Fault *ret);
