/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What verdicts say. In the evidence, "pid %d (%s)" is a process and its role, which is not translated, and
 * windows are the equal parts of the recorded time that are compared.
 */
#pragma once

#include "language.h"

/* --- Titles and meanings -------------------------------------------------------------------------------- */

#define VERDICT_STEADY_TITLE   N_("Steady")
#define VERDICT_STEADY_MEANING N_("Memory does not keep growing: its changes are noise, or have ended.")
#define VERDICT_LEAK_TITLE     N_("Memory leak")
#define VERDICT_LEAK_MEANING                                                                                 \
    N_("Private memory grows without end: something is kept that is never used again.")
#define VERDICT_COPY_ON_WRITE_TITLE N_("Copy-on-write growth")
#define VERDICT_COPY_ON_WRITE_MEANING                                                                        \
    N_("Workers turn memory that they shared with the trainer into private copies. It looks like a leak, "   \
       "but stops at the size of what was shared.")
#define VERDICT_SAWTOOTH_TITLE   N_("Grows within each epoch")
#define VERDICT_SAWTOOTH_MEANING N_("Memory grows during an epoch and is freed at its end.")
#define VERDICT_BACKLOG_TITLE    N_("Shared memory piles up")
#define VERDICT_BACKLOG_MEANING                                                                              \
    N_("Shared memory is created faster than it is released, or batches are kept.")
#define VERDICT_FD_LEAK_TITLE N_("Descriptors pile up")
#define VERDICT_FD_LEAK_MEANING                                                                              \
    N_("Files or shared tensors are opened and not closed: at the limit, no more can be opened.")
#define VERDICT_PAGE_CACHE_TITLE N_("Page cache grows")
#define VERDICT_PAGE_CACHE_MEANING                                                                           \
    N_("Only file pages grow, which the kernel can drop at any time. This is harmless.")
#define VERDICT_TOO_SHORT_TITLE   N_("Too short to say")
#define VERDICT_TOO_SHORT_MEANING N_("The recording is too short for a verdict.")

/* --- Advice --------------------------------------------------------------------------------------------- */

#define VERDICT_LEAK_TRAINER_ADVICE                                                                          \
    N_("Look for what outlives a training step: losses that are summed or kept as tensors (use loss.item() " \
       "or loss.detach()), outputs and batches in lists, hooks, and caches without a bound.")
#define VERDICT_LEAK_WORKER_ADVICE                                                                           \
    N_("Look in the dataset and its transforms for what is kept between samples: caches without a bound "    \
       "(functools.lru_cache(maxsize=None)), lists that only grow, files that stay open.")
#define VERDICT_LEAK_WORKER_RELIEF                                                                           \
    N_("Until the leak is found, end the workers after each epoch (persistent_workers=False), which frees "  \
       "their memory.")
#define VERDICT_LEAK_OTHER_ADVICE N_("Look for what this process keeps from one task to the next.")
#define VERDICT_LEAK_JOB_ADVICE                                                                              \
    N_("Create each DataLoader once and reuse it: with persistent_workers=True, every new one starts "       \
       "workers that stay until it is deleted.")
#define VERDICT_LEAK_RELIEF                                                                                  \
    N_("Until the leak is found, save checkpoints and restart the training from the latest one when memory " \
       "runs out.")
#define VERDICT_COPY_ON_WRITE_FREEZE                                                                         \
    N_("Run the job under the guard: before workers are forked, it makes the dataset's Python objects "      \
       "immortal, and reading those writes nothing.")
#define VERDICT_COPY_ON_WRITE_PERHAPS                                                                        \
    N_("Run the job under the guard, with Python 3.12 to 3.14 and workers that are forked: it makes the "    \
       "dataset's Python objects immortal, and reading those writes nothing.")
