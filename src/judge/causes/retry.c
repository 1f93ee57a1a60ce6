/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>

#include "causes-text.h"
#include "causes.h"
#include "retry.h"

static bool exception_helped_by_less(const char *detail)
{
    return detail && (strcmp(detail, "gpu-out-of-memory") == 0 || strcmp(detail, "memory-error") == 0);
}

/*
 * A terminal sends Ctrl-C to the command's group and not to us: only the command's end shows it. SIGTERM is a
 * request too, whatever its sender. SIGKILL is not: the kernel sends it for lack of memory, and a scheduler
 * only some time after a SIGTERM, which we have seen.
 */
static bool is_request(int signo)
{
    return signo == SIGINT || signo == SIGTERM || signo == SIGQUIT || signo == SIGHUP;
}

Retry retry_judge(const RetryCase *ended)
{
    if (ended->cause == CAUSE_OK ||
        (ended->started && ended->code == 0 && ended->cause != CAUSE_BUDGET_EXCEEDED))
        return RETRY_DONE; /* except when batches were lost: the command succeeds without them */
    if (ended->told_to_end || is_request(ended->signal) || is_request(ended->code - 128))
        return RETRY_ASKED;
    if (!ended->started)
        return RETRY_NO_START;
    bool exception = ended->cause == CAUSE_PYTHON_ERROR;
    bool helped = exception ? exception_helped_by_less(ended->detail) : cause_helped_by_less(ended->cause);
    if (helped && ended->can_degrade)
        return RETRY_LESS;
    if (exception)
        return RETRY_ERROR;
    return ended->can_resume || !ended->can_degrade ? RETRY_SAME : RETRY_NOT_LESS;
}

const char *restarts_words(RestartsBy by)
{
    switch (by) {
    case RESTARTS_COMMAND:
        return RETRY_WORDS_COMMAND;
    case RESTARTS_LAUNCHER:
        return RETRY_WORDS_LAUNCHER;
    case RESTARTS_NOBODY:
        return RETRY_WORDS_NOBODY;
    case RESTARTS_OURS:
        break;
    }
    return NULL;
}

const char *retry_words(Retry retry)
{
    switch (retry) {
    case RETRY_ASKED:
        return RETRY_WORDS_ASKED;
    case RETRY_NO_START:
        return RETRY_WORDS_NO_START;
    case RETRY_ERROR:
        return RETRY_WORDS_ERROR;
    case RETRY_NOT_LESS:
        return RETRY_WORDS_NOT_LESS;
    case RETRY_LESS:
    case RETRY_SAME:
    case RETRY_DONE:
        break;
    }
    return NULL;
}
