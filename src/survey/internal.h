/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#pragma once

#include "roles.h"
#include "survey.h"

/* Processes are in rising order of pid. NULL: not found. */
Process *process_find(const Survey *survey, int pid);

/* Fills processes, from pid to readable, except what segments_scan and the costly part of survey_take fill
 * in. */
int processes_list(const Root *root, Survey *survey);

/* Fills segments, their holders, and what follows from them. */
int segments_scan(const Root *root, const Mounts *mounts, Survey *survey);
