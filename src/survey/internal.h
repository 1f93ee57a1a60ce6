/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#pragma once

#include "roles.h"
#include "survey.h"

/* Processes are in rising order of pid. NULL when there is none. */
Process *process_find(const Survey *survey, int pid);

/* Fills processes, from pid to readable except what segments_scan and the costly part of survey_take give. */
int processes_list(const Root *root, Survey *survey);

/* Fills segments, the holders and what follows from them. */
int segments_scan(const Root *root, const Mounts *mounts, Survey *survey);
