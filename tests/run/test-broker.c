/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of the protocol, with all kinds of clients: well-behaved, too early, silent,
 * malformed and dead. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker.h"
#include "macro.h"
#include "protocol.h"
#include "source.h"

enum { MEMFD_BYTES = 64 * 1024 };

typedef struct Bench {
    int epoll;
    Broker *broker;
    BrokerOwner owner;
    char shm[64];
} Bench;

static int bench_set_up(void **state)
{
    static Bench bench;
    bench = (Bench){.epoll = epoll_create1(EPOLL_CLOEXEC),
                    .owner = {.budget_bytes = U64_UNKNOWN},
                    .shm = "/tmp/shmguard-test-XXXXXX"};
    assert_non_null(mkdtemp(bench.shm));
    assert_int_equal(broker_open(bench.epoll, bench.shm, &bench.owner, &bench.broker), 0);
    *state = &bench;
    return 0;
}

static int bench_tear_down(void **state)
{
    Bench *bench = *state;
    broker_free(bench->broker);
    close(bench->epoll);
    return rmdir(bench->shm);
}

/* One round of the supervisor's loop. Returns how many events there were. */
static int turn(Bench *bench)
{
    struct epoll_event events[64];
    int n = epoll_wait(bench->epoll, events, ARRAY_SIZE(events), 0);
    for (int i = 0; i < n; i++) {
        Source *source = events[i].data.ptr;
        source->ready(source);
    }
    broker_settle(bench->broker);
    return n;
}

static void settle(Bench *bench)
{
    for (int i = 0; turn(bench) > 0 || broker_timeout(bench->broker) == 0; i++)
        assert_true(i < 100000); /* or the loop spins */
}

static int connect_only(const Bench *bench)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = strlen(broker_socket(bench->broker));
    memcpy(address.sun_path + 1, broker_socket(bench->broker), n);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool packet_send(int client, const void *bytes, size_t size, const int *fds, size_t n_fds)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(16 * sizeof(int))];
    } control = {.header = {CMSG_LEN(n_fds * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec part = {(void *)bytes, size};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (n_fds > 0) {
        memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
        packet.msg_control = &control;
        packet.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
    }
    return sendmsg(client, &packet, MSG_NOSIGNAL) == (ssize_t)size;
}

static void say(int client, MessageType type, const char *name, int fd)
{
    Message message = {.magic = PROTOCOL_MAGIC, .type = type};
    strncpy(message.name, name, sizeof message.name - 1);
    assert_true(packet_send(client, &message, sizeof message, &fd, fd >= 0));
}

/* 1: a message came. 0: there is none. -1: the connection is closed. */
static int hear(int client, Message *ret, int *ret_fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {ret, sizeof *ret};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(client, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        return -1;
    assert_int_equal(n, sizeof *ret);
    *ret_fd = -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&packet);
    if (header)
        memcpy(ret_fd, CMSG_DATA(header), sizeof *ret_fd);
    return 1;
}

static int client_make(Bench *bench)
{
    Message welcome;
    int page = -1;
    int client = connect_only(bench);
    assert_true(client >= 0);
    settle(bench);
    assert_int_equal(hear(client, &welcome, &page), 1);
    assert_int_equal(welcome.magic, PROTOCOL_MAGIC);
    assert_int_equal(welcome.type, MESSAGE_WELCOME);
    assert_true(page >= 0);
    close(page);
    return client;
}

/* The error code of the answer, which must have arrived, and with a descriptor only if ret_fd is given. */
static int answer_of(int client, int *ret_fd)
{
    Message answer;
    int fd = -1;
    assert_int_equal(hear(client, &answer, &fd), 1);
    assert_int_equal(answer.magic, PROTOCOL_MAGIC);
    assert_int_equal(answer.type, MESSAGE_ANSWER);
    assert_int_equal(fd >= 0, ret_fd && answer.error == 0);
    if (ret_fd)
        *ret_fd = fd;
    return answer.error;
}

static int ask(Bench *bench, int client, MessageType type, const char *name, int fd)
{
    say(client, type, name, fd);
    settle(bench);
    return answer_of(client, NULL);
}

static int memfd_make(void)
{
    int fd = memfd_create("shmguard", MFD_CLOEXEC);
    assert_true(fd >= 0 && ftruncate(fd, MEMFD_BYTES) == 0 && fallocate(fd, 0, 0, MEMFD_BYTES) == 0);
    return fd;
}

static ino_t inode_of(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return st.st_ino;
}

static size_t descriptors(void)
{
    size_t n = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory))
        n++;
    closedir(directory);
    return n;
}

