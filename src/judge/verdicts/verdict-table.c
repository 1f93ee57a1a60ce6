/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "advice.h"
#include "verdict-table.h"
#include "verdicts-text.h"

enum {
    OF_ANY = 0,
    OF_TRAINERS = 1 << 0,
    OF_WORKERS = 1 << 1,
    OF_OTHERS = 1 << 2,
    OF_JOBS = 1 << 3,   /* not about a single process */
    UNGUARDED = 1 << 4, /* of jobs without the guard */
    GUARDED = 1 << 5,
    UNFROZEN = 1 << 8, /* of jobs whose datasets were not made immortal */
    FROZEN = 1 << 9,
    FREEZES = 1 << 10, /* of jobs whose Python can make them so */
    NO_FREEZES = 1 << 11,
    PERHAPS_FREEZES = 1 << 12, /* it is not known */
    OF_TENSORS = 1 << 6,       /* the descriptors are those of shared tensors */
    OF_FILES = 1 << 7,         /* they are not */
};

enum { ADVICE_MAX = 10 };

typedef struct VerdictAdvice {
    unsigned scope; /* OF_… and (UN)GUARDED */
    const char *what;
    const char *command; /* "PID" in it stands for the subject's pid */
} VerdictAdvice;

typedef struct VerdictRow {
    const char *name;
    Severity severity;
    VerdictLimit limit;
    const char *title;
    const char *meaning;
    VerdictAdvice advice[ADVICE_MAX]; /* the best first; ends at the first without `what` */
} VerdictRow;

static const VerdictRow rows[VERDICT_IDS] = {
    [VERDICT_STEADY] = {.name = "steady",
                        .severity = SEVERITY_GOOD,
                        .limit = LIMIT_NONE,
                        .title = VERDICT_STEADY_TITLE,
                        .meaning = VERDICT_STEADY_MEANING},
    [VERDICT_LEAK] = {.name = "leak",
                      .severity = SEVERITY_CRITICAL,
                      .limit = LIMIT_MEMORY,
                      .title = VERDICT_LEAK_TITLE,
                      .meaning = VERDICT_LEAK_MEANING,
                      .advice =
                          {
                              {OF_TRAINERS, VERDICT_LEAK_TRAINER_ADVICE},
                              {OF_WORKERS, VERDICT_LEAK_WORKER_ADVICE},
                              {OF_WORKERS, VERDICT_LEAK_WORKER_RELIEF},
                              {OF_OTHERS, VERDICT_LEAK_OTHER_ADVICE},
                              {OF_JOBS, VERDICT_LEAK_JOB_ADVICE},
                              {OF_TRAINERS | OF_OTHERS, VERDICT_LEAK_RELIEF,
                               "shmguard run --retry 3 --resume '--resume {latest:checkpoints/*.pt}' -- "
                               "python train.py"},
                          }},
    [VERDICT_COPY_ON_WRITE] = {.name = "copy-on-write",
                               .severity = SEVERITY_WARNING,
                               .limit = LIMIT_IF_SHORT,
                               .title = VERDICT_COPY_ON_WRITE_TITLE,
                               .meaning = VERDICT_COPY_ON_WRITE_MEANING,
                               .advice =
                                   {
                                       {UNGUARDED | FREEZES, VERDICT_COPY_ON_WRITE_FREEZE,
                                        "shmguard run -- python train.py"},
                                       {UNGUARDED | PERHAPS_FREEZES, VERDICT_COPY_ON_WRITE_PERHAPS,
                                        "shmguard run -- python train.py"},
                                       {GUARDED | UNFROZEN | FREEZES, VERDICT_COPY_ON_WRITE_UNFROZEN},
                                       {GUARDED | UNFROZEN | PERHAPS_FREEZES, VERDICT_COPY_ON_WRITE_UNFROZEN},
                                       {GUARDED | FROZEN, VERDICT_COPY_ON_WRITE_FROZEN},
                                       {OF_ANY, VERDICT_COPY_ON_WRITE_SHARED},
                                       {OF_ANY, VERDICT_COPY_ON_WRITE_ARRAYS},
                                       {NO_FREEZES, VERDICT_COPY_ON_WRITE_PYTHON},
                                       {OF_ANY, VERDICT_COPY_ON_WRITE_WORKERS},
                                       {OF_ANY, VERDICT_COPY_ON_WRITE_ROOM},
                                   }},
    [VERDICT_SAWTOOTH] = {.name = "sawtooth",
                          .severity = SEVERITY_WARNING,
                          .limit = LIMIT_IF_SHORT,
                          .title = VERDICT_SAWTOOTH_TITLE,
                          .meaning = VERDICT_SAWTOOTH_MEANING,
                          .advice =
                              {
                                  {OF_WORKERS, VERDICT_SAWTOOTH_WORKER_ADVICE},
                                  {OF_WORKERS, VERDICT_SAWTOOTH_WORKER_KEEP},
                                  {OF_TRAINERS | OF_OTHERS, VERDICT_SAWTOOTH_TRAINER_ADVICE},
                              }},
    [VERDICT_BACKLOG] =
        {.name = "backlog",
         .severity = SEVERITY_CRITICAL,
         .limit = LIMIT_SHARED,
         .title = VERDICT_BACKLOG_TITLE,
         .meaning = VERDICT_BACKLOG_MEANING,
         .advice =
             {
                 {OF_TRAINERS, VERDICT_BACKLOG_TRAINER_ADVICE},
                 {OF_WORKERS | OF_OTHERS, VERDICT_BACKLOG_WORKER_ADVICE},
                 {OF_ANY, VERDICT_BACKLOG_FEWER},
                 {UNGUARDED, VERDICT_BACKLOG_GUARD, "shmguard run --budget auto -- python train.py"},
                 {GUARDED, VERDICT_BACKLOG_BUDGET, "shmguard run --budget 4g -- python train.py"},
             }},
    [VERDICT_FD_LEAK] = {.name = "fd-leak",
                         .severity = SEVERITY_CRITICAL,
                         .limit = LIMIT_OPEN_FILES,
                         .title = VERDICT_FD_LEAK_TITLE,
                         .meaning = VERDICT_FD_LEAK_MEANING,
                         .advice =
                             {
                                 {OF_TENSORS, VERDICT_FD_LEAK_RELEASE},
                                 {OF_TENSORS, VERDICT_FD_LEAK_BY_NAME,
                                  "torch.multiprocessing.set_sharing_strategy('file_system')"},
                                 {OF_FILES, VERDICT_FD_LEAK_CLOSE},
                                 {OF_ANY, VERDICT_FD_LEAK_LIST, "ls -l /proc/PID/fd"},
                                 {OF_ANY, VERDICT_FD_LEAK_LIMIT, "ulimit -n 65536"},
                             }},
    [VERDICT_PAGE_CACHE] = {.name = "page-cache",
                            .severity = SEVERITY_INFO,
                            .limit = LIMIT_NONE,
                            .title = VERDICT_PAGE_CACHE_TITLE,
                            .meaning = VERDICT_PAGE_CACHE_MEANING,
                            .advice =
                                {
                                    {OF_ANY, VERDICT_PAGE_CACHE_NOTHING},
                                }},
    [VERDICT_TOO_SHORT] = {.name = "too-short",
                           .severity = SEVERITY_INFO,
                           .limit = LIMIT_NONE,
                           .title = VERDICT_TOO_SHORT_TITLE,
                           .meaning = VERDICT_TOO_SHORT_MEANING,
                           .advice =
                               {
                                   {OF_ANY, VERDICT_TOO_SHORT_LONGER},
                               }},
};

