/* SPDX-License-Identifier: Apache-2.0 */
/* What `run`, `record`, `tune` and `plan --measure` have in common: they start a command of the user's. */
#pragma once

#include <limits.h>

#include "causes.h"
#include "run.h"

/* The words with blanks between them. -ENOMEM. */
int command_join(char *const *words, Buffer *out);

/* Starts to serve the guard with our preload library, whose path is kept in `library`. -ENOENT: this build
 * has none; otherwise as run_guard. A training also runs without the guard. */
int guard_serve(Run *run, char library[static PATH_MAX], const GuardWish *wish);

/* Why the command ended as it did. start_error: a positive errno if it could not be started. What is returned
 * lives in arena: *ret in English, for programs, *ret_shown in the language of people. -ENOMEM. */
int end_judge(Run *run, const RunResult *result, const char *command, int start_error, Arena *arena,
              Evidence *ret_evidence, Diagnosis *ret, Diagnosis *ret_shown);
