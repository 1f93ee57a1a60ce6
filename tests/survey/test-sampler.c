/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "sampler.h"

enum { HEAP_BYTES = 8 << 20, SEGMENT_BYTES = 2 << 20 };

static char *volatile heap;
static const double PATIENCE_SECONDS = 20;

typedef struct Case {
    Root root;
    Sampler *sampler;
    Moment moment;
    Event events[64]; /* of all looks */
    size_t n_events;
} Case;

static pid_t sleeper_start(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

/* A job that starts a child on SIGUSR1. On SIGUSR2 it exits and leaves its children behind. */
static volatile sig_atomic_t wanted;

static void want(int signal)
{
    wanted = signal;
}

static void job_live(int ready)
{
    sigset_t both;
    sigset_t before;
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    sigprocmask(SIG_BLOCK, &both, &before);
    signal(SIGUSR1, want);
    signal(SIGUSR2, want);
    heap = malloc(HEAP_BYTES);
    memset(heap, 1, HEAP_BYTES);
    int fd = memfd_create("segment", MFD_CLOEXEC);
    char *segment = MAP_FAILED;
    if (ftruncate(fd, SEGMENT_BYTES) == 0)
        segment = mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (segment == MAP_FAILED)
        _exit(1);
    memset(segment, 1, SEGMENT_BYTES);
    close(ready);
    for (;;) {
        sigsuspend(&before);
        if (wanted == SIGUSR2)
            _exit(0);
        if (wanted == SIGUSR1 && fork() == 0)
            for (;;)
                pause();
        wanted = 0;
    }
}

static pid_t job_start(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ready[0]);
        job_live(ready[1]);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    return pid;
}

static void case_open(Case *it, int pid)
{
    *it = (Case){0};
    assert_int_equal(root_open(NULL, &it->root), 0);
    SamplerWish wish = {.pid = pid, .interval = 0.05};
    assert_int_equal(sampler_open(&it->root, &wish, &it->sampler), 0);
}

static void case_close(Case *it)
{
    sampler_free(it->sampler);
    root_close(&it->root);
}

static void look(Case *it)
{
    usleep(20 * 1000);
    assert_int_equal(sampler_look(it->sampler, &it->moment), 0);
    for (size_t i = 0; i < it->moment.n_events; i++) {
        assert_true(it->moment.events[i].seconds <= it->moment.seconds);
        assert_true(it->n_events == 0 ||
                    it->events[it->n_events - 1].seconds <= it->moment.events[i].seconds);
        assert_true(it->n_events < 64);
        it->events[it->n_events++] = it->moment.events[i];
    }
    for (size_t i = 1; i < it->moment.n_processes; i++)
        assert_true(it->moment.processes[i - 1].pid < it->moment.processes[i].pid);
}

static const ProcessMoment *process_of(const Case *it, int pid)
{
    for (size_t i = 0; i < it->moment.n_processes; i++)
        if (it->moment.processes[i].pid == pid)
            return &it->moment.processes[i];
    return NULL;
}

static void look_until(Case *it, size_t n_processes)
{
    double end = now_seconds() + PATIENCE_SECONDS;
    do
        look(it);
    while (it->moment.n_processes != n_processes && now_seconds() < end);
    assert_int_equal(it->moment.n_processes, n_processes);
}

static const Event *event_of(const Case *it, EventKind kind, int pid)
{
    for (size_t i = 0; i < it->n_events; i++)
        if (it->events[i].kind == kind && it->events[i].pid == pid)
            return &it->events[i];
    return NULL;
}

static int other_than(const Case *it, int a, int b)
{
    for (size_t i = 0; i < it->moment.n_processes; i++)
        if (it->moment.processes[i].pid != a && it->moment.processes[i].pid != b)
            return it->moment.processes[i].pid;
    return 0;
}

