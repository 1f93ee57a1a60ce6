/* SPDX-License-Identifier: Apache-2.0 */
/* What `run`, `tune` and `plan --measure` do alike with a command of the user's. */
#pragma once

#include <limits.h>

#include "causes.h"
#include "command.h"
#include "run.h"

/* Takes the options before "--" and the words of the command behind it, whose options are none of our
 * business. As command_parse; a command must be there. */
bool command_take(const Command *command, int argc, char **argv, void *values, char ***ret_words,
                  int *ret_code);

/* The same where there need not be one: *ret_words is then empty. */
bool command_take_if_any(const Command *command, int argc, char **argv, void *values, char ***ret_words,
                         int *ret_code);

/* The words with blanks between them. -ENOMEM. */
int command_join(char *const *words, Buffer *out);

/* Starts to serve the guard with our library, whose path is kept in `library`. Without the guard a training
 * still trains: with `say` it is said why there is none. Negative errno. */
int guard_serve(Run *run, char library[static PATH_MAX], const GuardWish *wish, bool say);

/* The exit code, as shells have it, of a command that could not be started, said. name: of our command. */
int start_complain(const char *name, const char *command, ChildStage stage, int error);

/* Why the command has ended as it has. start_error: a positive errno when it could not be started. What is
 * returned lives in arena. -ENOMEM. */
int end_judge(Run *run, const RunResult *result, const char *command, int start_error, Arena *arena,
              Evidence *ret_evidence, Diagnosis *ret);
