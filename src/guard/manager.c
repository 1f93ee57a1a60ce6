/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "guard.h"

/*
 * torch_shm_manager: a program of PyTorch that removes the names that processes which share by name leave
 * behind. It waits for the next client for two seconds after the last one is gone, because a receiver may
 * still have to connect. Only the supervisor knows that none will come: when all other processes of the job
 * have ended, it sends MANAGER_SIGNAL, and the wait is over, as if the two seconds had passed. The manager
 * then leaves its loop and cleans up as usual.
 *
 * - The signal is blocked except during this one wait (ppoll unblocks it and waits in one step), so it
 *   interrupts nothing else, and an early signal is delivered when the manager next waits for a client.
 *
 * - A wait for the listening socket alone means that there are no clients; the manager also waits for a
 * single client to finish its message, and that wait is left alone.
 *
 * - A client that connects at the same moment is served: ppoll reports what is ready before it reports a
 *   signal, and the next wait without clients receives the signal.
 *
 * - By default the signal is ignored, so a manager without this library, or one that has not reached
 *   manager_start yet, waits its two seconds.
 *
 * The manager has one thread and starts no process. Without a supervisor nothing is touched.
 */
static bool is_one;      /* set by the constructor, once */
static bool can_be_told; /* set by the constructor, once */
static atomic_bool told;

static void on_told(int signo)
{
    (void)signo;
    atomic_store(&told, true);
}

void manager_start(void)
{
    is_one = strcmp(program_invocation_short_name, "torch_shm_manager") == 0;
    if (!is_one || !supervisor_is())
        return;
    struct sigaction action = {.sa_handler = on_told};
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, MANAGER_SIGNAL);
    can_be_told =
        sigprocmask(SIG_BLOCK, &blocked, NULL) == 0 && real_sigaction(MANAGER_SIGNAL, &action, NULL) == 0;
}

bool manager_is(void)
{
    return is_one;
}

bool manager_waits_for_clients(const struct pollfd *files, nfds_t n, int msec)
{
    int listens = 0;
    socklen_t size = sizeof listens;
    return can_be_told && n == 1 && msec > 0 &&
           getsockopt(files[0].fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens;
}

int manager_wait(struct pollfd *files, int msec)
{
    sigset_t open;
    struct timespec most = {msec / 1000, (long)(msec % 1000) * 1000000};
    sigprocmask(SIG_BLOCK, NULL, &open);
    sigdelset(&open, MANAGER_SIGNAL);
    int r = ppoll(files, 1, &most, &open);
    if (r >= 0 || errno != EINTR || !atomic_load(&told))
        return r;
    files->revents = 0;
    return 0;
}