static bool is_dropped(int client)
{
    Message message;
    int fd = -1;
    return hear(client, &message, &fd) < 0;
}

/* --- Names -------------------------------------------------------------------------------------------- */

static void test_put_get_unlink(void **state)
{
    Bench *bench = *state;
    int producer = client_make(bench);
    int receiver = client_make(bench);
    int memfd = memfd_make();
    ino_t inode = inode_of(memfd);
    say(producer, MESSAGE_PUT, "/torch_1_2_3", memfd);
    close(memfd);
    close(producer); /* a name outlives the process that put it */
    say(receiver, MESSAGE_GET, "/torch_1_2_3", -1);
    settle(bench);
    int got = -1;
    assert_int_equal(answer_of(receiver, &got), 0);
    assert_int_equal(inode_of(got), inode);
    close(got);
    assert_int_equal(ask(bench, receiver, MESSAGE_UNLINK, "/torch_1_2_3", -1), 0);
    assert_int_equal(ask(bench, receiver, MESSAGE_UNLINK, "/torch_1_2_3", -1), ENOENT);
    assert_int_equal(ask(bench, receiver, MESSAGE_GET, "/torch_1_2_3", -1), ENOENT);
    GuardFigures figures = broker_figures(bench->broker);
    assert_int_equal(figures.names_made, 1);
    assert_int_equal(figures.names_served, 1);
    assert_int_equal(figures.bytes_peak, MEMFD_BYTES);
    close(receiver);
}

