/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "macro.h"
#include "where.h"

enum { TRAINER = 100, WORKER = 101 };

/* A job that answers at the end of each window as it is told to. */
typedef struct Job {
    Counters counters;
    Where where;
    double now;
    char stages[64]; /* one letter for each window that was begun */
} Job;

static WhereStage stage_now(const Job *job)
{
    return where_stage(atomic_load(&job->counters.where));
}

static WherePhase phase_now(const Job *job)
{
    return where_phase(atomic_load(&job->counters.where));
}

static void job_say(Job *job, int pid, int stage, int worker, int64_t growth, const char *site)
{
    char text[512];
    snprintf(text, sizeof text, "window\t%d\t%d\t10000\t%lld\t%lld\t0\t1\n%s", stage, worker,
             (long long)growth, (long long)growth / 2, site);
    assert_int_equal(where_take(&job->where, pid, text_of(text), job->now), 0);
}

typedef void (*Answer)(Job *job, WhereStage stage);

/* Until the search waits for its next round, at most so long. */
static void job_go(Job *job, double seconds, Answer answer)
{
    double until = job->now + seconds;
    uint32_t word = 0;
    while (job->now < until) {
        where_tick(&job->where, job->now);
        uint32_t now = atomic_load(&job->counters.where);
        WhereStage stage = stage_now(job);
        if (now != word && phase_now(job) == WHERE_BEGIN && stage != WHERE_OFF) {
            size_t n = strlen(job->stages);
            assert_true(n + 1 < sizeof job->stages);
            job->stages[n] = " cpdn"[stage];
        }
        if (now != word && phase_now(job) == WHERE_END)
            answer(job, stage);
        word = now;
        job->now++;
    }
}

static void nothing_grows(Job *job, WhereStage stage)
{
    job_say(job, TRAINER, (int)stage, -1, 0, "");
    job_say(job, WORKER, (int)stage, 0, 1 << 12, "");
}

static void python_explains(Job *job, WhereStage stage)
{
    job_say(job, WORKER, (int)stage, 0, 8 << 20, "site\tpython\t3\t8000000\t4000000\t9\ttrain.py\tload\n");
    if (stage == WHERE_CENSUS)
        job_say(job, TRAINER, (int)stage, -1, 0, "");
}

static void library_explains(Job *job, WhereStage stage)
{
    const char *file =
        stage == WHERE_PYTHON
            ? "site\tpython\t3\t8000000\t4000000\t9\t/usr/lib/python3.11/logging/__init__.py\tx\n"
            : "site\tpython\t3\t8000000\t4000000\t9\ttrain.py\tload\n";
    job_say(job, WORKER, (int)stage, 0, 8 << 20, file);
}

static void both_grow_natively(Job *job, WhereStage stage)
{
    bool trainer = stage == WHERE_CENSUS || atomic_load(&job->counters.where_pid) == TRAINER;
    if (trainer)
        job_say(job, TRAINER, (int)stage, -1, 4 << 20, "");
    if (stage == WHERE_CENSUS || !trainer)
        job_say(job, WORKER, (int)stage, 0, 8 << 20, "");
}

static Job job_of(bool again)
{
    Job job = {.now = 1000};
    where_ask(&job.where, again, job.now);
    return job;
}

#define JOB(name, again)                                                                                     \
    Job name = job_of(again);                                                                                \
    name.where.counters = &name.counters

static void test_steady_job_is_asked_ever_longer(void **state)
{
    (void)state;
    JOB(job, false);
    job_go(&job, 400, nothing_grows);
    assert_string_equal(job.stages, "cccc"); /* 5, 10, 20 and 30 s for half a window */
    assert_int_equal(job.where.rounds, 1);
    assert_int_equal(stage_now(&job), WHERE_OFF);
}

static void test_again_and_again(void **state)
{
    (void)state;
    JOB(job, true);
    job_go(&job, 600, nothing_grows);
    assert_true(strlen(job.stages) > 4);
}

/* The program uses tracemalloc itself. */
static void python_is_refused(Job *job, WhereStage stage)
{
    if (stage == WHERE_PYTHON)
        assert_int_equal(where_take(&job->where, WORKER, TEXT("failed\tin use\n"), job->now), 0);
    else
        job_say(job, WORKER, (int)stage, 0, 8 << 20, "");
}

