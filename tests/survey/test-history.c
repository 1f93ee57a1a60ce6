/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "history.h"

static ProcessMoment process(int pid, uint64_t start_ticks, uint64_t anon)
{
    ProcessMoment moment = {.pid = pid, .start_ticks = start_ticks, .role = ROLE_WORKER, .command = "train"};
    for (size_t i = 0; i < PROCESS_METRICS; i++)
        moment.values[i] = U64_UNKNOWN;
    moment.values[PROCESS_ANON] = anon;
    return moment;
}

static Moment moment_of(double seconds, const ProcessMoment *processes, size_t n)
{
    Moment moment = {.seconds = seconds, .processes = processes, .n_processes = n};
    for (size_t i = 0; i < JOB_METRICS; i++)
        moment.values[i] = (uint64_t)seconds * 100 + i;
    return moment;
}

static void add(History *history, double seconds, const ProcessMoment *processes, size_t n)
{
    Moment moment = moment_of(seconds, processes, n);
    assert_int_equal(history_add(history, &moment), 0);
}

static void begin(History *history)
{
    assert_int_equal(history_init(history, "python3 train.py", 10, 1000.0, 1.0), 0);
}

static void test_figures_of_processes_that_come_and_go(void **state)
{
    (void)state;
    _cleanup_history_ History history = {0};
    begin(&history);
    for (int i = 0; i < 100; i++) {
        ProcessMoment both[] = {process(10, 1, (uint64_t)i), process(11, 2, (uint64_t)(1000 + i))};
        add(&history, i, both, i < 50 ? 2 : 1);
    }
    assert_int_equal(history.n_tracks, 2);
    assert_int_equal(history.series.n, 100);
    assert_true(history.series.values[JOB_SHM_USED][99] == 9900 + JOB_SHM_USED);

    const ProcessTrack *trainer = history_track(&history, 10);
    assert_int_equal(trainer->series.n, 100);
    assert_true(isinf(trainer->ended_seconds));
    assert_true(trainer->series.values[PROCESS_ANON][99] == 99);
    assert_true(trainer->series.values[PROCESS_USS][99] == U64_UNKNOWN);

    const ProcessTrack *worker = history_track(&history, 11);
    assert_int_equal(worker->series.n, 50);
    assert_true(worker->ended_seconds == 50);
    assert_null(history_track(&history, 12));
    assert_null(history_track(&history, 10 + 64)); /* falls into the same bucket */
}

static void test_a_pid_that_is_used_again_is_another_process(void **state)
{
    (void)state;
    _cleanup_history_ History history = {0};
    begin(&history);
    ProcessMoment first = process(11, 5, 1);
    ProcessMoment second = process(11, 6, 2);
    add(&history, 0, &first, 1);
    add(&history, 1, &second, 1);
    assert_int_equal(history.n_tracks, 2);
    assert_true(history.tracks[0].ended_seconds == 1);
    const ProcessTrack *newest = history_track(&history, 11);
    assert_true(newest->last.start_ticks == 6);
    assert_true(newest->first_seconds == 1);
}

static void test_one_that_a_look_missed_lives_on(void **state)
{
    (void)state;
    _cleanup_history_ History history = {0};
    begin(&history);
    ProcessMoment one = process(11, 5, 1);
    add(&history, 0, &one, 1);
    add(&history, 1, NULL, 0);
    assert_true(history.tracks[0].ended_seconds == 1);
    add(&history, 2, &one, 1);
    assert_int_equal(history.n_tracks, 1);
    assert_true(isinf(history.tracks[0].ended_seconds));
    assert_int_equal(history.tracks[0].series.n, 2);
    add(&history, 3, NULL, 0);
    assert_true(history.tracks[0].ended_seconds == 3);
}

