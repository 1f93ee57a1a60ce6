/* What the end of a command proves by itself. It is little: who sent a signal, and why an exit code, it does
 * not say. */
#pragma once

#include "arena.h"
#include "cause.h"

typedef struct Ending {
    int pid;
    int code;      /* 128 + signal when a signal ended it */
    int signal;    /* 0: none */
    int passed_on; /* a signal that we were sent to end it, and passed on; 0: none */
} Ending;

/* -ENOMEM. ret lives in arena. */
int cause_of_ending(const Ending *ending, Arena *arena, Cause *ret);

/* It was never started: `error` is a positive errno. */
int cause_of_no_start(const char *command, int error, Arena *arena, Cause *ret);
