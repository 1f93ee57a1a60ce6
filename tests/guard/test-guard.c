/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordinary program, run under the preload library: it makes shared memory with the calls that PyTorch
 * makes and looks at what it gets. That a segment was issued again is seen by the inode
 * that the kernel knows it by.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol.h"
#include "segment-inode.h"

#define MIB ((size_t)1 << 20)

typedef struct Tensor {
    int fd;
    char *data;
    size_t size;
    ino_t inode;
} Tensor;

static atomic_int counter;

/* As at::MapAllocator does under file_descriptor: the descriptor is kept, the name goes at once. */
static Tensor tensor_map(size_t size)
{
    char name[64];
    struct stat st;
    snprintf(name, sizeof name, "/torch_%d_%d", getpid(), atomic_fetch_add(&counter, 1));
    Tensor tensor = {.fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600), .size = size};
    assert_true(tensor.fd >= 0);
    assert_int_equal(fstat(tensor.fd, &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(ftruncate(tensor.fd, (off_t)size), 0);
    assert_int_equal(fcntl(tensor.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fstat(tensor.fd, &st), 0);
    assert_true((size_t)st.st_size >= size);
    tensor.inode = segment_inode(tensor.fd);
    tensor.data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, tensor.fd, 0);
    assert_ptr_not_equal(tensor.data, MAP_FAILED);
    assert_int_equal(shm_unlink(name), 0);
    return tensor;
}

static Tensor tensor_make(size_t size, int fill)
{
    Tensor tensor = tensor_map(size);
    memset(tensor.data, fill, size);
    return tensor;
}

static void tensor_drop(Tensor *tensor)
{
    assert_int_equal(munmap(tensor->data, tensor->size), 0);
    assert_int_equal(close(tensor->fd), 0);
    *tensor = (Tensor){.fd = -1};
}

static bool tensor_is(const Tensor *tensor, int fill)
{
    for (size_t i = 0; i < tensor->size; i++)
        if (tensor->data[i] != (char)fill)
            return false;
    return true;
}

static bool under_guard(void)
{
    Tensor tensor = tensor_make(MIB, 1);
    char path[64];
    char target[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", tensor.fd);
    ssize_t n = readlink(path, target, sizeof target - 1);
    tensor_drop(&tensor);
    return n > 0 && strstr(target, "memfd:shmguard");
}

static void test_a_free_segment_comes_back(void **state)
{
    (void)state;
    Tensor first = tensor_make(3 * MIB, 1);
    ino_t inode = first.inode;
    char *data = first.data;
    tensor_drop(&first);
    Tensor second = tensor_make(3 * MIB, 2);
    assert_int_equal(second.inode, inode);
    assert_ptr_equal(second.data, data);
    Tensor third = tensor_make(3 * MIB, 3);
    assert_int_not_equal(third.inode, inode);
    assert_true(tensor_is(&second, 2));
    tensor_drop(&second);
    tensor_drop(&third);
}

static ino_t inode_shown(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return st.st_ino;
}

/* What fstat is in programs that were built with a glibc before 2.33. A newer one does not link it. */
int __fxstat64(int version, int fd, struct stat64 *st) __attribute__((weak));

static void test_each_issue_is_another_file(void **state)
{
    (void)state;
#ifdef __x86_64__
    enum { ISSUES = 50, FXSTAT_VERSION = 1 };
#else
    enum { ISSUES = 50, FXSTAT_VERSION = 0 };
#endif
    ino_t shown[ISSUES];
    ino_t inode = 0;
    for (int i = 0; i < ISSUES; i++) {
        Tensor tensor = tensor_make(20 * MIB, i);
        struct stat64 before;
        struct statx by_statx;
        shown[i] = inode_shown(tensor.fd);
        assert_int_equal(inode_shown(tensor.fd), shown[i]);
        assert_int_equal(__fxstat64(FXSTAT_VERSION, tensor.fd, &before), 0);
        assert_int_equal(before.st_ino, shown[i]);
        assert_int_equal(statx(tensor.fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &by_statx), 0);
        assert_int_equal(by_statx.stx_ino, shown[i]);
        assert_int_equal(i == 0 ? tensor.inode : inode, tensor.inode);
        inode = tensor.inode;
        for (int j = 0; j < i; j++)
            assert_int_not_equal(shown[i], shown[j]);
        tensor_drop(&tensor);
    }
}

static void test_an_issue_is_one_file_to_all(void **state)
{
    (void)state;
    Tensor first = tensor_make(21 * MIB, 1);
    tensor_drop(&first);
    Tensor tensor = tensor_make(21 * MIB, 2);
    ino_t shown = inode_shown(tensor.fd);
    assert_int_not_equal(shown, tensor.inode);
    int copy = fcntl(tensor.fd, F_DUPFD_CLOEXEC, 0);
    assert_int_equal(inode_shown(copy), shown);
    /* What a program does with the descriptor changes nothing about what it is. */
    struct flock own = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 4096, .l_len = 4096};
    assert_int_equal(fcntl(copy, F_SETLK, &own), 0);
    assert_true(lseek(copy, 4096, SEEK_SET) == 4096);
    pid_t child = fork();
    if (child == 0)
        _exit(inode_shown(tensor.fd) == shown && inode_shown(copy) == shown ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(copy);
    assert_int_equal(inode_shown(tensor.fd), shown);
    tensor_drop(&tensor);
}

static void test_other_files_are_left_as_they_are(void **state)
{
    (void)state;
    int fd = memfd_create("other", MFD_CLOEXEC);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 4096, .l_len = 1};
    assert_int_equal(ftruncate(fd, 4 * MIB), 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    errno = 17;
    assert_int_equal(inode_shown(fd), segment_inode(fd));
    assert_int_equal(errno, 17);
    close(fd);
}

/* What a program asks of a tensor's mapping ends with the tensor, as it does with munmap. */
static void test_a_mapping_is_new_to_the_next_tensor(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        Tensor tensor = tensor_make(23 * MIB, i);
        pid_t child = fork();
        if (child == 0) /* would fault where MADV_DONTFORK were still in force */
            _exit(tensor_is(&tensor, i) ? 0 : 1);
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        if (i % 2 == 0)
            assert_int_equal(mprotect(tensor.data + MIB, MIB, PROT_READ), 0);
        else
            assert_int_equal(madvise(tensor.data, 23 * MIB, MADV_DONTFORK), 0);
        tensor_drop(&tensor);
    }
}

static void test_sizes_that_are_close_share_segments(void **state)
{
    (void)state;
    Tensor first = tensor_make(7 * MIB - 5, 1);
    ino_t inode = first.inode;
    tensor_drop(&first);
    Tensor second = tensor_make(7 * MIB - 70000, 2);
    assert_int_equal(second.inode, inode);
    tensor_drop(&second);
}

/* It is cut and made longer, and the tensors of other segments are not. A view of the old size stays usable.
 */
static void test_sizes_that_differ_share_segments(void **state)
{
    (void)state;
    static const size_t sizes[] = {20 * MIB, 18 * MIB, 11 * MIB, 6 * MIB + 5, 9 * MIB, 17 * MIB, 19 * MIB};
    Tensor other = tensor_make(20 * MIB, 77);
    Tensor tensor = tensor_make(20 * MIB, 1);
    ino_t inode = tensor.inode;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct stat st;
        tensor_drop(&tensor);
        tensor = tensor_make(sizes[i], (int)i + 2);
        assert_int_equal(tensor.inode, inode);
        assert_true(tensor_is(&tensor, (int)i + 2));
        assert_int_equal(fstat(tensor.fd, &st), 0);
        assert_true((size_t)st.st_size >= sizes[i]);
        assert_true((size_t)st.st_blocks * 512 <= sizes[i] + sizes[i] / 3);
    }
    tensor_drop(&tensor);
    Tensor small = tensor_make(MIB, 9); /* it does not throw away 19 MiB */
    assert_int_not_equal(small.inode, inode);
    assert_true(tensor_is(&other, 77));
    tensor_drop(&small);
    tensor_drop(&other);
}

