/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "multi-search.h"

/* A transition is the offset of the next state's row, with EVENT set if something happens on it. */
static const uint32_t EVENT = UINT32_C(1) << 31;
static const uint32_t STOP = UINT32_MAX;

struct MultiSearch {
    uint8_t class_of[256]; /* bytes that occur in no literal are all of class 0 */
    uint32_t classes;
    uint32_t states;
    uint32_t *next;    /* [states][classes] */
    uint32_t *hits_of; /* [states]: index into hits, 0 for none */
    uint16_t *depth;   /* [states]: the length of what was read of a literal */
    NeedleSet *hits;
};

static bool byte_is_stop(uint8_t byte, const char *stops, size_t n_stops)
{
    return n_stops > 0 && memchr(stops, byte, n_stops) != NULL;
}

/* Assigns classes to the bytes in use. The stops share the last one. */
static int classes_assign(MultiSearch *search, const char *const *literals, size_t n, const char *stops,
                          size_t n_stops)
{
    uint32_t states = 1;
    search->classes = 1;
    for (size_t i = 0; i < n; i++) {
        if (literals[i][0] == '\0')
            return -EINVAL;
        for (const char *c = literals[i]; *c; c++) {
            uint8_t byte = (uint8_t)*c;
            if (byte_is_stop(byte, stops, n_stops))
                return -EINVAL;
            if (search->class_of[byte] == 0)
                search->class_of[byte] = (uint8_t)search->classes++;
            states++;
        }
    }
    for (size_t i = 0; i < n_stops; i++)
        search->class_of[(uint8_t)stops[i]] = (uint8_t)search->classes;
    search->classes++;
    search->states = states;
    return (uint64_t)states * search->classes < EVENT ? 0 : -EINVAL;
}

/* The trie: a transition of 0 means none yet, since nothing leads back to the root. */
static void trie_fill(MultiSearch *search, const char *const *literals, size_t n)
{
    uint32_t used = 1;
    uint32_t used_hits = 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t state = 0;
        for (const char *c = literals[i]; *c; c++) {
            uint32_t *slot = &search->next[state * search->classes + search->class_of[(uint8_t)*c]];
            if (*slot == 0) {
                search->depth[used] = (uint16_t)(search->depth[state] + 1);
                *slot = used++;
            }
            state = *slot;
        }
        if (search->hits_of[state] == 0)
            search->hits_of[state] = used_hits++;
        needle_set_add(&search->hits[search->hits_of[state]], i);
    }
    search->states = used;
}

/*
 * From trie to automaton, level by level: a state without a transition takes that of the state for its
 * longest proper suffix, and has the hits of that one. `queue` and `suffix` need one entry per state.
 */
static void automaton_fill(MultiSearch *search, uint32_t *queue, uint32_t *suffix)
{
    uint32_t classes = search->classes;
    size_t n = 0;
    for (uint32_t c = 0; c + 1 < classes; c++)
        if (search->next[c] != 0)
            queue[n++] = search->next[c];
    for (size_t i = 0; i < n; i++) {
        uint32_t state = queue[i];
        uint32_t *row = &search->next[state * classes];
        const uint32_t *fallback = &search->next[suffix[state] * classes];
        for (uint32_t c = 0; c + 1 < classes; c++) {
            if (row[c] == 0)
                row[c] = fallback[c];
            else {
                suffix[row[c]] = fallback[c];
                queue[n++] = row[c];
            }
        }
        uint32_t theirs = search->hits_of[suffix[state]];
        if (search->hits_of[state] == 0)
            search->hits_of[state] = theirs;
        else if (theirs != 0)
            needle_set_join(&search->hits[search->hits_of[state]], &search->hits[theirs]);
    }
}

/* Turns numbers of states into offsets of rows, marked where something is found: one look-up per byte. */
static void transitions_encode(MultiSearch *search)
{
    for (uint32_t state = 0; state < search->states; state++) {
        uint32_t *row = &search->next[state * search->classes];
        for (uint32_t c = 0; c + 1 < search->classes; c++)
            row[c] = row[c] * search->classes | (search->hits_of[row[c]] ? EVENT : 0);
        row[search->classes - 1] = STOP;
    }
}

int multi_search_new(const char *const *literals, size_t n, const char *stops, size_t n_stops,
                     MultiSearch **ret)
{
    if (n > NEEDLES_MAX)
        return -EINVAL;
    MultiSearch *search = calloc(1, sizeof *search);
    if (!search)
        return -ENOMEM;
    int r = classes_assign(search, literals, n, stops, n_stops);
    if (r >= 0) {
        size_t states = search->states;
        search->next = calloc(states * search->classes, sizeof *search->next);
        search->hits_of = calloc(states, sizeof *search->hits_of);
        search->depth = calloc(states, sizeof *search->depth);
        search->hits = calloc(n + 1, sizeof *search->hits);
        uint32_t *scratch = calloc(2 * states, sizeof *scratch);
        if (!search->next || !search->hits_of || !search->depth || !search->hits || !scratch)
            r = -ENOMEM;
        else {
            trie_fill(search, literals, n);
            automaton_fill(search, scratch, scratch + states);
            transitions_encode(search);
        }
        free(scratch);
    }
    if (r < 0) {
        multi_search_free(search);
        return r;
    }
    *ret = search;
    return 0;
}

void multi_search_free(MultiSearch *search)
{
    if (!search)
        return;
    free(search->next);
    free(search->hits_of);
    free(search->depth);
    free(search->hits);
    free(search);
}

NeedlesEvent multi_search_scan(const MultiSearch *search, uint32_t *state, const char **p, const char *end)
{
    const uint32_t *next = search->next;
    const uint8_t *class_of = search->class_of;
    uint32_t s = *state & ~EVENT;
    uint32_t before = s;
    const char *c = *p;
    while (c < end) {
        before = s;
        s = next[s + class_of[(uint8_t)*c++]];
        if (s & EVENT)
            break;
    }
    *p = c;
    if (s == STOP) {
        *state = before;
        return NEEDLES_STOP;
    }
    *state = s;
    return s & EVENT ? NEEDLES_HIT : NEEDLES_END;
}

const NeedleSet *multi_search_hits(const MultiSearch *search, uint32_t state)
{
    return &search->hits[search->hits_of[(state & ~EVENT) / search->classes]];
}

size_t multi_search_depth(const MultiSearch *search, uint32_t state)
{
    return search->depth[(state & ~EVENT) / search->classes];
}
