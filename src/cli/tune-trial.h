/* SPDX-License-Identifier: Apache-2.0 */
/* One trial of `tune` after the other: runs the command with a setting, and says how that went. */
#pragma once

#include <limits.h>

#include "progress.h"
#include "run.h"
#include "show-tune.h"
#include "tune-rate.h"

/* The trial that runs. */
typedef struct Running {
    size_t setting;
    bool first_look; /* of this setting: it may be given up early */
    RateMeter meter;
    double checked;
    bool stopped;
} Running;

typedef struct Trials {
    /* To be filled in. */
    const TuneReport *report; /* the search so far; by_bytes and trial_seconds say how to measure */
    Arena *arena;             /* where causes live */
    RateReader reader;        /* open */
    double start_seconds;     /* how long the first sign of work may take */
    SizeWish memory;          /* the budget of the guard */
    bool quiet;               /* no progress */

    /* The rest is its own. */
    Progress progress;
    Run *run;
    RunWatch watch;
    Running running;
    double seconds; /* that the trials of this call have taken, with their beginnings and ends */
    size_t made;    /* by this call */
    char library[PATH_MAX];
} Trials;

/* EX_OK, or the exit code for what went wrong, said. The Trials must stay where they are. */
int trials_open(Trials *trials);
void trials_close(Trials *trials);

typedef struct TrialEnd {
    bool interrupted; /* we were sent a signal to end: there is no trial */
    bool typed;       /* it was a Ctrl-C, or as good as one */
    TuneTrial trial;
} TrialEnd;

/* EX_OK, or the exit code for what kept the command from starting, said. Negative errno. */
int trial_make(Trials *trials, const TuneStep *step, TrialEnd *ret);

/* Between two trials. As run_pause. */
bool trials_pause(Trials *trials, bool *ret_typed);
