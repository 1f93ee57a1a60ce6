/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "metrics.h"
#include "rlimits.h"

#define MIB (UINT64_C(1) << 20)

enum { TRAINER = 100, WORKERS = 6, MOMENTS = 60 };

/* A trainer with workers of nearly one size, and /dev/shm that fills up by one MiB per second. */
typedef struct Made {
    History history;
    ProcessMoment processes[1 + WORKERS];
    uint64_t rss[1 + WORKERS];
} Made;

static void moment_add(Made *made, double seconds)
{
    Moment moment = {.seconds = seconds, .processes = made->processes, .n_processes = 1 + WORKERS};
    memset(moment.values, 0xFF, sizeof moment.values);
    moment.values[JOB_SHM_SIZE] = 1000 * MIB;
    moment.values[JOB_SHM_USED] = (uint64_t)seconds * MIB;
    moment.values[JOB_MEMORY_TOTAL] = 4000 * MIB;
    moment.values[JOB_MEMORY_AVAILABLE] = 3000 * MIB;
    moment.values[JOB_GROUP_LIMIT] = 2000 * MIB;
    moment.values[JOB_GROUP_USED] = 1500 * MIB;
    moment.values[JOB_GROUP_FILE] = 100 * MIB;
    moment.values[JOB_OOM_KILLS] = 3;
    for (int i = 0; i <= WORKERS; i++) {
        ProcessMoment *process = &made->processes[i];
        *process = (ProcessMoment){
            .pid = TRAINER + i, .role = i ? ROLE_WORKER : ROLE_TRAINER, .job = TRAINER, .command = "python"};
        memset(process->values, 0xFF, sizeof process->values);
        process->values[PROCESS_ANON] = made->rss[i];
        process->values[PROCESS_FILE] = process->values[PROCESS_SHMEM] = 0;
        process->values[PROCESS_USS] = process->values[PROCESS_SHM] = MIB;
        process->values[PROCESS_FDS] = (uint64_t)(10 + i);
        if (seconds == 0 && i != 2) /* read once, and of worker 2 never */
            process->values[PROCESS_PSS] = (uint64_t)i * MIB;
    }
    assert_int_equal(history_add(&made->history, &moment), 0);
}

static void made_open(Made *made)
{
    *made = (Made){0};
    assert_int_equal(history_init(&made->history, "", 0, 1000000, 1), 0);
    for (int i = 0; i <= WORKERS; i++)
        made->rss[i] = (i == 0 ? 500 : 100 + (uint64_t)i) * MIB;
    for (int i = 0; i < MOMENTS; i++)
        moment_add(made, i);
}

static char *written(const MetricsView *view, MetricsFormat format, MetricsChoice *choice)
{
    Buffer text = {0};
    assert_int_equal(metrics_write(view, format, choice, &text), 0);
    return text.data;
}

static MetricsView view_of(const Made *made)
{
    return (MetricsView){
        .history = &made->history,
        .orphan_bytes = U64_UNKNOWN,
        .orphans = U64_UNKNOWN,
        .node = "a\"b\\c\nd",
        .processes_most = 3,
        .own_bytes = U64_UNKNOWN,
    };
}

static void assert_has(const char *text, const char *line)
{
    if (!strstr(text, line))
        fail_msg("missing: %s in\n%s", line, text);
}

static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("should not be there: %s in\n%s", part, text);
}

