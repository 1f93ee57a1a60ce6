/* SPDX-License-Identifier: Apache-2.0 */
/* The lane between a worker and its trainer, in real processes, with the guard in this program. */
#include <errno.h>
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "guard.h"

enum { WORDS = SEGMENT_MIN_BYTES / sizeof(uint32_t) };

/* --- What both sides do, as PyTorch does it --- */

typedef struct Tensor {
    int fd;
    uint32_t *words;
} Tensor;

static void must(bool done)
{
    if (!done)
        abort();
}

static void tensor_make(Tensor *ret, uint32_t pattern)
{
    static unsigned number;
    char name[64];
    snprintf(name, sizeof name, "/torch_%d_%u", getpid(), number++);
    ret->fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    must(ret->fd >= 0 && ftruncate(ret->fd, SEGMENT_MIN_BYTES) == 0);
    ret->words = mmap(NULL, SEGMENT_MIN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ret->fd, 0);
    must(ret->words != MAP_FAILED && shm_unlink(name) == 0);
    for (size_t i = 0; i < WORDS; i++)
        ret->words[i] = pattern;
}

static bool tensor_holds(const Tensor *tensor, uint32_t pattern)
{
    for (size_t i = 0; i < WORDS; i++)
        if (tensor->words[i] != pattern)
            return false;
    return true;
}

static void tensor_drop(Tensor *tensor)
{
    must(munmap(tensor->words, SEGMENT_MIN_BYTES) == 0 && close(tensor->fd) == 0);
}

static uint64_t segment_of(int fd)
{
    struct stat st;
    must(stat_call(fd, &st) == 0);
    return st.st_ino;
}

static LaneName listen_here(void)
{
    must(guard_enter());
    const LaneName *name = lane_listen();
    must(name != NULL);
    LaneName copy = *name;
    guard_leave(false);
    return copy;
}

static uint64_t connect_to(const LaneName *name, pid_t pid)
{
    must(guard_enter());
    uint64_t worker = lane_connect(name, pid);
    guard_leave(false);
    return worker;
}

static uint64_t send_fd(int fd)
{
    LaneFds fds = {1, {fd}};
    must(guard_enter());
    uint64_t packet = lane_send(&fds);
    guard_leave(false);
    return packet;
}

/* -1 with errno. */
static int take_fd(uint64_t worker, uint64_t packet)
{
    LaneFds fds = {0};
    must(guard_enter());
    bool taken = lane_take(worker, packet, &fds);
    guard_leave(!taken);
    return taken && fds.n == 1 ? fds.fds[0] : -1;
}

/* --- Processes that make one step when they are told to --- */

typedef struct Actor {
    pid_t pid; /* 0: dead */
    int orders;
} Actor;

typedef struct Stage {
    int message[2]; /* the loader's own queue */
    LaneName name;
    pid_t trainer;
} Stage;

typedef struct BatchMessage {
    uint64_t worker;
    uint64_t packet;
} BatchMessage;

/* What a step finds out. */
typedef struct Answer {
    bool right;
    uint64_t segment;
} Answer;

static Answer worker_step(const Stage *stage, int step)
{
    static Tensor first;
    static Tensor second;
    static BatchMessage message;
    switch (step) {
    case 0:
        message.worker = connect_to(&stage->name, stage->trainer);
        tensor_make(&first, 1);
        return (Answer){message.worker != 0, segment_of(first.fd)};
    case 1:
        message.packet = send_fd(first.fd);
        return (Answer){.right = message.packet != 0};
    case 2:
        return (Answer){.right = write(stage->message[1], &message, sizeof message) == sizeof message};
    case 3:
        tensor_drop(&first);
        return (Answer){.right = true};
    default:
        tensor_make(&second, 2);
        return (Answer){true, segment_of(second.fd)};
    }
}

static Answer trainer_step(const Stage *stage, int step)
{
    static BatchMessage message;
    static Tensor tensor;
    switch (step) {
    case 0:
        return (Answer){.right = read(stage->message[0], &message, sizeof message) == sizeof message};
    case 1:
        tensor.fd = take_fd(message.worker, message.packet);
        return (Answer){.right = tensor.fd >= 0};
    case 2:
        tensor.words = mmap(NULL, SEGMENT_MIN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, tensor.fd, 0);
        return (Answer){.right = tensor.words != MAP_FAILED && tensor_holds(&tensor, 1)};
    case 3:
        return (Answer){.right = close(tensor.fd) == 0 && tensor_holds(&tensor, 1)};
    default:
        return (Answer){.right = tensor_holds(&tensor, 1) && munmap(tensor.words, SEGMENT_MIN_BYTES) == 0};
    }
}

