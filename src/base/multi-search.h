/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds many literals in one pass over a stream of bytes, with one table look-up per byte however many
 * literals there are (the automaton of Aho and Corasick). All state between two pieces of the stream is one
 * number that the caller keeps, so the stream may be split anywhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "macro.h"

enum { NEEDLES_MAX = 512 };

typedef struct NeedleSet {
    uint64_t words[NEEDLES_MAX / 64];
} NeedleSet;

static inline void needle_set_add(NeedleSet *set, size_t i)
{
    set->words[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline bool needle_set_has(const NeedleSet *set, size_t i)
{
    return set->words[i / 64] >> (i % 64) & 1;
}

static inline void needle_set_join(NeedleSet *set, const NeedleSet *other)
{
    for (size_t i = 0; i < ARRAY_SIZE(set->words); i++)
        set->words[i] |= other->words[i];
}

static inline bool needle_set_is_empty(const NeedleSet *set)
{
    uint64_t any = 0;
    for (size_t i = 0; i < ARRAY_SIZE(set->words); i++)
        any |= set->words[i];
    return any == 0;
}

static inline bool needle_set_contains(const NeedleSet *set, const NeedleSet *all)
{
    uint64_t missing = 0;
    for (size_t i = 0; i < ARRAY_SIZE(set->words); i++)
        missing |= all->words[i] & ~set->words[i];
    return missing == 0;
}

static inline bool needle_set_meets(const NeedleSet *set, const NeedleSet *other)
{
    uint64_t common = 0;
    for (size_t i = 0; i < ARRAY_SIZE(set->words); i++)
        common |= set->words[i] & other->words[i];
    return common != 0;
}

typedef struct MultiSearch MultiSearch;

/*
 * At most NEEDLES_MAX literals, none of them empty; the i-th is number i in the sets. `stops` are bytes, none
 * of them in a literal, at which the scan returns to the caller. -EINVAL, -ENOMEM.
 */
int multi_search_new(const char *const *literals, size_t n, const char *stops, size_t n_stops,
                     MultiSearch **ret);
void multi_search_free(MultiSearch *search);

typedef enum NeedlesEvent {
    NEEDLES_END,  /* *p == end */
    NEEDLES_HIT,  /* (*p)[-1] is the last byte of what multi_search_hits says */
    NEEDLES_STOP, /* (*p)[-1] is one of the stops; *state is as it was before it */
} NeedlesEvent;

/* Advances *p to the next event. *state is 0 at first, and wherever a literal must not continue across this
 * point. */
NeedlesEvent multi_search_scan(const MultiSearch *search, uint32_t *state, const char **p, const char *end);
const NeedleSet *multi_search_hits(const MultiSearch *search, uint32_t state);

/* How many of the bytes before this point begin a literal, at most. */
size_t multi_search_depth(const MultiSearch *search, uint32_t state);
