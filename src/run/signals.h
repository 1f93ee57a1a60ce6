/* SPDX-License-Identifier: Apache-2.0 */
/* Which signals a supervisor takes in: it passes them on to the command, or acts on them. */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* All of them, SIGCHLD and SIGCONT too. */
void signals_taken(sigset_t *ret);

/* Whether it ends a command, unless the command does something else about it. */
bool signal_ends(int signo);
