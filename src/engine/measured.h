/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured of a job, and what that means for the same job with other settings. */
#pragma once

#include "figures.h"
#include "plan.h"
#include "survey.h"

typedef struct PlanMeasured {
    uint64_t peak_bytes; /* of all trainers together */
    uint64_t need_bytes; /* that scaling starts from: the peak, or an estimate from one sample */
    bool guarded;        /* counted by the guard, whose pools keep segments for the next batch */
    bool now;            /* one sample, not a peak */
    double seconds;      /* that it ran */
    int code;            /* of the command, when it ended by itself; otherwise 0 */
    uint64_t trainers;
    uint64_t workers; /* of each */
    uint64_t batch;   /* 0: not known */
    ProcessPeak *processes;
    size_t n_processes;
    bool scaled; /* to another setting, or from the guard's pools to /dev/shm */
} PlanMeasured;

/* Measures the job of process pid, and for a launcher the jobs below it, by one sample. -ENODATA: it is not a
 * training with shared tensors. -ENOMEM. */
int measured_sample(const Root *root, const Survey *survey, int pid, Arena *arena, PlanMeasured *ret);

/*
 * From what was measured to what one trainer takes with the settings that were asked for, written into the
 * question. asked: 0 workers or batch: as measured. ranks_given: the question's ranks are the user's, not
 * those that were measured. -EOVERFLOW.
 */
int measured_scale(PlanMeasured *measured, const PlanLoader *asked, bool ranks_given, PlanQuestion *question);

/* Adds to the plan what the reader has to know about the figures. -ENOMEM. */
int measured_notes(const PlanMeasured *measured, const PlanLoader *asked, Arena *arena, Plan *plan);
