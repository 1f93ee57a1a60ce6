/* SPDX-License-Identifier: Apache-2.0 */
/* What can be seen of a fault from outside, while the process that had it waits. */
#pragma once

#include "evidence.h"
#include "protocol.h"

/*
 * From a sane FAULT of process pid. `look`: at the process too; else, and where it cannot be read, the place
 * is unknown. `maps`: its /proc/PID/maps, as it says, for where we may not open that; negative: none.
 * ret->path lives in scratch, which is reused memory.
 */
void fault_read(const Root *root, int pid, const Testimony *testimony, bool look, int maps, Buffer *scratch,
                Fault *ret);
