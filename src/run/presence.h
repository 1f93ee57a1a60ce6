/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the preload library is in a process of the job, and why not. A process is asked once, and again
 * when it has become another program.
 *
 * One question is enough for a process that was forked: it has its libraries where its parent has them, at
 * addresses that the kernel has drawn by lot. Other processes are searched. The dynamic linker maps what is
 * preloaded before the C library: once that is there, what is missing stays missing. Before that, and of a
 * program without one, a later look decides.
 */
#pragma once

#include "evidence.h"

typedef struct Presence {
    bool known;
    bool waits;   /* for the program to load its libraries */
    double since; /* as the clock of whoever asks has it */
    bool loaded;  /* as the next, when it is known */
    Absence why;  /* it does nothing for us there; ABSENCE_NONE: it works */
    uint64_t at;  /* where it is mapped */
} Presence;

/* What the job's processes were given. */
typedef struct PresenceWish {
    const char *library;
    const char *socket;
} PresenceWish;

/* One question, of one whose parent is known. False: it was not forked from it, or the kernel cannot be asked
 * just one. */
bool presence_inherit(const Root *root, int pid, const Presence *parent, const PresenceWish *wish,
                      Buffer *scratch, Presence *presence);

/* Goes through all libraries of the process, which runs as user uid. `now`: in seconds. */
void presence_search(const Root *root, int pid, uint32_t uid, double now, const PresenceWish *wish,
                     Buffer *scratch, Presence *presence);

/*
 * Why the library, which is not mapped, was not loaded, from the environment that the program was started
 * with, as far as that tells: ABSENCE_UNKNOWN. Of one that is mapped: why it does nothing for us there, or
 * ABSENCE_NONE. `environment` is that of /proc/PID/environ. Pure.
 */
Absence absence_of_mapped(Text environment, const char *socket);
Absence absence_of_missing(Text environment, const char *library);
