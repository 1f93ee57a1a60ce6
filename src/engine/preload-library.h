/* SPDX-License-Identifier: Apache-2.0 */
/* Where the preload library is, and whether `shmguard run` can be offered here. */
#pragma once

#include <limits.h>

#include "advice.h"

#define GUARD_LIBRARY "libshmguard-preload.so"

/* Without a machine (NULL), only the library is checked. */
GuardOffer guard_offer_find(const Machine *machine);

/* The path of the preload library: beside the program, or where it is installed, which may have been moved
 * together with the program. False: it is in neither place. The C API looks for the program first. */
bool guard_library(char path[static PATH_MAX]);
