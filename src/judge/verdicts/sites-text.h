/* SPDX-License-Identifier: Apache-2.0 */
/* What the search for the line that leaks says. */
#pragma once

#include "language.h"

/* --- Lines. A file, its line, a function; SITES_ABOUT or nothing; a rate; which process; a duration; the end
 */

#define SITES_LINE          _("%s:%u in %s: keeps %s/min (measured in %s over %s)%s")
#define SITES_LINE_NAMELESS _("%s:%u: keeps %s/min (measured in %s over %s)%s")
#define SITES_NATIVE                                                                                         \
    _("%s:%u in %s: keeps %s%s/min outside Python's own memory (estimated from samples in %s over %s)%s")
#define SITES_NATIVE_UNKNOWN                                                                                 \
    _("No Python line: keeps %s%s/min outside Python's own memory, in threads that run no Python "           \
      "(estimated from samples in %s over %s)%s")

#define SITES_ABOUT    _("about ")
#define SITES_SHARE    _("; explains %.0f%% of the growth.")
#define SITES_NO_SHARE _(".")

/* A path of attributes and its type; entries; a rate; which process; a duration. */
#define SITES_ATTRIBUTE                                                                                      \
    _("%s, +%s entries/min, +%s/min (entries measured in %s over %s, bytes estimated from some of them).")
#define SITES_TYPE _("%s: +%s objects/min (measured in %s over %s).")

#define SITES_TRAINER _("the trainer")
#define SITES_WORKER  _("worker %d")

/* --- What that means ------------------------------------------------------------------------------------ */

#define SITES_TITLE   _("The line that leaks:")
#define SITES_STEADY  _("Nothing was found that keeps growing, in the windows that were looked at.")
#define SITES_NO_LINE _("Private memory grew by %s/min, but no line was found that explains it.")
#define SITES_LITTLE  _("The lines above explain %.0f%% of the growth, which is less than half of it.")
#define SITES_TRY                                                                                            \
    _("Look again while it grows (shmguard where PID). What is left may be memory that the C library keeps " \
      "for reuse: start the training with MALLOC_ARENA_MAX=2 to see whether that is so.")
#define SITES_TRY_GUARD                                                                                      \
    _("Without the guard only Python objects can be looked at, and not the memory of tensors, arrays and C " \
      "extensions. Start the training with: shmguard run --where -- python train.py")
#define SITES_REPLACED                                                                                       \
    _("These lines keep more than memory grew by: some of it takes the place of what was freed, so no "      \
      "share of the growth is given.")
#define SITES_TRACED _("Tracing Python objects slowed %s down for %s.")

/* --- What no line is to blame for ------------------------------------------------------------------------
 */

#define SITES_NOT_COPY_ON_WRITE                                                                              \
    N_("The copy-on-write growth has no line of its own: reading an object writes its reference count, "     \
       "which copies the page that the trainer and its workers shared.")
#define SITES_NOT_BACKLOG                                                                                    \
    N_("The shared memory that piles up is not kept by a line of Python in the windows that were looked "    \
       "at: "                                                                                                \
       "batches are made faster than they are used, or the trainer keeps them.")
#define SITES_NOT_PAGE_CACHE                                                                                 \
    N_("The page cache has no line: the kernel keeps pages of files that were read, and drops them when "    \
       "memory is needed.")