enum {
    STEPS = 5,
    WORKER_SENDS = 1,
    WORKER_WRITES = 2,
    WORKER_DROPS = 3,
    WORKER_ISSUES = 4,
    TRAINER_LETS_GO = 4
};

static Actor actor_start(Stage *stage, bool is_trainer, int ret_name)
{
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        if (is_trainer) {
            LaneName name = listen_here();
            must(write(ret_name, &name, sizeof name) == sizeof name);
        }
        for (int step = 0; read(ends[1], &step, sizeof step) == sizeof step;) {
            Answer answer = is_trainer ? trainer_step(stage, step) : worker_step(stage, step);
            must(write(ends[1], &answer, sizeof answer) == sizeof answer);
        }
        _exit(0);
    }
    close(ends[1]);
    return (Actor){pid, ends[0]};
}

static Answer actor_do(const Actor *actor, int step)
{
    Answer answer = {0};
    must(write(actor->orders, &step, sizeof step) == sizeof step);
    if (read(actor->orders, &answer, sizeof answer) != sizeof answer)
        answer.right = false;
    return answer;
}

static void actor_kill(Actor *actor)
{
    if (actor->pid == 0)
        return;
    kill(actor->pid, SIGKILL);
    must(waitpid(actor->pid, NULL, 0) == actor->pid);
    close(actor->orders);
    actor->pid = 0;
    usleep(5000); /* the kernel closes what was in a dead process's sockets a moment later */
}

/*
 * One order of all steps, and one death. The order is a bit mask: a set bit is a step of the trainer. After
 * `death` steps the worker, or the trainer, is killed, and the other goes on.
 *
 * What must hold at each step: the trainer finds what the worker wrote; a segment that anybody can still
 * reach is not issued again; one that nobody can reach is.
 */
static void play(unsigned order, int death, bool trainer_dies)
{
    Stage stage = {0};
    int name[2];
    must(pipe2(stage.message, O_CLOEXEC) == 0 && pipe2(name, O_CLOEXEC) == 0);
    Actor trainer = actor_start(&stage, true, name[1]);
    must(read(name[0], &stage.name, sizeof stage.name) == sizeof stage.name);
    stage.trainer = trainer.pid;
    Actor worker = actor_start(&stage, false, -1);
    int done[2] = {0}; /* steps of the worker, of the trainer */
    uint64_t segment = 0;
    for (int i = 0; i < 2 * STEPS; i++) {
        if (i == death)
            actor_kill(trainer_dies ? &trainer : &worker);
        bool is_trainer = order >> i & 1;
        Actor *actor = is_trainer ? &trainer : &worker;
        if (actor->pid == 0)
            continue;
        if (is_trainer && done[1] == 0 && done[0] <= WORKER_WRITES)
            break; /* the worker has died before it sent the message: there is nothing to read */
        Answer answer = actor_do(actor, done[is_trainer]);
        bool reachable = done[0] <= WORKER_DROPS || (trainer.pid != 0 && done[1] <= TRAINER_LETS_GO);
        bool sent_in_vain = !is_trainer && trainer.pid == 0 && done[0] == WORKER_SENDS;
        bool connected_in_vain = !is_trainer && trainer.pid == 0 && done[0] == 0;
        if (!answer.right && !sent_in_vain && !connected_in_vain)
            fail_msg("order %x, death %d of the %s: step %d of the %s", order, death,
                     trainer_dies ? "trainer" : "worker", done[is_trainer],
                     is_trainer ? "trainer" : "worker");
        if (!is_trainer && done[0] == 0)
            segment = answer.segment;
        if (!is_trainer && done[0] == WORKER_ISSUES && (answer.segment == segment) == reachable)
            fail_msg("order %x, death %d of the %s: %s", order, death, trainer_dies ? "trainer" : "worker",
                     reachable ? "issued while it is in use" : "not issued although nobody has it");
        done[is_trainer]++;
    }
    actor_kill(&worker);
    actor_kill(&trainer);
    close(stage.message[0]);
    close(stage.message[1]);
    close(name[0]);
    close(name[1]);
}

/* The trainer's first step reads what the worker's third has written. */
static bool order_is_possible(unsigned order)
{
    int worker = 0;
    int trainer = 0;
    for (int i = 0; i < 2 * STEPS; i++) {
        if (order >> i & 1 && worker <= WORKER_WRITES)
            return false;
        (order >> i & 1 ? trainer++ : worker++);
    }
    return worker == STEPS && trainer == STEPS;
}

