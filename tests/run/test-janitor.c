/* SPDX-License-Identifier: Apache-2.0 */
/* Pages are given back when no process can reach them, and never earlier: with real memfds and real locks. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "janitor.h"
#include "macro.h"
#include "protocol.h"

enum { SEGMENT_BYTES = 1 << 20, PRODUCER = 7 };

static int segment_make(void)
{
    int fd = memfd_create("shmguard", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, SEGMENT_BYTES), 0);
    assert_int_equal(fallocate(fd, 0, 0, SEGMENT_BYTES), 0);
    return fd;
}

static int description_reopen(int fd)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Leaves the open file description in a socket and nowhere else. Closing the socket releases it. */
static int send_away(int fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    struct iovec part = {&(char){0}, 1};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(sendmsg(pair[0], &packet, 0), 1);
    close(pair[0]);
    close(fd);
    return pair[1];
}

/* As the guard does it. -1: the segment is skipped. */
static int hand_out(int fd)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    int out = description_reopen(fd);
    assert_true(out >= 0);
    if (fcntl(out, F_OFD_SETLK, &lock) == 0)
        return out;
    close(out);
    return -1;
}

static void look(Janitor *janitor, bool short_of_memory)
{
    janitor_count(janitor, 0);
    janitor_look(janitor, short_of_memory);
    while (janitor->busy)
        janitor_work(janitor);
}

static void test_three_looks(void **state)
{
    (void)state;
    Janitor janitor = {.most = 8};
    int pool = segment_make();
    assert_int_equal(janitor_add(&janitor, pool, PRODUCER, 1), 0);
    char *view = mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, pool, 0);
    assert_true(view != MAP_FAILED);
    memset(view, 1, SEGMENT_BYTES);

    look(&janitor, false);
    look(&janitor, false);
    assert_int_equal(fd_held_bytes(pool), SEGMENT_BYTES);
    look(&janitor, false);
    assert_int_equal(fd_held_bytes(pool), 0);
    assert_int_equal(janitor.bytes_peak, SEGMENT_BYTES);
    assert_int_equal(view[SEGMENT_BYTES - 1], 0); /* the mapping still has its full size */
    view[0] = 5;
    int out = hand_out(pool); /* the janitor's lock is gone */
    assert_true(out >= 0);
    close(out);
    munmap(view, SEGMENT_BYTES);
    close(pool);
    janitor_free(&janitor);
}

static void test_in_use(void **state)
{
    (void)state;
    enum { DESCRIPTOR, MAPPING, SOCKET, WAYS };
    for (int way = DESCRIPTOR; way < WAYS; way++) {
        Janitor janitor = {.most = 8};
        int pool = segment_make();
        assert_int_equal(janitor_add(&janitor, pool, PRODUCER, 1), 0);
        int out = hand_out(pool);
        void *mapped = way == MAPPING ? mmap(NULL, 4096, PROT_NONE, MAP_SHARED, out, 0) : NULL;
        if (way == MAPPING)
            close(out);
        if (way == SOCKET)
            out = send_away(out);
        for (int j = 0; j < 6; j++)
            look(&janitor, j % 2);
        assert_int_equal(fd_held_bytes(pool), SEGMENT_BYTES);
        janitor_abandon(&janitor, PRODUCER); /* a killed worker's batch still belongs to the trainer */
        look(&janitor, true);
        assert_int_equal(fd_held_bytes(pool), SEGMENT_BYTES);
        assert_int_equal(janitor.n, 1);
        if (mapped)
            munmap(mapped, 4096);
        else
            close(out);
        look(&janitor, true);
        assert_int_equal(fd_held_bytes(pool), 0);
        assert_int_equal(janitor.n, 0);
        close(pool);
        janitor_free(&janitor);
    }
}

/* A segment that is used between two looks is not idle. */
static void test_looks_in_a_row(void **state)
{
    (void)state;
    Janitor janitor = {.most = 8};
    int pool = segment_make();
    assert_int_equal(janitor_add(&janitor, pool, PRODUCER, 1), 0);
    for (int i = 0; i < 3; i++) {
        look(&janitor, false);
        look(&janitor, false);
        int out = hand_out(pool);
        look(&janitor, false);
        close(out);
    }
    assert_int_equal(fd_held_bytes(pool), SEGMENT_BYTES);
    look(&janitor, true); /* short of memory: it is freed at once */
    assert_int_equal(fd_held_bytes(pool), 0);
    close(pool);
    janitor_free(&janitor);
}

/* A GPU may have registered the pages of an unused segment. They stay until it releases them, even if the
 * producer has exited. */