#define VERDICT_COPY_ON_WRITE_UNFROZEN                                                                       \
    N_("The guard has made no dataset of this job immortal. That needs Python 3.12 to 3.14 and workers "     \
       "that "                                                                                               \
       "are forked; with --report, shmguard run says what was in the way (freeze.why).")
#define VERDICT_COPY_ON_WRITE_FROZEN                                                                         \
    N_("The guard has made the dataset's lists, dicts, strings and numbers immortal. What workers still "    \
       "copy are objects of other kinds, what was added to the dataset later, or what is not part of it.")
#define VERDICT_COPY_ON_WRITE_SHARED                                                                         \
    N_("Keep the dataset's records in a shmguard.SharedList or SharedDict: there is one copy for all "       \
       "workers, in every version of Python and however workers are started.")
#define VERDICT_COPY_ON_WRITE_ARRAYS                                                                         \
    N_("Keep the dataset's index (paths, labels, annotations) in NumPy arrays, tensors or Arrow tables "     \
       "instead of lists and dicts of Python objects: pages without reference counts stay shared.")
#define VERDICT_COPY_ON_WRITE_PYTHON                                                                         \
    N_("Or use Python 3.12 to 3.14: there, the guard makes the dataset's Python objects immortal before "    \
       "workers are forked, and reading those writes nothing. The Python of this job cannot.")
#define VERDICT_COPY_ON_WRITE_WORKERS N_("Lower num_workers: each worker makes its own copy.")
#define VERDICT_COPY_ON_WRITE_ROOM                                                                           \
    N_("Or leave room for one copy of the dataset per worker: the growth stops there, and is not a leak.")
#define VERDICT_SAWTOOTH_WORKER_ADVICE                                                                       \
    N_("The memory is freed when the workers end, so it does not leak across epochs; only the peak at the "  \
       "end of an epoch must fit. To lower the peak, bound what the dataset keeps between samples.")
#define VERDICT_SAWTOOTH_WORKER_KEEP                                                                         \
    N_("Keep persistent_workers=False: with persistent workers the growth would continue from epoch to "     \
       "epoch.")
#define VERDICT_SAWTOOTH_TRAINER_ADVICE                                                                      \
    N_("If the peak is too high, release earlier what an epoch collects (predictions, losses, metrics): "    \
       "reduce it batch by batch with .item() or .detach().cpu().")
#define VERDICT_BACKLOG_TRAINER_ADVICE                                                                       \
    N_("Release batches once they are used: copy what you keep (batch.clone()), or keep numbers only. A "    \
       "view of a batch, or a loss with its graph, keeps the whole batch in shared memory.")
#define VERDICT_BACKLOG_WORKER_ADVICE                                                                        \
    N_("Bound the queue (maxsize) that this process fills: it adds more than is taken out.")
#define VERDICT_BACKLOG_FEWER N_("Keep fewer batches in flight: lower prefetch_factor or num_workers.")
#define VERDICT_BACKLOG_GUARD                                                                                \
    N_("Run it under the guard with a budget: workers then wait for room instead of filling memory.")
#define VERDICT_BACKLOG_BUDGET                                                                               \
    N_("If other jobs need the memory, set a lower budget: workers then wait for room.")
#define VERDICT_FD_LEAK_CLOSE                                                                                \
    N_("Close files, sockets and archives (h5py, zipfile, PIL.Image.open) where they are opened: use "       \
       "`with`.")
#define VERDICT_FD_LEAK_RELEASE                                                                              \
    N_("Release batches once they are used: copy what you keep (batch.clone()), or keep numbers only. Each " \
       "tensor that a worker sent takes a descriptor, however small it is.")
#define VERDICT_FD_LEAK_BY_NAME                                                                              \
    N_("Or share tensors by name, which takes no descriptor per tensor (a killed training then leaves "      \
       "files "                                                                                              \
       "behind): put this at the top of the script.")
#define VERDICT_FD_LEAK_LIST N_("List the open files while it runs.")
#define VERDICT_FD_LEAK_LIMIT                                                                                \
    N_("To gain time, raise the limit in the shell that starts the training, before it starts.")