static void test_figures_of_a_process(void **state)
{
    (void)state;
    pid_t pid = job_start();
    Case it;
    case_open(&it, pid);
    double seconds = 1;
    Survey survey;
    assert_false(sampler_take_segments(it.sampler, &survey, &seconds));
    look(&it);
    assert_int_equal(it.moment.n_processes, 1);
    assert_true(it.moment.seconds == 0);
    assert_int_equal(it.n_events, 0);
    const ProcessMoment *process = &it.moment.processes[0];
    assert_int_equal(process->pid, pid);
    assert_int_equal(process->ppid, getpid());
    assert_string_equal(process->comm, "test-sampler");
    assert_non_null(strstr(process->command, "test-sampler"));
    assert_true(process->started > 1e9);
    /* The first look has time for all figures. */
    for (size_t i = 0; i < PROCESS_CPU_WAIT_MSEC; i++) /* the others are of trainers and workers */
        if (process->values[i] == U64_UNKNOWN)
            fail_msg("%s is unknown", process_metric_name(i));
    assert_true(process->values[PROCESS_ANON] >= HEAP_BYTES);
    assert_true(process->values[PROCESS_USS] >= HEAP_BYTES);
    assert_true(process->values[PROCESS_PSS] >= process->values[PROCESS_USS]);
    assert_true(process->values[PROCESS_SHMEM] >= SEGMENT_BYTES);
    assert_true(process->values[PROCESS_SHM] >= SEGMENT_BYTES);
    assert_true(process->values[PROCESS_SEGMENTS] >= 1);
    assert_true(process->values[PROCESS_MAPS] > 5);
    assert_int_equal(process->values[PROCESS_THREADS], 1);

    assert_true(sampler_take_segments(it.sampler, &survey, &seconds));
    assert_true(seconds == 0 && survey.n_segments > 0);
    survey_free(&survey);
    assert_false(sampler_take_segments(it.sampler, &survey, &seconds)); /* only once */
    assert_true(it.moment.values[JOB_KIND_BYTES + KIND_OTHER] >= SEGMENT_BYTES);
    assert_true(it.moment.values[JOB_MEMORY_TOTAL] > it.moment.values[JOB_MEMORY_AVAILABLE]);
    assert_true(it.moment.values[JOB_GUARD_BYTES] == U64_UNKNOWN);

    kill(pid, SIGKILL);
    double end = now_seconds() + PATIENCE_SECONDS;
    while (!event_of(&it, EVENT_ENDED, pid) && now_seconds() < end)
        look(&it); /* it is a zombie, so its status can be read */
    assert_string_equal(event_of(&it, EVENT_ENDED, pid)->text, "SIGKILL");
    assert_int_equal(it.moment.n_processes, 0);
    assert_int_equal(sampler_look(it.sampler, &it.moment), -ESRCH);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    case_close(&it);
}

static void test_processes_come_and_go(void **state)
{
    (void)state;
    pid_t pid = job_start();
    pid_t stranger = sleeper_start();
    Case it;
    case_open(&it, pid);
    look_until(&it, 1);
    kill(pid, SIGUSR1);
    look_until(&it, 2);
    int first = other_than(&it, pid, 0);
    kill(pid, SIGUSR1);
    look_until(&it, 3);
    int second = other_than(&it, pid, first);
    look(&it);
    assert_null(process_of(&it, stranger));
    assert_null(event_of(&it, EVENT_BORN, pid));
    assert_non_null(event_of(&it, EVENT_BORN, first));
    assert_non_null(event_of(&it, EVENT_BORN, second));

    kill(first, SIGTERM);
    look_until(&it, 2);
    assert_non_null(event_of(&it, EVENT_ENDED, first));

    /* When the parent exits, its child is reparented but stays in the job. */
    kill(pid, SIGUSR2);
    look_until(&it, 1);
    assert_non_null(process_of(&it, second));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 3; i++)
        look(&it);
    assert_non_null(process_of(&it, second));
    assert_true(it.moment.values[JOB_SHM_SIZE] != U64_UNKNOWN);
    kill(second, SIGKILL);
    look_until(&it, 0);
    assert_non_null(event_of(&it, EVENT_ENDED, second));
    assert_int_equal(sampler_look(it.sampler, &it.moment), -ESRCH);
    case_close(&it);
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
}

static void test_many_that_are_gone_at_once(void **state)
{
    (void)state;
    pid_t pid = job_start();
    Case it;
    case_open(&it, pid);
    look_until(&it, 1);
    for (size_t n = 2; n <= 20; n++) {
        kill(pid, SIGUSR1);
        look_until(&it, n);
    }
    for (size_t i = 0; i < it.moment.n_processes; i++)
        kill(it.moment.processes[i].pid, SIGKILL);
    waitpid(pid, NULL, 0);
    look_until(&it, 0);
    size_t n = 0;
    for (size_t i = 0; i < it.n_events; i++)
        n += it.events[i].kind == EVENT_ENDED;
    assert_int_equal(n, 20);
    case_close(&it);
}

static void test_a_machine_shows_who_holds_segments(void **state)
{
    (void)state;
    pid_t pid = job_start();
    pid_t stranger = sleeper_start(); /* holds no shared memory */
    Case it;
    case_open(&it, 0);
    look(&it);
    look(&it);
    const ProcessMoment *process = process_of(&it, pid);
    assert_non_null(process);
    assert_true(process->values[PROCESS_ANON] >= HEAP_BYTES);
    assert_null(process_of(&it, stranger));
    assert_null(event_of(&it, EVENT_BORN, pid));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    look(&it);
    assert_non_null(event_of(&it, EVENT_ENDED, pid));
    assert_null(process_of(&it, pid));
    case_close(&it);
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
}

