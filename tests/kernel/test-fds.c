/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fds.h"
#include "temp-root.h"

static void test_target(void **state)
{
    (void)state;
    static const struct {
        const char *link;
        const char *target;
        bool deleted;
    } cases[] = {
        {"/dev/shm/torch_1", "/dev/shm/torch_1", false},
        {"/dev/shm/torch_1 (deleted)", "/dev/shm/torch_1", true},
        {"/memfd:a b (deleted)", "/memfd:a b", true},
        {"/a (deleted) (deleted)", "/a (deleted)", true},
        {"/a(deleted)", "/a(deleted)", false},
        {"/a (deleted) ", "/a (deleted) ", false},
        {"/new\nline", "/new\nline", false},
        {"socket:[12]", "socket:[12]", false},
        {" (deleted)", "", true},
        {"(deleted)", "(deleted)", false},
        {"", "", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        FdEntry entry;
        fd_target_parse(text_of(cases[i].link), &entry);
        assert_true(text_equal(entry.target, cases[i].target));
        assert_int_equal(entry.deleted, cases[i].deleted);
    }
}

/* What a visit reported about one descriptor. */
typedef struct Seen {
    int fd;
    bool found;
    bool deleted;
    char target[4097];
    uint32_t calls;
} Seen;

static int entry_find(const FdEntry *entry, void *context)
{
    Seen *seen = context;
    seen->calls++;
    if (entry->fd == seen->fd) {
        seen->found = true;
        seen->deleted = entry->deleted;
        memcpy(seen->target, entry->target.data, entry->target.size);
        seen->target[entry->target.size] = '\0';
    }
    return 0;
}

static Seen seen_of(const Root *root, int pid, int fd)
{
    Seen seen = {.fd = fd};
    uint32_t count = 0;
    assert_int_equal(fds_visit(root, pid, entry_find, &seen, &count), 0);
    assert_int_equal(count, seen.calls);
    return seen;
}

static void test_live(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    uint32_t before = seen_of(&root, 0, -1).calls;

    int memfd = memfd_create("a b\n", MFD_CLOEXEC);
    assert_true(memfd >= 0);
    assert_int_equal(ftruncate(memfd, 4096), 0);
    Seen seen = seen_of(&root, getpid(), memfd);
    assert_int_equal(seen.calls, before + 1);
    assert_true(seen.found && seen.deleted);
    assert_string_equal(seen.target, "/memfd:a b\n");

    FileStat stat;
    assert_int_equal(fd_stat(&root, getpid(), memfd, &stat), 0);
    assert_int_equal(stat.size_bytes, 4096);
    close(memfd);
    assert_int_equal(fd_stat(&root, getpid(), memfd, &stat), -ENOENT);

    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(strncmp(seen_of(&root, 0, pair[0]).target, "socket:[", 8), 0);
    close(pair[0]);
    close(pair[1]);
}

/* More entries than one getdents call returns: each must be reported exactly once. */
static void test_many(void **state)
{
    (void)state;
    enum { MANY = 900 };
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    int fds[MANY];
    int n = 0;
    while (n < MANY && (fds[n] = dup(0)) >= 0)
        n++;
    Seen seen = seen_of(&root, 0, n > 0 ? fds[n - 1] : 0);
    assert_true(seen.calls > (uint32_t)n);
    assert_true(seen.found);
    for (int i = 0; i < n; i++)
        close(fds[i]);
}

static void test_count(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    int pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    uint32_t listed = 0;
    Seen seen = {.fd = -1};
    assert_int_equal(fds_visit(&root, pid, entry_find, &seen, &listed), 0);
    uint64_t quick = listed;
    int r = fds_count_quick(&root, pid, &quick);
    assert_true(r == 0 || r == -EOPNOTSUPP);
    assert_int_equal(quick, listed);
    for (int live = 0; live < 2; live++) {
        uint64_t count = 0;
        root.live = live;
        assert_int_equal(fds_count(&root, pid, &count), 0);
        assert_int_equal(count, listed);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    uint64_t count = 12;
    assert_int_equal(fds_count_quick(&root, pid, &count), -ENOENT);
    assert_int_equal(fds_count(&root, pid, &count), -ENOENT);
    assert_int_equal(count, 12);
}

static int entry_stop(const FdEntry *entry, void *context)
{
    (void)entry;
    return ++*(int *)context == 2 ? 77 : 0;
}

static void test_visitor_stops(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    int calls = 0;
    uint32_t count = 5;
    assert_int_equal(fds_visit(&root, 0, entry_stop, &calls, &count), 77);
    assert_int_equal(calls, 2);
    assert_int_equal(count, 5);
}

static void test_captured(void **state)
{
    (void)state;
    char longest[4096];
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    TempRoot temp = temp_root_make();
    temp_root_link(&temp, "/dev/shm/torch_1 (deleted)", "proc/5/fd/3");
    temp_root_link(&temp, longest, "proc/5/fd/4");
    temp_root_link(&temp, "x", "proc/5/fd/five");
    temp_root_link(&temp, "x", "proc/5/fd/99999999999");
    temp_root_write(&temp, "proc/5/fd/6", "no link");
    temp_root_write(&temp, ".capture/stat",
                    "proc/5/fd/3 0:25 12 100600 0 1000 4096 8 1700000000 1700000001\n");
    temp_root_write(&temp, "proc/6/fd", "no folder");
    const Root *root = temp_root_open(&temp);

    Seen seen = seen_of(root, 5, 3);
    assert_int_equal(seen.calls, 2);
    assert_true(seen.found && seen.deleted);
    assert_string_equal(seen.target, "/dev/shm/torch_1");
    assert_string_equal(seen_of(root, 5, 4).target, longest);

    FileStat stat;
    assert_int_equal(fd_stat(root, 5, 3, &stat), 0);
    assert_int_equal(stat.inode, 12);
    assert_int_equal(fd_stat(root, 5, 4, &stat), -ENOENT);
    assert_int_equal(fds_visit(root, 6, entry_find, &seen, NULL), -ENOTDIR);
    assert_int_equal(fds_visit(root, 7, entry_find, &seen, NULL), -ENOENT);
    temp_root_free(&temp);
}

static void test_gone(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    int child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    /* A zombie has no descriptors, but its folder belongs to root. */
    Seen seen = {0};
    assert_int_equal(fds_visit(&root, child, entry_find, &seen, NULL), geteuid() == 0 ? 0 : -EACCES);
    assert_int_equal(seen.calls, 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(fds_visit(&root, child, entry_find, &seen, NULL), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_target), cmocka_unit_test(test_live),          cmocka_unit_test(test_many),
        cmocka_unit_test(test_count),  cmocka_unit_test(test_visitor_stops), cmocka_unit_test(test_captured),
        cmocka_unit_test(test_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