#define VERDICT_PAGE_CACHE_NOTHING                                                                           \
    N_("Nothing needs to be done: the kernel drops these pages when the memory is needed.")
#define VERDICT_TOO_SHORT_LONGER                                                                             \
    N_("Record for longer. If the training itself is short, also sample more often (--interval 0.2s).")

/* --- Evidence ------------------------------------------------------------------------------------------- */

#define VERDICT_LEAK_GREW                                                                                    \
    _("Private memory of pid %d (%s) grew from %s to %s in %s, %s/s; it rose in %zu of %zu windows.")

/* %s: of all processes together; %.0f: their number at the beginning and at the end. */
#define VERDICT_LEAK_CROWD_GREW                                                                              \
    _("Memory of all processes together grew from %s to %s in %s, %s/s; it rose in %zu of %zu windows. No "  \
      "single process grows, but their number went from %.0f to %.0f.")

/* The last three sizes: what stayed the same, what was shared at fork, and the most that can follow. */
#define VERDICT_COPY_ON_WRITE_GREW                                                                           \
    _("Memory used only by pid %d (%s) grew from %s to %s in %s, %s/s; it rose in %zu of %zu windows. Its "  \
      "whole private memory stayed at %s, so it copies what it shared with the trainer at fork (%s). At "    \
      "most %s more can follow.")

/* Sizes: before and after each rise; then the number of rises (at least three) and the time between them. */
#define VERDICT_SAWTOOTH_TEETH                                                                               \
    _("Private memory of pid %d (%s) rose from %s to %s and fell again, %zu times, every %s; it does not "   \
      "keep more each time.")

#define VERDICT_SAWTOOTH_EPOCHS                                                                              \
    _("Private memory of pid %d (%s) grows from %s to %s during an epoch and falls at its end (median of "   \
      "%zu epochs).")

/* Sizes from birth to end, its life, its rate, and over how many workers (at least two) the median goes. */
#define VERDICT_SAWTOOTH_LIVES                                                                               \
    _("Private memory of a worker grows from %s to %s in its life of %s, %s/s, and is freed when the "       \
      "worker ends with the epoch (median of %zu workers).")

#define VERDICT_BACKLOG_GREW                                                                                 \
    _("Shared memory held by pid %d (%s) grew from %s to %s in %s, %s/s; it rose in %zu of %zu windows.")
#define VERDICT_BACKLOG_KEPT        _("It stays there: more is kept than is in flight.")
#define VERDICT_BACKLOG_DESCRIPTORS _("The open descriptors of this process grew with it, from %.0f to %.0f.")

#define VERDICT_BACKLOG_GUARD_GREW                                                                           \
    _("The guard's segments grew from %s to %s in %s, %s/s, over all processes of the job; they rose in "    \
      "%zu of %zu windows.")
#define VERDICT_BACKLOG_TORCH_GREW                                                                           \
    _("PyTorch's segments grew from %s to %s in %s, %s/s, over all processes of the job; they rose in %zu "  \
      "of %zu windows.")
#define VERDICT_BACKLOG_PYTHON_GREW                                                                          \
    _("Python's shared memory grew from %s to %s in %s, %s/s, over all processes of the job; it rose in "    \
      "%zu of %zu windows.")

#define VERDICT_FD_LEAK_GREW                                                                                 \
    _("Open descriptors of pid %d (%s) grew from %.0f to %.0f in %s, %.2g/s; they rose in %zu of %zu "       \
      "windows.")

/* Behind it; %llu: the limit of open files. */
#define VERDICT_FD_LEAK_LIMITED _("The process may open %llu.")
#define VERDICT_FD_LEAK_TENSORS                                                                              \
    _("They belong to shared tensors that it keeps: each takes a descriptor, and these run out before the "  \
      "memory does.")

