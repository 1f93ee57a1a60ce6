/* SPDX-License-Identifier: Apache-2.0 */
/* What `ps` and `doctor` both say about the machine, as text and as JSON. */
#pragma once

#include "json.h"
#include "machine.h"
#include "terminal.h"

/* "/dev/shm      64.0 MiB, 12.0 MiB used (19%), 52.0 MiB available" */
void show_shm(const Terminal *terminal, const ShmMount *shm);

json_t *json_shm(const ShmMount *shm);
