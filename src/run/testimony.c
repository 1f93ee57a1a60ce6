/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/wait.h>

#include "testimony.h"

static bool is_fault(int signo)
{
    return signo == SIGBUS || signo == SIGSEGV || signo == SIGABRT || signo == SIGFPE || signo == SIGILL;
}

bool testimony_is_sane(const Testimony *testimony, size_t size)
{
    if (size < offsetof(Testimony, text) || testimony->magic != PROTOCOL_MAGIC ||
        testimony->n > TESTIMONY_TEXT_MAX || size != offsetof(Testimony, text) + testimony->n)
        return false;
    switch (testimony->type) {
    case MESSAGE_FAULT:
        return is_fault(testimony->signal) && testimony->sender >= 0;
    case MESSAGE_CHILD:
        return testimony->pid > 1 && (WIFEXITED(testimony->status) || WIFSIGNALED(testimony->status));
    case MESSAGE_STACK:
    case MESSAGE_SAID:
    case MESSAGE_SITES:
        return true;
    default:
        return false;
    }
}
