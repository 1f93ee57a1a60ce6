/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shmfs-remove.h"

/* A root whose dev/shm no one else uses. */
typedef struct Place {
    char path[64];
    Root root;
    int dir; /* dev/shm */
} Place;

static int place_make(void **state)
{
    Place *place = calloc(1, sizeof *place);
    if (!place)
        return -1;
    strcpy(place->path, "/dev/shm/shmguard-test-XXXXXX"); /* a tmpfs, if there is one */
    if (!mkdtemp(place->path)) {
        strcpy(place->path, "/tmp/shmguard-test-XXXXXX");
        if (!mkdtemp(place->path))
            return -1;
    }
    place->root = ROOT_NONE;
    place->root.fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mkdirat(place->root.fd, "dev", 0700) < 0 || mkdirat(place->root.fd, "dev/shm", 0700) < 0)
        return -1;
    place->dir = openat(place->root.fd, "dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = place;
    return place->dir < 0 ? -1 : 0;
}

static int place_remove(void **state)
{
    Place *place = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", place->path);
    int r = system(command);
    fd_close(place->dir);
    root_close(&place->root);
    free(place);
    return r;
}

static void file_make(const Place *place, const char *name)
{
    int fd = openat(place->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "0123456789", 10), 10);
    close(fd);
}

