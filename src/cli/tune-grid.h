/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the grid that `tune` searches, from --vary and the {NAME} in the command. */
#pragma once

#include "options.h"
#include "tune.h"

/*
 * texts: of --vary; without any, {batch} and {workers} in the command get the usual values. by_rate: the
 * training prints its rate, so that it needs no workers. EX_OK, or the exit code for what is wrong, which was
 * said. The axes live in arena.
 */
int tune_grid_make(const OptionList *texts, char *const *command, bool by_rate, Arena *arena,
                   TuneAxis **ret_axes, size_t *ret_n);