#define VERDICT_PAGE_CACHE_GREW                                                                              \
    _("Resident file pages of pid %d (%s) grew from %s to %s in %s, %s/s; they rose in %zu of %zu windows.")
/* The first two sizes: what the control group uses, and its limit. */
#define VERDICT_PAGE_CACHE_GROUP_GREW                                                                        \
    _("The control group uses %s of %s. File pages in it grew from %s to %s in %s, %s/s; they rose in %zu "  \
      "of %zu windows.")

/* Behind the evidence about one process. */
#define VERDICT_ALIKE_ONE  _("%zu more process does the same.")
#define VERDICT_ALIKE_MANY _("%zu more processes do the same.")

/* A size, then for how long. */
#define VERDICT_STEADY_STAYED  _("Private memory of pid %d (%s) stayed at about %s for %s.")
#define VERDICT_STEADY_STEPPED _("Private memory of pid %d (%s) rose once, to %s, in %s.")
#define VERDICT_STEADY_SETTLED _("Private memory of pid %d (%s) settled at %s in %s.")
/* What was made immortal, and by how much the private memory of a worker grew. */
#define VERDICT_STEADY_FROZEN                                                                                \
    _("The guard has made %s of the dataset immortal: since they were forked, workers have copied at most "  \
      "%s.")
/* A size. */
#define VERDICT_COPY_ON_WRITE_BESIDES _("%s of the dataset are immortal, and not among these copies.")
/* %s: a size. */
#define VERDICT_STEADY_SEEN                                                                                  \
    _("Continuing growth of %s per minute would have been detected, and no other figure keeps growing; "     \
      "growth that ended early may have been missed.")

/* How much it grew, and in what time. */
#define VERDICT_PENDING_PRIVATE     _("Private memory of pid %d (%s) grew by %s in %s.")
#define VERDICT_PENDING_COPIES      _("Private copies of pid %d (%s) grew by %s in %s.")
#define VERDICT_PENDING_FILE        _("Resident file pages of pid %d (%s) grew by %s in %s.")
#define VERDICT_PENDING_SHARED      _("Shared memory held by pid %d (%s) grew by %s in %s.")
#define VERDICT_PENDING_DESCRIPTORS _("Open descriptors of pid %d (%s) grew by %.0f in %s.")
/* Behind one of these; %s: a rate. */
#define VERDICT_PENDING_RATE _("The rate is %s.")
/* A rate, and a time. */
#define VERDICT_PENDING_EXHAUSTS                                                                             \
    _("The rate is %s; if it went on like this, the limit would be reached in %s (estimated).")
/* The same about several processes, of which this is the fastest. */
#define VERDICT_PENDING_EXHAUSTS_ALL                                                                         \
    _("The rate is %s; if all of them went on like this, the limit would be reached in %s (estimated).")
/* Behind these; %s: a time. */
#define VERDICT_PENDING_LONGER                                                                               \
    _("It is too little in too short a time to tell lasting growth from pools and caches that fill once. "   \
      "Record for %s or longer.")

/* Samples, and in what time; then the fewest and the shortest that are needed. */
#define VERDICT_TOO_SHORT_SAMPLES_ONE                                                                        \
    _("%zu sample in %s: no training process was observed for long enough after its start (at least %d "     \
      "samples and %.0f s).")
#define VERDICT_TOO_SHORT_SAMPLES_MANY                                                                       \
    _("%zu samples in %s: no training process was observed for long enough after its start (at least %d "    \
      "samples and %.0f s).")

/* A minus sign or nothing, a number, and a unit of time: s, min or h. */
#define VERDICT_RATE_DESCRIPTORS _("%s%.1f descriptors/%s")

/* --- Epochs that no mark names ----------------------------------------------------------------------------
 */

#define EPOCH_FROM_WORKERS          _("epoch (seen from new workers)")
#define EPOCH_NUMBERED_FROM_WORKERS _("epoch %llu (seen from new workers)")
