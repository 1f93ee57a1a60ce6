/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grows in a process, and under which line of the program: as the guard's part in Python found it
 * (src/guard/python/where.py), in one window of time in one process. docs/where.md says how.
 */
#pragma once

#include "text.h"

typedef enum SiteStage {
    SITE_STAGE_CENSUS = 1,
    SITE_STAGE_PYTHON,
    SITE_STAGE_NATIVE,
    SITE_STAGES_END,
} SiteStage;

typedef enum SiteKind {
    SITE_ATTRIBUTE, /* a container, by the attributes that lead to it */
    SITE_TYPE,      /* objects of a type that the collector knows */
    SITE_PYTHON,    /* Python objects, by the line that made them */
    SITE_NATIVE,    /* other memory, by the nearest Python line */
    SITE_KINDS,
} SiteKind;

typedef struct Site {
    SiteKind kind;
    uint32_t line;  /* 0: none, or not known */
    uint64_t bytes; /* by which it grew in the window; of an attribute estimated from some of its items */
    uint64_t late_bytes; /* of these, in the second half of the window; U64_UNKNOWN */
    uint64_t count;      /* of entries, objects or allocations */
    char file[200];      /* UTF-8, these two; "": not known. Of a longer path, its end */
    char what[120];      /* a function; of an attribute its path and type, of a type its name */
} Site;

/* SITE_SAMPLES_LEAST: from fewer samples of native memory only the order of magnitude is known (10 give a
 * third more or less). */
enum { SITES_MOST = 16, SITE_SAMPLES_LEAST = 10 };

typedef struct SiteWindow {
    double seconds; /* when it ended */
    double duration;
    int pid;
    int worker; /* its number in its loader; -1: not a worker */
    SiteStage stage;
    bool deep; /* of Python objects: their callers were known, so the line is the program's own if any was */
    int64_t growth;         /* of the process's private memory, in bytes */
    int64_t late_growth;    /* in the second half; INT64_MIN: not known */
    int64_t descriptors;    /* by which the open ones increased */
    double cost_seconds;    /* CPU time that looking took; while it looked, the process did nothing else */
    Site sites[SITES_MOST]; /* the largest first */
    size_t n_sites;
} SiteWindow;

/* In order of time. */
typedef struct SiteWindows {
    const SiteWindow *items;
    size_t n;
    bool unguarded; /* the processes have no guard: only Python objects were looked at */
} SiteWindows;

/* What a process says, which is not trusted. Fills in everything but seconds and pid. -EBADMSG. */
int site_window_parse(Text text, SiteWindow *ret);

/* Whether the process grew in both halves of the window, as far as that is known. */
bool site_window_grows(const SiteWindow *window);

/* Whether that also holds for a site: its share in the second half is not small, as far as that can be told
 * from its samples. */
bool site_goes_on(const Site *site);

/* Whether the file belongs to Python or to a package, not to the program. */
bool site_is_library(const Site *site);

/* The bytes of the sites that go on, of all Python and native sites together. */
uint64_t site_window_explained(const SiteWindow *window);

const char *site_kind_name(SiteKind kind);