static void test_the_newest_of_what_changes_is_kept(void **state)
{
    (void)state;
    _cleanup_history_ History history = {0};
    begin(&history);
    char command[] = "fork";
    ProcessMoment one = process(11, 5, 1);
    one.role = ROLE_OTHER;
    one.command = command;
    add(&history, 0, &one, 1);
    command[0] = 'x'; /* must have been copied */
    assert_string_equal(history.tracks[0].last.command, "fork");
    one.role = ROLE_WORKER;
    one.command = "python3 worker";
    add(&history, 1, &one, 1);
    assert_string_equal(history.tracks[0].last.command, "python3 worker");
    assert_int_equal(history.tracks[0].last.role, ROLE_WORKER);
    one.command = NULL; /* could not be read this time */
    add(&history, 2, &one, 1);
    assert_string_equal(history.tracks[0].last.command, "python3 worker");
}

static void test_a_thousand_workers_and_what_is_forgotten(void **state)
{
    (void)state;
    _cleanup_history_ History history = {0};
    begin(&history);
    for (int i = 0; i < 1000; i++) {
        ProcessMoment both[] = {process(10, 1, (uint64_t)i), process(100 + i, (uint64_t)i, 7)};
        Event event = {.seconds = i, .kind = EVENT_BORN, .pid = 100 + i};
        Moment moment = moment_of(i, both, 2);
        moment.events = &event;
        moment.n_events = 1;
        assert_int_equal(history_add(&history, &moment), 0);
    }
    assert_int_equal(history.n_tracks, 1001);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(history_track(&history, 100 + i)->last.pid, 100 + i);

    history_forget(&history, 900);
    assert_int_equal(history.n_tracks, 102); /* including the one that ended at 900 */
    assert_int_equal(history.n_events, 100);
    assert_int_equal(history.series.n, 100);
    assert_true(history.series.seconds[0] == 900);
    assert_null(history_track(&history, 100 + 898));
    assert_non_null(history_track(&history, 100 + 899));
    assert_true(history_track(&history, 10)->series.values[PROCESS_ANON][0] == 900);

    ProcessMoment trainer = process(10, 1, 1000);
    add(&history, 1000, &trainer, 1);
    assert_true(history_track(&history, 1099)->ended_seconds == 1000);
    assert_true(isinf(history_track(&history, 10)->ended_seconds));
    history_forget(&history, 10000);
    assert_int_equal(history.n_tracks, 1);
    assert_int_equal(history.series.n, 0);
    assert_int_equal(history.n_events, 0);
}

static void test_forgetting_after_each_moment_keeps_it_bounded(void **state)
{
    (void)state;
    _cleanup_history_ History history = {0};
    begin(&history);
    for (int i = 0; i < 5000; i++) {
        ProcessMoment one = process(10, 1, (uint64_t)i);
        add(&history, i, &one, 1);
        history_forget(&history, i - 60);
        assert_true(history.series.n <= 90);
    }
    assert_true(history.series.capacity <= 128);
    assert_true(history.tracks[0].series.seconds[history.tracks[0].series.n - 1] == 4999);
}

static void test_every_figure_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROCESS_METRICS; i++) {
        assert_non_null(process_metric_name(i));
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(process_metric_name(i), process_metric_name(j));
    }
    for (unsigned i = 0; i < JOB_METRICS; i++) {
        assert_non_null(job_metric_name(i));
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(job_metric_name(i), job_metric_name(j));
    }
    for (unsigned i = 0; i < SEGMENT_KINDS; i++) {
        char name[64];
        snprintf(name, sizeof name, "segments_%s", segment_kind_name(i));
        assert_string_equal(job_metric_name(JOB_KIND_BYTES + i), name);
    }
    for (unsigned i = 0; i < EVENT_KINDS; i++)
        assert_non_null(event_kind_name(i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_of_processes_that_come_and_go),
        cmocka_unit_test(test_a_pid_that_is_used_again_is_another_process),
        cmocka_unit_test(test_one_that_a_look_missed_lives_on),
        cmocka_unit_test(test_the_newest_of_what_changes_is_kept),
        cmocka_unit_test(test_a_thousand_workers_and_what_is_forgotten),
        cmocka_unit_test(test_forgetting_after_each_moment_keeps_it_bounded),
        cmocka_unit_test(test_every_figure_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
