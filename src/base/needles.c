#include <string.h>

#include "needles.h"

/* A transition is the offset of the next state's row, with EVENT set when something happens on it. */
static const uint32_t EVENT = UINT32_C(1) << 31;
static const uint32_t STOP = UINT32_MAX;

struct Needles {
    uint8_t class_of[256]; /* bytes that no literal has are all of class 0 */
    uint32_t classes;
    uint32_t states;
    uint32_t *next;    /* [states][classes] */
    uint32_t *hits_of; /* [states]: index into hits, 0 for none */
    NeedleSet *hits;
};

static bool byte_is_stop(uint8_t byte, const char *stops, size_t n_stops)
{
    return n_stops > 0 && memchr(stops, byte, n_stops) != NULL;
}

/* Gives classes to the bytes in use. The stops share the last one. */
static int classes_assign(Needles *needles, const char *const *literals, size_t n, const char *stops,
                          size_t n_stops)
{
    uint32_t states = 1;
    needles->classes = 1;
    for (size_t i = 0; i < n; i++) {
        if (literals[i][0] == '\0')
            return -EINVAL;
        for (const char *c = literals[i]; *c; c++) {
            uint8_t byte = (uint8_t)*c;
            if (byte_is_stop(byte, stops, n_stops))
                return -EINVAL;
            if (needles->class_of[byte] == 0)
                needles->class_of[byte] = (uint8_t)needles->classes++;
            states++;
        }
    }
    for (size_t i = 0; i < n_stops; i++)
        needles->class_of[(uint8_t)stops[i]] = (uint8_t)needles->classes;
    needles->classes++;
    needles->states = states;
    return (uint64_t)states * needles->classes < EVENT ? 0 : -EINVAL;
}

/* The trie: a transition of 0 is none yet, since nothing leads back to the root. */
static void trie_fill(Needles *needles, const char *const *literals, size_t n)
{
    uint32_t used = 1;
    uint32_t used_hits = 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t state = 0;
        for (const char *c = literals[i]; *c; c++) {
            uint32_t *slot = &needles->next[state * needles->classes + needles->class_of[(uint8_t)*c]];
            if (*slot == 0)
                *slot = used++;
            state = *slot;
        }
        if (needles->hits_of[state] == 0)
            needles->hits_of[state] = used_hits++;
        needle_set_add(&needles->hits[needles->hits_of[state]], i);
    }
    needles->states = used;
}

/*
 * From trie to automaton, level by level: a state without a transition takes that of the state for its
 * longest proper suffix, and hits what that one hits. Needs queue and suffix of one entry a state.
 */
static void automaton_fill(Needles *needles, uint32_t *queue, uint32_t *suffix)
{
    uint32_t classes = needles->classes;
    size_t n = 0;
    for (uint32_t c = 0; c + 1 < classes; c++)
        if (needles->next[c] != 0)
            queue[n++] = needles->next[c];
    for (size_t i = 0; i < n; i++) {
        uint32_t state = queue[i];
        uint32_t *row = &needles->next[state * classes];
        const uint32_t *fallback = &needles->next[suffix[state] * classes];
        for (uint32_t c = 0; c + 1 < classes; c++) {
            if (row[c] == 0)
                row[c] = fallback[c];
            else {
                suffix[row[c]] = fallback[c];
                queue[n++] = row[c];
            }
        }
        uint32_t theirs = needles->hits_of[suffix[state]];
        if (needles->hits_of[state] == 0)
            needles->hits_of[state] = theirs;
        else if (theirs != 0)
            needle_set_join(&needles->hits[needles->hits_of[state]], &needles->hits[theirs]);
    }
}

/* Numbers of states become offsets of rows, marked where something is found: one look-up a byte. */
static void transitions_encode(Needles *needles)
{
    for (uint32_t state = 0; state < needles->states; state++) {
        uint32_t *row = &needles->next[state * needles->classes];
        for (uint32_t c = 0; c + 1 < needles->classes; c++)
            row[c] = row[c] * needles->classes | (needles->hits_of[row[c]] ? EVENT : 0);
        row[needles->classes - 1] = STOP;
    }
}

int needles_new(const char *const *literals, size_t n, const char *stops, size_t n_stops, Needles **ret)
{
    if (n > NEEDLES_MAX)
        return -EINVAL;
    Needles *needles = calloc(1, sizeof *needles);
    if (!needles)
        return -ENOMEM;
    int r = classes_assign(needles, literals, n, stops, n_stops);
    if (r >= 0) {
        size_t states = needles->states;
        needles->next = calloc(states * needles->classes, sizeof *needles->next);
        needles->hits_of = calloc(states, sizeof *needles->hits_of);
        needles->hits = calloc(n + 1, sizeof *needles->hits);
        uint32_t *scratch = calloc(2 * states, sizeof *scratch);
        if (!needles->next || !needles->hits_of || !needles->hits || !scratch)
            r = -ENOMEM;
        else {
            trie_fill(needles, literals, n);
            automaton_fill(needles, scratch, scratch + states);
            transitions_encode(needles);
        }
        free(scratch);
    }
    if (r < 0) {
        needles_free(needles);
        return r;
    }
    *ret = needles;
    return 0;
}

void needles_free(Needles *needles)
{
    if (!needles)
        return;
    free(needles->next);
    free(needles->hits_of);
    free(needles->hits);
    free(needles);
}

NeedlesEvent needles_scan(const Needles *needles, uint32_t *state, const char **p, const char *end)
{
    const uint32_t *next = needles->next;
    const uint8_t *class_of = needles->class_of;
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

const NeedleSet *needles_hits(const Needles *needles, uint32_t state)
{
    return &needles->hits[needles->hits_of[(state & ~EVENT) / needles->classes]];
}