static void test_create(void **state)
{
    Bench *bench = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/psm_file", bench->shm);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    int memfd = memfd_make();
    int client = client_make(bench);
    size_t before = descriptors();
    static const struct {
        const char *name;
        int error;
    } cases[] = {
        {"/psm_new", 0}, {"/psm_new", EEXIST}, {"/psm_file", EEXIST}, {"/psm_/../x", EINVAL}, {"/", EINVAL},
        {"", EINVAL},    {"/..", EINVAL},      {"/.", EINVAL},        {"//psm_b", EINVAL},    {"/psm_b", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(ask(bench, client, MESSAGE_CREATE, cases[i].name, memfd), cases[i].error);
    assert_int_equal(descriptors(), before + 2);
    unlink(path);
    close(memfd);
    close(client);
}

/* A process asks for a name only after it was put, but its request may be read before the PUT. */
static void test_question_overtakes_name(void **state)
{
    Bench *bench = *state;
    int producer = client_make(bench);
    int receiver = client_make(bench);
    int memfd = memfd_make();
    say(receiver, MESSAGE_GET, "/torch_1", -1); /* so its event comes first */
    say(producer, MESSAGE_PUT, "/torch_1", memfd);
    settle(bench);
    int got = -1;
    assert_int_equal(answer_of(receiver, &got), 0);
    assert_int_equal(inode_of(got), inode_of(memfd));
    close(got);
    close(memfd);
    close(producer);
    close(receiver);
}

/* Requests that are discovered only while the queues are read for another request. */
static void test_questions_within_questions(void **state)
{
    Bench *bench = *state;
    int clients[4];
    int memfd = memfd_make();
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
        clients[i] = client_make(bench);
    say(clients[3], MESSAGE_GET, "/x", -1);
    say(clients[0], MESSAGE_PUT, "/y", memfd);
    say(clients[0], MESSAGE_GET, "/z", -1);
    say(clients[1], MESSAGE_UNLINK, "/y", -1);
    say(clients[2], MESSAGE_PUT, "/x", memfd);
    say(clients[2], MESSAGE_PUT, "/z", memfd);
    say(clients[2], MESSAGE_UNLINK, "/nowhere", -1);
    settle(bench);
    int got[2] = {-1, -1};
    assert_int_equal(answer_of(clients[3], &got[0]), 0);
    assert_int_equal(answer_of(clients[0], &got[1]), 0);
    assert_int_equal(answer_of(clients[1], NULL), 0);
    assert_int_equal(answer_of(clients[2], NULL), ENOENT);
    close(got[0]);
    close(got[1]);
    close(memfd);
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
        close(clients[i]);
}

/* Clients that never stop asking must not keep the loop from its other work. */
static void test_one_pass_at_a_time(void **state)
{
    Bench *bench = *state;
    int first = client_make(bench);
    int second = client_make(bench);
    Message answer;
    int fd = -1;
    struct epoll_event event;
    say(first, MESSAGE_GET, "/x", -1);
    assert_int_equal(epoll_wait(bench->epoll, &event, 1, 0), 1);
    Source *source = event.data.ptr;
    source->ready(source);
    say(second, MESSAGE_GET, "/y", -1); /* discovered while the queues are read for the first one */
    broker_settle(bench->broker);
    assert_int_equal(answer_of(first, NULL), ENOENT);
    assert_int_equal(hear(second, &answer, &fd), 0);
    assert_int_equal(broker_timeout(bench->broker), 0);
    broker_settle(bench->broker);
    assert_int_equal(answer_of(second, NULL), ENOENT);
    assert_int_equal(broker_timeout(bench->broker), -1);
    close(first);
    close(second);
}

static void test_many_names(void **state)
{
    Bench *bench = *state;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    struct rlimit raised = {files.rlim_max, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &raised);
    unsigned many = (unsigned)MIN(raised.rlim_cur / 2, (rlim_t)30000);
    int client = client_make(bench);
    int memfd = memfd_make();
    char name[32];
    for (unsigned i = 0; i < many; i++) {
        snprintf(name, sizeof name, "/torch_9_%u", i);
        say(client, MESSAGE_PUT, name, memfd);
        if (i % 64 == 63)
            settle(bench);
    }
    for (unsigned i = 0; i < many; i += 997) {
        snprintf(name, sizeof name, "/torch_9_%u", i);
        assert_int_equal(ask(bench, client, MESSAGE_UNLINK, name, -1), 0);
        assert_int_equal(ask(bench, client, MESSAGE_UNLINK, name, -1), ENOENT);
    }
    broker_tick(bench->broker, false);
    assert_int_equal(broker_figures(bench->broker).names_made, many);
    close(memfd);
    close(client);
    setrlimit(RLIMIT_NOFILE, &files);
}

/* --- Segments ----------------------------------------------------------------------------------------- */

static void test_segments(void **state)
{
    Bench *bench = *state;
    int producer = client_make(bench);
    int memfd = memfd_make();
    say(producer, MESSAGE_SEGMENT, "", memfd);
    say(producer, MESSAGE_PUT, "/torch_1", memfd); /* the same memory, so it is counted once */
    settle(bench);
    broker_tick(bench->broker, false);
    assert_int_equal(broker_figures(bench->broker).bytes_peak, MEMFD_BYTES);
    assert_true(broker_holds_memory(bench->broker));
    assert_int_equal(ask(bench, producer, MESSAGE_UNLINK, "/torch_1", -1), 0);
    close(
        producer); /* as if killed: its segment is free, and its memory is returned unless it is taken over */
    for (int i = 0; i < 3; i++) {
        settle(bench);
        broker_tick(bench->broker, false);
    }
    settle(bench);
    struct stat st;
    assert_int_equal(fstat(memfd, &st), 0);
    assert_int_equal(st.st_blocks, 0);
    assert_int_equal(st.st_size, MEMFD_BYTES);
    close(memfd);
}

static int adopt(Bench *bench, int client, int *ret_fd)
{
    Message message = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_ADOPT, .bytes = MEMFD_BYTES};
    assert_true(packet_send(client, &message, sizeof message, NULL, 0));
    settle(bench);
    return answer_of(client, ret_fd);
}

/* What a killed producer leaves has one adopter, which may be killed at any point, too. */
static void test_adopted(void **state)
{
    Bench *bench = *state;
    int producer = client_make(bench);
    int adopters[3] = {client_make(bench), client_make(bench), client_make(bench)};
    int memfd = memfd_make();
    ino_t inode = inode_of(memfd);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_POOLED, .l_len = 1};
    assert_int_equal(fcntl(memfd, F_OFD_SETLK, &lock), 0);
    say(producer, MESSAGE_SEGMENT, "", memfd);
    settle(bench);
    int fd = -1;
    assert_int_equal(adopt(bench, adopters[0], &fd), ENOENT);
    close(memfd);
    close(producer);
    settle(bench);

    Message message = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_ADOPT, .bytes = MEMFD_BYTES};
    assert_true(packet_send(adopters[0], &message, sizeof message, NULL, 0));
    settle(bench);
    assert_int_equal(adopt(bench, adopters[1], &fd), ENOENT); /* it is on its way to the first one */
    close(adopters[0]);                                       /* which is killed before it reads the answer */
    settle(bench);
    assert_int_equal(adopt(bench, adopters[1], &fd), 0);
    assert_int_equal(inode_of(fd), inode);
    int second = -1;
    assert_int_equal(adopt(bench, adopters[2], &second), ENOENT);
    close(adopters[1]); /* the connection, and not the segment */
    settle(bench);
    assert_int_equal(adopt(bench, adopters[2], &second), ENOENT);
    close(fd);
    assert_int_equal(adopt(bench, adopters[2], &second), 0);
    assert_int_equal(inode_of(second), inode);
    close(second);
    close(adopters[2]);
}

