/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes that ask for room, use real memory and are killed at random moments. The accounts must be
 * correct after every kill. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker.h"
#include "macro.h"
#include "source.h"

enum { BATCH_BYTES = 1 << 20, BUDGET_BATCHES = 4, CLIENTS = 8, KILLS = 100 };

typedef struct Bench {
    int epoll;
    Root root;
    Broker *broker;
} Bench;

static Spare plenty(const void *context)
{
    (void)context;
    return (Spare){UINT64_C(1) << 40, UINT64_C(1) << 40};
}

static void bench_open(Bench *bench, Spare (*spare_now)(const void *), double wait_seconds)
{
    *bench = (Bench){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    assert_int_equal(root_open(NULL, &bench->root), 0);
    BrokerOwner owner = {.root = &bench->root,
                         .budget_bytes = BUDGET_BATCHES * BATCH_BYTES,
                         .wait_seconds = wait_seconds,
                         .budget_is_wished = true,
                         .spare_now = spare_now};
    assert_int_equal(broker_open(bench->epoll, "/tmp", &owner, &bench->broker), 0);
}

static void bench_close(Bench *bench)
{
    broker_free(bench->broker);
    root_close(&bench->root);
    close(bench->epoll);
}

static void turn(Bench *bench, int msec)
{
    struct epoll_event events[64];
    int n = epoll_wait(bench->epoll, events, ARRAY_SIZE(events), msec);
    for (int i = 0; i < n; i++) {
        Source *source = events[i].data.ptr;
        source->ready(source);
    }
    broker_settle(bench->broker);
}

/* --- What the guard does, in a process of its own ----------------------------------------------------- */

static int ask(const char *name, int fd, uint64_t bytes, Asker asker)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    memcpy(address.sun_path + 1, name, n);
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(connection, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0)
        _exit(9);
    Message message = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_ROOM, .bytes = bytes, .asker = asker};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    struct iovec part = {&message, sizeof message};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (sendmsg(connection, &packet, MSG_NOSIGNAL) < 0)
        _exit(8);
    do
        if (recv(connection, &message, sizeof message, 0) != sizeof message)
            _exit(7);
    while (message.type != MESSAGE_ANSWER);
    close(connection);
    return message.error;
}

