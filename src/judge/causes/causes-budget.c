/* SPDX-License-Identifier: Apache-2.0 */
/* What became of requests for shared memory that were refused. */
#include <string.h>

#include "cause-context.h"
#include "causes-text.h"
#include "units.h"

enum { WHO_SHOWN = 3 };

/* An exception this soon after a refusal may follow from it. */
static const double SECONDS_FOLLOWS = 60;

/* Exceptions that missing data does not cause. */
static const char *const unrelated[] = {"ModuleNotFoundError", "ImportError",       "SyntaxError",
                                        "IndentationError",    "NameError",         "FileNotFoundError",
                                        "PermissionError",     "KeyboardInterrupt", "NotImplementedError"};

static const Ended *ended_of(const Evidence *evidence, int pid)
{
    for (size_t i = 0; i < evidence->n_ended; i++)
        if (evidence->ended[i].pid == pid)
            return &evidence->ended[i];
    return NULL;
}

/* The process ended with an error. The command's own end is judged by its exit code instead. */
static bool refusal_ended_it(const Evidence *evidence, const Refusal *refusal)
{
    const Ended *ended = ended_of(evidence, refusal->pid);
    return ended && ended->pid != evidence->pid && ended->has_status && ended->signal == 0 &&
           ended->code != 0;
}

static bool refusal_is_lost(const Evidence *evidence, const Refusal *refusal)
{
    if (refusal->unheard > 0 && !(refusal->told && evidence->served_after))
        return true;
    return refusal_ended_it(evidence, refusal);
}

/*
 * A refusal is an exception in the thread that asked.
 *
 * In a process's main thread it propagates through the program's own calls; from a DataLoader worker PyTorch
 * passes it on to the trainer. The program can catch it and ask for less; uncaught, it ends the process. So
 * if no process that was refused has ended with an error, and the job made shared tensors after the last
 * refusal, the refusal was handled. If it made none, the exception may have been caught and ignored.
 *
 * In any other thread no caller can catch it: the threads of multiprocessing's queues print the exception,
 * drop what they were about to send, and continue with the next item. That they make tensors afterwards
 * proves nothing. The refusal was handled only if we ended the process because of it, upon which PyTorch
 * raises an exception in the trainer, and the job made shared tensors nevertheless. If the worker had exited
 * before we could end it, its batch counts as lost.
 *
 * Processes beyond REFUSALS_MAX are not known individually, so nothing shows that their refusals were
 * handled.
 */
RefusalState refusals_judge(const Evidence *evidence)
{
    uint64_t known = 0;
    if (evidence->refused == 0)
        return REFUSALS_NONE;
    for (size_t i = 0; i < evidence->n_refusals; i++) {
        known += evidence->refusals[i].requests;
        if (refusal_is_lost(evidence, &evidence->refusals[i]))
            return REFUSALS_LOST;
    }
    return evidence->served_after && known >= evidence->refused ? REFUSALS_HANDLED : REFUSALS_UNCLEAR;
}

static const char *sentences_join(CauseContext *context, const char *first, const char *second)
{
    return cause_printf(context, "%s %s", first, second);
}

/* Within a sentence. */
static const char *refusal_who(CauseContext *context, const Refusal *refusal)
{
    const Ended *ended = ended_of(context->evidence, refusal->pid);
    int pid = refusal->pid;
    if (pid == context->evidence->pid)
        return cause_printf(context, WHO_COMMAND_INSIDE, pid);
    if (ended && ended->role == ROLE_WORKER)
        return cause_printf(context, WHO_WORKER, pid);
    if (ended && ended->role == ROLE_TRAINER)
        return cause_printf(context, WHO_TRAINER_INSIDE, pid);
    if (ended && ended->comm[0])
        return cause_printf(context, WHO_PROCESS_NAMED_INSIDE, pid,
                            cause_escape(context, text_of(ended->comm)));
    return cause_printf(context, WHO_PROCESS_INSIDE, pid);
}

uint64_t refused_most_bytes(const Evidence *evidence)
{
    uint64_t most = evidence->refused_bytes;
    for (size_t i = 0; i < evidence->n_refusals; i++)
        most = MAX(most, evidence->refusals[i].most_bytes);
    return most;
}

static const char *refused_text(CauseContext *context)
{
    const Evidence *evidence = context->evidence;
    unsigned long long n = evidence->refused;
    const char *most = cause_printf(context, "%s", SIZE_TEXT(refused_most_bytes(evidence)));
    const char *text = n == 1 ? cause_printf(context, EVIDENCE_REFUSED_ONE, most)
                              : cause_printf(context, EVIDENCE_REFUSED_MANY, n, most);
    for (size_t i = 0; i < MIN(evidence->n_refusals, (size_t)WHO_SHOWN); i++) {
        unsigned long long requests = evidence->refusals[i].requests;
        const char *who = refusal_who(context, &evidence->refusals[i]);
        text = sentences_join(context, text,
                              n == 1 ? cause_printf(context, EVIDENCE_REFUSED_FROM, who)
                                     : cause_printf(context, EVIDENCE_REFUSED_BY, requests, who));
    }
    return evidence->n_refusals > WHO_SHOWN ? sentences_join(context, text, EVIDENCE_REFUSED_BY_OTHERS)
                                            : text;
}

