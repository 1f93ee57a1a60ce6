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

/* No process of this user, which is not root, is left, and none can be hidden: none is about to open what it
 * has just made. */
bool user_is_gone(const Survey *survey, uint32_t uid);

/* As orphan_judge, for the segments of such a user: their age does not matter. */
Orphan orphan_judge_of_gone(const Survey *survey, const Segment *segment, Arena *arena, const char **ret_why);

const char *orphan_name(Orphan orphan);
