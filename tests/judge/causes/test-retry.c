/* SPDX-License-Identifier: Apache-2.0 */
/* Whether another attempt is worth it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "macro.h"
#include "retry.h"

static void test_retry(void **state)
{
    (void)state;
    enum { NOTHING, DEGRADE, RESUME, BOTH, WAYS };
    static const struct {
        CauseId cause;
        Retry retry[WAYS];
    } cases[] = {
#define LESS {RETRY_SAME, RETRY_LESS, RETRY_SAME, RETRY_LESS}
#define SAME                                                                                                 \
    {                                                                                                        \
        RETRY_SAME, RETRY_NOT_LESS, RETRY_SAME, RETRY_SAME                                                   \
    }
#define ERROR                                                                                                \
    {                                                                                                        \
        RETRY_ERROR, RETRY_ERROR, RETRY_ERROR, RETRY_ERROR                                                   \
    }
        {CAUSE_SHM_EXHAUSTED, LESS},    {CAUSE_BUDGET_EXCEEDED, LESS}, {CAUSE_CGROUP_OOM, LESS},
        {CAUSE_SYSTEM_OOM, LESS},       {CAUSE_FD_EXHAUSTED, LESS},    {CAUSE_MAPS_EXHAUSTED, LESS},
        {CAUSE_KILLED, SAME},           {CAUSE_SEGFAULT, SAME},        {CAUSE_BUS_ERROR_FILE, SAME},
        {CAUSE_SEGMENTS_DELETED, SAME}, {CAUSE_WORKER_HANG, LESS},     {CAUSE_UNKNOWN, SAME},
        {CAUSE_PYTHON_ERROR, ERROR},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (int way = NOTHING; way < WAYS; way++) {
            RetryCase ended = {.cause = cases[i].cause,
                               .code = 1,
                               .started = true,
                               .can_degrade = way & DEGRADE,
                               .can_resume = way & RESUME};
            assert_int_equal(retry_judge(&ended), cases[i].retry[way]);
            ended.told_to_end = true;
            assert_int_equal(retry_judge(&ended), RETRY_ASKED);
        }
}

static void test_ends(void **state)
{
    (void)state;
    static const struct {
        RetryCase ended;
        Retry retry;
    } cases[] = {
        {{.cause = CAUSE_OK, .started = true}, RETRY_DONE},
        {{.cause = CAUSE_OK, .started = true, .told_to_end = true}, RETRY_DONE},
        {{.cause = CAUSE_UNKNOWN, .code = 127}, RETRY_NO_START},
        {{.cause = CAUSE_BUDGET_EXCEEDED, .code = 0, .started = true, .can_degrade = true}, RETRY_LESS},
        {{.cause = CAUSE_BUDGET_EXCEEDED, .code = 0, .started = true, .told_to_end = true}, RETRY_ASKED},
        {{CAUSE_PYTHON_ERROR, "gpu-out-of-memory", .code = 1, .started = true, .can_degrade = true},
         RETRY_LESS},
        {{CAUSE_PYTHON_ERROR, "memory-error", .code = 1, .started = true, .can_degrade = true}, RETRY_LESS},
        {{CAUSE_PYTHON_ERROR, "gpu-out-of-memory", .code = 1, .started = true, .can_resume = true},
         RETRY_ERROR},
        {{CAUSE_PYTHON_ERROR, "disk-full", .code = 1, .started = true, .can_degrade = true}, RETRY_ERROR},
        {{.cause = CAUSE_UNKNOWN, .code = 130, .signal = SIGINT, .started = true}, RETRY_ASKED},
        {{.cause = CAUSE_UNKNOWN, .code = 130, .started = true}, RETRY_ASKED},
        {{.cause = CAUSE_PYTHON_ERROR, .code = 130, .signal = SIGINT, .started = true}, RETRY_ASKED},
        {{.cause = CAUSE_KILLED, .code = 143, .signal = SIGTERM, .started = true}, RETRY_ASKED},
        {{.cause = CAUSE_KILLED, .code = 129, .signal = SIGHUP, .started = true}, RETRY_ASKED},
        {{.cause = CAUSE_KILLED, .code = 137, .signal = SIGKILL, .started = true}, RETRY_SAME},
        {{.cause = CAUSE_SEGFAULT, .code = 139, .signal = SIGSEGV, .started = true}, RETRY_SAME},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Retry retry = retry_judge(&cases[i].ended);
        assert_int_equal(retry, cases[i].retry);
        bool again = retry == RETRY_SAME || retry == RETRY_LESS;
        assert_int_equal(retry_words(retry) != NULL, !again && retry != RETRY_DONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
