/* SPDX-License-Identifier: Apache-2.0 */
/* What verdicts say besides their figures. */
#pragma once

#include "verdicts.h"

/* Adds its fixes. `guarded`: the job runs under the guard. -ENOMEM. */
int verdict_advise(Verdict *verdict, bool guarded, Arena *arena);
