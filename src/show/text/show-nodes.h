/* SPDX-License-Identifier: Apache-2.0 */
/* How many jobs fit on the nodes of a list, for people and for scripts. */
#pragma once

#include "json.h"
#include "plan-nodes.h"
#include "terminal.h"

/* wanted_jobs: how many were asked for; 0: none in particular. */
void show_nodes(const Terminal *terminal, const NodesPlan *nodes, uint64_t wanted_jobs);

/* The field `nodes` of a plan. */
void json_nodes(JsonWriter *writer, const NodesPlan *nodes, uint64_t wanted_jobs);
