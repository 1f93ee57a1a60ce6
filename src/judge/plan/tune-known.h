/* SPDX-License-Identifier: Apache-2.0 */
/* What tune.c knows about settings, for the search in tune-search.c. */
#pragma once

#include "tune.h"

/* Rates closer than this part are equal for all purposes. */
#define TUNE_EQUAL_PART 0.02

/* 0…1, in the order of the axis. */
double tune_place(const Tune *tune, size_t setting, size_t axis);

/* As tune_setting, with the noise of all trials, which is costly to compute. */
TuneSetting tune_known(const Tune *tune, size_t setting, double noise);

/* The guard's pools for a loader with these fields; INT64_MAX on overflow. U64_UNKNOWN: the batch
 * size is not known. */
uint64_t tune_shm_planned(const Tune *tune, size_t setting, const PlanLoader *loader);

/* The processes of a setting, as far as the grid says. */
double tune_processes(const Tune *tune, size_t setting);
