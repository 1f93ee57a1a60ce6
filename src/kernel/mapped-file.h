/* SPDX-License-Identifier: Apache-2.0 */
/* The file behind a mapping of another process, whose name may be gone or mean another file by now. */
#pragma once

#include "maps.h"

/*
 * Its stat as far as the kernel has it at hand: no disk and no file server is asked, so that a dead one
 * cannot make us wait, and the size is the one by which the kernel decides about SIGBUS. Through map_files
 * where we may; through the path, when it still leads to that file; through a descriptor of the process that
 * has it open. -ENODATA when there is no way.
 */
int mapped_file_stat(const Root *root, int pid, const MapEntry *entry, FileStat *ret);
