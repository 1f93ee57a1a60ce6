/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that its launcher has forked already, and that waits to be told to go on: the launcher's own
 * process becomes `shmguard run --forked FD`, and so is the parent of the command. For launchers that must do
 * more between fork and exec than a program can do that they start, such as Slurm.
 *
 * FD is one end of a socket (SOCK_SEQPACKET). The waiting process sends its pid. It then receives one packet
 * for each change of its environment, "NAME=value" or "NAME" (to be removed), without a NUL, and an empty
 * packet at the end. If the connection ends before that, it goes on as it is.
 */
#pragma once

#include <sys/types.h>

enum { FORKED_SETTING_MAX = 1 << 16 };

/* The pid of the child of ours that waits at fd. -ENODATA: none does within a few seconds. */
int forked_command_find(int fd, pid_t *ret);

/* Lets it go on: with `environment` in place of `old`, whose strings it shares. NULL: as it is. The waiting
 * process may be gone. */
void forked_command_release(int fd, char *const *old, char *const *environment);
