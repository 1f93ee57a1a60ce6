/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentinel: a small process beside the supervisor that ends the job if the supervisor was killed by
 * SIGKILL (kill -9, timeout -s KILL, the OOM killer), as python would have ended if it had been started
 * without us. Nothing else can do this: a process that is killed that way runs no more code.
 *
 * It holds one end of a socket. Only the supervisor has the other end, and the kernel closes it when the
 * supervisor ends, however it ends. A supervisor whose job is over, or that crashes, says so first: then
 * there is nothing to end. Otherwise a closed connection means that the supervisor was killed.
 *
 * The command's own process tells the sentinel its number just before exec. Until then it holds the
 * supervisor's end of the socket, too, so at no moment can a SIGKILL leave behind a command that the sentinel
 * does not know.
 *
 * It has a session of its own, because signals to our group (timeout sends one) must not reach it; it ignores
 * all signals that can be ignored; it keeps no descriptor except the socket, so that no reader at the other
 * end of a pipe waits for it; and its name and command line do not contain our name, so that it is not killed
 * by name along with us. It is our child from before the command: neither a stray nor a process of the job.
 *
 * If it is killed itself, the training goes on, and only this protection is lost.
 */
#pragma once

#include <errno.h>
#include <sys/types.h>

typedef struct Sentinel {
    pid_t pid; /* 0: there is none */
    int fd;    /* the supervisor's end */
} Sentinel;

#define SENTINEL_NONE ((Sentinel){.fd = -EBADF})

/* Before the command is started, and before our children are listed. Negative errno. */
int sentinel_start(Sentinel *ret);

/*
 * What to end: the process group of `command` (0: it has ended), and all processes, in any session, that have
 * `mark` (NULL: none) in their environment, except those that clean up after the others. The last call
 * counts. Async-signal-safe: the command's own process calls it, and so does the crash handler.
 */
void sentinel_watch(int fd, pid_t command, const char *mark);

/* The job is over, or is to be left alone. The sentinel is gone when this returns. */
void sentinel_end(Sentinel *sentinel);