/* --- Clients that cannot be trusted ------------------------------------------------------------------- */

static void test_nonsense(void **state)
{
    Bench *bench = *state;
    int fds[] = {memfd_make(), memfd_make(), open("/dev/null", O_RDONLY | O_CLOEXEC)};
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct {
        const char *what;
        uint32_t magic;
        uint32_t type;
        size_t size;
        const int *fds;
        size_t n_fds;
        bool unterminated;
        const char *name;
    } cases[] = {
        {"wrong magic", 1, MESSAGE_GET, sizeof(Message), NULL, 0, false, "/a"},
        {"no type", PROTOCOL_MAGIC, 0, sizeof(Message), NULL, 0, false, "/a"},
        {"unknown type", PROTOCOL_MAGIC, 4096, sizeof(Message), NULL, 0, false, "/a"},
        {"a welcome", PROTOCOL_MAGIC, MESSAGE_WELCOME, sizeof(Message), fds, 1, false, "/a"},
        {"an answer", PROTOCOL_MAGIC, MESSAGE_ANSWER, sizeof(Message), fds, 1, false, "/a"},
        {"short", PROTOCOL_MAGIC, MESSAGE_GET, sizeof(Message) - 1, NULL, 0, false, "/a"},
        {"short, with a descriptor", PROTOCOL_MAGIC, MESSAGE_PUT, 8, fds, 1, false, "/a"},
        {"long", PROTOCOL_MAGIC, MESSAGE_PUT, sizeof(Message) + 1, fds, 1, false, "/a"},
        {"empty", PROTOCOL_MAGIC, MESSAGE_GET, 0, NULL, 0, false, "/a"},
        {"name without end", PROTOCOL_MAGIC, MESSAGE_PUT, sizeof(Message), fds, 1, true, "/a"},
        {"put nothing", PROTOCOL_MAGIC, MESSAGE_PUT, sizeof(Message), NULL, 0, false, "/a"},
        {"put without name", PROTOCOL_MAGIC, MESSAGE_PUT, sizeof(Message), fds, 1, false, ""},
        {"create nothing", PROTOCOL_MAGIC, MESSAGE_CREATE, sizeof(Message), NULL, 0, false, "/a"},
        {"no segment", PROTOCOL_MAGIC, MESSAGE_SEGMENT, sizeof(Message), NULL, 0, false, ""},
        {"a segment that is none", PROTOCOL_MAGIC, MESSAGE_SEGMENT, sizeof(Message), fds + 2, 1, false, ""},
        {"a segment that is a file", PROTOCOL_MAGIC, MESSAGE_SEGMENT, sizeof(Message), &file, 1, false, ""},
        {"two descriptors", PROTOCOL_MAGIC, MESSAGE_PUT, sizeof(Message), fds, 2, false, "/a"},
        {"get with one", PROTOCOL_MAGIC, MESSAGE_GET, sizeof(Message), fds, 1, false, "/a"},
        {"unlink with one", PROTOCOL_MAGIC, MESSAGE_UNLINK, sizeof(Message), fds, 1, false, "/a"},
        {"adopt with one", PROTOCOL_MAGIC, MESSAGE_ADOPT, sizeof(Message), fds, 1, false, ""},
    };
    int good = client_make(bench);
    size_t before = descriptors();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int client = client_make(bench);
        char bytes[sizeof(Message) + 16] = {0};
        Message message = {.magic = cases[i].magic, .type = cases[i].type};
        strcpy(message.name, cases[i].name);
        if (cases[i].unterminated)
            memset(message.name, 'x', sizeof message.name);
        memcpy(bytes, &message, sizeof message);
        assert_true(packet_send(client, bytes, cases[i].size, cases[i].fds, cases[i].n_fds));
        settle(bench);
        if (!is_dropped(client))
            fail_msg("%s: the client was not dropped", cases[i].what);
        close(client);
        if (descriptors() != before)
            fail_msg("%s: a descriptor leaked", cases[i].what);
    }
    assert_int_equal(ask(bench, good, MESSAGE_GET, "/a", -1), ENOENT);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    close(file);
    close(good);
}

