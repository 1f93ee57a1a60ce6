/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who starts a distributed job again after a failure: `run --retry` or its launcher. Both at once would start
 * it again and again, and a rank that is started alone waits for others that are in another attempt. Pure.
 */
#pragma once

#include "proc-environ.h"

typedef enum RestartsBy {
    RESTARTS_OURS,     /* the command is the whole job, and nobody else starts it again */
    RESTARTS_COMMAND,  /* the command is a launcher that was told to */
    RESTARTS_LAUNCHER, /* the command is one rank of a launcher that was told to */
    RESTARTS_NOBODY,   /* the command is one rank of a launcher that was not told to */
} RestartsBy;

typedef struct Restarts {
    RestartsBy by;
    const char *launcher; /* "torchrun", …; "" for RESTARTS_OURS */
    uint64_t most;        /* how often it would; U64_UNKNOWN */
    uint64_t rank;        /* of the command in the launcher's job; U64_UNKNOWN */
    uint64_t ranks;
} Restarts;

/* command: NULL-terminated. environment: PET_MAX_RESTARTS, which torchrun reads like an option; NULL: not
 * set. names: what our own launcher says. */
Restarts restarts_judge(char *const *command, const char *environment, const LauncherNames *names);
