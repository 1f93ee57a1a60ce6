/* SPDX-License-Identifier: Apache-2.0 */
#include "temp-root.h"

#include "job-processes.h"

enum { SELF = 100 };

static void process_write(const TempRoot *temp, int pid, int ppid)
{
    char path[64];
    char text[256];
    snprintf(path, sizeof path, "proc/%d/stat", pid);
    snprintf(text, sizeof text, "%d (x) S %d 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid, ppid,
             1000 + pid);
    temp_root_write(temp, path, text);
}

static void process_remove(const TempRoot *temp, int pid)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc/%d/stat", temp->path, pid);
    unlink(path);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
}

static void look_and_expect(JobProcesses *job, const char *expected)
{
    char text[256] = "";
    size_t n = 0;
    assert_int_equal(job_processes_look(job), 0);
    for (size_t i = 0; i < job->n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d ", job->items[i].pid);
    assert_string_equal(text, expected);
    assert_int_equal(job->all, job->n);
}

static void test_who_belongs(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    process_write(&temp, 1, 0);
    process_write(&temp, 2, 0); /* kthreadd */
    process_write(&temp, 50, 1);
    process_write(&temp, SELF, 50);
    process_write(&temp, 101, SELF); /* our child from before the job */
    process_write(&temp, 102, 101);
    temp_root_write(&temp, "proc/meminfo", "");
    temp_root_write(&temp, "proc/12x/stat", "");
    JobProcesses job;
    assert_int_equal(job_processes_open(temp_root_open(&temp), SELF, &job), 0);
    look_and_expect(&job, "");

    process_write(&temp, 200, SELF);
    process_write(&temp, 201, 200);
    process_write(&temp, 150, 201); /* pids need not increase */
    process_write(&temp, 202, 50);  /* of another job */
    process_write(&temp, 203, 102);
    process_write(&temp, 204, 999); /* its parent has just exited: not known yet */
    look_and_expect(&job, "150 200 201 ");
    process_write(&temp, 204, SELF);
    look_and_expect(&job, "150 200 201 204 ");
    assert_true(job_processes_has(&job, 150));
    assert_true(job_processes_has(&job, 204));
    assert_false(job_processes_has(&job, SELF));
    assert_false(job_processes_has(&job, 101));
    assert_false(job_processes_has(&job, 203));
    assert_false(job_processes_has(&job, 1));
    assert_false(job_processes_has(&job, 7777));

    process_remove(&temp, 201);
    process_remove(&temp, 202);
    process_write(&temp, 150, SELF); /* reparented to us */
    process_write(&temp, 205, 150);
    look_and_expect(&job, "150 200 204 205 ");

    job_processes_close(&job);
    temp_root_free(&temp);
}

static void test_circles_end(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    process_write(&temp, SELF, 300);
    process_write(&temp, 300, 301);
    process_write(&temp, 301, 300);
    process_write(&temp, 302, 302);
    temp_root_write(&temp, "proc/303/stat", "garbage");
    JobProcesses job;
    assert_int_equal(job_processes_open(temp_root_open(&temp), SELF, &job), 0);
    look_and_expect(&job, "");
    assert_false(job_processes_has(&job, 300));
    assert_false(job_processes_has(&job, 302));
    assert_false(job_processes_has(&job, 303));
    job_processes_close(&job);
    temp_root_free(&temp);
}

static void test_a_job_that_runs_already(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    process_write(&temp, 1, 0);
    process_write(&temp, 50, 1);
    process_write(&temp, 60, 50); /* the job */
    process_write(&temp, 61, 60);
    process_write(&temp, 62, 61);
    process_write(&temp, 70, 50);
    JobProcesses job;
    assert_int_equal(job_processes_attach(temp_root_open(&temp), 60, &job), 0);
    look_and_expect(&job, "60 61 62 ");

    process_remove(&temp, 61); /* its child is reparented to init, but stays in the job */
    process_write(&temp, 62, 1);
    process_write(&temp, 63, 62);
    process_write(&temp, 71, 70);
    look_and_expect(&job, "60 62 63 ");

    /* A process that is first seen just after its parent has exited. */
    process_write(&temp, 64, 63);
    process_remove(&temp, 63);
    look_and_expect(&job, "60 62 64 ");

    /* The job's first process ends before its descendants. */
    process_remove(&temp, 60);
    process_write(&temp, 64, 1);
    look_and_expect(&job, "62 64 ");
    /* Its pid is reused by an unrelated process. */
    temp_root_write(&temp, "proc/60/stat", "60 (y) S 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 99999 0 0\n");
    look_and_expect(&job, "62 64 ");
    process_remove(&temp, 60);
    process_remove(&temp, 62);
    process_remove(&temp, 64);
    look_and_expect(&job, "");
    job_processes_close(&job);
    assert_int_equal(job_processes_attach(temp_root_open(&temp), 60, &job), -ESRCH);
    temp_root_free(&temp);
}

static void test_a_machine_has_them_all(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    process_write(&temp, 1, 0);
    process_write(&temp, 2, 0);
    process_write(&temp, 50, 1);
    JobProcesses job;
    assert_int_equal(job_processes_attach(temp_root_open(&temp), 0, &job), 0);
    look_and_expect(&job, "1 2 50 ");
    job_processes_close(&job);
    temp_root_free(&temp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_belongs),
        cmocka_unit_test(test_circles_end),
        cmocka_unit_test(test_a_job_that_runs_already),
        cmocka_unit_test(test_a_machine_has_them_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
