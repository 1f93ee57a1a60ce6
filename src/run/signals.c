/* SPDX-License-Identifier: Apache-2.0 */
#include "signals.h"
#include "macro.h"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int telling[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP};

void signals_taken(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGCHLD);
    sigaddset(ret, SIGCONT);
    for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
        sigaddset(ret, ending[i]);
    for (size_t i = 0; i < ARRAY_SIZE(telling); i++)
        sigaddset(ret, telling[i]);
}

bool signal_ends(int signo)
{
    for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
        if (ending[i] == signo)
            return true;
    return false;
}
