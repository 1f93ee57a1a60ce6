/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each further attempt at a command. */
#pragma once

#include "job-run.h"
#include "terminal.h"

void show_attempt(const Terminal *terminal, const NextAttempt *next);

/* There is none: `why` as in "not tried again: why". */
void show_no_attempt(const Terminal *terminal, const char *why);
