/*
 * Breaks the guard on purpose: whoever asks whether a segment is free is told yes. Included in front of its
 * sources, it makes the library that the stress test must catch, so that the test is known to be able to
 * fail.
 */
#pragma once

#include <fcntl.h>

#define fcntl(fd, command, ...)                                                                              \
    ((command) == F_OFD_GETLK ? (((struct flock *)(uintptr_t)(__VA_ARGS__))->l_type = F_UNLCK, 0)            \
                              : (fcntl)((fd), (command), __VA_ARGS__))