/* Sees all descendants except children that existed before, and reads only what is nearly free. */
static void test_children_in_a_light_look(void **state)
{
    (void)state;
    pid_t before = sleeper_start();
    Case it = {0};
    assert_int_equal(root_open(NULL, &it.root), 0);
    SamplerWish wish = {.pid = SAMPLER_CHILDREN, .interval = 1, .light = true};
    assert_int_equal(sampler_open(&it.root, &wish, &it.sampler), 0);
    look(&it);
    assert_int_equal(it.moment.n_processes, 0); /* no processes yet, which is not the end of the job here */

    pid_t pid = job_start();
    look_until(&it, 1);
    const ProcessMoment *process = process_of(&it, pid);
    assert_non_null(process);
    assert_int_equal(process->uid, geteuid());
    assert_true(process->rss_bytes >= HEAP_BYTES);
    assert_true(process->rss_peak_bytes >= process->rss_bytes);
    assert_true(process->command_hash != 0);
    assert_int_equal(process->values[PROCESS_PSS], U64_UNKNOWN);
    assert_int_equal(process->values[PROCESS_SHM], U64_UNKNOWN);
    assert_int_equal(it.moment.values[JOB_MEMORY_TOTAL], U64_UNKNOWN);

    ProcessMoment now;
    assert_int_equal(sampler_look_at(it.sampler, pid, &now), 0);
    assert_true(now.rss_bytes >= HEAP_BYTES);
    assert_true(now.values[PROCESS_MAPS] > 5);
    assert_true(now.values[PROCESS_FDS] >= 3);
    pid_t unseen = sleeper_start();
    assert_true(sampler_covers(it.sampler, unseen));
    assert_int_equal(sampler_look_at(it.sampler, unseen, &now), 0);
    assert_int_equal(now.pid, unseen);
    assert_false(sampler_covers(it.sampler, before));
    assert_int_equal(sampler_look_at(it.sampler, before, &now), -ESRCH);

    const pid_t all[] = {before, pid, unseen};
    for (size_t i = 0; i < 3; i++) {
        kill(all[i], SIGKILL);
        assert_int_equal(waitpid(all[i], NULL, 0), all[i]);
        assert_int_equal(sampler_look_at(it.sampler, all[i], &now), -ESRCH);
    }
    look_until(&it, 0);
    look(&it);
    case_close(&it);
}

/* Adjacent pages with different protection are not merged into one mapping. */
static void mappings_make(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *start = mmap(NULL, n * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; start != MAP_FAILED && i < n; i += 2)
        if (mprotect(start + i * page, page, PROT_READ) < 0)
            _exit(1);
}

static uint64_t maps_seen(Case *it, pid_t pid)
{
    uint64_t maps = U64_UNKNOWN;
    for (unsigned looks = 0; looks < 20 && maps == U64_UNKNOWN; looks++) {
        look(it);
        const ProcessMoment *process = process_of(it, pid);
        maps = process ? process->values[PROCESS_MAPS] : U64_UNKNOWN;
        usleep(200000);
    }
    return maps;
}

/* A process with very many mappings is expensive to count, but is still counted every two seconds. */
static void test_many_mappings_are_counted_in_time(void **state)
{
    enum { MANY = 20000 };
    (void)state;
    int ready[2];
    char byte = 0;
    Case it = {0};
    assert_int_equal(root_open(NULL, &it.root), 0);
    SamplerWish wish = {.pid = SAMPLER_CHILDREN, .interval = 1, .light = true};
    assert_int_equal(sampler_open(&it.root, &wish, &it.sampler), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            mappings_make(MANY);
            if (write(ready[1], "", 1) < 0 || raise(SIGSTOP) != 0)
                _exit(1);
        }
    }
    for (uint64_t times = 1; times <= 3; times++) {
        assert_int_equal(read(ready[0], &byte, 1), 1);
        assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
        uint64_t maps = maps_seen(&it, pid);
        assert_true(maps != U64_UNKNOWN && maps >= times * MANY);
        kill(pid, SIGCONT);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    case_close(&it);
}

static void test_nobody_there(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    Root root;
    Sampler *sampler = NULL;
    SamplerWish wish = {.pid = pid, .interval = 1};
    assert_int_equal(root_open(NULL, &root), 0);
    assert_int_equal(sampler_open(&root, &wish, &sampler), -ESRCH);
    waitpid(pid, NULL, 0);
    assert_int_equal(sampler_open(&root, &wish, &sampler), -ESRCH);
    root_close(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_of_a_process),
        cmocka_unit_test(test_processes_come_and_go),
        cmocka_unit_test(test_many_that_are_gone_at_once),
        cmocka_unit_test(test_a_machine_shows_who_holds_segments),
        cmocka_unit_test(test_children_in_a_light_look),
        cmocka_unit_test(test_many_mappings_are_counted_in_time),
        cmocka_unit_test(test_nobody_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
