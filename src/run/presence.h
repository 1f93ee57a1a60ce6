/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the preload library is loaded in a process of the job, and if not, why. Each process is examined
 * once, and again after it has become another program.
 *
 * For a forked process, one question is enough: its libraries are where its parent has them, at randomized
 * addresses. Other processes are searched. The dynamic linker maps preloaded libraries before the C library:
 * once that is there, a missing library stays missing. Before that, and for a program without a C library, a
 * later look decides.
 */
#pragma once

#include "evidence.h"

typedef struct Presence {
    bool known;
    bool waits;   /* for the program to load its libraries */
    double since; /* in the caller's clock */
    bool loaded;  /* whether it is mapped; valid once `known` */
    Absence why;  /* why it does nothing for us there; ABSENCE_NONE: it works */
    uint64_t at;  /* where it is mapped */
} Presence;

/* What the job's processes were given. */
typedef struct PresenceWish {
    const char *library;
    const char *socket;
} PresenceWish;

/* One question, for a process whose parent is known. False: it was not forked from that parent, or the kernel
 * cannot answer a single question. */
bool presence_inherit(const Root *root, int pid, const Presence *parent, const PresenceWish *wish,
                      Buffer *scratch, Presence *presence);

/* Searches all libraries of the process, which runs as user uid. `now` is in seconds. */
void presence_search(const Root *root, int pid, uint32_t uid, double now, const PresenceWish *wish,
                     Buffer *scratch, Presence *presence);

/* The value of the last setting of that name, in the content of /proc/PID/environ. Pure. */
bool environment_value(Text environment, const char *name, Text *ret);

/*
 * absence_of_missing: why the library, which is not mapped, was not loaded, as far as the program's initial
 * environment tells; otherwise ABSENCE_UNKNOWN. absence_of_mapped: why a library that is mapped does nothing
 * for us, or ABSENCE_NONE. `environment` is the content of /proc/PID/environ. Pure.
 */
Absence absence_of_mapped(Text environment, const char *socket);
Absence absence_of_missing(Text environment, const char *library);
