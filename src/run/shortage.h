/* Is memory short, here and now? Then what is kept for speed alone has to go. */
#pragma once

#include "mounts.h"

/* What does not change while a job runs. */
typedef struct Shortage {
    Root root;
    Arena arena;
    Mounts mounts;
} Shortage;

/* `path` as root_open takes it. */
int shortage_open(const char *path, Shortage *ret);
void shortage_close(Shortage *shortage);

/* What cannot be read does not speak for a shortage. */
bool shortage_now(const Shortage *shortage);

/* What may still be taken of the machine and of every control group above us. U64_UNKNOWN when nothing tells.
 */
typedef struct Spare {
    uint64_t bytes;      /* before memory would be short */
    uint64_t most_bytes; /* before there is none: swap counts too */
    bool tight;          /* a moment's need of the processes for memory of their own may take all of it */
} Spare;
Spare shortage_spare(const Shortage *shortage);