/* A client that never reads its answers must not delay the others. */
static void test_deaf(void **state)
{
    Bench *bench = *state;
    int deaf = client_make(bench);
    int good = client_make(bench);
    int memfd = memfd_make();
    say(good, MESSAGE_PUT, "/a", memfd);
    settle(bench);
    Message question = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_GET, .name = "/a"};
    int sent = 0;
    while (packet_send(deaf, &question, sizeof question, NULL, 0)) {
        assert_true(++sent < 100000);
        if (sent % 50 == 0)
            settle(bench);
    }
    settle(bench);
    assert_int_equal(ask(bench, good, MESSAGE_UNLINK, "/a", -1), 0);
    close(memfd);
    close(deaf);
    close(good);
}

/* Clients that are killed at each stage of a conversation. */
static void test_killed(void **state)
{
    Bench *bench = *state;
    size_t before = descriptors();
    int memfd = memfd_make();
    for (int stage = 0; stage < 6; stage++) {
        int client = stage == 0 ? connect_only(bench) : client_make(bench);
        if (stage == 2)
            say(client, MESSAGE_GET, "/nowhere", -1);
        if (stage == 3)
            say(client, MESSAGE_SEGMENT, "", memfd);
        if (stage == 4)
            say(client, MESSAGE_CREATE, "/psm_kept", memfd);
        if (stage == 5) {
            say(client, MESSAGE_GET, "/nowhere", -1);
            turn(bench);
        }
        close(client);
        settle(bench);
    }
    int client = client_make(bench);
    assert_int_equal(ask(bench, client, MESSAGE_UNLINK, "/psm_kept", -1), 0);
    close(client);
    close(memfd);
    broker_tick(bench->broker, true); /* memory is short, so nothing is kept for an adopter */
    settle(bench);
    assert_int_equal(descriptors(), before);
}

