/* What verdicts say besides their figures. */
#pragma once

#include "verdicts.h"

/* `role` is the subject's; `guarded`: the job runs under the guard. -ENOMEM. */
int verdict_advise(VerdictId id, Role role, bool guarded, Arena *arena, Fixes *fixes);
