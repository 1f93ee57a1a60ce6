/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crash of the supervisor must not be the training's: for SIGSEGV, SIGBUS, SIGABRT, SIGFPE and SIGILL a
 * handler says so, sends the sentinel home and becomes another program by exec: `shmguard --after-crash PID`.
 * exec needs nothing that the crash may have broken. It ends all other threads and closes the broker's
 * descriptors, after which the guard in the job goes the plain way; and it keeps what matters: our number, so
 * that the command is still our child and the shell waits for the right process, the signals that are blocked
 * or pending, and our place at the terminal. The new program only waits for the command, passes signals on
 * and ends as the command does. What the command leaves behind is left, as without us.
 *
 * When the exec fails, we die of the signal, and the training goes on all the same.
 */
#pragma once

#include <signal.h>
#include <sys/types.h>

#define CRASH_WORD "--after-crash"

/* The signals of a crash. A thread of ours that runs under a supervisor leaves them open. */
void crash_signals(sigset_t *ret);

/* From now on a crash leaves this command to run. Those of the signals that somebody else handles, or that
 * are ignored, stay as they are. */
void crash_prepare(pid_t command, int sentinel_fd);

/* No command runs, or it needs us: a crash is our end. */
void crash_forget(void);

/* In the new program. Returns the exit code; a negative errno when there is no such command. */
int crash_await(pid_t command);
