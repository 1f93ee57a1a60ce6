/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crash of the supervisor must not end the training. For SIGSEGV, SIGBUS, SIGABRT, SIGFPE and SIGILL a
 * handler reports the crash, dismisses the sentinel and becomes another program by exec: `shmguard --after-
 * crash PID`. exec needs nothing that the crash may have broken. It ends all other threads and closes the
 * broker's descriptors, after which the guard in the job uses the plain libc calls. And it keeps what
 * matters: our number, so that the command is still our child and the shell waits for the right process, the
 * blocked and pending signals, and our place at the terminal. The new program only waits for the command,
 * passes signals on and exits as the command does. Processes that the command leaves behind stay, as without
 * us.
 *
 * If exec fails, we die of the signal, and the training still goes on.
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define CRASH_WORD "--after-crash"

/* The signals of a crash. Threads of a supervisor leave them unblocked. */
void crash_signals(sigset_t *ret);

/* From now on a crash leaves this command running. Signals that have a handler already, or are ignored, are
 * left alone. `where`: the word of the search for the line that leaks, which a crash ends; NULL. */
void crash_prepare(pid_t command, int sentinel_fd, _Atomic uint32_t *where);

/* No command runs, or it needs us: a crash ends us. */
void crash_forget(void);

/* In the new program. Returns the exit code, or negative errno if there is no such command. */
int crash_await(pid_t command);
