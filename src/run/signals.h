/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that a supervisor takes in: it passes them on to the command, or acts on them. */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* All of them, including SIGCHLD and SIGCONT. */
void signals_taken(sigset_t *ret);

/* Whether it ends a command that does not handle it. */
bool signal_ends(int signo);