static void test_values(void **state)
{
    (void)state;
    Made made;
    made_open(&made);
    MetricsView view = view_of(&made);
    MetricsChoice choice = {0};
    _cleanup_free_ char *text = written(&view, METRICS_PROMETHEUS, &choice);
    assert_has(text, "shmguard_build_info{version=\"" SHMGUARD_VERSION "\",node=\"a\\\"b\\\\c\\nd\"} 1\n");
    assert_has(text, "\nshmguard_last_sample_timestamp_seconds 1000059.000\n");
    assert_has(text, "\nshmguard_shm_used_bytes 61865984\n");
    double seconds = 0; /* about 1000 - 59 MiB at 1 MiB/s */
    assert_has(text, "\nshmguard_shm_exhausts_in_seconds ");
    assert_int_equal(sscanf(strstr(text, "\nshmguard_shm_exhausts_in_seconds "), " %*s %lf", &seconds), 1);
    assert_true(seconds > 900 && seconds < 980);
    assert_has(text, "\nshmguard_memory_exhausts_in_seconds +Inf\n");
    assert_has(text, "\nshmguard_memory_limit_bytes 2097152000\n");    /* the group's */
    assert_has(text, "\nshmguard_memory_available_bytes 629145600\n"); /* 2000 - (1500 - 100) MiB */
    assert_has(text, "\nshmguard_oom_kills_total 3\n");
    /* Unknown is not 0. */
    assert_lacks(text, "\nshmguard_orphan_bytes ");
    assert_lacks(text, "\nshmguard_segment_bytes{");
    assert_lacks(text, "\nshmguard_resident_memory_bytes ");
    /* The largest three, and the four others together. */
    assert_has(text, "\nshmguard_process_rss_bytes{pid=\"100\",role=\"trainer\",job=\"100\"} 524288000\n");
    assert_has(text, "\nshmguard_process_rss_bytes{pid=\"106\",role=\"worker\",job=\"100\"} 111149056\n");
    assert_has(text, "\nshmguard_process_rss_bytes{pid=\"rest\",role=\"worker\",job=\"100\"} 429916160\n");
    assert_has(text, "\nshmguard_process_pss_bytes{pid=\"rest\",role=\"worker\",job=\"100\"} 8388608\n");
    assert_has(text,
               "\nshmguard_process_open_fds{pid=\"rest\",role=\"worker\",job=\"100\"} 14\n"); /* the most */
    assert_lacks(text, "pid=\"101\"");
    assert_has(text, "\nshmguard_processes{role=\"worker\"} 6\n");
    history_free(&made.history);
}

static void test_formats(void **state)
{
    (void)state;
    Made made;
    made_open(&made);
    MetricsView view = view_of(&made);
    MetricsChoice choice = {0};
    _cleanup_free_ char *open = written(&view, METRICS_OPENMETRICS, &choice);
    _cleanup_free_ char *text = written(&view, METRICS_PROMETHEUS, &choice);
    assert_has(open, "# TYPE shmguard_oom_kills counter\nshmguard_oom_kills_total 3\n");
    assert_has(open, "# UNIT shmguard_shm_used_bytes bytes\n");
    assert_has(text, "# TYPE shmguard_oom_kills_total counter\nshmguard_oom_kills_total 3\n");
    assert_lacks(text, "# UNIT");
    assert_string_equal(open + strlen(open) - 6, "# EOF\n");
    for (size_t i = 0; metric_at(i); i++) {
        char line[128];
        snprintf(line, sizeof line, "# TYPE %s %s\n", metric_at(i)->name,
                 metric_at(i)->counter ? "counter" : "gauge");
        assert_has(text, line);
    }
    history_free(&made.history);
}

/* Workers of nearly one size do not take turns. */
static void test_choice(void **state)
{
    (void)state;
    Made made;
    made_open(&made);
    MetricsView view = view_of(&made);
    MetricsChoice choice = {0};
    free(written(&view, METRICS_PROMETHEUS, &choice));
    made.rss[1] = 110 * MIB; /* 106 has 106, 105 has 105 */
    moment_add(&made, MOMENTS);
    _cleanup_free_ char *same = written(&view, METRICS_PROMETHEUS, &choice);
    assert_has(same, "pid=\"106\"");
    assert_lacks(same, "pid=\"101\"");
    made.rss[1] = 200 * MIB;
    moment_add(&made, MOMENTS + 1);
    _cleanup_free_ char *other = written(&view, METRICS_PROMETHEUS, &choice);
    assert_has(other, "pid=\"101\"");
    assert_lacks(other, "pid=\"105\"");

    const JobFacts unlimited = {.pid = TRAINER, .open_files_soft = RLIMIT_UNLIMITED, .there = true};
    view.facts = &unlimited;
    view.n_facts = 1;
    _cleanup_free_ char *endless = written(&view, METRICS_PROMETHEUS, &choice);
    assert_lacks(endless, "\nshmguard_process_max_fds{");

    view.processes_most = 0;
    _cleanup_free_ char *none = written(&view, METRICS_PROMETHEUS, &choice);
    assert_has(none, "\nshmguard_process_rss_bytes{pid=\"rest\",role=\"trainer\"} 524288000\n");
    assert_lacks(none, "job=");
    history_free(&made.history);
}

