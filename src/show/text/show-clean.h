/* SPDX-License-Identifier: Apache-2.0 */
/* `clean` for people and for scripts. */
#pragma once

#include "json.h"
#include "survey.h"
#include "terminal.h"

typedef struct Cleaned {
    const Segment *segment;
    const char *why; /* of those that were kept: one clause */
} Cleaned;

typedef struct CleanedList {
    Cleaned *items;
    size_t n;
    size_t capacity;
} CleanedList;

typedef struct Cleaning {
    bool dry_run;
    CleanedList removed; /* with dry_run: would be */
    CleanedList kept;
    uint64_t freed_bytes;
} Cleaning;

void show_cleaning(const Terminal *terminal, const Cleaning *cleaning);

/* Schema "shmguard.clean/1". 0 or -ENOMEM. */
int json_cleaning(FILE *out, bool indented, const Cleaning *cleaning);