static void test_stages_follow_growth(void **state)
{
    (void)state;
    static const struct {
        Answer answer;
        const char *stages;
        const char *unguarded; /* who could look at other memory? */
    } cases[] = {
        {python_explains, "cp", "cp"},
        {library_explains, "cpd", "cpd"},
        {both_grow_natively, "cpnpn", "cpp"}, /* of the worker, then of the trainer */
        {python_is_refused, "cpn", "cp"},
    };
    for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
        JOB(job, false);
        job.where.without_native = i % 2;
        job_go(&job, 300, cases[i / 2].answer);
        assert_string_equal(job.stages, i % 2 ? cases[i / 2].unguarded : cases[i / 2].stages);
        assert_int_equal(job.where.rounds, 1);
    }
}

/* Workers of a short epoch report when they end, and others take over: the stage lasts as long as ever. */
static void nobody_answers(Job *job, WhereStage stage)
{
    if (stage == WHERE_CENSUS)
        job_say(job, WORKER, (int)stage, 0, 8 << 20, "");
}

static void test_nobody_answers(void **state)
{
    (void)state;
    JOB(job, false);
    job_go(&job, 600, nobody_answers);
    assert_int_equal(stage_now(&job), WHERE_OFF);
    assert_true(job.where.rounds == 1);
}

static void silence(Job *job, WhereStage stage)
{
    (void)job, (void)stage;
}

/* No trainer is there: a job that starts is asked again, and one that ran is given up. */
static void test_silence(void **state)
{
    (void)state;
    JOB(started, true);
    job_go(&started, 100, silence);
    assert_true(strlen(started.stages) >= 6); /* not for longer each time */
    JOB(running, false);
    job_go(&running, 100, silence);
    assert_string_equal(running.stages, "ccc");
    assert_int_equal(running.where.rounds, 1);
}

static void test_every_word_is_new(void **state)
{
    (void)state;
    JOB(job, false);
    uint32_t before = 0;
    for (int i = 0; i < 8; i++) {
        uint32_t word = 0;
        where_tick(&job.where, job.now++);
        word = atomic_load(&job.counters.where);
        assert_true(word >= before);
        before = word;
    }
    where_stop(&job.where);
    assert_int_equal(stage_now(&job), WHERE_OFF);
    assert_true(atomic_load(&job.counters.where) > before);
    assert_int_equal(job.where.rounds, job.where.asked); /* no one waits any longer */
}

static void test_a_reason_is_kept(void **state)
{
    (void)state;
    JOB(job, false);
    assert_int_equal(where_take(&job.where, WORKER, TEXT("failed\tRuntimeError: no\033\n"), job.now), 0);
    assert_non_null(strstr(job.where.failed, "RuntimeError: no"));
    assert_null(strchr(job.where.failed, '\033'));
    assert_true(where_take(&job.where, WORKER, TEXT("nonsense"), job.now) < 0);
}

/* Of a process that was not asked, or says too much. */
static void test_not_everything_is_taken(void **state)
{
    (void)state;
    Job quiet = {.now = 1000};
    quiet.where.counters = &quiet.counters;
    assert_int_equal(where_take(&quiet.where, WORKER, TEXT("failed\tno\n"), quiet.now), 0);
    assert_int_equal(quiet.where.failures, 0);
    JOB(job, false);
    where_tick(&job.where, job.now);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(where_take(&job.where, WORKER, TEXT("failed\tno\n"), job.now), 0);
    assert_in_range(job.where.failures, 100, 1000);
}

/* What could not be looked at once is no reason any more when processes answer. */
static void test_a_reason_is_forgotten(void **state)
{
    (void)state;
    JOB(job, true);
    assert_int_equal(where_take(&job.where, WORKER, TEXT("failed\tRuntimeError: no\n"), job.now), 0);
    job_go(&job, 60, nothing_grows);
    assert_string_equal(job.where.failed, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady_job_is_asked_ever_longer),
        cmocka_unit_test(test_again_and_again),
        cmocka_unit_test(test_stages_follow_growth),
        cmocka_unit_test(test_nobody_answers),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_every_word_is_new),
        cmocka_unit_test(test_a_reason_is_kept),
        cmocka_unit_test(test_not_everything_is_taken),
        cmocka_unit_test(test_a_reason_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
