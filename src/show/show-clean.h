/* `clean` for people and for scripts. */
#pragma once

#include "json.h"
#include "survey.h"
#include "terminal.h"

typedef struct Kept {
    const Segment *segment;
    const char *why; /* one clause */
} Kept;

typedef struct Cleaning {
    bool dry_run;
    const Segment **removed; /* with dry_run: would be */
    size_t n_removed;
    size_t removed_capacity;
    Kept *kept;
    size_t n_kept;
    size_t kept_capacity;
    uint64_t freed_bytes;
} Cleaning;

void show_cleaning(const Terminal *terminal, const Cleaning *cleaning);

/* Schema "shmguard.clean/1". 0 or -ENOMEM. */
int json_cleaning(FILE *out, bool indented, const Cleaning *cleaning);
