/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentinel: a small process beside the supervisor that ends the job when the supervisor was killed by
 * SIGKILL (kill -9, timeout -s KILL, the OOM killer), as python would have ended if it had been started
 * without us. Nothing else can: who is killed that way runs no code of its own any more.
 *
 * It holds one end of a socket. The other end is the supervisor's alone, and the kernel closes it when the
 * supervisor goes, however it goes. A supervisor that has no more job, or crashes, says so first: then there
 * is nothing to end. Otherwise the end of the connection means that the supervisor was killed.
 *
 * The command's own process tells the sentinel its number, just before exec. Until then it has the
 * supervisor's end of the socket as well, so there is no moment at which a SIGKILL leaves a command behind
 * that the sentinel does not know.
 *
 * It has a session of its own, because signals to our group (timeout sends one) must not reach it; ignores
 * what can be ignored; keeps no descriptor but the socket, so that nobody waits for it at the other end of a
 * pipe; and has a name and a command line without our name in them, so that it is not killed along with us by
 * name. It is a child of ours from before the command: no stray, and no process of the job.
 *
 * When it is killed itself, the training goes on, and only this promise is lost.
 */
#pragma once

#include <errno.h>
#include <sys/types.h>

typedef struct Sentinel {
    pid_t pid; /* 0: there is none */
    int fd;    /* the supervisor's end */
} Sentinel;

#define SENTINEL_NONE ((Sentinel){.fd = -EBADF})

/* Before the command is started, and before anybody lists our children. Negative errno. */
int sentinel_start(Sentinel *ret);

/*
 * What is to be ended: the process group of `command` (0: it has ended) and all processes, wherever they have
 * gone, that have `mark` (NULL: none) in their environment; but not those that clean up behind the others.
 * The last word counts. Async-signal-safe: the command's own process calls it, and a crash does.
 */
void sentinel_watch(int fd, pid_t command, const char *mark);

/* The job is over, or to be left alone. The sentinel is gone when this returns. */
void sentinel_end(Sentinel *sentinel);
