/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "verdicts-words.h"

typedef enum AdviceScope {
    OF_ANY = 0,
    OF_TRAINERS = 1 << 0,
    OF_WORKERS = 1 << 1,
    OF_OTHERS = 1 << 2,
    OF_JOBS = 1 << 3,   /* about no single process */
    UNGUARDED = 1 << 4, /* of jobs without the guard */
    GUARDED = 1 << 5,
} AdviceScope;

static const struct {
    VerdictId id;
    unsigned whose;
    const char *what;
    const char *command; /* with PID where the subject's belongs */
} advice[] = {
    {VERDICT_LEAK, OF_TRAINERS,
     "Look for what outlives a step: losses that are summed or kept as tensors (use loss.item() or "
     "loss.detach()), outputs and batches in lists, hooks and caches without a bound.",
     NULL},
    {VERDICT_LEAK, OF_WORKERS,
     "Look in the dataset and its transforms for what is kept between samples: caches without a bound "
     "(functools.lru_cache(maxsize=None)), lists that are appended to, files that stay open.",
     NULL},
    {VERDICT_LEAK, OF_WORKERS,
     "Until it is found: end the workers with each epoch (persistent_workers=False), and their memory goes "
     "with "
     "them.",
     NULL},
    {VERDICT_LEAK, OF_OTHERS, "Look at what this process keeps from one piece of work to the next.", NULL},
    {VERDICT_LEAK, OF_JOBS,
     "Make each DataLoader once and use it again: with persistent_workers=True every new one brings workers "
     "that "
     "stay until it is let go of.",
     NULL},
    {VERDICT_LEAK, OF_TRAINERS | OF_OTHERS,
     "Until it is found: save checkpoints, and let the training begin again from the last when memory runs "
     "out.",
     "shmguard run --retry 3 --resume '--resume {latest:checkpoints/*.pt}' -- python train.py"},
    {VERDICT_COPY_ON_WRITE, OF_ANY,
     "Keep what the dataset knows (paths, labels, annotations) in NumPy arrays, tensors or Arrow tables "
     "instead of "
     "lists and dicts of Python objects: pages without reference counts stay shared.",
     NULL},
    {VERDICT_COPY_ON_WRITE, OF_ANY, "Lower num_workers: each worker makes a copy of its own.", NULL},
    {VERDICT_COPY_ON_WRITE, OF_ANY,
     "Or leave room for one copy of the dataset in each worker: it stops there, and is no leak.", NULL},
    {VERDICT_SAWTOOTH, OF_WORKERS,
     "It comes free when the workers end, so it is no leak across epochs; only the last moments of an epoch "
     "must "
     "find room. Bound what the dataset keeps between samples to lower the peak.",
     NULL},
    {VERDICT_SAWTOOTH, OF_WORKERS,
     "Leave persistent_workers=False as it is: with persistent workers the growth would go on from epoch to "
     "epoch.",
     NULL},
    {VERDICT_SAWTOOTH, OF_TRAINERS | OF_OTHERS,
     "Let go earlier of what is gathered in an epoch (predictions, losses, metrics): reduce it batch by "
     "batch with "
     ".item() or .detach().cpu(), if the peak is too high.",
     NULL},
    {VERDICT_BACKLOG, OF_TRAINERS,
     "Let go of batches once they are used: copy what is kept (batch.clone()) or keep numbers only. A view "
     "of "
     "a batch, or a loss with its graph, keeps all of it in shared memory.",
     NULL},
    {VERDICT_BACKLOG, OF_WORKERS | OF_OTHERS,
     "Bound the queue (maxsize) that this process fills: it makes more than is taken from it.", NULL},
    {VERDICT_BACKLOG, OF_ANY, "Keep fewer batches in flight: a lower prefetch_factor or num_workers.", NULL},
    {VERDICT_BACKLOG, UNGUARDED,
     "Run it under the guard with a budget: workers then wait for room instead of filling memory.",
     "shmguard run --budget auto -- python train.py"},
    {VERDICT_BACKLOG, GUARDED, "Set a lower ceiling, if others need the memory: workers then wait for room.",
     "shmguard run --budget 4g -- python train.py"},
    {VERDICT_FD_LEAK, OF_ANY,
     "Close files, sockets and archives (h5py, zipfile, PIL.Image.open) where they are opened: use `with`.",
     NULL},
    {VERDICT_FD_LEAK, OF_ANY, "See what they are, while it runs.", "ls -l /proc/PID/fd"},
    {VERDICT_FD_LEAK, OF_ANY,
     "To gain time, raise the limit in the shell that starts the training, before it starts.",
     "ulimit -n 65536"},
    {VERDICT_PAGE_CACHE, OF_ANY,
     "Nothing needs to be done: the kernel drops these pages when somebody needs the memory.", NULL},
    {VERDICT_TOO_SHORT, OF_ANY,
     "Record for longer; a training that is over soon, also more often (--interval 0.2s).", NULL},
};

