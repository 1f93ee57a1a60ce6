/* SPDX-License-Identifier: Apache-2.0 */
/* The file behind a mapping of another process; its name may be gone or belong to another file by now. */
#pragma once

#include "maps.h"

/*
 * Its stat as far as the kernel has it in memory: no disk and no file server is queried, so a dead one cannot
 * make us wait, and the size is the one by which the kernel decides about SIGBUS. Through map_files if
 * permitted; through the path, if it still leads to that file; or through a descriptor by which the process
 * has it open. -ENODATA: there is no way.
 */
int mapped_file_stat(const Root *root, int pid, const MapEntry *entry, FileStat *ret);
