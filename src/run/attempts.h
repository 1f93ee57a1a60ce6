/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an attempt at a command differs from the one before: smaller parameters (--degrade), and arguments that
 * continue from a checkpoint (--resume). Pure: text in, text out.
 *
 * Words:
 *
 * knob: a parameter with its list of values, from that of the first attempt to the smallest.
 *
 * level: how often the parameters were made smaller. Level 0 has the first value of each knob; a knob without
 * further values stays at its last one.
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
    Knob *items; /* no two names are equal, ignoring case */
    size_t n;
    size_t capacity;
} Knobs;

/*
 * Adds "NAME=V1,V2,…". 0, -ENOMEM, or -EINVAL with the error appended to `error` as one escaped line without
 * a newline; knobs is unchanged then. The parsed values live in arena.
 */
int knobs_add(Knobs *knobs, const char *text, Arena *arena, Buffer *error);

const char *knob_value(const Knob *knob, unsigned level);

/* Whether a higher level would differ from this one. */
bool knobs_have_less(const Knobs *knobs, unsigned level);

/*
 * The number of samples per optimizer step in one process: batch size times accumulation steps, as far as the
 * knobs' names (batch, batch_size, bs, …; accum, grad_accum, gradient_accumulation_steps, …) tell.
 */
typedef struct EffectiveBatch {
    bool known;       /* one knob is a batch size, and its value a positive number */
    bool accumulated; /* another knob is the number of accumulation steps; otherwise `samples` is the batch
                         size alone, and how the command accumulates is unknown */
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
 * Splits text at blanks, with single quotes, double quotes and backslashes as in a shell. It is not a shell:
 * a variable or a command substitution is refused, rather than passed on unexpanded, unless it is quoted so
 * that a shell would not expand it either. Errors are reported as in knobs_add.
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