static bool is_for(unsigned whose, const Verdict *verdict, bool guarded)
{
    if (whose & (guarded ? UNGUARDED : GUARDED))
        return false;
    unsigned wanted = whose & (OF_TRAINERS | OF_WORKERS | OF_OTHERS | OF_JOBS);
    unsigned its = verdict->pid == 0               ? OF_JOBS
                   : verdict->role == ROLE_TRAINER ? OF_TRAINERS
                   : verdict->role == ROLE_WORKER  ? OF_WORKERS
                                                   : OF_OTHERS;
    return wanted == 0 || (wanted & its);
}

static int command_make(const char *command, int pid, Arena *arena, const char **ret)
{
    const char *at = command ? strstr(command, "PID") : NULL;
    *ret =
        at ? arena_printf(arena, "%.*s%d%s", (int)(at - command), command, pid, at + strlen("PID")) : command;
    return at && !*ret ? -ENOMEM : 0;
}

int verdict_advise(Verdict *verdict, bool guarded, Arena *arena)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(advice); i++) {
        if (advice[i].id != verdict->id || !is_for(advice[i].whose, verdict, guarded))
            continue;
        const char *command = NULL;
        r = command_make(advice[i].command, verdict->pid, arena, &command);
        if (r >= 0)
            r = fix_add(arena, &verdict->fixes, NEEDS_NOTHING, advice[i].what, command);
    }
    return r;
}

const char *verdict_name(VerdictId id)
{
    static const char *const names[VERDICT_IDS] = {
        [VERDICT_STEADY] = "steady",
        [VERDICT_LEAK] = "leak",
        [VERDICT_COPY_ON_WRITE] = "copy-on-write",
        [VERDICT_SAWTOOTH] = "sawtooth",
        [VERDICT_BACKLOG] = "backlog",
        [VERDICT_FD_LEAK] = "fd-leak",
        [VERDICT_PAGE_CACHE] = "page-cache",
        [VERDICT_TOO_SHORT] = "too-short",
    };
    return names[id];
}

const char *verdict_meaning(VerdictId id)
{
    static const char *const meanings[VERDICT_IDS] = {
        [VERDICT_STEADY] = "Memory does not go on growing: what it does is noise, or came to an end.",
        [VERDICT_LEAK] = "Private memory grows without end: something is kept that is never used again.",
        [VERDICT_COPY_ON_WRITE] =
            ("Workers turn memory that they shared with the trainer into copies of their own. "
             "It looks like a leak and stops at the size of what was shared."),
        [VERDICT_SAWTOOTH] = "Memory grows within an epoch and comes free at its end.",
        [VERDICT_BACKLOG] = "Shared memory is made faster than it is let go of, or batches are kept.",
        [VERDICT_FD_LEAK] =
            "Files are opened and not closed: when the limit is reached, nothing can be opened.",
        [VERDICT_PAGE_CACHE] =
            "Only pages of files grow, which the kernel can drop at any time: no reason to worry.",
        [VERDICT_TOO_SHORT] = "It was not watched for long enough to say.",
    };
    return meanings[id];
}
