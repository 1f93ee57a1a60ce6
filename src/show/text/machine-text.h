/* SPDX-License-Identifier: Apache-2.0 */
/* The line about /dev/shm in `ps` and `doctor`, beside its label. */
#pragma once

#include "language.h"

#define MACHINE_SHM_ABSENT     _("missing: programs that share memory will fail")
#define MACHINE_SHM_NOT_TMPFS  _("not a tmpfs: shared memory has no place of its own here")
#define MACHINE_SHM_UNREADABLE _("could not be read")

#define MACHINE_SHM           _("%s, %s used (%.0f%%), %s available")
#define MACHINE_SHM_UNLIMITED _("no size limit, %s used")
#define MACHINE_SHM_READ_ONLY _("read-only") /* added behind a comma */