static FileStat file_look(const Place *place, const char *name)
{
    struct stat st;
    assert_int_equal(fstatat(place->dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return file_stat_of(&st);
}

static bool file_exists(const Place *place, const char *name)
{
    return faccessat(place->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void remove_and_expect(const Place *place, const char *name, const FileStat *expected,
                              ShmRemoval outcome)
{
    ShmRemoval removal = SHM_KEPT_UNSURE;
    uint64_t freed = 0;
    assert_int_equal(shmfs_remove(&place->root, text_of(name), expected, &removal, &freed), 0);
    assert_int_equal(removal, outcome);
    assert_int_equal(file_exists(place, name), outcome != SHM_REMOVED);
}

static void test_unheld_is_removed(void **state)
{
    const Place *place = *state;
    file_make(place, "torch_1_2_3");
    FileStat expected = file_look(place, "torch_1_2_3");
    ShmRemoval removal = SHM_KEPT_UNSURE;
    uint64_t freed = 0;
    assert_int_equal(shmfs_remove(&place->root, TEXT("torch_1_2_3"), &expected, &removal, &freed), 0);
    if (removal == SHM_KEPT_UNSURE) /* a temporary directory on a file system without leases */
        skip();
    assert_int_equal(removal, SHM_REMOVED);
    assert_int_equal(freed, expected.allocated_bytes);
    assert_false(file_exists(place, "torch_1_2_3"));
}

static void test_second_name_frees_nothing(void **state)
{
    const Place *place = *state;
    file_make(place, "a");
    assert_int_equal(linkat(place->dir, "a", place->dir, "b", 0), 0);
    FileStat expected = file_look(place, "a");
    ShmRemoval removal = SHM_KEPT_UNSURE;
    uint64_t freed = 1;
    assert_int_equal(shmfs_remove(&place->root, TEXT("a"), &expected, &removal, &freed), 0);
    assert_int_equal(removal, SHM_REMOVED);
    assert_int_equal(freed, 0);
    assert_true(file_exists(place, "b"));
}

static void test_held_is_kept(void **state)
{
    const Place *place = *state;
    file_make(place, "held");
    FileStat expected = file_look(place, "held");

    int fd = openat(place->dir, "held", O_RDONLY | O_CLOEXEC);
    remove_and_expect(place, "held", &expected, SHM_KEPT_OPEN);

    /* Mapped, but not open. */
    void *mapped = mmap(NULL, 10, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    close(fd);
    remove_and_expect(place, "held", &expected, SHM_KEPT_OPEN);
    munmap(mapped, 10);

    remove_and_expect(place, "held", &expected, SHM_REMOVED);
}

/* No process has the file open: its descriptor is in a socket. */
static void test_in_flight_is_kept(void **state)
{
    const Place *place = *state;
    file_make(place, "flight");
    FileStat expected = file_look(place, "flight");
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int fd = openat(place->dir, "flight", O_RDWR | O_CLOEXEC);
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec data = {(char[]){'x'}, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    assert_int_equal(sendmsg(pair[0], &message, 0), 1);
    close(fd);
    remove_and_expect(place, "flight", &expected, SHM_KEPT_OPEN);
    close(pair[0]);
    close(pair[1]);
    remove_and_expect(place, "flight", &expected, SHM_REMOVED);
}

static void test_changed_is_kept(void **state)
{
    const Place *place = *state;
    file_make(place, "file");
    FileStat expected = file_look(place, "file");

    FileStat other = expected;
    other.inode++;
    remove_and_expect(place, "file", &other, SHM_KEPT_CHANGED);
    other = expected;
    other.device.minor++;
    remove_and_expect(place, "file", &other, SHM_KEPT_CHANGED);
    other = expected;
    other.changed -= 1;
    remove_and_expect(place, "file", &other, SHM_KEPT_CHANGED);

    assert_int_equal(symlinkat("file", place->dir, "link"), 0);
    remove_and_expect(place, "link", &expected, SHM_KEPT_CHANGED);
    FileStat fifo;
    assert_int_equal(mkfifoat(place->dir, "fifo", 0600), 0);
    fifo = file_look(place, "fifo");
    remove_and_expect(place, "fifo", &fifo, SHM_KEPT_CHANGED);
    remove_and_expect(place, "file", &expected, SHM_REMOVED);
}

static void test_names_cannot_leave(void **state)
{
    const Place *place = *state;
    assert_int_equal(mkdirat(place->dir, "sub", 0700), 0);
    file_make(place, "sub/inner");
    FileStat expected = file_look(place, "sub/inner");
    assert_int_equal(symlinkat("sub", place->dir, "alias"), 0);

    char long_name[NAME_MAX + 2];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const struct {
        const char *name;
        int r;
    } cases[] = {
        {"", -ENOENT},
        {".", -EXDEV},
        {"..", -EXDEV},
        {"/etc/x", -EXDEV},
        {"../x", -EXDEV},
        {"sub/../sub/inner", -EXDEV},
        {"sub//inner", -EXDEV},
        {"sub/inner/", -EXDEV},
        {long_name, -EXDEV},
        {"gone", -ENOENT},
        {"alias/inner", -ENOTDIR},
        {"gone/x", -ENOENT},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ShmRemoval removal = SHM_KEPT_UNSURE;
        uint64_t freed = 0;
        assert_int_equal(shmfs_remove(&place->root, text_of(cases[i].name), &expected, &removal, &freed),
                         cases[i].r);
        assert_int_equal(removal, SHM_KEPT_UNSURE);
    }
    remove_and_expect(place, "sub/inner", &expected, SHM_REMOVED);
}

/* A process that opens a file while it is being removed must find all of it or nothing, and the signal that
 * reports this to the lease's owner must not kill it. */
static void test_openers_do_no_harm(void **state)
{
    const Place *place = *state;
    enum { ROUNDS = 3000 };
    pid_t opener = fork();
    assert_true(opener >= 0);
    if (opener == 0) {
        for (;;) {
            int fd = openat(place->dir, "race", O_RDWR | O_CLOEXEC);
            char byte = 0;
            if (fd >= 0 && read(fd, &byte, 1) < 0)
                _exit(1);
            fd_close(fd);
        }
    }
    unsigned removed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        file_make(place, "race");
        FileStat expected = file_look(place, "race");
        ShmRemoval removal = SHM_KEPT_UNSURE;
        uint64_t freed = 0;
        assert_int_equal(shmfs_remove(&place->root, TEXT("race"), &expected, &removal, &freed), 0);
        assert_int_not_equal(removal, SHM_KEPT_CHANGED);
        removed += removal == SHM_REMOVED;
        if (removal != SHM_REMOVED)
            assert_int_equal(unlinkat(place->dir, "race", 0), 0);
    }
    int status = 0;
    kill(opener, SIGKILL);
    assert_int_equal(waitpid(opener, &status, 0), opener);
    assert_true(WIFSIGNALED(status));
    print_message("%u of %d removed in the race\n", removed, ROUNDS);
}

#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(test_unheld_is_removed),  PLACE_TEST(test_second_name_frees_nothing),
        PLACE_TEST(test_held_is_kept),       PLACE_TEST(test_in_flight_is_kept),
        PLACE_TEST(test_changed_is_kept),    PLACE_TEST(test_names_cannot_leave),
        PLACE_TEST(test_openers_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
