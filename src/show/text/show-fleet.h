/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks and nodes of a job, for people and for scripts. */
#pragma once

#include "fleet.h"
#include "json.h"
#include "terminal.h"

/* Several recordings: which ranks are late and why, a row for each rank and node, and what leaks where. */
void show_merged(const Terminal *terminal, const FleetView *fleet);

/* The ranks of one recording; nothing if there are fewer than two. */
void show_ranks(const Terminal *terminal, const FleetView *fleet);

/* Schema "shmguard.report/1" of several recordings. 0 or -ENOMEM. */
int json_merged(FILE *out, bool indented, const FleetView *fleet);

/* Adds the fields `job`, `jobs`, `clock`, `nodes` and `ranks`. */
void json_fleet(JsonWriter *writer, const FleetView *fleet);

/* Parts that the page needs, too. NULL: no memory. */
json_t *json_rank(const FleetView *fleet, const RankView *rank);
json_t *json_node(const NodeView *node);
json_t *json_clock(const FleetView *fleet);
json_t *json_job_place(const JobPlace *place);