static bool is_for(unsigned scope, const Verdict *verdict, const AdvisedJob *job)
{
    static const unsigned by_python[] = {
        [FREEZES_UNKNOWN] = PERHAPS_FREEZES, [FREEZES_NEVER] = NO_FREEZES, [FREEZES_MAYBE] = FREEZES};
    const unsigned pythons = PERHAPS_FREEZES | NO_FREEZES | FREEZES;
    if (scope & pythons && !(scope & by_python[python_freezes(job->python)]))
        return false;
    if (scope & (job->guarded ? UNGUARDED : GUARDED) || scope & (job->frozen ? UNFROZEN : FROZEN) ||
        scope & (verdict->of_tensors ? OF_FILES : OF_TENSORS))
        return false;
    unsigned wanted = scope & (OF_TRAINERS | OF_WORKERS | OF_OTHERS | OF_JOBS);
    unsigned its = verdict->pid == 0               ? OF_JOBS
                   : verdict->role == ROLE_TRAINER ? OF_TRAINERS
                   : verdict->role == ROLE_WORKER  ? OF_WORKERS
                                                   : OF_OTHERS;
    return wanted == OF_ANY || (wanted & its);
}

static int command_make(const char *command, int pid, Arena *arena, const char **ret)
{
    const char *at = command ? strstr(command, "PID") : NULL;
    *ret =
        at ? arena_printf(arena, "%.*s%d%s", (int)(at - command), command, pid, at + strlen("PID")) : command;
    return at && !*ret ? -ENOMEM : 0;
}

int verdict_advise(Verdict *verdict, const AdvisedJob *job, Arena *arena)
{
    const VerdictAdvice *advice = rows[verdict->id].advice;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < ADVICE_MAX && advice[i].what; i++) {
        if (!is_for(advice[i].scope, verdict, job))
            continue;
        const char *command = NULL;
        r = command_make(advice[i].command, verdict->pid, arena, &command);
        if (r >= 0)
            r = fix_add(arena, &verdict->fixes, NEEDS_NOTHING, _(advice[i].what), command);
    }
    return r;
}

const char *verdict_name(VerdictId id)
{
    return rows[id].name;
}

Severity verdict_severity(VerdictId id)
{
    return rows[id].severity;
}

VerdictLimit verdict_limit(VerdictId id)
{
    return rows[id].limit;
}

const char *verdict_title(VerdictId id)
{
    return _(rows[id].title);
}

const char *verdict_meaning(VerdictId id)
{
    return _(rows[id].meaning);
}
