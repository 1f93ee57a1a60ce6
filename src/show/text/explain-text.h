/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of `explain`, and of fixes wherever they are shown. */
#pragma once

#define EXPLAIN_CAUSE      "cause"
#define EXPLAIN_CONFIDENCE "confidence"
#define EXPLAIN_PROCESS    "process"

#define EXPLAIN_WHY     "Why:"
#define EXPLAIN_MATCHED "Matching log lines:"
#define EXPLAIN_FIXES   "What to do:"
#define EXPLAIN_NOTES   "Common misconceptions:"

#define CONFIDENCE_CERTAIN     "certain"
#define CONFIDENCE_VERY_LIKELY "very likely"
#define CONFIDENCE_LIKELY      "likely"
#define CONFIDENCE_POSSIBLE    "possible"
#define CONFIDENCE_GUESS       "a guess"

/* What to do, and what that takes. */
#define FIX_NEEDS_ROOT    "%s (needs root)"
#define FIX_NEEDS_RESTART "%s (needs a restart)"
#define FIX_NEEDS_ADMIN   "%s (needs an administrator)"
