/* SPDX-License-Identifier: Apache-2.0 */
/* The trials of `tune`, one after the other: each runs the command with a setting and measures its rate. */
#pragma once

#include <limits.h>

#include "run.h"
#include "tune-rate.h"
#include "tune.h"

/* The trial that runs. */
typedef struct RunningTrial {
    size_t setting;
    bool first;          /* of this setting: it may be stopped early */
    const char *program; /* the first word of its command */
    RateMeter meter;
    double began;
    double checked;
    bool stopped;
} RunningTrial;

typedef struct Trials {
    /* To be filled in. */
    const TuneReport *report; /* the search so far; by_bytes and trial_seconds say how to measure */
    Arena *arena;             /* where causes live */
    RateReader reader;        /* open */
    double start_seconds;     /* how long the first batch, or the first rate, may take */
    SizeWish memory;          /* the budget of the guard */

    Run *run; /* after trials_open */

    /* The rest is for reading. */
    RunWatch watch;
    RunningTrial running;
    Arena words;    /* of the running trial's command */
    double seconds; /* that the trials of this search have taken, with their starts and ends */
    size_t made;    /* by this process */
    char library[PATH_MAX];
} Trials;

/* Negative errno: no command can be supervised here. The Trials must stay where they are. */
int trials_open(Trials *trials);
void trials_close(Trials *trials);

/* What kept the command, or the guard, from starting. */
typedef struct TrialStart {
    int guard_error; /* negative errno: the guard does not work here; 0: it does */
    ChildStage stage;
} TrialStart;

/* Starts the command with the setting. Negative errno: it did not start. Without the guard it starts only if
 * the training prints its rate. */
int trial_start(Trials *trials, const TuneStep *step, TrialStart *ret);

typedef struct TrialEnd {
    bool interrupted; /* we were sent a signal to end: there is no trial */
    bool typed;       /* by Ctrl-C, or by a SIGINT that was sent */
    TuneTrial trial;
} TrialEnd;

/* Waits for the end of the trial, and judges it. Negative errno. */
int trial_finish(Trials *trials, TrialEnd *ret);

/* Between two trials, as run_pause. */
bool trials_pause(Trials *trials, bool *ret_typed);

/* How long a trial takes on average; before the first one, an estimate. */
double trials_mean_seconds(const Trials *trials);
