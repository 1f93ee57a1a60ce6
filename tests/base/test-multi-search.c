/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "multi-search.h"

static void multi_search_cleanup(MultiSearch **needles)
{
    multi_search_free(*needles);
}
#define _cleanup_needles_ _cleanup_(multi_search_cleanup)

/* The set of all needles found in the text, which is fed `step` bytes at a time. Also counts the stops. */
static NeedleSet find_all(const MultiSearch *needles, const char *text, size_t n, size_t step,
                          size_t *ret_stops)
{
    NeedleSet found = {0};
    uint32_t state = 0;
    *ret_stops = 0;
    for (size_t at = 0; at < n; at += step) {
        const char *p = text + at;
        const char *end = text + MIN(at + step, n);
        for (;;) {
            NeedlesEvent event = multi_search_scan(needles, &state, &p, end);
            if (event == NEEDLES_END)
                break;
            if (event == NEEDLES_HIT)
                needle_set_join(&found, multi_search_hits(needles, state));
            else
                ++*ret_stops;
        }
    }
    return found;
}

static void test_finds_what_strstr_finds(void **state)
{
    (void)state;
    static const char *const literals[] = {"he", "she", "his", "hers", "s", "ab", "abab", "babab", "x", "no"};
    static const char *const texts[] = {"",      "ushers", "ahishers", "ababab", "abaabab",
                                        "xxxxx", "hershe", "sh",       "n o",    "bababababx"};
    _cleanup_needles_ MultiSearch *needles = NULL;
    assert_int_equal(multi_search_new(literals, ARRAY_SIZE(literals), "", 0, &needles), 0);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        for (size_t step = 1; step < 9; step++) {
            size_t stops = 0;
            NeedleSet found = find_all(needles, texts[i], strlen(texts[i]), step, &stops);
            assert_int_equal(stops, 0);
            for (size_t k = 0; k < ARRAY_SIZE(literals); k++)
                assert_int_equal(needle_set_has(&found, k), strstr(texts[i], literals[k]) != NULL);
        }
}

static void test_stops_keep_the_state(void **state)
{
    (void)state;
    static const char *const literals[] = {"abc"};
    _cleanup_needles_ MultiSearch *needles = NULL;
    assert_int_equal(multi_search_new(literals, 1, "\n\0", 2, &needles), 0);
    size_t stops = 0;
    static const char text[] = {'a', '\n', 'b', '\0', 'c', '\n'};
    NeedleSet found = find_all(needles, text, sizeof text, sizeof text, &stops);
    assert_int_equal(stops, 3);
    assert_true(needle_set_has(&found, 0)); /* the caller decides if a stop splits a literal */
}

static void test_bad_lists(void **state)
{
    (void)state;
    MultiSearch *needles = NULL;
    static const char *const empty[] = {"a", ""};
    static const char *const stop[] = {"a\nb"};
    const char *many[NEEDLES_MAX + 1];
    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = "x";
    assert_int_equal(multi_search_new(empty, 2, "", 0, &needles), -EINVAL);
    assert_int_equal(multi_search_new(stop, 1, "\n", 1, &needles), -EINVAL);
    assert_int_equal(multi_search_new(many, ARRAY_SIZE(many), "", 0, &needles), -EINVAL);
    assert_null(needles);
}

static void test_every_byte(void **state)
{
    (void)state;
    char literals[255][2];
    const char *list[255];
    char text[256];
    for (size_t i = 0; i < 255; i++) {
        literals[i][0] = text[i] = (char)(i + 1);
        literals[i][1] = '\0';
        list[i] = literals[i];
    }
    _cleanup_needles_ MultiSearch *needles = NULL;
    assert_int_equal(multi_search_new(list, ARRAY_SIZE(list), "", 0, &needles), 0);
    size_t stops = 0;
    NeedleSet found = find_all(needles, text, 255, 255, &stops);
    for (size_t i = 0; i < 255; i++)
        assert_true(needle_set_has(&found, i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_what_strstr_finds),
        cmocka_unit_test(test_stops_keep_the_state),
        cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