static void test_every_order_and_every_death(void **state)
{
    (void)state;
    int orders = 0;
    for (unsigned order = 0; order < 1U << 2 * STEPS; order++)
        if (order_is_possible(order)) {
            orders++;
            for (int death = 0; death <= 2 * STEPS; death++) {
                play(order, death, false);
                play(order, death, true);
            }
        }
    assert_int_equal(orders, 21);
}

/* --- One worker and its trainer in one process: it has started itself --- */

static uint64_t worker_of_ours(void)
{
    LaneName name = listen_here();
    uint64_t worker = connect_to(&name, getpid());
    assert_true(worker != 0);
    return worker;
}

static int forget(void **state)
{
    (void)state;
    must(guard_enter());
    lane_inherit();
    lane_disown();
    guard_leave(false);
    return 0;
}

static bool is_open(int fd)
{
    struct stat st;
    return stat_call(fd, &st) == 0;
}

static int open_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += is_open(fd);
    return n;
}

static void test_packets_out_of_order(void **state)
{
    (void)state;
    enum { PACKETS = 10 };
    uint64_t worker = worker_of_ours();
    uint64_t files[PACKETS + 1];
    for (uint64_t i = 1; i <= PACKETS; i++) {
        int fd = memfd_create("test", MFD_CLOEXEC);
        files[i] = segment_of(fd);
        assert_int_equal(send_fd(fd), i);
        close(fd);
    }
    for (uint64_t i = PACKETS; i >= 1; i--) {
        int fd = take_fd(worker, i);
        assert_int_equal(segment_of(fd), files[i]);
        close(fd);
    }
    assert_int_equal(take_fd(worker, 3), -1); /* it was taken */
    assert_int_equal(take_fd(worker + 1, 1), -1);
}

/* Messages that are dropped unread do not keep their descriptors forever. */
static void test_lost_messages_are_bounded(void **state)
{
    (void)state;
    uint64_t worker = worker_of_ours();
    int before = open_descriptors();
    for (int i = 0; i < 100; i++)
        assert_true(send_fd(STDIN_FILENO) != 0);
    int fd = take_fd(worker, 100);
    assert_true(fd >= 0);
    close(fd);
    assert_in_range(open_descriptors(), before, before + 17); /* one is the accepted connection */
}

static void test_a_full_socket_declines(void **state)
{
    (void)state;
    uint64_t worker = worker_of_ours();
    uint64_t packets = 0;
    for (uint64_t packet = 0; packets < 100000 && (packet = send_fd(STDIN_FILENO)) != 0;)
        packets = packet;
    assert_in_range(packets, 16, 99999);
    for (uint64_t i = 1; i <= packets; i++) {
        int fd = take_fd(worker, i);
        assert_true(fd >= 0);
        close(fd);
    }
    assert_int_equal(send_fd(STDIN_FILENO), packets + 1);
    assert_true(take_fd(worker, packets + 1) >= 0);
}

static void test_no_descriptor_left(void **state)
{
    (void)state;
    uint64_t worker = worker_of_ours();
    struct rlimit limit;
    assert_true(send_fd(STDIN_FILENO) == 1);
    close(take_fd(worker, 1));
    assert_true(send_fd(STDIN_FILENO) == 2);
    getrlimit(RLIMIT_NOFILE, &limit);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, limit.rlim_max});
    int fd = take_fd(worker, 2);
    int error = errno;
    setrlimit(RLIMIT_NOFILE, &limit);
    assert_int_equal(fd, -1);
    assert_int_equal(error, EMFILE);
    assert_true(send_fd(STDIN_FILENO) == 3); /* what follows arrives */
    assert_true(take_fd(worker, 3) >= 0);
}

/* The numbers of our sockets belong to other files now. */
static void test_a_program_that_closes_everything(void **state)
{
    (void)state;
    uint64_t worker = worker_of_ours();
    assert_true(send_fd(STDIN_FILENO) == 1);
    for (int fd = 3; fd < 256; fd++)
        if (is_open(fd))
            dup2(STDOUT_FILENO, fd);
    assert_int_equal(send_fd(STDIN_FILENO), 0);
    assert_int_equal(take_fd(worker, 1), -1);
    forget(NULL);
    for (int fd = 3; fd < 256; fd++)
        if (is_open(fd))
            close(fd); /* still open: forget has closed nothing that is not ours */
    worker = worker_of_ours();
    assert_true(send_fd(STDIN_FILENO) == 1 && take_fd(worker, 1) >= 0);
}