static void test_strangers(void **state)
{
    Bench *bench = *state;
    if (geteuid() != 0) {
        print_message("needs root to become another user\n");
        skip();
    }
    int pair[2];
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        Message message;
        int fd = -1;
        int client = setresuid(65534, 65534, 65534) == 0 ? connect_only(bench) : -1;
        char heard = (char)read(pair[0], &heard, 1); /* wait until the supervisor has seen us */
        _exit(client >= 0 && heard == 1 && hear(client, &message, &fd) < 0 ? 0 : 1);
    }
    int status = 1;
    for (int i = 0; i < 200 && turn(bench) == 0; i++)
        usleep(10000);
    settle(bench);
    assert_int_equal(write(pair[1], "x", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(pair[0]);
    close(pair[1]);
}

typedef struct PeerCase {
    Peer peer;
    int pid;
    uint32_t uid;
} PeerCase;

static Peer peer_tell(void *context, int pid, uint32_t uid)
{
    PeerCase *asked = context;
    asked->pid = pid;
    asked->uid = uid;
    return asked->peer;
}

static bool testimony_take(void *context, int pid, const Testimony *testimony, size_t size, int maps)
{
    (void)maps;
    (void)context;
    (void)size;
    return pid > 0 && testimony->type == MESSAGE_SAID;
}

static int error_of(int client, MessageType type, const char *name)
{
    Message message = {.magic = PROTOCOL_MAGIC, .type = type};
    int fd = -1;
    struct pollfd ready = {.fd = client, .events = POLLIN};
    strcpy(message.name, name);
    if (!packet_send(client, &message, sizeof message, NULL, 0) || poll(&ready, 1, 5000) != 1 ||
        hear(client, &message, &fd) != 1)
        return -1;
    return message.error == 0 && type == MESSAGE_GET && fd < 0 ? -1 : message.error;
}

/* 0: served, without access to anything of root's. 1: turned away. */
static int other_user_act(Bench *bench)
{
    Message message;
    int fd = -1;
    int client = setresuid(65534, 65534, 65534) == 0 ? connect_only(bench) : -1;
    struct pollfd ready = {.fd = client, .events = POLLIN};
    Message own = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_PUT, .name = "/torch_2_1"};
    int memory = memfd_create("test", MFD_CLOEXEC);
    (void)packet_send(client, &own, sizeof own, &memory, 1); /* fails if we were already turned away */
    if (poll(&ready, 1, 5000) != 1 || hear(client, &message, &fd) != 1)
        return 1;
    if (message.type != MESSAGE_WELCOME)
        return 2;
    strcpy(own.name, "/torch_1_1"); /* belongs to root */
    (void)packet_send(client, &own, sizeof own, &memory, 1);
    return error_of(client, MESSAGE_GET, "/torch_2_1") == 0 &&
                   error_of(client, MESSAGE_GET, "/torch_1_1") == EACCES &&
                   error_of(client, MESSAGE_UNLINK, "/torch_1_1") == EACCES &&
                   error_of(client, MESSAGE_UNLINK, "/torch_2_1") == 0
               ? 0
               : 3;
}

/* A process of the job that runs as another user is served too, but may access only its own names. */
static void test_another_user_of_the_job(void **state)
{
    Bench *bench = *state;
    static const struct {
        Peer peer;
        int code;
    } cases[] = {{PEER_JOB, 0}, {PEER_STRANGER, 1}, {PEER_GONE, 1}};
    if (geteuid() != 0) {
        print_message("needs root to become another user\n");
        skip();
    }
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        PeerCase asked = {.peer = cases[i].peer};
        broker_free(bench->broker);
        bench->owner.peer = peer_tell;
        bench->owner.testify = testimony_take;
        bench->owner.context = &asked;
        assert_int_equal(broker_open(bench->epoll, bench->shm, &bench->owner, &bench->broker), 0);
        int memory = memfd_create("test", MFD_CLOEXEC);
        int client = client_make(bench);
        say(client, MESSAGE_PUT, "/torch_1_1", memory);
        settle(bench);
        int pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(other_user_act(bench));
        int status = 0;
        while (waitpid(pid, &status, WNOHANG) == 0)
            settle(bench);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), cases[i].code);
        assert_int_equal(asked.pid, pid);
        assert_int_equal(asked.uid, 65534);
        assert_int_equal(broker_figures(bench->broker).turned_away, cases[i].peer == PEER_STRANGER);
        close(memory);
        close(client);
    }
}

/* With no descriptors left, the next client is turned away and works without us. The loop must not spin. */
static void test_exhausted(void **state)
{
    Bench *bench = *state;
    int good = client_make(bench);
    int turned_away = connect_only(bench);
    int memfd = memfd_make();
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    int lowest = dup(memfd);
    close(lowest);
    struct rlimit full = {(rlim_t)lowest, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &full);
    settle(bench);
    assert_true(is_dropped(turned_away));
    assert_int_equal(ask(bench, good, MESSAGE_GET, "/a", -1), ENOENT);
    say(good, MESSAGE_PUT, "/a", memfd); /* arrives without its descriptor */
    say(good, MESSAGE_SEGMENT, "", memfd);
    assert_int_equal(ask(bench, good, MESSAGE_CREATE, "/b", memfd), EMFILE);
    setrlimit(RLIMIT_NOFILE, &files);
    assert_int_equal(ask(bench, good, MESSAGE_CREATE, "/b", memfd), 0);
    close(client_make(bench));
    close(memfd);
    close(good);
    close(turned_away);
}