static void test_pinned(void **state)
{
    (void)state;
    for (int gone = 0; gone < 2; gone++) {
        Janitor janitor = {.most = 8};
        int pool = segment_make();
        assert_int_equal(janitor_add(&janitor, pool, PRODUCER, 1), 0);
        int pinned = description_reopen(pool);
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = LOCK_PINNED, .l_len = 1};
        assert_int_equal(fcntl(pinned, F_OFD_SETLK, &lock), 0);
        if (gone)
            janitor_abandon(&janitor, PRODUCER);
        for (int i = 0; i < 5; i++)
            look(&janitor, true);
        assert_false(janitor_reclaim(&janitor, UINT64_MAX));
        assert_int_equal(fd_held_bytes(pool), SEGMENT_BYTES);
        assert_int_equal(janitor_used(&janitor), SEGMENT_BYTES);
        int out = hand_out(pool); /* its producer may reuse it all the same */
        assert_true(out >= 0);
        close(out);
        close(pinned);
        look(&janitor, true);
        assert_int_equal(fd_held_bytes(pool), 0);
        close(pool);
        janitor_free(&janitor);
    }
}

/* The segment is handed out after the janitor has marked it, but before its pages are freed. */
static void test_issued_meanwhile(void **state)
{
    (void)state;
    Janitor janitor = {.most = 8};
    int pool = segment_make();
    assert_int_equal(janitor_add(&janitor, pool, PRODUCER, 1), 0);
    janitor_count(&janitor, 0);
    janitor_look(&janitor, true);
    assert_true(janitor.busy);
    int out = hand_out(pool);
    assert_true(out >= 0);
    while (janitor.busy)
        janitor_work(&janitor);
    assert_int_equal(fd_held_bytes(pool), SEGMENT_BYTES);
    close(out);
    close(pool);
    janitor_free(&janitor);
}

static void test_abandoned(void **state)
{
    (void)state;
    Janitor janitor = {.most = 8};
    int mine = segment_make();
    int other = segment_make();
    assert_int_equal(janitor_add(&janitor, mine, PRODUCER, 1), 0);
    assert_int_equal(janitor_add(&janitor, other, PRODUCER + 1, 1), 1);
    janitor_abandon(&janitor, PRODUCER);
    assert_int_equal(janitor_adoptable(&janitor), 1);
    int out = hand_out(other);
    look(&janitor, false);
    look(&janitor, false);
    assert_int_equal(fd_held_bytes(mine), SEGMENT_BYTES); /* another producer may take it over */
    look(&janitor, false);
    assert_int_equal(fd_held_bytes(mine), 0);
    assert_int_equal(fd_held_bytes(other), SEGMENT_BYTES);
    assert_int_equal(janitor.n, 1);
    assert_int_equal(janitor_adoptable(&janitor), 0);
    assert_true(janitor_knows(&janitor, other));
    assert_false(janitor_knows(&janitor, mine));
    close(out);
    close(mine);
    close(other);
    janitor_free(&janitor);
}

/* A segment as a pool has it: with its lock. */
static int segment_pool(void)
{
    int fd = segment_make();
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_POOLED, .l_len = 1};
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    return fd;
}

static int hand_on(Janitor *janitor, uint64_t bytes, uint64_t *ret_issue)
{
    return janitor_hand_on(janitor, bytes, getuid(), PRODUCER + 1, 2, ret_issue);
}

/* There is one producer at a time, wherever the description is that has its lock. */
static void test_handed_on(void **state)
{
    (void)state;
    Janitor janitor = {.most = 8};
    int pool = segment_pool();
    int copy = dup(pool); /* as in a child that was cloned, or in a message that nobody has read */
    uint64_t issue = 0;
    assert_int_equal(janitor_add(&janitor, pool, PRODUCER, 1), 0);
    assert_int_equal(hand_on(&janitor, SEGMENT_BYTES, &issue), -ENOENT); /* its producer is there */
    janitor_abandon(&janitor, PRODUCER); /* the connection is gone, and the producer is not */
    assert_int_equal(hand_on(&janitor, SEGMENT_BYTES, &issue), -ENOENT);
    close(pool);
    assert_int_equal(hand_on(&janitor, SEGMENT_BYTES, &issue), -ENOENT);
    int out = hand_out(copy);
    close(copy);
    assert_int_equal(hand_on(&janitor, SEGMENT_BYTES, &issue), -ENOENT); /* the trainer has its tensor */
    close(out);
    assert_int_equal(janitor_hand_on(&janitor, SEGMENT_BYTES, getuid() + 1, PRODUCER, 2, &issue), -ENOENT);
    int own = hand_on(&janitor, SEGMENT_BYTES, &issue);
    assert_true(own >= 0);
    assert_int_equal(issue, ISSUES_PER_PRODUCER);
    assert_int_equal(fd_held_bytes(own), SEGMENT_BYTES);
    assert_int_equal(janitor_adoptable(&janitor), 0);
    janitor_abandon(&janitor, PRODUCER + 1);
    int away = send_away(own); /* the next producer has not received it yet */
    assert_int_equal(hand_on(&janitor, SEGMENT_BYTES, &issue), -ENOENT);
    close(away); /* and was killed before it did */
    own = hand_on(&janitor, SEGMENT_BYTES, &issue);
    assert_true(own >= 0);
    assert_int_equal(issue, 2 * ISSUES_PER_PRODUCER);
    janitor_free(&janitor); /* as if the supervisor were killed: the producer has all that it needs */
    out = hand_out(own);
    assert_true(out >= 0);
    close(out);
    close(own);
}

