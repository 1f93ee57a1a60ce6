/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "moment-relay.h"

enum { PUTS = 20000, MANY = 50 };

static bool is_readable(const MomentRelay *relay)
{
    struct pollfd fd = {.fd = moment_relay_fd(relay), .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

static void test_the_newest_is_taken_once(void **state)
{
    (void)state;
    ProcessMoment processes[MANY] = {{.pid = 3, .command = "train"}};
    Moment moment;
    MomentRelay *relay = NULL;
    assert_int_equal(moment_relay_open(&relay), 0);
    assert_false(is_readable(relay));
    assert_false(moment_relay_take(relay, &moment));

    moment_relay_put(relay, &(Moment){.processes = processes, .n_processes = 1});
    moment_relay_put(relay, &(Moment){.processes = processes, .n_processes = MANY, .n_unlisted = 7});
    assert_true(is_readable(relay));
    assert_true(moment_relay_take(relay, &moment));
    assert_int_equal(moment.n_processes, MANY);
    assert_int_equal(moment.n_unlisted, 7);
    assert_int_equal(moment.processes[0].pid, 3);
    assert_string_equal(moment.processes[0].command, ""); /* it belongs to the sampler */
    assert_false(is_readable(relay));
    assert_false(moment_relay_take(relay, &moment));

    /* A moment stays valid until the next one is taken. */
    processes[0].pid = 4;
    moment_relay_put(relay, &(Moment){.processes = processes, .n_processes = 1});
    assert_int_equal(moment.processes[0].pid, 3);
    moment_relay_put(relay, &(Moment){0}); /* no processes left */
    assert_true(moment_relay_take(relay, &moment));
    assert_int_equal(moment.n_processes, 0);
    moment_relay_free(relay);
}

static void *put_many(void *context)
{
    ProcessMoment processes[MANY] = {0};
    for (int i = 1; i <= PUTS; i++) {
        size_t n = 1 + (size_t)i % MANY;
        for (size_t j = 0; j < n; j++)
            processes[j].pid = i;
        moment_relay_put(context, &(Moment){.processes = processes, .n_processes = n});
    }
    return NULL;
}

/* Each moment is complete, and none is older than the one before. */
static void test_two_threads(void **state)
{
    (void)state;
    MomentRelay *relay = NULL;
    pthread_t thread;
    assert_int_equal(moment_relay_open(&relay), 0);
    assert_int_equal(pthread_create(&thread, NULL, put_many, relay), 0);
    for (int last = 0; last < PUTS;) {
        Moment moment;
        if (!moment_relay_take(relay, &moment))
            continue;
        int now = moment.processes[0].pid;
        assert_true(now > last);
        assert_int_equal(moment.n_processes, 1 + now % MANY);
        for (size_t i = 0; i < moment.n_processes; i++)
            assert_int_equal(moment.processes[i].pid, now);
        last = now;
    }
    pthread_join(thread, NULL);
    moment_relay_free(relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_newest_is_taken_once),
        cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
