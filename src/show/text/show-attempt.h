/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each further attempt at a command. */
#pragma once

#include "job-run.h"
#include "terminal.h"

void show_attempt(const Terminal *terminal, const NextAttempt *next);

/* No attempt follows; `why` is the reason, as in "not tried again: it was asked to stop". */
void show_no_attempt(const Terminal *terminal, const char *why);