static void test_small_ones_are_exact(void **state)
{
    (void)state;
    static const size_t sizes[] = {1000, MIB / 8 - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        Tensor tensor = tensor_make(sizes[i], 1);
        struct stat st;
        assert_int_equal(fstat(tensor.fd, &st), 0);
        assert_int_equal(st.st_size, sizes[i]);
        tensor_drop(&tensor);
    }
    Tensor first = tensor_make(MIB / 8, 1);
    ino_t inode = first.inode;
    tensor_drop(&first);
    Tensor second = tensor_make(MIB / 8, 2);
    assert_int_equal(second.inode, inode);
    tensor_drop(&second);
}

static void test_a_descriptor_in_flight_holds(void **state)
{
    (void)state;
    int sockets[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets), 0);
    Tensor tensor = tensor_make(4 * MIB, 7);
    ino_t inode = tensor.inode;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {
        .header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
    memcpy(CMSG_DATA(&control.header), &tensor.fd, sizeof(int));
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    assert_int_equal(sendmsg(sockets[0], &packet, 0), 1);
    tensor_drop(&tensor);

    Tensor other = tensor_make(4 * MIB, 8);
    assert_int_not_equal(other.inode, inode);
    close(sockets[0]);
    close(sockets[1]); /* and with them the descriptor */
    Tensor again = tensor_make(4 * MIB, 9);
    assert_int_equal(again.inode, inode);
    tensor_drop(&other);
    tensor_drop(&again);
}

