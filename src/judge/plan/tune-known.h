/* SPDX-License-Identifier: Apache-2.0 */
/* What tune.c knows of the settings, for the search in tune-search.c. */
#pragma once

#include "tune.h"

/* Rates nearer than this part make no difference to anybody. */
#define TUNE_EQUAL_PART 0.02

/* 0…1, in the order of the axis. */
double tune_place(const Tune *tune, size_t setting, size_t axis);

/* As tune_setting, with the noise of all trials, which is dear to find out. */
TuneSetting tune_known(const Tune *tune, size_t setting, double noise);

/* The guard's pools for a loader with these fields; what is beyond all bounds is INT64_MAX. U64_UNKNOWN: no
 * batch size is known. */
uint64_t tune_shm_planned(const Tune *tune, size_t setting, const PlanLoader *loader);

/* Of a setting, as far as the grid tells. */
double tune_processes(const Tune *tune, size_t setting);