/* Not if its earlier issues may have had the same numbers, or if there are no more numbers. */
static void test_not_handed_on(void **state)
{
    (void)state;
    uint64_t issue = 0;
    for (unsigned i = 0; i < 3; i++) {
        Janitor janitor = {.most = 8};
        int pool = segment_make();
        assert_int_equal(janitor_add(&janitor, pool, i == 0 ? 0 : PRODUCER, 1), 0);
        janitor_abandon(&janitor, PRODUCER);
        if (i == 1)
            janitor.items[0].producers = PRODUCERS_MAX;
        int own = hand_on(&janitor, SEGMENT_BYTES, &issue);
        assert_int_equal(own >= 0, i == 2);
        if (own >= 0)
            close(own);
        else
            look(&janitor, false);
        assert_int_equal(janitor.n, i == 2); /* otherwise it would only cost memory */
        close(pool);
        janitor_free(&janitor);
    }
}

/* The nearest size; one that is registered with CUDA only as it is. */
static void test_handed_on_by_size(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        int found; /* index of the segment; -1: none */
    } cases[] = {
        {SEGMENT_BYTES, 0},         {SEGMENT_BYTES * 3 / 2, 1},  {SEGMENT_BYTES * 2, 1},
        {SEGMENT_BYTES * 5 / 2, 1}, {SEGMENT_BYTES * 16, 1},     {SEGMENT_BYTES * 17, -1},
        {SEGMENT_BYTES / 2, 0},     {SEGMENT_BYTES * 3 / 4, 0},  {SEGMENT_BYTES / 3, 1},
        {SEGMENT_BYTES / 4, 1},     {SEGMENT_BYTES / 4 - 1, -1}, {0, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Janitor janitor = {.most = 8};
        int pools[2] = {segment_make(), segment_make()};
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = LOCK_PINNED, .l_len = 1};
        assert_int_equal(fcntl(pools[0], F_OFD_SETLK, &lock), 0);
        assert_int_equal(ftruncate(pools[1], 2 * SEGMENT_BYTES), 0);
        for (int j = 0; j < 2; j++)
            assert_int_equal(janitor_add(&janitor, pools[j], PRODUCER, 1), j);
        janitor_abandon(&janitor, PRODUCER);
        uint64_t issue = 0;
        int own = hand_on(&janitor, cases[i].bytes, &issue);
        struct stat st;
        if (own >= 0)
            assert_int_equal(fstat(own, &st), 0);
        int found = own < 0 ? -1 : st.st_size == SEGMENT_BYTES ? 0 : 1;
        assert_int_equal(found, cases[i].found);
        if (own >= 0)
            close(own);
        close(pools[0]);
        close(pools[1]);
        janitor_free(&janitor);
    }
}

/* A segment that stays empty is in no pool any more, and must not cost a descriptor until the job ends. */
static void test_forgotten(void **state)
{
    (void)state;
    Janitor janitor = {.most = 8};
    int pool = segment_make();
    assert_int_equal(janitor_add(&janitor, pool, PRODUCER, 1), 0);
    for (int i = 0; i < 30; i++)
        look(&janitor, false);
    assert_int_equal(janitor.n, 0);
    close(pool);
    janitor_free(&janitor);
}