/* The child closes every descriptor it has, as daemons do, and still reaches the tensor that it inherited. */
static void test_a_forked_child_holds_without_descriptors(void **state)
{
    (void)state;
    int go[2];
    assert_int_equal(pipe(go), 0);
    Tensor tensor = tensor_make(5 * MIB, 7);
    ino_t inode = tensor.inode;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        bool told = read(go[0], &byte, 1) == 1;
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
        _exit(told && tensor_is(&tensor, 7) ? 0 : 1);
    }
    tensor_drop(&tensor);
    for (int i = 0; i < 3; i++) {
        Tensor other = tensor_make(5 * MIB, 9);
        assert_int_not_equal(other.inode, inode);
        tensor_drop(&other);
    }
    assert_int_equal(write(go[1], "x", 1), 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    Tensor again[2] = {tensor_make(5 * MIB, 1), tensor_make(5 * MIB, 2)};
    assert_true(again[0].inode == inode || again[1].inode == inode);
    tensor_drop(&again[0]);
    tensor_drop(&again[1]);
    close(go[0]);
    close(go[1]);
}

/* Parent and child make tensors of one size at the same time: none may get the other's. */
static void test_a_forked_child_has_a_pool_of_its_own(void **state)
{
    (void)state;
    Tensor warm[3] = {tensor_make(2 * MIB, 1), tensor_make(2 * MIB, 1), tensor_make(2 * MIB, 1)};
    for (int i = 0; i < 3; i++)
        tensor_drop(&warm[i]);
    pid_t child = fork();
    int mine = child == 0 ? 100 : 50;
    bool right = true;
    for (int i = 0; i < 50; i++) {
        Tensor one = tensor_make(2 * MIB, mine + i % 50);
        Tensor two = tensor_make(2 * MIB, mine);
        right = right && tensor_is(&one, mine + i % 50) && tensor_is(&two, mine);
        tensor_drop(&one);
        tensor_drop(&two);
    }
    if (child == 0)
        _exit(right ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(right);
}

static bool is_locked(int fd, off_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    assert_int_equal(fcntl(fd, F_OFD_GETLK, &lock), 0);
    return lock.l_type != F_UNLCK;
}

/* A child that a producer forks has the tensor, and cannot issue its segment. */
static void test_a_producer_ends_when_it_is_killed(void **state)
{
    (void)state;
    struct {
        int fd;
        pid_t child;
    } told;
    int line[2];
    char path[64];
    assert_int_equal(pipe2(line, O_CLOEXEC), 0);
    pid_t producer = fork();
    if (producer == 0) {
        Tensor tensor = tensor_make(4 * MIB, 1);
        told.fd = tensor.fd;
        told.child = fork();
        if (told.child != 0 && write(line[1], &told, sizeof told) != sizeof told)
            _exit(1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(line[0], &told, sizeof told), sizeof told);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", producer, told.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(is_locked(fd, LOCK_USED) && is_locked(fd, LOCK_POOLED));
    kill(producer, SIGKILL);
    waitpid(producer, NULL, 0);
    for (int i = 0; i < 100 && is_locked(fd, LOCK_POOLED); i++)
        usleep(50000); /* its child may not have run yet */
    assert_true(is_locked(fd, LOCK_USED) && !is_locked(fd, LOCK_POOLED));
    kill(told.child, SIGKILL);
    for (int i = 0; i < 100 && is_locked(fd, LOCK_USED); i++)
        usleep(50000);
    assert_false(is_locked(fd, LOCK_USED));
    close(fd);
    close(line[0]);
    close(line[1]);
}

static void test_a_killed_holder_lets_go(void **state)
{
    (void)state;
    Tensor tensor = tensor_make(6 * MIB, 7);
    ino_t inode = tensor.inode;
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    tensor_drop(&tensor);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    Tensor again = tensor_make(6 * MIB, 8);
    assert_int_equal(again.inode, inode);
    tensor_drop(&again);
}

/* A second mapping of a segment in use is a plain one, and keeps the segment by itself. */
static void test_mapped_twice(void **state)
{
    (void)state;
    Tensor tensor = tensor_make(9 * MIB, 7);
    ino_t inode = tensor.inode;
    char *twin = mmap(NULL, tensor.size, PROT_READ | PROT_WRITE, MAP_SHARED, tensor.fd, 0);
    assert_ptr_not_equal(twin, MAP_FAILED);
    assert_ptr_not_equal(twin, tensor.data);
    twin[5] = 8;
    assert_int_equal(tensor.data[5], 8);
    tensor_drop(&tensor);
    Tensor other = tensor_make(9 * MIB, 9);
    assert_int_not_equal(other.inode, inode);
    assert_int_equal(twin[6], 7);
    assert_int_equal(munmap(twin, 9 * MIB), 0);
    Tensor again = tensor_make(9 * MIB, 9);
    assert_int_equal(again.inode, inode);
    tensor_drop(&other);
    tensor_drop(&again);
}

/* A program that unmaps a part keeps the rest, and the segment is never issued again. */
static void test_partly_unmapped(void **state)
{
    (void)state;
    Tensor tensor = tensor_make(10 * MIB, 7);
    ino_t inode = tensor.inode;
    assert_int_equal(munmap(tensor.data, 5 * MIB), 0);
    assert_int_equal(close(tensor.fd), 0);
    for (int i = 0; i < 3; i++) {
        Tensor other = tensor_make(10 * MIB, 9);
        assert_int_not_equal(other.inode, inode);
        tensor_drop(&other);
    }
    assert_int_equal(tensor.data[6 * MIB], 7);
    assert_int_equal(munmap(tensor.data + 5 * MIB, 5 * MIB), 0);
}

/* Under file_system the descriptor is closed and the name stays: without a supervisor the real file must be
 * there. */
static void test_a_name_that_is_kept_is_a_real_file(void **state)
{
    (void)state;
    pid_t child = fork(); /* sharing by name is remembered: in a process of its own */
    if (child == 0) {
        char name[64];
        struct stat st;
        snprintf(name, sizeof name, "/torch_%d_named", getpid());
        int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        bool right = fd >= 0 && ftruncate(fd, 2 * MIB) == 0;
        char *data = right ? mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
        right = data != MAP_FAILED && close(fd) == 0;
        if (right)
            memset(data, 5, 2 * MIB);
        int again = shm_open(name, O_RDWR, 0600);
        char byte = 0;
        right = right && again >= 0 && fstat(again, &st) == 0 && st.st_size == (off_t)(2 * MIB) &&
                st.st_nlink == 1 && pread(again, &byte, 1, 2 * MIB - 1) == 1 && byte == 5;
        right = right && shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600) < 0 && errno == EEXIST;
        right = shm_unlink(name) == 0 && right;
        right = right && shm_unlink(name) < 0 && errno == ENOENT;
        right = right && munmap(data, 2 * MIB) == 0;
        _exit(right ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A name of PyTorch's that was opened and is not yet mapped. */
static int open_new(char name[static 64])
{
    snprintf(name, 64, "/torch_%d_%d", getpid(), atomic_fetch_add(&counter, 1));
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    return fd;
}

/* The descriptor and the mapping must stay one file, and the segment as long as it was. */
static void test_resized_twice(void **state)
{
    (void)state;
    char name[64];
    struct stat before;
    struct stat after;
    int fd = open_new(name);
    assert_int_equal(ftruncate(fd, 13 * MIB), 0);
    assert_int_equal(fstat(fd, &before), 0);
    assert_int_equal(ftruncate(fd, 1000), 0);
    assert_int_equal(fstat(fd, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_int_equal(after.st_size, before.st_size);
    char *data = mmap(NULL, 13 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(data, MAP_FAILED);
    memset(data, 3, 13 * MIB);
    assert_int_equal(ftruncate(fd, 29 * MIB), 0);
    assert_int_equal(fstat(fd, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_true(after.st_size >= (off_t)(29 * MIB));
    data[5] = 9;
    char byte = 0;
    assert_int_equal(pread(fd, &byte, 1, 5), 1);
    assert_int_equal(byte, 9);
    assert_int_equal(shm_unlink(name), 0);
    assert_int_equal(munmap(data, 13 * MIB), 0);
    assert_int_equal(close(fd), 0);
}

/* Of a tensor whose descriptor was closed behind the guard's back something stays in its table; the next one
 * with the same number is found all the same. */
static void test_a_number_that_was_closed_unseen(void **state)
{
    (void)state;
    char stale[64];
    char name[64];
    struct stat st;
    int fd = open_new(stale);
    assert_int_equal(syscall(SYS_close, fd), 0);
    assert_int_equal(open_new(name), fd);
    assert_int_equal(ftruncate(fd, 15 * MIB - 5), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 15 * MIB); /* a segment, not the bare memfd */
    assert_int_equal(shm_unlink(name), 0);
    assert_int_equal(shm_unlink(stale), 0);
    assert_int_equal(close(fd), 0);
}

typedef struct Allocation {
    atomic_bool begun;
    atomic_bool ended;
} Allocation;

static void *allocate(void *context)
{
    enum { MANY_MIB = 1024 };
    Allocation *allocation = context;
    char name[64];
    int fd = open_new(name);
    assert_int_equal(ftruncate(fd, MANY_MIB * MIB), 0);
    allocation->begun = true;
    assert_int_equal(posix_fallocate(fd, 0, MANY_MIB * MIB), 0);
    allocation->ended = true;
    assert_int_equal(shm_unlink(name), 0);
    assert_int_equal(close(fd), 0);
    return NULL;
}

/* Making the pages of a large segment takes a while, in which other threads go on. */
static void test_allocation_does_not_block_others(void **state)
{
    (void)state;
    Allocation allocation = {0};
    unsigned n = 0;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, allocate, &allocation), 0);
    while (!allocation.begun)
        ;
    while (!allocation.ended) {
        Tensor tensor = tensor_make(600 * 1024, 1);
        tensor_drop(&tensor);
        n++;
    }
    pthread_join(thread, NULL);
    assert_true(n > 20);
}

static void test_other_names_are_left_alone(void **state)
{
    (void)state;
    char name[64];
    char path[96];
    snprintf(name, sizeof name, "/shmguard-test-%d", getpid());
    snprintf(path, sizeof path, "/dev/shm%s", name);
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(ftruncate(fd, MIB), 0);
    close(fd);
    assert_int_equal(shm_unlink(name), 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void test_errno_is_kept(void **state)
{
    (void)state;
    errno = 1234;
    Tensor tensor = tensor_make(MIB, 1);
    tensor_drop(&tensor);
    assert_int_equal(errno, 1234);
    assert_int_equal(shm_open("/torch_1_not_there", O_RDWR, 0), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(munmap((void *)1, MIB), -1);
    assert_int_equal(errno, EINVAL);
}

static size_t guard_mappings(void)
{
    char line[512];
    size_t n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        n += strstr(line, "/memfd:shmguard") != NULL;
    fclose(maps);
    return n;
}

static void test_memory_comes_back(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        Tensor tensor = tensor_make(32 * MIB, 1);
        tensor_drop(&tensor);
    }
    assert_true(guard_mappings() > 0);
    usleep(2600 * 1000);
    Tensor small = tensor_make(MIB, 1); /* the next call sweeps */
    tensor_drop(&small);
    assert_true(guard_mappings() <= 2);
}

static void *hammer(void *context)
{
    int fill = (int)(intptr_t)context;
    for (int i = 0; i < 200; i++) {
        Tensor one = tensor_make(MIB + (size_t)(i % 5) * 65536, fill);
        Tensor two = tensor_make(600 * 1024, fill + 1);
        assert_true(tensor_is(&one, fill) && tensor_is(&two, fill + 1));
        tensor_drop(&one);
        tensor_drop(&two);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[6];
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, (void *)(intptr_t)(10 * (i + 1))), 0);
    for (size_t i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
}

/* A tensor whose mapping is dropped with it, so that the guard's table of mappings changes each time. */
static void tensor_pass(size_t size)
{
    Tensor tensor = tensor_map(size);
    assert_int_equal(mprotect(tensor.data, size, PROT_READ | PROT_WRITE), 0);
    tensor_drop(&tensor);
}

typedef struct Churn {
    size_t size;
    atomic_bool *over;
} Churn;

static void *churn(void *context)
{
    const Churn *what = context;
    while (!*what->over)
        tensor_pass(what->size);
    return NULL;
}

/* A release that the guard did not see would leave the segment in use, and the next tensor would get another.
 */
static void test_a_release_is_seen_while_others_come_and_go(void **state)
{
    (void)state;
    enum { CHURNS = 3, KEPT = 100 };
    static Tensor kept[KEPT];
    atomic_bool over = false;
    pthread_t threads[CHURNS];
    Churn churns[CHURNS];
    Tensor first = tensor_map(9 * MIB / 16);
    ino_t inode = first.inode;
    for (size_t i = 0; i < KEPT; i++) /* the more there are, the longer a change of the table takes */
        kept[i] = tensor_map(MIB / 2);
    tensor_drop(&first);
    for (size_t i = 0; i < CHURNS; i++) {
        churns[i] = (Churn){(8 + i) * MIB, &over}; /* too large to get that segment */
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &churns[i]), 0);
    }
    for (int i = 0; i < 4000; i++) {
        Tensor tensor = tensor_map(9 * MIB / 16);
        assert_int_equal(tensor.inode, inode);
        tensor_drop(&tensor);
    }
    over = true;
    for (size_t i = 0; i < CHURNS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < KEPT; i++)
        tensor_drop(&kept[i]);
}

static volatile sig_atomic_t foreign_left;

/* The calls of ours that a handler may make. */
static void on_alarm(int signal)
{
    (void)signal;
    enum { FOREIGN_BYTES = 4096 };
    int saved = errno;
    int fd = open("/dev/null", O_RDONLY);
    close(fd);
    char *foreign = mmap(NULL, FOREIGN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(foreign, FOREIGN_BYTES);
    if (msync(foreign, FOREIGN_BYTES, MS_ASYNC) == 0 || errno != ENOMEM)
        foreign_left = 1;
    errno = saved;
}

static void test_a_signal_handler_passes_by(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct sigaction before;
    sigaction(SIGALRM, &action, &before);
    ualarm(300, 300);
    for (int i = 0; i < 2000; i++) {
        Tensor tensor = tensor_make(600 * 1024, i % 100);
        tensor_pass(700 * 1024);
        assert_true(tensor_is(&tensor, i % 100));
        tensor_drop(&tensor);
    }
    ualarm(0, 0);
    sigaction(SIGALRM, &before, NULL);
    assert_false(foreign_left);
}

/* As an allocator's handler does: it runs while the guard's own has taken its lock. */
static void before_fork(void)
{
    char *foreign = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(foreign, 64 * MIB);
    close(open("/dev/null", O_RDONLY));
}

static void *make_tensors(void *context)
{
    atomic_bool *over = context;
    while (!*over) {
        Tensor tensor = tensor_make(MIB, 3);
        tensor_drop(&tensor);
    }
    return NULL;
}

/* fork in one thread, tensors in another, handlers of other libraries and of signals in between: none may
 * wait forever. */
static int walk_until_told(struct dl_phdr_info *info, size_t size, void *context)
{
    int *line = context;
    char byte = 0;
    (void)info;
    (void)size;
    return write(line[1], "", 1) == 1 && read(line[1], &byte, 1) == 1;
}

static void *walk_objects(void *line)
{
    dl_iterate_phdr(walk_until_told, line);
    return NULL;
}

/* fork leaves the loader's lock to a thread that the child does not have. */
static void test_a_fork_while_the_loader_is_busy(void **state)
{
    (void)state;
    int line[2];
    char byte = 0;
    pthread_t walker;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
    assert_int_equal(pthread_create(&walker, NULL, walk_objects, line), 0);
    assert_int_equal(read(line[0], &byte, 1), 1);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        Tensor tensor = tensor_make(MIB, 4);
        _exit(tensor_is(&tensor, 4) ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(write(line[0], "", 1), 1);
    pthread_join(walker, NULL);
    close(line[0]);
    close(line[1]);
    assert_int_equal(status, 0);
}

static void test_forks_among_threads_and_handlers(void **state)
{
    (void)state;
    atomic_bool over = false;
    pthread_t maker;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct sigaction before;
    sigaction(SIGALRM, &action, &before);
    assert_int_equal(pthread_create(&maker, NULL, make_tensors, &over), 0);
    ualarm(500, 500);
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        if (child == 0) {
            ualarm(0, 0);
            Tensor tensor = tensor_make(MIB, 4);
            _exit(tensor_is(&tensor, 4) ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    ualarm(0, 0);
    over = true;
    pthread_join(maker, NULL);
    sigaction(SIGALRM, &before, NULL);
}

/* A program that maps over a tensor owns the address range, and the segment is never issued again there. */
static void test_mapped_over(void **state)
{
    (void)state;
    Tensor tensor = tensor_make(11 * MIB, 7);
    ino_t inode = tensor.inode;
    char *over = mmap(tensor.data, tensor.size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_ptr_equal(over, tensor.data);
    assert_int_equal(close(tensor.fd), 0);
    over[0] = 5;
    for (int i = 0; i < 3; i++) {
        Tensor other = tensor_make(11 * MIB, 9);
        assert_int_not_equal(other.inode, inode);
        tensor_drop(&other);
    }
    assert_int_equal(over[0], 5);
    assert_int_equal(munmap(over, 11 * MIB), 0);
}

/* The guard does not see a mapping go by a system call, and learns it when another takes its place. */
static void test_unmapped_unseen(void **state)
{
    (void)state;
    Tensor tensor = tensor_make(14 * MIB, 7);
    char *data = tensor.data;
    ino_t inode = tensor.inode;
    assert_int_equal(syscall(SYS_munmap, data, tensor.size), 0);
    Tensor other = tensor_make(14 * MIB, 8);
    if (other.data != data)
        skip();
    assert_int_equal(munmap(other.data, 7 * MIB), 0); /* the other's, and not the one that has gone */
    assert_int_equal(other.data[8 * MIB], 8);
    assert_int_equal(munmap(other.data + 7 * MIB, 7 * MIB), 0);
    for (int i = 0; i < 3; i++) {
        Tensor next = tensor_make(14 * MIB, 9);
        assert_int_not_equal(next.inode, inode);
        assert_int_not_equal(next.inode, other.inode);
        tensor_drop(&next);
    }
    close(tensor.fd);
    close(other.fd);
}

/* More tensors alive than the pool has places: each is whole, and those that live long make room again. */
static void test_many_alive(void **state)
{
    (void)state;
    enum { MANY = 400 };
    static Tensor tensors[MANY];
    for (int i = 0; i < MANY; i++)
        tensors[i] = tensor_make(MIB / 2, i);
    for (int i = 0; i < MANY; i++) {
        assert_true(tensor_is(&tensors[i], i));
        for (int j = 0; j < i; j++)
            assert_int_not_equal(tensors[i].inode, tensors[j].inode);
    }
    for (int i = 0; i < MANY; i++)
        tensor_drop(&tensors[i]);
}

/* A tensor that the program moves is its own: no other tensor gets its memory. */
static void test_moved(void **state)
{
    (void)state;
    Tensor tensor = tensor_make(11 * MIB, 5);
    ino_t inode = tensor.inode;
    char *moved = mremap(tensor.data, tensor.size, 12 * MIB, MREMAP_MAYMOVE);
    assert_ptr_not_equal(moved, MAP_FAILED);
    assert_int_equal(close(tensor.fd), 0);
    for (int i = 0; i < 3; i++) {
        Tensor other = tensor_make(11 * MIB, 6);
        assert_int_not_equal(other.inode, inode);
        tensor_drop(&other);
    }
    tensor.data = moved;
    assert_true(tensor_is(&tensor, 5));
    assert_int_equal(munmap(moved, 12 * MIB), 0);
}

/* So is one of which the program makes a second mapping in this way. */
static void test_doubled(void **state)
{
    (void)state;
    Tensor tensor = tensor_make(15 * MIB, 5);
    Tensor twin = tensor;
    twin.data = mremap(tensor.data, 0, tensor.size, MREMAP_MAYMOVE);
    assert_ptr_not_equal(twin.data, MAP_FAILED);
    tensor_drop(&tensor);
    for (int i = 0; i < 3; i++) {
        Tensor other = tensor_make(15 * MIB, 6);
        assert_int_not_equal(other.inode, twin.inode);
        tensor_drop(&other);
    }
    assert_true(tensor_is(&twin, 5));
    assert_int_equal(munmap(twin.data, twin.size), 0);
}

/* A sandbox in which the system call fails when its second argument is this one; -1: always. */
static bool sandbox_enter(int call, int second)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | (second < 0 ? BPF_JGE : BPF_JEQ) | BPF_K, second < 0 ? 0 : (uint32_t)second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof program / sizeof program[0], .filter = program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static void in_sandbox(int call, int second, bool (*right)(void))
{
    pid_t child = fork();
    if (child == 0)
        _exit(!sandbox_enter(call, second) ? 77 : right() ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

static bool plain_way_works(void)
{
    Tensor tensor = tensor_make(MIB, 3);
    bool right = tensor_is(&tensor, 3) && !under_guard();
    tensor_drop(&tensor);
    return right;
}

static void test_without_memfd_the_plain_way(void **state)
{
    (void)state;
    in_sandbox(SYS_memfd_create, -1, plain_way_works);
}

static bool segments_live_once(void)
{
    Tensor first = tensor_make(22 * MIB, 1);
    ino_t inode = first.inode;
    tensor_drop(&first);
    Tensor second = tensor_make(22 * MIB, 2);
    bool right = second.inode != inode && under_guard();
    tensor_drop(&second);
    return right;
}

static void test_what_cannot_be_told_apart_is_not_issued_again(void **state)
{
    (void)state;
    in_sandbox(SYS_fcntl, F_GETLK, segments_live_once);
}

int main(void)
{
    pthread_atfork(before_fork, NULL,
                   NULL); /* before the guard registers its own, so that it runs after that */
    if (!under_guard()) {
        fprintf(stderr, "run this under the preload library\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_free_segment_comes_back),
        cmocka_unit_test(test_each_issue_is_another_file),
        cmocka_unit_test(test_an_issue_is_one_file_to_all),
        cmocka_unit_test(test_other_files_are_left_as_they_are),
        cmocka_unit_test(test_a_mapping_is_new_to_the_next_tensor),
        cmocka_unit_test(test_sizes_that_are_close_share_segments),
        cmocka_unit_test(test_small_ones_are_exact),
        cmocka_unit_test(test_a_descriptor_in_flight_holds),
        cmocka_unit_test(test_a_forked_child_holds_without_descriptors),
        cmocka_unit_test(test_a_forked_child_has_a_pool_of_its_own),
        cmocka_unit_test(test_a_producer_ends_when_it_is_killed),
        cmocka_unit_test(test_a_killed_holder_lets_go),
        cmocka_unit_test(test_mapped_twice),
        cmocka_unit_test(test_partly_unmapped),
        cmocka_unit_test(test_a_name_that_is_kept_is_a_real_file),
        cmocka_unit_test(test_resized_twice),
        cmocka_unit_test(test_a_number_that_was_closed_unseen),
        cmocka_unit_test(test_allocation_does_not_block_others),
        cmocka_unit_test(test_other_names_are_left_alone),
        cmocka_unit_test(test_errno_is_kept),
        cmocka_unit_test(test_memory_comes_back),
        cmocka_unit_test(test_sizes_that_differ_share_segments),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_a_release_is_seen_while_others_come_and_go),
        cmocka_unit_test(test_a_signal_handler_passes_by),
        cmocka_unit_test(test_forks_among_threads_and_handlers),
        cmocka_unit_test(test_a_fork_while_the_loader_is_busy),
        cmocka_unit_test(test_mapped_over),
        cmocka_unit_test(test_unmapped_unseen),
        cmocka_unit_test(test_many_alive),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_doubled),
        cmocka_unit_test(test_without_memfd_the_plain_way),
        cmocka_unit_test(test_what_cannot_be_told_apart_is_not_issued_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