static const char *budget_text(CauseContext *context)
{
    uint64_t budget = context->evidence->budget_bytes;
    switch (context->evidence->budget_basis) {
    case BUDGET_OF_MACHINE:
        return cause_printf(context, EVIDENCE_BUDGET_MACHINE, SIZE_TEXT(budget));
    case BUDGET_OF_GROUP:
        return cause_printf(context, EVIDENCE_BUDGET_GROUP, SIZE_TEXT(budget));
    case BUDGET_OF_SLURM:
        return cause_printf(context, EVIDENCE_BUDGET_SLURM, SIZE_TEXT(budget));
    case BUDGET_OF_NOTHING:
    case BUDGET_OF_USER:
        break;
    }
    return cause_printf(context, EVIDENCE_BUDGET, SIZE_TEXT(budget));
}

static void evidence_refused(CauseContext *context, Diagnosis *ret)
{
    diagnosis_evidence(context, ret, refused_text(context));
    if (context->evidence->budget_bytes != U64_UNKNOWN)
        diagnosis_evidence(context, ret, budget_text(context));
}

static void refusal_begin(CauseContext *context, Diagnosis *ret)
{
    ret->from_log = false;
    ret->detail = context->evidence->refused_for_want ? "no-memory" : NULL;
    ret->cause.pid = context->evidence->refused_pid;
    evidence_refused(context, ret);
}

void budget_judge(CauseContext *context, double confidence, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    refusal_begin(context, ret);
    if (evidence->refused_for_want)
        diagnosis_set(ret, CAUSE_BUDGET_EXCEEDED, confidence, BUDGET_NO_MEMORY);
    else
        diagnosis_set(ret, CAUSE_BUDGET_EXCEEDED, confidence,
                      cause_printf(context, BUDGET_TOO_LARGE, SIZE_TEXT(refused_most_bytes(evidence)),
                                   SIZE_TEXT(evidence->budget_bytes)));
}

static const char *refused_why(CauseContext *context)
{
    const Evidence *evidence = context->evidence;
    return evidence->refused_for_want
               ? REFUSED_NO_MEMORY
               : cause_printf(context, REFUSED_TOO_LARGE, SIZE_TEXT(refused_most_bytes(evidence)),
                              SIZE_TEXT(evidence->budget_bytes));
}

static void lost_judge(CauseContext *context, double confidence, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    unsigned long long n = evidence->refused;
    bool lost = refusals_judge(evidence) == REFUSALS_LOST;
    const char *summary = lost ? cause_printf(context, PLURAL(n, LOST_ONE, LOST_MANY), n)
                               : cause_printf(context, PLURAL(n, REFUSED_ONE, REFUSED_MANY), n);
    summary = sentences_join(context, summary, refused_why(context));
    if (!lost)
        summary = sentences_join(context, summary, REFUSED_MAYBE_LOST);
    if (evidence->code == 0 && evidence->signal == 0)
        summary = sentences_join(context, summary, REFUSED_EXIT_CODE);
    refusal_begin(context, ret);
    diagnosis_set(ret, CAUSE_BUDGET_EXCEEDED, confidence, summary);
}

bool lost_judge_good(CauseContext *context, Diagnosis *ret)
{
    RefusalState state = refusals_judge(context->evidence);
    if (state != REFUSALS_LOST && state != REFUSALS_UNCLEAR)
        return false;
    lost_judge(context, state == REFUSALS_LOST ? 0.95 : 0.6, ret);
    diagnosis_evidence(context, ret, cause_printf(context, EVIDENCE_EXIT_CODE, 0));
    return true;
}

static bool exception_is_unrelated(const Diagnosis *text)
{
    for (size_t i = 0; i < text->n_matched; i++)
        for (size_t j = 0; j < ARRAY_SIZE(unrelated); j++)
            if (strncmp(text->matched[i], unrelated[j], strlen(unrelated[j])) == 0)
                return true;
    return false;
}

bool lost_judge_exception(CauseContext *context, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    RefusalState state = refusals_judge(evidence);
    bool near = evidence->seconds - evidence->refused_seconds <= SECONDS_FOLLOWS;
    if (ret->detail || exception_is_unrelated(context->log) || state == REFUSALS_NONE ||
        state == REFUSALS_HANDLED || (state == REFUSALS_UNCLEAR && !near))
        return false;
    lost_judge(context, state == REFUSALS_UNCLEAR ? 0.55 : near ? 0.85 : 0.6, ret);
    return true;
}