/* Promised memory counts before it is touched, but only while the segment is in use. */
static void test_used(void **state)
{
    (void)state;
    Janitor janitor = {.most = 8};
    int touched = segment_make();
    int fresh = memfd_create("shmguard", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fresh, SEGMENT_BYTES), 0);
    assert_int_equal(janitor_add(&janitor, touched, PRODUCER, 11), 0);
    assert_int_equal(janitor_add(&janitor, fresh, PRODUCER, 12), 1);
    int out = hand_out(fresh);
    assert_int_equal(janitor_used(&janitor), SEGMENT_BYTES);
    struct stat st;
    assert_int_equal(fstat(fresh, &st), 0);
    janitor_promise(&janitor, st.st_dev, st.st_ino, SEGMENT_BYTES / 2);
    assert_int_equal(janitor_used(&janitor), SEGMENT_BYTES * 3 / 2);
    assert_int_equal(ftruncate(fresh, SEGMENT_BYTES / 4), 0); /* cut for a smaller tensor */
    assert_int_equal(janitor_used(&janitor), SEGMENT_BYTES * 5 / 4);
    assert_int_equal(ftruncate(fresh, SEGMENT_BYTES), 0);
    janitor_promise(&janitor, st.st_dev, st.st_ino, SEGMENT_BYTES / 2);

    assert_true(janitor_reclaim(&janitor, 1));
    assert_int_equal(janitor_used(&janitor), SEGMENT_BYTES / 2);
    assert_false(janitor_reclaim(&janitor, 1));

    int socket = send_away(out); /* it is in use even if only a socket holds it */
    assert_int_equal(janitor_used(&janitor), SEGMENT_BYTES / 2);
    close(socket);
    assert_int_equal(janitor_used(&janitor), 0);
    close(touched);
    close(fresh);
    janitor_free(&janitor);
}

static void test_refused(void **state)
{
    (void)state;
    Janitor janitor = {.most = 1};
    char path[] = "/tmp/shmguard-test-XXXXXX";
    int pipes[2];
    int file = mkostemp(path, O_CLOEXEC);
    int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(file >= 0 && directory >= 0 && pipe2(pipes, O_CLOEXEC) == 0);
    assert_int_equal(write(file, "precious", 8), 8);
    assert_int_equal(janitor_add(&janitor, file, PRODUCER, 1), -EINVAL);
    unlink(path);
    assert_int_equal(janitor_add(&janitor, directory, PRODUCER, 1), -EINVAL);
    assert_int_equal(janitor_add(&janitor, pipes[0], PRODUCER, 1), -EINVAL);
    assert_int_equal(janitor_add(&janitor, -1, PRODUCER, 1), -EINVAL);
    int fd = segment_make();
    char memory[40];
    snprintf(memory, sizeof memory, "/proc/self/fd/%d", fd);
    int read_only = open(memory, O_RDONLY | O_CLOEXEC);
    assert_int_equal(janitor_add(&janitor, read_only, PRODUCER, 1), -EINVAL);
    close(read_only);
    assert_int_equal(janitor_add(&janitor, fd, PRODUCER, 1), 0);
    assert_int_equal(janitor_add(&janitor, fd, PRODUCER, 1), 0); /* already known */
    int one_more = segment_make();
    assert_int_equal(janitor_add(&janitor, one_more, PRODUCER, 1), -EMFILE);
    close(one_more);
    close(fd);
    close(file);
    close(directory);
    close(pipes[0]);
    close(pipes[1]);
    janitor_free(&janitor);
}

/* A tensor maps one page of the handed-out description. A segment that is only kept for the next batch does
 * not. */
static void test_who_keeps(void **state)
{
    (void)state;
    Root root;
    assert_int_equal(root_open(NULL, &root), 0);
    Janitor janitor = {.most = 8};
    long page = sysconf(_SC_PAGESIZE);
    int pool = segment_make();
    assert_int_equal(janitor_add(&janitor, pool, PRODUCER, 1), 0);
    void *view = mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, pool, 0);
    int out = hand_out(pool);
    janitor_used(&janitor);
    assert_int_equal(janitor_kept_by(&janitor, &root, getpid()), 0); /* handed out, but not mapped */
    void *hold = mmap(NULL, (size_t)page, PROT_NONE, MAP_SHARED, out, 0);
    close(out);
    janitor_used(&janitor);
    assert_int_equal(janitor_kept_by(&janitor, &root, getpid()), SEGMENT_BYTES);
    munmap(hold, (size_t)page);
    janitor_used(&janitor);
    assert_int_equal(janitor_kept_by(&janitor, &root, getpid()), 0);
    assert_int_equal(janitor_kept_by(&janitor, &root, 1 << 30), 0); /* no such process */
    munmap(view, SEGMENT_BYTES);
    close(pool);
    janitor_free(&janitor);
    root_close(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_looks),      cmocka_unit_test(test_who_keeps),
        cmocka_unit_test(test_in_use),           cmocka_unit_test(test_looks_in_a_row),
        cmocka_unit_test(test_issued_meanwhile), cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_abandoned),        cmocka_unit_test(test_handed_on),
        cmocka_unit_test(test_not_handed_on),    cmocka_unit_test(test_handed_on_by_size),
        cmocka_unit_test(test_forgotten),        cmocka_unit_test(test_used),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
