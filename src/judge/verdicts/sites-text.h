/* SPDX-License-Identifier: Apache-2.0 */
/* What the search for the line that leaks says. */
#pragma once

/* --- Lines. A file, its line, a function; SITES_ABOUT or nothing; a rate; which process; a duration; the end
 */

#define SITES_LINE          "%s:%u in %s: keeps %s/min (measured in %s over %s)%s"
#define SITES_LINE_NAMELESS "%s:%u: keeps %s/min (measured in %s over %s)%s"
#define SITES_NATIVE                                                                                         \
    "%s:%u in %s: keeps %s%s/min outside Python's own memory (estimated from samples in %s over %s)%s"
#define SITES_NATIVE_UNKNOWN                                                                                 \
    "No Python line: keeps %s%s/min outside Python's own memory, in threads that run no Python (estimated "  \
    "from samples in %s over %s)%s"

#define SITES_ABOUT    "about "
#define SITES_SHARE    "; explains %.0f%% of the growth."
#define SITES_NO_SHARE "."

/* A path of attributes and its type; entries; a rate; which process; a duration. */
#define SITES_ATTRIBUTE                                                                                      \
    "%s, +%s entries/min, +%s/min (entries measured in %s over %s, bytes estimated from some of them)."
#define SITES_TYPE "%s: +%s objects/min (measured in %s over %s)."

#define SITES_TRAINER "the trainer"
#define SITES_WORKER  "worker %d"

/* --- What that means ------------------------------------------------------------------------------------ */

#define SITES_TITLE   "The line that leaks:"
#define SITES_STEADY  "Nothing was found that keeps growing, in the windows that were looked at."
#define SITES_NO_LINE "Private memory grew by %s/min, but no line was found that explains it."
#define SITES_LITTLE  "The lines above explain %.0f%% of the growth, which is less than half of it."
#define SITES_TRY                                                                                            \
    "Look again while it grows (shmguard where PID). What is left may be memory that the C library keeps "   \
    "for "                                                                                                   \
    "reuse: start the training with MALLOC_ARENA_MAX=2 to see whether that is so."
#define SITES_TRY_GUARD                                                                                      \
    "Without the guard only Python objects can be looked at, and not the memory of tensors, arrays and C "   \
    "extensions. Start the training with: shmguard run --where -- python train.py"
#define SITES_REPLACED                                                                                       \
    "These lines keep more than memory grew by: some of it takes the place of what was freed, so no share "  \
    "of the growth is given."
#define SITES_TRACED "Tracing Python objects slowed %s down for %s."

/* --- What no line is to blame for ------------------------------------------------------------------------
 */

#define SITES_NOT_COPY_ON_WRITE                                                                              \
    "The copy-on-write growth has no line of its own: reading an object writes its reference count, which "  \
    "copies the page that the trainer and its workers shared."
#define SITES_NOT_BACKLOG                                                                                    \
    "The shared memory that piles up is not kept by a line of Python in the windows that were looked at: "   \
    "batches are made faster than they are used, or the trainer keeps them."
#define SITES_NOT_PAGE_CACHE                                                                                 \
    "The page cache has no line: the kernel keeps pages of files that were read, and drops them when "       \
    "memory "                                                                                                \
    "is needed."
