/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank is late and why, and how far clocks are apart: recordings made from shares. */
#include "fixture.h"

#include <math.h>

#include "fleet.h"

enum { SECONDS = 60, RANKS_MOST = 4, MARKS = 3 };

/* What a recording of one rank is to contain. Shares of the time; -1: not recorded. */
typedef struct MadeRank {
    double loader;
    double room;
    double cpu;
    double disk;
    double work;
    double clock; /* what its clock is ahead */
    double step;  /* seconds from one mark to the next; 0: it sets none */
    const char *node;
} MadeRank;

typedef struct Made {
    Arena arena;
    History histories[RANKS_MOST];
    Verdicts verdicts[RANKS_MOST];
    ReportView reports[RANKS_MOST];
    FleetView fleet;
} Made;

static uint64_t msec_of(double share, int second)
{
    return share < 0 ? U64_UNKNOWN : (uint64_t)(share * second * 1000);
}

static void history_make(const MadeRank *rank, int number, History *history)
{
    assert_int_equal(history_init(history, "python3 train.py", 100, 1.7e9 + rank->clock, 1), 0);
    history->place = (JobPlace){.node_number = number, .rank = RANK_UNKNOWN, .ranks = 2};
    snprintf(history->place.job, sizeof history->place.job, "job");
    snprintf(history->place.node, sizeof history->place.node, "%s", rank->node ? rank->node : "node");
    for (int second = 0; second <= SECONDS; second++) {
        ProcessMoment processes[2] = {{.pid = 100,
                                       .start_ticks = 1,
                                       .role = ROLE_TRAINER,
                                       .rank = number,
                                       .attempt = 1,
                                       .command = "t"},
                                      {.pid = 101,
                                       .start_ticks = 2,
                                       .role = ROLE_WORKER,
                                       .job = 100,
                                       .rank = RANK_UNKNOWN,
                                       .command = "w"}};
        Moment moment = {.seconds = second, .processes = processes, .n_processes = 2};
        memset(moment.values, 0xFF, sizeof moment.values);
        memset(processes[0].values, 0xFF, sizeof processes[0].values);
        memset(processes[1].values, 0xFF, sizeof processes[1].values);
        moment.values[JOB_GUARD_WAITED_MSEC] = msec_of(rank->room, second);
        moment.values[JOB_DISK_WAIT_MSEC] = msec_of(rank->disk, second);
        processes[0].values[PROCESS_LOADER_WAIT_MSEC] = msec_of(rank->loader, second);
        processes[1].values[PROCESS_CPU_WAIT_MSEC] = msec_of(rank->cpu, second);
        processes[1].values[PROCESS_CPU_MSEC] = msec_of(rank->work, second);
        assert_int_equal(history_add(history, &moment), 0);
    }
    for (int i = 0; rank->step > 0 && i < MARKS; i++) {
        Event event = {.seconds = 5 + i * rank->step, .kind = EVENT_MARK};
        snprintf(event.text, sizeof event.text, "step %d", i);
        assert_int_equal(history_add_event(history, &event), 0);
    }
}

static void made_open(Made *made, const MadeRank *ranks, size_t n)
{
    *made = (Made){0};
    for (size_t i = 0; i < n; i++) {
        history_make(&ranks[i], (int)i, &made->histories[i]);
        assert_int_equal(verdicts_judge(&made->histories[i], &made->arena, &made->verdicts[i]), 0);
        assert_int_equal(
            report_view_make("f", &made->histories[i], &made->verdicts[i], &made->arena, &made->reports[i]),
            0);
    }
    assert_int_equal(fleet_view_make(made->reports, n, &made->arena, &made->fleet), 0);
}

static void made_close(Made *made)
{
    for (size_t i = 0; i < RANKS_MOST; i++)
        history_free(&made->histories[i]);
    arena_free(&made->arena);
}

