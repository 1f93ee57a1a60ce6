/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/vmstat: how often the OOM killer has killed since boot. */
#pragma once

#include "root.h"

/* -ENODATA on kernels before 4.13, which do not count. */
int vmstat_parse_oom_kills(Text text, uint64_t *ret);
int vmstat_read_oom_kills(const Root *root, uint64_t *ret);
