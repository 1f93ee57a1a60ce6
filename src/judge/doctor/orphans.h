/* SPDX-License-Identifier: Apache-2.0 */
/* Does a segment belong to nobody? Pure. */
#pragma once

#include "survey.h"

typedef enum Orphan {
    ORPHAN_NO,
    ORPHAN_YES,
    ORPHAN_UNKNOWN,
} Orphan;

enum { ORPHAN_AGE_SECONDS = 60 };

/* ret_why, when not NULL, is one clause that says why, for people: "held by pid 12", "changed 3 s ago". From
 * arena. */
Orphan orphan_judge(const Survey *survey, const Segment *segment, Arena *arena, const char **ret_why);
const char *orphan_name(Orphan orphan);
