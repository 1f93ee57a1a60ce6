/* SPDX-License-Identifier: Apache-2.0 */
/* Which command to begin with, by what happened. */
#pragma once

#include <stdio.h>

enum { BEGIN_WAYS = 2 };

typedef struct StartingPoint {
    const char *when;
    struct {
        const char *command; /* to paste; NULL: none */
        const char *what;
    } ways[BEGIN_WAYS];
} StartingPoint;

/* In the order in which they are shown; `when` is NULL behind the last. */
extern const StartingPoint starting_points[];

void begin_print(FILE *out);
