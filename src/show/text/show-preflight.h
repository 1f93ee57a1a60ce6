/* SPDX-License-Identifier: Apache-2.0 */
/* The threats to a job that is about to start, for people. */
#pragma once

#include "preflight.h"
#include "terminal.h"

/* At most THREATS_MAX messages; nothing when no threat was found. */
void show_preflight(const Terminal *terminal, const Preflight *preflight);

/* One message that no threat was found, with the figures that show it. */
void show_preflight_fine(const Terminal *terminal, const Machine *machine, const PreflightPlan *plan);
