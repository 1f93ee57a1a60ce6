/* SPDX-License-Identifier: Apache-2.0 */
/* `ps` for people and for scripts. */
#pragma once

#include "json.h"
#include "ps-view.h"
#include "terminal.h"

/* "named", "unlinked" and the like. */
const char *segment_state_words(const Segment *segment);

/* Shows each segment if `segments`, else the processes and the segments summed up by kind. */
void show_ps(const Terminal *terminal, const PsView *view, bool segments);

/* Schema "shmguard.ps/1". 0 or -ENOMEM. */
int json_ps(FILE *out, bool indented, const PsView *view);
