/* SPDX-License-Identifier: Apache-2.0 */
/* Is a segment left over, used by no process? Pure. */
#pragma once

#include "survey.h"

typedef enum Orphan {
    ORPHAN_NO,
    ORPHAN_YES,
    ORPHAN_UNKNOWN,
} Orphan;

enum { ORPHAN_AGE_SECONDS = 60 };

/* ret_why, unless NULL, gets the reason for people, as one clause: "held by pid 12". It lives in arena. */
Orphan orphan_judge(const Survey *survey, const Segment *segment, Arena *arena, const char **ret_why);
const char *orphan_name(Orphan orphan);
