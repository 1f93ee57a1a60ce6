/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "environment.h"

#define LIBRARY "/opt/lib/libshmguard-preload.so"

static const char *value_of(char *const *environment, const char *name)
{
    const char *found = NULL;
    for (; *environment; environment++)
        if (strncmp(*environment, name, strlen(name)) == 0 && (*environment)[strlen(name)] == '=') {
            assert_null(found); /* must not be set twice */
            found = *environment + strlen(name) + 1;
        }
    return found;
}

static void test_environment(void **state)
{
    (void)state;
    static const struct {
        const char *preload; /* NULL: not set */
        const char *expected;
    } cases[] = {
        {NULL, LIBRARY},
        {"", LIBRARY},
        {"/lib/a.so", LIBRARY ":/lib/a.so"},
        {"/lib/a.so b.so", LIBRARY ":/lib/a.so:b.so"},
        {"/lib/libasan.so.8:/lib/a.so", "/lib/libasan.so.8:" LIBRARY ":/lib/a.so"},
        {LIBRARY, LIBRARY},
        {"/lib/a.so:" LIBRARY, "/lib/a.so:" LIBRARY},
        {"/lib/a.so " LIBRARY " c.so", "/lib/a.so " LIBRARY " c.so"},
        {LIBRARY ".1", LIBRARY ":" LIBRARY ".1"},
        {"xlibshmguard-preload.so", LIBRARY ":xlibshmguard-preload.so"},
        {"/another/copy/libshmguard-preload.so", LIBRARY},
        {"a.so:libshmguard-preload.so", LIBRARY ":a.so"},
        {"/lib/a.so:libshmguard-preload.so:" LIBRARY, LIBRARY ":/lib/a.so"},
        {"::", LIBRARY},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        char preload[256];
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", cases[i].preload ? cases[i].preload : "");
        char old_socket[] = "SHMGUARD_SOCKET=outer";
        char path[] = "PATH=/bin";
        char odd[] = "LD_PRELOADED=no";
        char old_witness[] = "SHMGUARD_ONLY_WITNESS=0";
        char old_pin[] = "SHMGUARD_PIN=auto";
        char old_lane[] = "SHMGUARD_LANE=auto";
        char old_freeze[] = "SHMGUARD_FREEZE=auto";
        char old_inner[] = "SHMGUARD_INNER=another";
        char *old[] = {path,     old_socket,  old_inner,
                       odd,      old_witness, old_pin,
                       old_lane, old_freeze,  cases[i].preload ? preload : NULL,
                       NULL};
        char **made = NULL;
        GuardSettings settings = {.library = LIBRARY,
                                  .socket = "ours",
                                  .inner = i % 4 == 0 ? "inner" : NULL,
                                  .only_witness = i % 2,
                                  .no_pin = i % 3 == 0,
                                  .no_lane = i % 5 == 0,
                                  .no_freeze = i % 7 == 0};
        assert_int_equal(environment_make(old, &settings, &arena, &made), 0);
        assert_string_equal(value_of(made, "LD_PRELOAD"), cases[i].expected);
        assert_string_equal(value_of(made, "SHMGUARD_SOCKET"), "ours");
        const char *inner = value_of(made, "SHMGUARD_INNER");
        assert_true(i % 4 == 0 ? inner && strcmp(inner, "inner") == 0 : !inner);
        assert_string_equal(value_of(made, "PATH"), "/bin");
        assert_string_equal(value_of(made, "LD_PRELOADED"), "no");
        const char *witness = value_of(made, "SHMGUARD_ONLY_WITNESS");
        assert_true(i % 2 ? witness && strcmp(witness, "1") == 0 : !witness);
        assert_string_equal(value_of(made, "SHMGUARD_PIN"), i % 3 == 0 ? "off" : "auto");
        assert_string_equal(value_of(made, "SHMGUARD_LANE"), i % 5 == 0 ? "off" : "auto");
        assert_string_equal(value_of(made, "SHMGUARD_FREEZE"), i % 7 == 0 ? "off" : "auto");
    }
}

static void test_no_library(void **state)
{
    (void)state;
    static const struct {
        const char *preload;
        const char *expected;
    } cases[] = {
        {"", ""},
        {LIBRARY, ""},
        {"/lib/a.so", "/lib/a.so"},
        {"/lib/a.so " LIBRARY ":libshmguard-preload.so:b.so", "/lib/a.so:b.so"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        char preload[256];
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", cases[i].preload);
        char *old[] = {preload, NULL};
        char **made = NULL;
        GuardSettings settings = {.library = LIBRARY, .socket = "ours", .no_library = true};
        assert_int_equal(environment_make(old, &settings, &arena, &made), 0);
        assert_string_equal(value_of(made, "LD_PRELOAD"), cases[i].expected);
        assert_string_equal(value_of(made, "SHMGUARD_SOCKET"), "ours");
    }
}

static void test_set(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    char path[] = "PATH=/bin";
    char outer[] = "SHMGUARD_ATTEMPT=7";
    char longer[] = "SHMGUARD_ATTEMPTS=8";
    char odd[] = "nothing";
    char *old[] = {path, outer, longer, odd, NULL};
    char attempt[] = "SHMGUARD_ATTEMPT=1";
    char value[] = "SHMGUARD_VALUE_A=b=c";
    char *settings[] = {attempt, value, NULL};
    char **made = NULL;
    assert_int_equal(environment_set(old, settings, &arena, &made), 0);
    assert_string_equal(value_of(made, "SHMGUARD_ATTEMPT"), "1");
    assert_string_equal(value_of(made, "SHMGUARD_ATTEMPTS"), "8");
    assert_string_equal(value_of(made, "SHMGUARD_VALUE_A"), "b=c");
    assert_ptr_equal(made[0], path);
    assert_ptr_equal(made[2], odd);
    assert_null(made[5]);
}

static void test_path(void **state)
{
    (void)state;
    assert_true(library_can_be_preloaded(LIBRARY));
    assert_false(library_can_be_preloaded("/home/my user/lib.so"));
    assert_false(library_can_be_preloaded("/a:b/lib.so"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