static Counters *counters_of(Bench *bench, int *ret_client)
{
    Message welcome;
    int page = -1;
    *ret_client = connect_only(bench);
    settle(bench);
    assert_int_equal(hear(*ret_client, &welcome, &page), 1);
    Counters *counters = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    assert_true(counters != MAP_FAILED);
    close(page);
    return counters;
}

/* When descriptors run low, the broker asks for names one at a time, and later refuses them. */
static void test_crowded(void **state)
{
    Bench *bench = *state;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    struct rlimit few = {256, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    broker_free(bench->broker);
    assert_int_equal(broker_open(bench->epoll, bench->shm, &bench->owner, &bench->broker), 0);
    int client = -1;
    Counters *counters = counters_of(bench, &client);
    int memfd = memfd_make();
    char name[32];
    unsigned n = 0;
    unsigned crowded_at = 0;
    int error = 0;
    while (error == 0) {
        snprintf(name, sizeof name, "/torch_9_%u", n);
        error = ask(bench, client, MESSAGE_CREATE, name, memfd);
        n += error == 0;
        if (crowded_at == 0 && atomic_load(&counters->crowded))
            crowded_at = n;
    }
    assert_int_equal(error, EMFILE);
    assert_in_range(crowded_at, 100, 130);
    assert_in_range(n, 180, 192);
    say(client, MESSAGE_PUT, "/torch_9_late", memfd); /* one that was on its way is still accepted */
    assert_int_equal(ask(bench, client, MESSAGE_UNLINK, "/torch_9_late", -1), 0);
    assert_int_equal(ask(bench, client, MESSAGE_CREATE, "/torch_9_0", memfd), EEXIST);
    while (n-- > 0) {
        snprintf(name, sizeof name, "/torch_9_%u", n);
        assert_int_equal(ask(bench, client, MESSAGE_UNLINK, name, -1), 0);
        if (n > 110)
            assert_int_equal(atomic_load(&counters->crowded), 1);
    }
    assert_int_equal(atomic_load(&counters->crowded), 0);
    assert_int_equal(ask(bench, client, MESSAGE_CREATE, "/torch_9_0", memfd), 0);
    munmap(counters, sizeof *counters);
    close(memfd);
    close(client);
    setrlimit(RLIMIT_NOFILE, &files);
}

/* Not even one descriptor to turn a client away with: it waits, and the loop must not spin. */
static void test_paused(void **state)
{
    Bench *bench = *state;
    int waiting = connect_only(bench);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    struct rlimit none = {0, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    settle(bench);
    broker_tick(bench->broker, false);
    settle(bench);
    setrlimit(RLIMIT_NOFILE, &files);
    broker_tick(bench->broker, false);
    settle(bench);
    Message welcome;
    int page = -1;
    assert_int_equal(hear(waiting, &welcome, &page), 1);
    close(page);
    close(waiting);
}

/* A client must not be able to truncate the page that the supervisor has mapped. */
static void test_counters(void **state)
{
    Bench *bench = *state;
    int client = connect_only(bench);
    Message welcome;
    int page = -1;
    settle(bench);
    assert_int_equal(hear(client, &welcome, &page), 1);
    assert_int_equal(ftruncate(page, 0), -1);
    Counters *counters = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    assert_true(counters != MAP_FAILED);
    assert_int_equal(counters->magic, PROTOCOL_MAGIC);
    assert_int_equal(counters->version, 1);
    atomic_fetch_add(&counters->segments_reused, 41);
    assert_int_equal(broker_figures(bench->broker).segments_reused, 41);
    munmap(counters, sizeof *counters);
    close(page);
    close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_put_get_unlink),
        TEST(test_create),
        TEST(test_question_overtakes_name),
        TEST(test_questions_within_questions),
        TEST(test_one_pass_at_a_time),
        TEST(test_many_names),
        TEST(test_segments),
        TEST(test_adopted),
        TEST(test_nonsense),
        TEST(test_deaf),
        TEST(test_killed),
        TEST(test_strangers),
        TEST(test_another_user_of_the_job),
        TEST(test_exhausted),
        TEST(test_crowded),
        TEST(test_paused),
        TEST(test_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