static void child_must_succeed(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A child of the trainer goes on where it was, whether the worker had connected before the fork or not; and
 * the trainer after it. */
static void test_a_child_reads_on(void **state)
{
    (void)state;
    uint64_t worker = worker_of_ours();
    for (int i = 0; i < 4; i++)
        assert_true(send_fd(STDIN_FILENO) != 0);
    for (uint64_t i = 1; i <= 3; i += 2) {
        pid_t child = fork();
        if (child == 0)
            _exit(take_fd(worker, i) >= 0 && send_fd(STDIN_FILENO) == 0 ? 0 : 1);
        child_must_succeed(child);
        assert_true(take_fd(worker, i + 1) >= 0);
    }
}

/* A child that has workers of its own, and is a worker itself. */
static void test_a_child_has_its_own(void **state)
{
    (void)state;
    int before = open_descriptors();
    uint64_t worker = worker_of_ours();
    assert_true(send_fd(STDIN_FILENO) == 1);
    pid_t child = fork();
    if (child == 0) {
        uint64_t another = worker_of_ours(); /* disowns */
        _exit(another != worker && open_descriptors() == before + 2 && send_fd(STDOUT_FILENO) == 1 &&
                      take_fd(worker, 1) < 0 && take_fd(another, 1) >= 0
                  ? 0
                  : 1);
    }
    child_must_succeed(child);
    child = fork();
    if (child == 0) {
        LaneName name = listen_here();
        _exit(name.n > 0 && take_fd(worker, 1) >= 0 ? 0 : 1); /* its listener is another one */
    }
    child_must_succeed(child);
    assert_true(send_fd(STDIN_FILENO) == 2 && take_fd(worker, 2) >= 0);
}

/* What the trainer closes unread is gone, although a child that does not read could have read it. */
static void test_a_child_keeps_nothing(void **state)
{
    (void)state;
    int there[2];
    int end[2];
    assert_true(pipe2(there, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC) == 0);
    LaneName name = listen_here();
    pid_t trainer = getpid();
    uint64_t id = 0;
    pid_t sender = fork();
    if (sender == 0) {
        id = connect_to(&name, trainer);
        must(send_fd(STDIN_FILENO) == 1 && send_fd(there[1]) == 2);
        must(write(there[1], &id, sizeof id) == sizeof id);
        _exit(0);
    }
    assert_int_equal(read(there[0], &id, sizeof id), sizeof id);
    assert_true(take_fd(id, 1) >= 0);
    pid_t child = fork();
    if (child == 0) {
        close(there[1]);
        close(end[1]);
        char byte;
        _exit(read(end[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(there[1]);
    child_must_succeed(sender); /* and its lane is closed */
    char byte;
    assert_int_equal(read(there[0], &byte, 1), 0); /* nobody can write to it any more */
    close(end[1]);
    child_must_succeed(child);
}

static void test_strangers(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    LaneName name = listen_here();
    pid_t trainer = getpid();
    pid_t child = fork();
    if (child == 0) /* of another user */
        _exit(setuid(65534) == 0 && connect_to(&name, trainer) == 0 ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    child = fork();
    if (child == 0) /* which is not the one that it takes us for */
        _exit(connect_to(&name, getpid()) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* What dead workers have sent in vain is closed when others come. */
static void test_dead_workers(void **state)
{
    (void)state;
    LaneName name = listen_here();
    pid_t trainer = getpid();
    int before = open_descriptors();
    uint64_t worker = 0;
    int answer[2];
    assert_int_equal(pipe(answer), 0);
    for (int i = 0; i < 600; i++) {
        pid_t child = fork();
        if (child == 0) {
            worker = connect_to(&name, trainer);
            must(send_fd(STDIN_FILENO) == 1 && send_fd(STDIN_FILENO) == 2);
            must(write(answer[1], &worker, sizeof worker) == sizeof worker);
            _exit(0);
        }
        assert_int_equal(read(answer[0], &worker, sizeof worker), sizeof worker);
        int fd = take_fd(worker, 1); /* of the last one, also if it is dead */
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    assert_in_range(open_descriptors(), before, before + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_order_and_every_death),
        cmocka_unit_test_teardown(test_packets_out_of_order, forget),
        cmocka_unit_test_teardown(test_lost_messages_are_bounded, forget),
        cmocka_unit_test_teardown(test_a_full_socket_declines, forget),
        cmocka_unit_test_teardown(test_no_descriptor_left, forget),
        cmocka_unit_test_teardown(test_a_child_reads_on, forget),
        cmocka_unit_test_teardown(test_a_child_has_its_own, forget),
        cmocka_unit_test_teardown(test_a_child_keeps_nothing, forget),
        cmocka_unit_test_teardown(test_strangers, forget),
        cmocka_unit_test_teardown(test_dead_workers, forget),
        cmocka_unit_test_teardown(test_a_program_that_closes_everything, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
