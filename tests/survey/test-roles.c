/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "internal.h"

#define WORKER_SIGNALS UINT64_C(0x44c0) /* BUS FPE SEGV TERM, as seen in PyTorch 1.13 and 2.13 */
#define FAULTHANDLER                                                                                         \
    (WORKER_SIGNALS | UINT64_C(0x28)) /* with ILL and ABRT: faulthandler and a SIGTERM handler */

typedef struct Expected {
    Role role;
    int job;
    StartMethod start;
} Expected;

typedef struct Case {
    Process process;
    Expected expected;
} Case;

#define PROCESS(number, parent, name, line, ...)                                                             \
    {                                                                                                        \
        .pid = number, .ppid = parent, .comm = name, .command = {line, sizeof(line) - 1}, __VA_ARGS__        \
    }

static void check(const Case *cases, size_t n)
{
    Process processes[32];
    Survey survey = {.processes = processes, .n_processes = n};
    for (size_t i = 0; i < n; i++)
        processes[i] = cases[i].process;
    processes_assign_roles(&survey);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(processes[i].role, cases[i].expected.role);
        assert_int_equal(processes[i].job, cases[i].expected.job);
        assert_int_equal(processes[i].start, cases[i].expected.start);
    }
}

static void test_old_pytorch_knows_workers_by_signals(void **state)
{
    (void)state;
    static const Case cases[] = {
        {PROCESS(1, 0, "init", "/sbin/init"), {0}},
        {PROCESS(10, 1, "python3", "python3 train.py", .torch = true), {ROLE_TRAINER, 10, START_UNKNOWN}},
        {PROCESS(11, 10, "python3", "python3 train.py", .torch = true, .signals_caught = WORKER_SIGNALS),
         {ROLE_WORKER, 10, START_FORK}},
        {PROCESS(12, 10, "python3", "python3 -c from multiprocessing.spawn import spawn_main; spawn_main(…)",
                 .torch = true, .signals_caught = WORKER_SIGNALS),
         {ROLE_WORKER, 10, START_SPAWN}},
        {PROCESS(13, 10, "python3", "python3 -c from multiprocessing.forkserver import main; main(…)"), {0}},
        {PROCESS(14, 13, "python3", "python3 -c from multiprocessing.forkserver import main; main(…)",
                 .torch = true, .signals_caught = WORKER_SIGNALS),
         {ROLE_WORKER, 10, START_FORKSERVER}},
        {PROCESS(15, 10, "python3", "python3 -c from multiprocessing.resource_tracker import main;main(5)"),
         {0}},
        {PROCESS(16, 11, "torch_shm_manag", "torch_shm_manager"), {ROLE_MANAGER, 10, START_UNKNOWN}},
        {PROCESS(17, 1, "torch_shm_manag", "torch_shm_manager"), {ROLE_MANAGER, 0, START_UNKNOWN}},
        /* the trainer has died; the forkserver and its worker have not noticed yet */
        {PROCESS(18, 1, "python3", "python3 -c from multiprocessing.forkserver import main; main(…)"), {0}},
        {PROCESS(19, 18, "python3", "python3 -c from multiprocessing.forkserver import main; main(…)",
                 .torch = true, .signals_caught = WORKER_SIGNALS),
         {ROLE_WORKER, 0, START_FORKSERVER}},
    };
    check(cases, ARRAY_SIZE(cases));
}

static void test_names_decide_where_they_are(void **state)
{
    (void)state;
    static const Case cases[] = {
        {PROCESS(10, 1, "pt_main_thread", "python train.py", .torch = true, .signals_caught = FAULTHANDLER),
         {ROLE_TRAINER, 10, START_UNKNOWN}},
        {PROCESS(11, 10, "pt_data_worker", "python train.py", .torch = true), {ROLE_WORKER, 10, START_FORK}},
        {PROCESS(12, 10, "pt_main_thread", "python train.py", .torch = true, .signals_caught = FAULTHANDLER),
         {ROLE_TRAINER, 12, START_UNKNOWN}},
        {PROCESS(13, 1, "pt_data_worker", "python gone.py", .torch = true), {ROLE_WORKER, 0, START_FORK}},
    };
    check(cases, ARRAY_SIZE(cases));
}

