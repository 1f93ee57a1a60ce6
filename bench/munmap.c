/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to map and unmap memory that is not a tensor's, while this process has TENSORS tensors
 * mapped:
 *
 *     munmap TENSORS
 *
 * prints the nanoseconds per pair of mmap and munmap, by the functions of libc and by system calls, which no
 * library can interpose. Each figure is the median of blocks, which alternate: what other processes do falls
 * into a few of them. The tensors come from other processes, as a trainer's do.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TENSOR_BYTES = 512 * 1024, FOREIGN_BYTES = 64 * 1024, PER_PRODUCER = 256, BLOCK = 20 };

static void check(int is_good, const char *what)
{
    if (!is_good) {
        perror(what);
        exit(1);
    }
}

static int tensor_make(int i)
{
    char name[64];
    snprintf(name, sizeof name, "/torch_%d_%d", getpid(), i);
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    check(fd >= 0 && ftruncate(fd, TENSOR_BYTES) == 0 && shm_unlink(name) == 0, name);
    return fd;
}

typedef union Control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
} Control;

static void tensor_send(int to, int fd)
{
    char byte = 0;
    Control control = {.header = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec part = {&byte, 1};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    check(sendmsg(to, &packet, 0) == 1, "sendmsg");
    close(fd);
}

static void tensor_receive(int from)
{
    char byte = 0;
    int fd = -1;
    Control control = {0};
    struct iovec part = {&byte, 1};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    check(recvmsg(from, &packet, MSG_CMSG_CLOEXEC) == 1 && control.header.cmsg_type == SCM_RIGHTS, "recvmsg");
    memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
    check(mmap(NULL, TENSOR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED, "mmap");
    close(fd);
}

/* One producer makes no more than its pool takes: what is beyond that is not recycled, and has no view. */
static void tensors_receive(int n)
{
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
    pid_t producer = fork();
    check(producer >= 0, "fork");
    if (producer == 0) {
        for (int i = 0; i < n; i++)
            tensor_send(ends[1], tensor_make(i));
        _exit(0);
    }
    for (int i = 0; i < n; i++)
        tensor_receive(ends[0]);
    waitpid(producer, NULL, 0);
    close(ends[0]);
    close(ends[1]);
}

static double nsec_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void pair_by_libc(void)
{
    void *foreign = mmap(NULL, FOREIGN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(foreign != MAP_FAILED && munmap(foreign, FOREIGN_BYTES) == 0, "munmap");
}

static void pair_by_kernel(void)
{
    long foreign = syscall(SYS_mmap, NULL, FOREIGN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                           -1, (off_t)0);
    check(foreign != -1 && syscall(SYS_munmap, foreign, FOREIGN_BYTES) == 0, "munmap");
}

static double block_measure(void (*pair)(void))
{
    double start = nsec_now();
    for (int i = 0; i < BLOCK; i++)
        pair();
    return (nsec_now() - start) / BLOCK;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    enum { BLOCKS = 1000 };
    static double by_libc[BLOCKS];
    static double by_kernel[BLOCKS];
    int tensors = argc == 2 ? atoi(argv[1]) : 0;
    struct rlimit files;
    check(getrlimit(RLIMIT_NOFILE, &files) == 0, "getrlimit");
    files.rlim_cur = files.rlim_max; /* the pool takes an eighth of it */
    check(setrlimit(RLIMIT_NOFILE, &files) == 0, "setrlimit");
    for (int made = 0; made < tensors; made += PER_PRODUCER)
        tensors_receive(tensors - made < PER_PRODUCER ? tensors - made : PER_PRODUCER);
    for (int i = 0; i < BLOCKS; i++) {
        by_libc[i] = block_measure(pair_by_libc);
        by_kernel[i] = block_measure(pair_by_kernel);
    }
    qsort(by_libc, BLOCKS, sizeof *by_libc, by_value);
    qsort(by_kernel, BLOCKS, sizeof *by_kernel, by_value);
    printf("%.0f %.0f\n", by_libc[BLOCKS / 2], by_kernel[BLOCKS / 2]);
    return 0;
}