static int segment_hand_out(void)
{
    char path[40];
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    int own = memfd_create("shmguard", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", own);
    int fd = ftruncate(own, BATCH_BYTES) < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
        _exit(6);
    close(own);
    return fd;
}

/* Allocates and frees batches until it is killed. */
static void client_live(const char *name, unsigned seed)
{
    for (;;) {
        int fd = segment_hand_out();
        if (ask(name, fd, BATCH_BYTES, ASKER_FIRST_THREAD) != 0)
            _exit(5);
        if (fallocate(fd, 0, 0, BATCH_BYTES) < 0)
            _exit(4);
        usleep((unsigned)rand_r(&seed) % 3000);
        close(fd);
    }
}

static pid_t client_start(const Bench *bench, unsigned seed)
{
    pid_t pid = fork();
    if (pid == 0)
        client_live(broker_socket(bench->broker), seed);
    assert_true(pid > 0);
    return pid;
}

/* --- Cases -------------------------------------------------------------------------------------------- */

static void test_killed_at_random(void **state)
{
    (void)state;
    Bench bench;
    bench_open(&bench, plenty, 60);
    pid_t clients[CLIENTS];
    unsigned seed = 7;
    uint64_t most = 0;
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = client_start(&bench, (unsigned)i);
    for (int kills = 0; kills < KILLS; kills++) {
        for (int turns = rand_r(&seed) % 20; turns >= 0; turns--) {
            turn(&bench, 1);
            most = MAX(most, broker_figures(bench.broker).bytes_now);
        }
        int victim = rand_r(&seed) % CLIENTS;
        int status = 0;
        kill(clients[victim], SIGKILL);
        assert_int_equal(waitpid(clients[victim], &status, 0), clients[victim]);
        assert_true(WIFSIGNALED(status)); /* none exited by itself */
        clients[victim] = client_start(&bench, seed);
    }
    for (int i = 0; i < CLIENTS; i++) {
        kill(clients[i], SIGKILL);
        waitpid(clients[i], NULL, 0);
    }
    for (int i = 0; i < 50; i++) {
        turn(&bench, 1);
        broker_tick(bench.broker, false);
    }
    GuardFigures figures = broker_figures(bench.broker);
    assert_int_equal(figures.bytes_now, 0);
    assert_int_equal(figures.waiting, 0);
    assert_int_equal(figures.refused, 0);
    assert_true(figures.waits > 0);
    assert_true(most > 0 && most <= (BUDGET_BATCHES + CLIENTS) * BATCH_BYTES);
    bench_close(&bench);
}

static Spare tight(const void *context)
{
    (void)context;
    return (Spare){UINT64_C(1) << 40, UINT64_C(1) << 40, true};
}

/* Released memory is kept for the next batch. If memory is tight, it is freed without waiting for a tick. */
static void test_nothing_is_kept_when_memory_is_tight(void **state)
{
    (void)state;
    for (int is_tight = 0; is_tight < 2; is_tight++) {
        Bench bench;
        bench_open(&bench, is_tight ? tight : plenty, 60);
        pid_t pid = fork();
        if (pid == 0) {
            int fd = segment_hand_out();
            bool granted = ask(broker_socket(bench.broker), fd, BATCH_BYTES, ASKER_FIRST_THREAD) == 0;
            _exit(granted && fallocate(fd, 0, 0, BATCH_BYTES) == 0 ? 0 : 1);
        }
        int status = 0;
        while (waitpid(pid, &status, WNOHANG) == 0)
            turn(&bench, 1);
        assert_int_equal(status, 0);
        pid = fork(); /* every client that connects or disconnects triggers it */
        if (pid == 0)
            _exit(ask(broker_socket(bench.broker), segment_hand_out(), BATCH_BYTES, ASKER_FIRST_THREAD));
        while (waitpid(pid, &status, WNOHANG) == 0)
            turn(&bench, 1);
        uint64_t expected = is_tight ? 0 : BATCH_BYTES;
        for (int i = 0; i < 1000 && broker_figures(bench.broker).bytes_now != expected; i++)
            turn(&bench, 10);
        assert_int_equal(broker_figures(bench.broker).bytes_now, expected);
        bench_close(&bench);
    }
}

static Spare nothing(const void *context)
{
    (void)context;
    return (Spare){0};
}

static void test_refused_when_memory_is_not_there(void **state)
{
    (void)state;
    Bench bench;
    bench_open(&bench, nothing, 0.2);
    pid_t pid = fork();
    if (pid == 0)
        _exit(ask(broker_socket(bench.broker), segment_hand_out(), BATCH_BYTES, ASKER_OTHER_THREAD));
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0)
        turn(&bench, 1);
    assert_int_equal(WEXITSTATUS(status), ENOSPC);
    GuardFigures figures = broker_figures(bench.broker);
    assert_int_equal(figures.refused, 1);
    assert_int_equal(figures.refused_pid, pid);
    assert_true(figures.refused_for_want);
    assert_int_equal(figures.n_refusals, 1);
    const Refusal *refusal = &figures.refusals[0];
    assert_int_equal(refusal->pid, pid);
    assert_int_equal(refusal->requests, 1);
    assert_int_equal(refusal->unheard, 1);
    assert_int_equal(refusal->most_bytes, BATCH_BYTES);
    assert_false(refusal->told || figures.served_after);
    bench_close(&bench);
}

/* A worker (recognized by its signal handlers) whose feeder thread was refused is ended, and its trainer is
 * told. A process that is not a worker is left alone, and a worker that exits at once cannot be ended. */
static void test_a_refused_feeder_ends_its_worker(void **state)
{
    (void)state;
    enum { NONE, WORKER, WORKER_THAT_LEAVES, WAYS };
    for (int way = NONE; way < WAYS; way++) {
        bool worker = way != NONE;
        Bench bench;
        bench_open(&bench, nothing, 0.1);
        pid_t trainer = fork(); /* so that the worker is not our child */
        if (trainer == 0) {
            pid_t pid = fork();
            if (pid == 0) {
                if (worker) {
                    const int handled[] = {SIGBUS, SIGSEGV, SIGFPE, SIGTERM};
                    for (size_t i = 0; i < ARRAY_SIZE(handled); i++)
                        signal(handled[i], _exit);
                }
                ask(broker_socket(bench.broker), segment_hand_out(), BATCH_BYTES, ASKER_FEEDER);
                sleep(way == WORKER ? 30 : way == NONE ? 3 : 0);
                _exit(0);
            }
            int status = 0;
            waitpid(pid, &status, 0);
            sleep(way == WORKER_THAT_LEAVES ? 3 : 0);
            _exit(WEXITSTATUS(status));
        }
        int status = 0;
        while (waitpid(trainer, &status, WNOHANG) == 0) {
            turn(&bench, 10);
            broker_tick(bench.broker, false);
        }
        assert_int_equal(WEXITSTATUS(status), way == WORKER ? SIGTERM : 0);
        GuardFigures figures = broker_figures(bench.broker);
        assert_int_equal(figures.n_refusals, 1);
        assert_int_equal(figures.refusals[0].told, way == WORKER);
        bench_close(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_at_random),
        cmocka_unit_test(test_nothing_is_kept_when_memory_is_tight),
        cmocka_unit_test(test_refused_when_memory_is_not_there),
        cmocka_unit_test(test_a_refused_feeder_ends_its_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