static void test_launchers_and_ranks(void **state)
{
    (void)state;
    static const Case cases[] = {
        {PROCESS(10, 1, "torchrun", "python /usr/bin/torchrun --nproc_per_node=2 train.py", .torch = true),
         {0}},
        {PROCESS(11, 10, "python", "python -u train.py", .torch = true, .signals_caught = FAULTHANDLER),
         {ROLE_TRAINER, 11, START_UNKNOWN}},
        {PROCESS(12, 11, "python", "python -u train.py", .torch = true, .signals_caught = FAULTHANDLER),
         {ROLE_WORKER, 11, START_FORK}},
        {PROCESS(20, 1, "python", "python -m torch.distributed.run train.py", .torch = true), {0}},
        {PROCESS(21, 20, "python", "python -u train.py", .torch = true), {ROLE_TRAINER, 21, START_UNKNOWN}},
        /* ranks of mp.spawn with faulthandler and a SIGTERM handler, recognized by the worker below */
        {PROCESS(30, 1, "python", "python spawn.py", .torch = true), {ROLE_TRAINER, 30, START_UNKNOWN}},
        {PROCESS(31, 30, "python", "python -c from multiprocessing.spawn import spawn_main", .torch = true,
                 .signals_caught = FAULTHANDLER),
         {ROLE_TRAINER, 31, START_UNKNOWN}},
        {PROCESS(32, 31, "python", "python -c from multiprocessing.spawn import spawn_main", .torch = true,
                 .signals_caught = FAULTHANDLER),
         {ROLE_WORKER, 31, START_SPAWN}},
        /* a forkserver that has torch preloaded only forks */
        {PROCESS(40, 30, "python", "python -c from multiprocessing.forkserver import main", .torch = true),
         {0}},
        {PROCESS(41, 40, "python", "python -c from multiprocessing.forkserver import main", .torch = true,
                 .signals_caught = WORKER_SIGNALS),
         {ROLE_WORKER, 30, START_FORKSERVER}},
    };
    check(cases, ARRAY_SIZE(cases));
}

/* batchgenerators: forked copies of the trainer that feed a queue. PyTorch names the threads of a rank. */
static void test_feeders(void **state)
{
    (void)state;
    static const Case cases[] = {
        {PROCESS(10, 1, "python", "python train.py", .torch = true, .threads = 3),
         {ROLE_TRAINER, 10, START_UNKNOWN}},
        {PROCESS(11, 10, "python", "python train.py", .torch = true, .threads = 2),
         {ROLE_WORKER, 10, START_FORK}},
        {PROCESS(12, 10, "pt_main_thread", "python train.py", .torch = true, .threads = 4),
         {ROLE_WORKER, 10, START_FORK}},
        /* it has not put anything into a queue */
        {PROCESS(13, 10, "python", "python train.py", .torch = true, .threads = 1),
         {ROLE_TRAINER, 13, START_UNKNOWN}},
        /* a rank that was forked */
        {PROCESS(14, 10, "python", "python train.py", .torch = true, .threads = 5, .signs = {.train = true}),
         {ROLE_TRAINER, 14, START_UNKNOWN}},
        {PROCESS(15, 10, "python", "python train.py", .torch = true, .threads = 5, .signs = {.loaders = 4}),
         {ROLE_TRAINER, 15, START_UNKNOWN}},
        /* another program */
        {PROCESS(16, 10, "python", "python eval.py", .torch = true, .threads = 2),
         {ROLE_TRAINER, 16, START_UNKNOWN}},
        {PROCESS(17, 10, "python", "python train.py", .threads = 2), {0}},
        /* a rank of an old PyTorch, whose workers tell */
        {PROCESS(18, 10, "python", "python train.py", .torch = true, .threads = 5),
         {ROLE_TRAINER, 18, START_UNKNOWN}},
        {PROCESS(19, 18, "python", "python train.py", .torch = true, .signals_caught = WORKER_SIGNALS),
         {ROLE_WORKER, 18, START_FORK}},
        {PROCESS(20, 18, "python", "python train.py", .torch = true, .threads = 2),
         {ROLE_WORKER, 18, START_FORK}},
        /* the name of a worker after PyTorch 2.13, as the kernel truncates it */
        {PROCESS(21, 10, "pt_multiprocess", "python train.py", .torch = true), {ROLE_WORKER, 10, START_FORK}},
        /* a launcher's children are ranks */
        {PROCESS(30, 1, "python", "python -m torch.distributed.run t.py", .torch = true, .threads = 3), {0}},
        {PROCESS(31, 30, "python", "python -m torch.distributed.run t.py", .torch = true, .threads = 2), {0}},
    };
    check(cases, ARRAY_SIZE(cases));
}

static void test_hostile_ancestry_ends(void **state)
{
    (void)state;
    static const Case cases[] = {
        {PROCESS(5, 6, "a", "a", .torch = true, .signals_caught = WORKER_SIGNALS),
         {ROLE_WORKER, 6, START_FORK}},
        {PROCESS(6, 5, "b", "b", .torch = true, .signals_caught = WORKER_SIGNALS),
         {ROLE_TRAINER, 6, START_UNKNOWN}},
        {PROCESS(7, 7, "c", "c", .torch = true), {ROLE_TRAINER, 7, START_UNKNOWN}},
        {PROCESS(8, 9, "torch_shm_manag", ""), {ROLE_MANAGER, 0, START_UNKNOWN}},
        {PROCESS(9, 8, "torch_shm_manag", ""), {ROLE_MANAGER, 0, START_UNKNOWN}},
    };
    check(cases, ARRAY_SIZE(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_pytorch_knows_workers_by_signals),
        cmocka_unit_test(test_names_decide_where_they_are),
        cmocka_unit_test(test_launchers_and_ranks),
        cmocka_unit_test(test_feeders),
        cmocka_unit_test(test_hostile_ancestry_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
