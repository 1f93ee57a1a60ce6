/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Breaks the guard on purpose: the answer to whether a segment is free is always yes. Included before its
 * sources, it makes the library that the stress test must catch, which shows that the test can fail.
 */
#pragma once

#include <fcntl.h>

#define fcntl(fd, command, ...)                                                                              \
    ((command) == F_OFD_GETLK ? (((struct flock *)(uintptr_t)(__VA_ARGS__))->l_type = F_UNLCK, 0)            \
                              : (fcntl)((fd), (command), __VA_ARGS__))
