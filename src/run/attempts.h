/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one attempt at a command changes against the one before: smaller parameters (--degrade) and arguments
 * that continue from a checkpoint (--resume). Pure: text in, text out.
 *
 * Words
 *
 * knob: a parameter with the values that it takes, from the first attempt to the smallest.
 *
 * level: how often the parameters were made smaller. Level 0 has the first value of each knob; a knob that
 * has no more values stays at its last.
 */
#pragma once

#include <stdbool.h>

#include "arena.h"
#include "text.h"

typedef struct Knob {
    const char *name;    /* an identifier */
    const char **values; /* at least one, none of them empty */
    size_t n_values;
    size_t values_capacity;
} Knob;

typedef struct Knobs {
    Knob *items; /* no two names alike, not even in another case */
    size_t n;
    size_t capacity;
} Knobs;

/*
 * Adds "NAME=V1,V2,…". 0, -ENOMEM, or -EINVAL with what is wrong appended to error, one escaped line without
 * newline; knobs is then as it was. What was parsed lives in arena.
 */
int knobs_add(Knobs *knobs, const char *text, Arena *arena, Buffer *error);

const char *knob_value(const Knob *knob, unsigned level);

/* Whether a higher level differs from this one. */
bool knobs_have_less(const Knobs *knobs, unsigned level);

/*
 * The samples that make one step of the optimizer, of one process: batch size times accumulation steps, as
 * far as the knobs' names (batch, batch_size, bs, …; accum, grad_accum, gradient_accumulation_steps, …) tell.
 */
typedef struct EffectiveBatch {
    bool known;       /* one knob is a batch size, and its value a positive number */
    bool accumulated; /* another is the number of accumulation steps; else samples is the batch size alone,
                         and what the command does besides is not known */
    uint64_t samples;
} EffectiveBatch;

EffectiveBatch effective_batch(const Knobs *knobs, unsigned level);

/* The arguments of --resume. */
typedef struct Resume {
    char **words; /* unquoted; a word may hold {latest:GLOB} several times */
    size_t n_words;
    size_t words_capacity;
    char **globs; /* of all {latest:GLOB}, in their order */
    size_t n_globs;
    size_t globs_capacity;
} Resume;

/*
 * Splits text at blanks, with single quotes, double quotes and backslashes as a shell has them. It is no
 * shell: what would be a variable or a command substitution there is refused rather than passed on as it
 * stands, unless it is quoted so that a shell would leave it alone too. Errors as knobs_add.
 */
int resume_parse(const char *text, Arena *arena, Resume *ret, Buffer *error);

/*
 * COMMAND at a level: each {NAME} of a knob becomes its value; all other braces stay. When resume is not
 * NULL, its words follow, with found[i] for the i-th {latest:GLOB}. *ret is NULL-terminated. -ENOMEM.
 */
int attempt_command(char *const *command, const Knobs *knobs, unsigned level, const Resume *resume,
                    const char *const *found, Arena *arena, char ***ret);

/*
 * "SHMGUARD_ATTEMPT=2" and, for each knob, "SHMGUARD_VALUE_NAME=value" with the name in capitals,
 * NULL-terminated. -ENOMEM.
 */
int attempt_settings(const Knobs *knobs, unsigned level, unsigned attempt, Arena *arena, char ***ret);

/* How long to wait after that many attempts have failed: 1, 2, 4 … 60 seconds. */
unsigned attempt_pause_seconds(unsigned failed);