static void test_late(void **state)
{
    (void)state;
    static const struct {
        MadeRank other; /* ranks 0 and 1 */
        MadeRank rank;  /* 2 */
        bool late;
        LateWhy why;
    } cases[] = {
        /* it waits for its loader, and the loader for … */
        {{0.02, 0, 0.02, 0.01, 0.3}, {0.5, 0.6, 0.05, 0.01, 0.3}, true, LATE_ROOM},
        {{0.02, 0, 0.02, 0.01, 0.3}, {0.5, 0, 0.6, 0.01, 0.3}, true, LATE_CPU},
        {{0.02, 0, 0.02, 0.01, 0.3}, {0.5, 0, 0.02, 0.4, 0.3}, true, LATE_DISK},
        {{0.02, 0, 0.02, 0.01, 0.3}, {0.5, 0, 0.02, 0.01, 0.97}, true, LATE_WORK},
        {{0.02, 0, 0.02, 0.01, 0.3}, {0.5, 0, 0.02, 0.01, 0.3}, true, LATE_UNKNOWN},
        /* the largest excess is the reason, not the largest share */
        {{0.02, 0, 0.5, 0.01, 0.3}, {0.5, 0.3, 0.6, 0.01, 0.3}, true, LATE_ROOM},
        /* workers that wait for room make no rank late whose trainer has its batches */
        {{0.02, 0, 0.02, 0.01, 0.3}, {0.05, 0.9, 0.02, 0.01, 0.3}, false, LATE_UNKNOWN},
        /* all are equally slow */
        {{0.5, 0, 0.02, 0.01, 0.3}, {0.55, 0, 0.02, 0.01, 0.3}, false, LATE_UNKNOWN},
        /* without the lane only the room tells */
        {{-1, 0, 0.02, 0.01, 0.3}, {-1, 0.6, 0.02, 0.01, 0.3}, true, LATE_ROOM},
        {{-1, 0, 0.02, 0.01, 0.3}, {-1, 0, 0.6, 0.01, 0.3}, false, LATE_UNKNOWN},
        {{-1, -1, -1, -1, -1}, {-1, -1, -1, -1, -1}, false, LATE_UNKNOWN},
        /* marks: ranks that do not synchronize */
        {{-1, -1, 0.02, -1, 0.3, .step = 10}, {-1, -1, 0.6, -1, 0.3, .step = 20}, true, LATE_CPU},
        {{-1, -1, 0.02, -1, 0.3, .step = 20}, {-1, -1, 0.6, -1, 0.3, .step = 20.2}, false, LATE_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Made made;
        made_open(&made, (MadeRank[]){cases[i].other, cases[i].other, cases[i].rank}, 3);
        assert_int_equal(made.fleet.n_ranks, 3);
        const RankView *rank = &made.fleet.ranks[2];
        if (rank->late != cases[i].late || (rank->late && rank->why != cases[i].why))
            fail_msg("case %zu: late %d, %s", i, rank->late, late_why_name(rank->why));
        if (rank->late != (rank->reason != NULL) || made.fleet.n_late != rank->late)
            fail_msg("case %zu: %zu are late", i, made.fleet.n_late);
        made_close(&made);
    }
}

static void test_clocks(void **state)
{
    (void)state;
    Made made;
    static const MadeRank ahead = {
        .loader = -1, .room = -1, .cpu = -1, .disk = -1, .work = -1, .clock = 3600, .step = 10};
    MadeRank plain = ahead;
    MadeRank silent = ahead;
    plain.clock = 0;
    silent.step = 0;
    made_open(&made, (MadeRank[]){plain, ahead, silent}, 3);
    assert_int_equal(made.fleet.reference, 0);
    assert_int_equal(made.fleet.sources[1].clock, CLOCK_MARKS);
    assert_true(fabs(made.fleet.sources[1].offset - 3600) < 1e-3);
    assert_true(made.fleet.sources[1].spread < 1e-3);
    assert_int_equal(made.fleet.sources[1].marks, MARKS);
    assert_int_equal(made.fleet.sources[2].clock, CLOCK_WALL);
    assert_true(made.fleet.sources[2].offset == 0);
    assert_non_null(strstr(made.fleet.clock, "2 of 3 recordings"));
    assert_true(fabs(made.fleet.ranks[1].step_seconds - 10) < 1e-3 &&
                fabs(made.fleet.ranks[1].behind) < 1e-3);
    assert_true(isnan(made.fleet.ranks[2].behind));
    made_close(&made);
    made_open(&made, (MadeRank[]){silent, silent}, 2);
    assert_non_null(strstr(made.fleet.clock, "no marks in common"));
    made_close(&made);
}

static void test_nodes(void **state)
{
    (void)state;
    Made made;
    MadeRank rank = {.loader = -1, .room = 0.5, .cpu = -1, .disk = -1, .work = -1, .node = "a"};
    made_open(&made, (MadeRank[]){rank, rank}, 2);
    assert_int_equal(made.fleet.n_nodes, 2); /* one name, but two numbers */
    assert_int_equal(made.fleet.nodes[1].n_ranks, 1);
    assert_true(fabs(made.fleet.nodes[1].room_seconds - 30) < 1e-3);
    assert_string_equal(made.fleet.job, "job");
    assert_int_equal(made.fleet.n_jobs, 1);
    made_close(&made);
    made_open(&made, &rank, 1);
    assert_null(made.fleet.clock);
    assert_int_equal(made.fleet.n_late, 0);
    made_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
