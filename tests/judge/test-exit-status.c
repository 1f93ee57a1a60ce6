#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exit-status.h"

static void test_ending(void **state)
{
    (void)state;
    static const struct {
        Ending ending;
        CauseId id;
        double least;
        double most;
        const char *evidence; /* a part of one of its lines */
    } cases[] = {
        {{9, 0, 0, 0}, CAUSE_OK, 1, 1, "exit code 0"},
        {{9, 0, 0, SIGTERM}, CAUSE_OK, 1, 1, "exit code 0"},
        {{9, 1, 0, 0}, CAUSE_UNKNOWN, 0, 0, "exit code 1"},
        {{9, 3, 0, SIGTERM}, CAUSE_UNKNOWN, 0, 0, "exit code 3"},
        {{9, 137, SIGKILL, 0}, CAUSE_KILLED, 0.3, 0.6, "does not tell who killed it"},
        {{9, 143, SIGTERM, 0}, CAUSE_KILLED, 0.5, 0.8, "does not tell who"},
        {{9, 143, SIGTERM, SIGTERM}, CAUSE_KILLED, 0.9, 1, "passed it on"},
        {{9, 143, 0, 0}, CAUSE_KILLED, 0.3, 0.5, "exit code 143, which stands for SIGTERM"},
        {{9, 137, 0, 0}, CAUSE_KILLED, 0.2, 0.4, "SIGKILL in a process below"},
        {{9, 139, SIGSEGV, 0}, CAUSE_SEGFAULT, 0.8, 1, "SIGSEGV"},
        {{9, 139, 0, 0}, CAUSE_SEGFAULT, 0.4, 0.6, "SIGSEGV"},
        {{9, 135, SIGBUS, 0}, CAUSE_UNKNOWN, 0, 0, "whether shared memory ran out"},
        {{9, 130, SIGINT, SIGINT}, CAUSE_UNKNOWN, 0, 0, "passed it on"},
        {{9, 134, SIGABRT, 0}, CAUSE_UNKNOWN, 0, 0, "SIGABRT"},
        {{9, 128, 0, 0}, CAUSE_UNKNOWN, 0, 0, "exit code 128"},
        {{9, 255, 0, 0}, CAUSE_UNKNOWN, 0, 0, "exit code 255"},
        {{9, 128 + 40, 40, 0}, CAUSE_UNKNOWN, 0, 0, "signal 40"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Cause cause;
        assert_int_equal(cause_of_ending(&cases[i].ending, &arena, &cause), 0);
        assert_int_equal(cause.id, cases[i].id);
        if (cause.confidence < cases[i].least || cause.confidence > cases[i].most)
            fail_msg("case %zu: confidence %f", i, cause.confidence);
        bool found = false;
        for (size_t j = 0; j < cause.n_evidence; j++)
            found |= strstr(cause.evidence[j], cases[i].evidence) != NULL;
        if (!found)
            fail_msg("case %zu: no evidence has \"%s\"", i, cases[i].evidence);
        assert_non_null(cause.summary);
    }
}

static void test_no_start(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Cause cause;
    assert_int_equal(cause_of_no_start("py\nthon", ENOENT, &arena, &cause), 0);
    assert_int_equal(cause.id, CAUSE_UNKNOWN);
    assert_int_equal(cause.n_evidence, 1);
    assert_string_equal(cause.evidence[0], "py\\nthon: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ending),
        cmocka_unit_test(test_no_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