static void test_runs(void **state)
{
    (void)state;
    Made made;
    made_open(&made);
    static const JobFacts facts[] = {
        {.pid = TRAINER, .names = {"4711", "3"}, .open_files_soft = 1024, .there = true},
        {.pid = 50, .names = {"4711", "3"}, .open_files_soft = U64_UNKNOWN, .there = true},
        {.pid = 51, .open_files_soft = U64_UNKNOWN, .there = true},
        {.pid = 52, .open_files_soft = U64_UNKNOWN, .there = true},
    };
    GuardedRun runs[] = {
        {.pid = 50,
         .job = TRAINER,
         .figures = {.bytes_now = 5, .budget_bytes = 10, .waiting = 1, .batches = 7}},
        {.pid = 51, .job = TRAINER, .figures = {.bytes_now = 6, .budget_bytes = U64_UNKNOWN}},
        {.pid = 52, .figures = {.bytes_now = 8, .budget_bytes = 20}},
        {.pid = 51, .job = TRAINER, .figures = {.bytes_now = 100, .budget_bytes = U64_UNKNOWN}},
    };
    MetricsView view = view_of(&made);
    MetricsChoice choice = {0};
    view.facts = facts;
    view.n_facts = ARRAY_SIZE(facts);
    view.runs = runs;
    view.n_runs = ARRAY_SIZE(runs);
    view.totals = (GuardTotals){1, 2, 3, 4};
    _cleanup_free_ char *text = written(&view, METRICS_PROMETHEUS, &choice);
    assert_has(text, "\nshmguard_guard_bytes{job=\"4711\",rank=\"3\"} 5\n");
    assert_has(text, "\nshmguard_guard_batches_total{job=\"4711\",rank=\"3\"} 7\n");
    assert_has(text, "\nshmguard_guard_bytes{job=\"4711\"} 106\n"); /* no series twice */
    assert_has(text, "\nshmguard_guard_bytes{job=\"52\"} 8\n");     /* a run without a trainer yet */
    assert_has(text, "\nshmguard_guard_budget_bytes{job=\"52\"} 20\n");
    assert_lacks(text, "\nshmguard_guard_budget_bytes{job=\"4711\"} ");
    assert_has(text, "\nshmguard_guard_refused_total 4\n");
    assert_has(text,
               "\nshmguard_process_max_fds{pid=\"100\",role=\"trainer\",job=\"4711\",rank=\"3\"} 1024\n");
    assert_has(text, "\nshmguard_process_rss_bytes{pid=\"rest\",role=\"worker\",job=\"4711\"} ");

    /* With all that a view can have, no metric of the table is without a value. */
    Segment segment = {.kind = KIND_TORCH, .backing = BACKING_SHM, .allocated_bytes = MIB};
    Survey survey = {.segments = &segment, .n_segments = 1};
    view.segments = &survey;
    view.orphan_bytes = view.orphans = view.own_bytes = 1;
    MetricsChoice all = {0};
    _cleanup_free_ char *full = written(&view, METRICS_PROMETHEUS, &all);
    for (size_t i = 0; metric_at(i); i++) {
        char line[100];
        snprintf(line, sizeof line, "\n%s", metric_at(i)->name);
        const char *row = strstr(full, line);
        while (row && row[strlen(line)] != ' ' && row[strlen(line)] != '{')
            row = strstr(row + 1, line);
        if (!row)
            fail_msg("no value: %s", metric_at(i)->name);
    }
    history_free(&made.history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
