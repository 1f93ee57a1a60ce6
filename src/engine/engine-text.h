/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine has to say: it leaves the printing to others. */
#pragma once

#include "language.h"

/* --- The guard: why it cannot be offered, as a clause --- */

#define GUARD_NO_LIBRARY _("this build has no preload library")
#define GUARD_NO_MEMFD   _("memfd_create is refused here")

/* --- Attempts: why none follows, as retry_words has it --- */

#define JOB_LAST_ATTEMPT _("that was the last attempt")

/* --- Notes about measured figures --- */

/* Sizes of a trainer and of a worker, numbers of trainers and of workers of each, and a size. */
#define MEASURED_OWN                                                                                         \
    _("Apart from shared memory, a trainer used at most %s and a worker %s (measured). For the whole job "   \
      "(trainers: %llu, workers per trainer: %llu) that is up to %s of RAM (scaled; pages that processes "   \
      "share are counted in each).")
/* prefetch_factor, and a number of batches. */
#define MEASURED_GUARDED                                                                                     \
    _("Measured under the guard, whose pools keep segments for the next batch. Scaled to what /dev/shm "     \
      "would hold without it, with prefetch_factor=%llu and batches kept by the trainer: %llu.")
#define MEASURED_NOW                                                                                         \
    _("The job holds this much now; the need is estimated from the size of its batches and the number of "   \
      "its workers.")
#define MEASURED_WORKERS_ONE  _("Measured with %llu worker, scaled to %llu.")
#define MEASURED_WORKERS_MANY _("Measured with %llu workers, scaled to %llu.")
#define MEASURED_BATCH        _("Measured with a batch size of %llu, scaled to %llu.")
#define MEASURED_CODE                                                                                        \
    _("The command ended by itself with exit code %d; what it would have used later is unknown.")

/* --- Why a trial of `tune` has no rate. Each duration is one of "3.2 s" --- */

#define TRIAL_GOOD _("It ran for the full trial time.")
#define TRIAL_SHORT                                                                                          \
    _("It ended after %s, before anything could be measured. Let it run for more steps, or give --trial a "  \
      "shorter time.")
#define TRIAL_NO_TENSORS                                                                                     \
    _("The guard saw no shared tensor in %s. A loader without workers shares none: use --rate, and let the " \
      "training print its rate.")
#define TRIAL_SILENT _("It printed nothing in %s, so --rate found nothing.")
/* A number of lines, and the last one. */
#define TRIAL_NO_MATCH_ONE   _("--rate did not match the %llu line that it printed: %s")
#define TRIAL_NO_MATCH_MANY  _("--rate matched none of the %llu lines that it printed; the last one is: %s")
#define TRIAL_NO_NUMBER_ONE  _("The group of --rate did not match a number; it printed %llu line: %s")
#define TRIAL_NO_NUMBER_MANY _("The group of --rate did not match a number; the last of %llu lines is: %s")
/* The summary of a cause, which is a sentence, and a line. */
#define TRIAL_LAST_LINE _("%s The last line that it printed: %s")

/* --- serve ---------------------------------------------------------------------------------------------- */

/* What the server answers to a request that it refuses, one line each. Clients are programs: English. */
#define HTTP_TEXT_PATHS "Not found. There are /, /metrics, /api/snapshot, /api/stream and /healthz.\n"
#define HTTP_TEXT_TOKEN                                                                                      \
    "This server requires its token: open the page as /?token=TOKEN once, or send the header "               \
    "\"Authorization: Bearer TOKEN\".\n"
#define HTTP_TEXT_HOST                                                                                       \
    "This server has no token, so it answers only requests to an IP address or to localhost; use one of "    \
    "these, or start shmguard serve with --token-file.\n"
#define HTTP_TEXT_METHOD "Only GET and HEAD are supported.\n"
#define HTTP_TEXT_BODY   "A request must not have a body.\n"
#define HTTP_TEXT_FULL   "Too many pages are open here; close one, or try again later.\n"
