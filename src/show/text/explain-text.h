/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of `explain`, and of fixes wherever they are shown. */
#pragma once

#include "language.h"

#define EXPLAIN_CAUSE      _("cause")
#define EXPLAIN_CONFIDENCE _("confidence")
#define EXPLAIN_PROCESS    _("process")

#define EXPLAIN_WHY     _("Why:")
#define EXPLAIN_MATCHED _("Matching log lines:")
#define EXPLAIN_FIXES   _("What to do:")
#define EXPLAIN_NOTES   _("Common misconceptions:")

#define CONFIDENCE_CERTAIN     _("certain")
#define CONFIDENCE_VERY_LIKELY _("very likely")
#define CONFIDENCE_LIKELY      _("likely")
#define CONFIDENCE_POSSIBLE    _("possible")
#define CONFIDENCE_GUESS       _("a guess")

/* In words, and from 0 to 1. */
#define EXPLAIN_CONFIDENCE_OF _("%s (%.2f)")

/* What to do, and what that takes. */
#define FIX_NEEDS_ROOT    _("%s (needs root)")
#define FIX_NEEDS_RESTART _("%s (needs a restart)")
#define FIX_NEEDS_ADMIN   _("%s (needs an administrator)")
