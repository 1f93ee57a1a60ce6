/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines under which memory leaks: what was found in the windows of several processes and times, merged.
 * Pure; docs/where.md explains it.
 */
#pragma once

#include "verdicts.h"

typedef struct LeakSite {
    SiteKind kind;
    SiteStage stage;
    const char *file; /* "": not known, or it has none */
    uint32_t line;    /* 0: the same */
    const char *what; /* as in Site */
    double bytes_per_minute;
    double count_per_minute;
    double samples; /* of SITE_NATIVE: allocations that it is estimated from */
    bool replaces;  /* the lines of its windows keep much more than memory grew by: the share means little */
    double share; /* of the growth of private memory in the same windows; 0…1; of an attribute estimated */
    int pid;      /* of the process in which it grew most */
    int worker;   /* its number; -1: the trainer */
    double seconds;    /* that windows of this stage lasted in that process */
    const char *words; /* all of this in a sentence */
} LeakSite;

typedef struct SiteView {
    bool sought;     /* windows were looked at */
    LeakSite *items; /* lines first, the one that keeps most before the others, then attributes, then types */
    size_t n;
    size_t capacity;
    double growth_per_minute; /* of private memory, where it grew */
    bool replaces;            /* as of a site: it holds for one of them */
    double explained;         /* by the lines, of the growth in their windows; 0…1 */
    const char **notes;       /* sentences: what that means */
    size_t n_notes;
    size_t notes_capacity;
} SiteView;

/* verdicts: of the recording that the windows are from; NULL: not known. ret lives in arena and points to the
 * windows. -ENOMEM. */
int site_view_make(SiteWindows windows, const Verdicts *verdicts, Arena *arena, SiteView *ret);
