/* SPDX-License-Identifier: Apache-2.0 */
/* What threatens a job before it starts, for people. */
#pragma once

#include "preflight.h"
#include "terminal.h"

/* At most THREATS_MAX messages of two lines each; nothing when nothing threatens it. */
void show_preflight(const Terminal *terminal, const Preflight *preflight);

/* One message that nothing does, with the figures that say so. */
void show_preflight_fine(const Terminal *terminal, const Machine *machine, const PreflightPlan *plan);
