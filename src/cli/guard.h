/* Can `shmguard run` be offered here? */
#pragma once

#include "advice.h"

#define GUARD_LIBRARY "libshmguard-preload.so"

/* machine may be NULL: what it would tell is then taken as good. */
Guard guard_find(const Machine *machine);
