/* SPDX-License-Identifier: Apache-2.0 */
/* Can `shmguard run` be offered here? */
#pragma once

#include <limits.h>

#include "advice.h"

#define GUARD_LIBRARY "libshmguard-preload.so"

/* machine may be NULL: what it would tell is then taken as good. */
GuardOffer guard_offer_find(const Machine *machine);

/* Where the preload library is: beside the program, else where it is installed. False: nowhere. */
bool guard_library(char path[static PATH_MAX]);
